"""What if: studies of a cluster that is not quite as it is.

- `dralloc.whatif.headroom`: how many more of a claim fit;
- `dralloc.whatif.drain`: where the claims of some nodes can go, or why not;
- `dralloc.whatif.defragment`: the few moves that admit the most of what is pending.
"""

from __future__ import annotations

from dralloc.whatif.defragment import Defragmentation, defragment
from dralloc.whatif.drain import Drain, drain
from dralloc.whatif.headroom import Headroom, headroom
from dralloc.whatif.wishes import Source, Wish

__all__ = ["Defragmentation", "Drain", "Headroom", "Source", "Wish", "defragment", "drain", "headroom"]
