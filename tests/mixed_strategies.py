"""Small mixed clusters: several kinds of nodes, usage, CPU and memory, gangs, racks, priorities, taints and zones."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from benchmarks.mixture.recipe import HARDWARE, INGREDIENTS
from benchmarks.workloads.mixed import mixed
from dralloc.objects.cluster import Cluster

__all__ = ["mixed_clusters"]


def mixed_clusters(most_nodes: int = 5) -> SearchStrategy[Cluster]:
    """Clusters with any ingredients, but always with some kind of nodes."""
    without = st.sets(st.sampled_from(INGREDIENTS)).filter(
        lambda left_out: not left_out.issuperset(HARDWARE)
    )
    return st.builds(
        mixed,
        nodes=st.integers(1, most_nodes),
        seed=st.integers(0, 2**32),
        without=without,
    )
