"""Studies: the same question for many seeds, demands and modes, as a table.

`dralloc.lab.study.study` is the function that users know as ``dralloc.study``.
"""

from __future__ import annotations

from dralloc.lab.study.run import study
from dralloc.lab.study.trial import MODES
from dralloc.objects.choices import Backend

__all__ = ["MODES", "Backend", "study"]
