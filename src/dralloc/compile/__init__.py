"""From a cluster to a problem, and from a solution back to what the API server would store."""

__all__: list[str] = []
