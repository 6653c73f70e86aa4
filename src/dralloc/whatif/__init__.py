"""What if: studies of a cluster that is not quite as it is.

- `dralloc.whatif.headroom`: how many more of a claim fit, each alone and together;
- `dralloc.whatif.fewest_nodes`: the fewest nodes that hold a mix of claims, or the cheapest kinds of nodes.
"""

from __future__ import annotations

from dralloc.whatif.fewest import FewestNodes, fewest_nodes
from dralloc.whatif.headroom import Headroom, headroom
from dralloc.whatif.wishes import Source, Wish

__all__ = ["FewestNodes", "Headroom", "Source", "Wish", "fewest_nodes", "headroom"]
