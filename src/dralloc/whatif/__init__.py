"""What if: studies of a cluster that is not quite as it is.

- `dralloc.whatif.headroom`: how many more of a claim fit.
"""

from __future__ import annotations

from dralloc.whatif.headroom import Headroom, headroom
from dralloc.whatif.wishes import Source, Wish

__all__ = ["Headroom", "Source", "Wish", "headroom"]
