"""Who arrives when: read from a trace or drawn by chance, and the cluster with all of them, compiled once."""

__all__: list[str] = []
