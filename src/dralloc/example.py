"""A tiny cluster to try things with."""

from __future__ import annotations

from pathlib import Path

from dralloc.cluster import Cluster
from dralloc.load import load

__all__ = ["example"]


def example() -> Cluster:
    """Give a cluster of two nodes with three GPUs, of which one is in use, and two claims that wait for one.

    First fit gives the large GPU to the claim that would take any.

    >>> import dralloc
    >>> print(dralloc.example())
    """
    return load(Path(__file__).with_name("example.yaml"))
