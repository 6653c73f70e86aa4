"""A cluster that runs: read it, write to it, keep at it."""

__all__: list[str] = []
