"""How a problem is answered: as upstream would (first fit), or as well as possible (CP-SAT)."""

__all__: list[str] = []
