"""How evenly a pod leaves the resources of a node used.

Source: ``framework/plugins/noderesources/balanced_allocation.go``. Upstream computes with float64, in this order of
operations, and so do we: the scores are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from operator import attrgetter
from typing import Final

from dralloc.pods.requests import is_scalar
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import MAX_SCORE, Plugin, Scoring

__all__ = ["BALANCED_ALLOCATION"]


def _score(cycle: Cycle, _: Sequence[NodeInfo]) -> Scoring | None:
    requests, resources = cycle.pod.kind.requests, cycle.profile.balanced_resources
    wanted = {name: requests.get(name, 0) for name in resources}
    if not any(wanted.values()):
        return None

    def score(node: NodeInfo) -> int:
        there = {
            name: node.allocatable[name]
            for name in resources
            if (wanted[name] or not is_scalar(name)) and node.allocatable.get(name)
        }
        before = {name: node.requested.get(name, 0) for name in there}
        after = {name: before[name] + wanted[name] for name in there}
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + _evenness(after, there) - _evenness(before, there)) // 2

    return Scoring(score)


def _evenness(used: Mapping[str, int], there: Mapping[str, int]) -> int:
    """`MAX_SCORE` less the standard deviation of the shares that are used."""
    shares = [min(used[name] / there[name], 1.0) for name in there]
    return int((1 - _deviation(shares)) * float(MAX_SCORE))


def _deviation(shares: Sequence[float]) -> float:
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    total = squares = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    for share in shares:
        squares += (share - mean) * (share - mean)
    return sqrt(squares / len(shares))


BALANCED_ALLOCATION: Final = Plugin("NodeResourcesBalancedAllocation", score=_score, view=attrgetter("usage"))
