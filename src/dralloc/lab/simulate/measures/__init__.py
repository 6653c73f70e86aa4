"""How good a run is, beside its figures: what nobody could exceed, what each decision missed, and fragmentation."""

__all__: list[str] = []
