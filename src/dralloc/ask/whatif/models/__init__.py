"""Integer models of questions that only `dralloc.ask.whatif` asks, built with OR-Tools; none of its types comes out."""

__all__: list[str] = []
