"""What is read and what everybody speaks of: the API's objects, the cluster, names, amounts, choices, errors."""

__all__: list[str] = []
