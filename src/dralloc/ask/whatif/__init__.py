"""What if: studies of a cluster that is not quite as it is.

- `dralloc.ask.whatif.headroom`: how many more of a claim fit, each alone and together;
- `dralloc.ask.whatif.fewest_nodes`: the fewest nodes that hold a mix of claims, or the cheapest kinds of nodes;
- `dralloc.ask.whatif.drain`: where the claims of some nodes can go, or why not;
- `dralloc.ask.whatif.defragment`: the few moves that admit the most of what is pending;
- `dralloc.ask.whatif.partition_layout`: the fixed partition layouts that serve a mix of claims best;
- `dralloc.ask.whatif.preempt`: the cheapest victims whose eviction admits a pod, a claim or a gang.
"""

from __future__ import annotations

from dralloc.ask.whatif.defragment import Defragmentation, defragment
from dralloc.ask.whatif.drain import Drain, drain
from dralloc.ask.whatif.fewest_nodes import FewestNodes, fewest_nodes
from dralloc.ask.whatif.headroom import Headroom, headroom
from dralloc.ask.whatif.mix_entries import MixEntry, Source
from dralloc.ask.whatif.partition_layout import (
    PartitionLayout,
    partition_layout,
)
from dralloc.ask.whatif.preempt import Preemption, preempt

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
