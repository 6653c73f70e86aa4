"""Many clusters at once: the same question under many seeds and demands, and over time."""

__all__: list[str] = []
