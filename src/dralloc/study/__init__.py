"""Studies: the same question for many seeds, demands and modes, as a table.

`dralloc.study.study` is the function that users know as ``dralloc.study``.
"""

from __future__ import annotations

from dralloc.choices import Backend
from dralloc.study.run import study
from dralloc.study.trial import MODES

__all__ = ["MODES", "Backend", "study"]
