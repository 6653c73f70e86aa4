"""Questions about a cluster: what fits, why not, and what would be if."""

__all__: list[str] = []
