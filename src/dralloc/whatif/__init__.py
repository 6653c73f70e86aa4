"""What if: studies of a cluster that is not quite as it is.

- `dralloc.whatif.headroom`: how many more of a claim fit, each alone and together;
- `dralloc.whatif.fewest_nodes`: the fewest nodes that hold a mix of claims, or the cheapest kinds of nodes;
- `dralloc.whatif.drain`: where the claims of some nodes can go, or why not;
- `dralloc.whatif.defragment`: the few moves that admit the most of what is pending;
- `dralloc.whatif.partition_layout`: the fixed partition layouts that serve a mix of claims best;
- `dralloc.whatif.preempt`: the cheapest victims whose eviction admits a pod, a claim or a gang.
"""

from __future__ import annotations

from dralloc.whatif.defragment import Defragmentation, defragment
from dralloc.whatif.drain import Drain, drain
from dralloc.whatif.fewest_nodes import FewestNodes, fewest_nodes
from dralloc.whatif.headroom import Headroom, headroom
from dralloc.whatif.mix_entries import MixEntry, Source
from dralloc.whatif.partition_layout import PartitionLayout, partition_layout
from dralloc.whatif.preempt import Preemption, preempt

__all__ = [
    "Defragmentation",
    "Drain",
    "FewestNodes",
    "Headroom",
    "MixEntry",
    "PartitionLayout",
    "Preemption",
    "Source",
    "defragment",
    "drain",
    "fewest_nodes",
    "headroom",
    "partition_layout",
    "preempt",
]
