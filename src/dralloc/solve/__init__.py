"""How a problem is answered: as upstream's allocator would (first fit), as kube-scheduler would, or optimally."""

__all__: list[str] = []
