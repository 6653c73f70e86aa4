"""The common ground of all rooms: the API's objects, the cluster, names, amounts, choices, errors."""

__all__: list[str] = []
