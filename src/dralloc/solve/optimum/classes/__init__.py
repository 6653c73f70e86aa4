"""The optimum over equivalence classes of demands and of devices, with integer counts in place of names."""

__all__: list[str] = []
