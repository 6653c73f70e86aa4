"""The plugins of kube-scheduler, a module each; which there are says `dralloc.scheduling.plugins.table`."""

__all__: list[str] = []
