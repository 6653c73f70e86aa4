"""A tiny cluster to try things with."""

from __future__ import annotations

from pathlib import Path

from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load

__all__ = ["example"]


def example() -> Cluster:
    """Give a cluster of two nodes with three GPUs, of which one is in use, and two claims that wait for one.

    First fit gives the large GPU to the claim that would take any.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.compare(dralloc.example())
    <Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
    """
    return load(Path(__file__).with_name("example.yaml"))
