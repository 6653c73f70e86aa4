"""Whether a node has what a pod requests, and how much of it is left.

Source: ``framework/plugins/noderesources/fit.go``, ``least_allocated.go``, ``most_allocated.go``,
``requested_to_capacity_ratio.go``, ``resource_allocation.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from dralloc.pods.kinds import PodInfo
from dralloc.pods.requests import CPU, MEMORY, is_scalar
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import MAX_SCORE, Check, Plugin, Rejection, Scoring
from dralloc.scheduling.profile import Profile, Shape, Strategy
from dralloc.scheduling.rounding import rounded

__all__ = ["NODE_RESOURCES_FIT", "use_of"]

_TOO_MANY: Final = "Too many pods"

Amounts = Iterable[tuple[int, int, int]]
"""What is requested of a resource with the pod, what there is, and the resource's weight."""


def _filter(cycle: Cycle) -> Check:
    wanted = {
        name: amount for name, amount in cycle.pod.kind.requests.items() if amount and not cycle.profile.ignores(name)
    }

    def check(node: NodeInfo) -> Rejection | None:
        if not node.is_limited:
            return None
        lacking = [name for name in wanted if _lacks(node, name, wanted[name]) and not cycle.devices.serves(name, node)]
        reasons = [_TOO_MANY] * (node.pod_room < 1) + [f"Insufficient {name}" for name in lacking]
        if not reasons:
            return None
        return Rejection(tuple(reasons), all(wanted[name] <= node.allocatable.get(name, 0) for name in lacking))

    return check


def _lacks(node: NodeInfo, name: str, amount: int) -> bool:
    return amount > node.allocatable.get(name, 0) - node.requested.get(name, 0)


def _score(cycle: Cycle, _: Sequence[NodeInfo]) -> Scoring:
    profile = cycle.profile
    wanted = cycle.pod.kind.scored
    rate = _STRATEGIES[profile.strategy](profile)

    def amounts(node: NodeInfo) -> Iterator[tuple[int, int, int]]:
        for name, weight in profile.scored_resources.items():
            if (wanted.get(name) or not is_scalar(name)) and node.allocatable.get(name):
                yield _used(node, name) + wanted.get(name, 0), node.allocatable[name], weight

    return Scoring(lambda node: rate(amounts(node)))


def _used(node: NodeInfo, resource: str) -> int:
    return (node.occupied if resource in (CPU, MEMORY) else node.requested).get(resource, 0)


def use_of(profile: Profile, nodes: Sequence[NodeInfo], pods: Sequence[PodInfo]) -> int:
    """How full nodes are together if pods come to them (``ScorePlacement``), of `MAX_SCORE`."""

    def amounts() -> Iterator[tuple[int, int, int]]:
        for name, weight in profile.scored_resources.items():
            wanted = sum(pod.kind.scored.get(name, 0) for pod in pods)
            having = [node for node in nodes if node.allocatable.get(name)]
            if having and (wanted or not is_scalar(name)):
                used = sum(_used(node, name) for node in having)
                yield wanted + used, sum(node.allocatable[name] for node in having), weight

    return _weighted(_most)(amounts())


def _weighted(rate: Callable[[int, int], int]) -> Callable[[Amounts], int]:
    """The mean over the resources, rounded down."""

    def mean(amounts: Amounts) -> int:
        rated = [(rate(requested, there), weight) for requested, there, weight in amounts]
        total = sum(weight for _, weight in rated)
        return sum(score * weight for score, weight in rated) // total if total else 0

    return mean


def _least(requested: int, there: int) -> int:
    return 0 if requested > there else (there - requested) * MAX_SCORE // there


def _most(requested: int, there: int) -> int:
    return min(requested, there) * MAX_SCORE // there


def _ratio(profile: Profile) -> Callable[[Amounts], int]:
    """The mean over the resources that have a score at all, rounded; upstream divides as float64."""

    def mean(amounts: Amounts) -> int:
        rated = [
            (_on_shape(profile.shape, MAX_SCORE if requested > there else requested * MAX_SCORE // there), weight)
            for requested, there, weight in amounts
        ]
        total = sum(weight for score, weight in rated if score > 0)
        return rounded(sum(score * weight for score, weight in rated if score > 0) / total) if total else 0

    return mean


def _on_shape(shape: Shape, utilisation: int) -> int:
    """The value of a broken line, as ``helper/shape_score.go`` interpolates."""
    before, score = shape[0]
    for point, value in shape:
        if utilisation <= point:
            rise = (value - score) * (utilisation - before)
            # Go divides towards zero.
            return score + (abs(rise) // (point - before) * (1 if rise >= 0 else -1) if point > before else 0)
        before, score = point, value
    return score


_STRATEGIES: Final[Mapping[Strategy, Callable[[Profile], Callable[[Amounts], int]]]] = {
    Strategy.LEAST: lambda _: _weighted(_least),
    Strategy.MOST: lambda _: _weighted(_most),
    Strategy.RATIO: _ratio,
}
NODE_RESOURCES_FIT: Final = Plugin("NodeResourcesFit", _filter, _score, view=attrgetter("usage"))
