"""Answers as HTML that needs nothing else: a page with both, and cells of notebooks.

The page's pictures take matplotlib (extra ``plot``); a cell goes without them.
"""

__all__: list[str] = []
