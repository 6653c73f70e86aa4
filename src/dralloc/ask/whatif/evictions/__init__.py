"""Who could be evicted, at what cost, and the problem in which they all ask for what they have."""

__all__: list[str] = []
