"""Both answers as one HTML page that needs nothing else. Its pictures take matplotlib (extra ``plot``)."""

from __future__ import annotations

from dralloc.page.render import headline, render
from dralloc.page.sections import Circumstances

__all__ = ["Circumstances", "headline", "render"]
