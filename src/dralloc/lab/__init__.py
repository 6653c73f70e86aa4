"""Many clusters at once: the same question under many seeds and demands."""

__all__: list[str] = []
