"""The optimum over classes of equal demands and equal devices, with integer counts in place of names."""

__all__: list[str] = []
