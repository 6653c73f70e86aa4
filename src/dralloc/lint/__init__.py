"""What the API server would refuse, and whether answers are those of upstream."""

__all__: list[str] = []
