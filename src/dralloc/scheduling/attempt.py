"""One attempt to schedule a pod: nodes are filtered, the feasible ones are scored.

Source: ``schedule_one.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dralloc.names import ClaimKey
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins import PLUGINS
from dralloc.scheduling.plugins.plugin import Check, Rejection

__all__ = ["Attempt", "checks_of", "filtered", "scored"]


@dataclass(frozen=True)
class Attempt:
    """How an attempt went.

    Parameters
    ----------
    feasible
        The nodes that were found, in order. With more than one they are scored.
    rejected
        What is against each other node that was looked at.
    scores
        Weighted scores by plugin, each in the order of the feasible nodes.
    refused
        What is against the pod, whatever the node.
    message
        The scheduler's words, if no node is feasible.
    has_victims
        Whether some node would be feasible if pods of lower priority were evicted.
    """

    pod: ClaimKey
    feasible: Sequence[NodeInfo] = ()
    rejected: Mapping[NodeInfo, Rejection] = field(default_factory=dict)
    scores: Mapping[str, Sequence[int]] = field(default_factory=dict)
    refused: Rejection | None = None
    message: str = ""
    has_victims: bool = False

    @property
    def may_be_helped(self) -> bool:
        """Whether it could go otherwise once more pods are bound: they may be company, or allocate a shared claim."""
        return any(rejection.eased for rejection in self.rejected.values())

    @cached_property
    def totals(self) -> Sequence[int]:
        """The sum of the scores of each feasible node."""
        return [sum(column) for column in zip(*self.scores.values(), strict=True)] or [0] * len(self.feasible)

    @property
    def chosen(self) -> NodeInfo:
        """The node that the scheduler takes, of the best ones.

        Scores are put into a heap (``nodeScoreHeap``), whose top is taken. On the way there a node only gives way to a
        strictly better one below it, and of two equal ones below it to the left one. So among the best nodes it is the
        first that is met when the heap, as an implicit tree, is gone through from parents to children. The heap knows
        random numbers for ties, but as of 1.36 they all are 0 unless there are extenders.
        """
        most = max(self.totals)
        tied = (place for place, total in enumerate(self.totals) if total == most)
        return self.feasible[min(tied, key=_path_in_heap)]

    @cached_property
    def best(self) -> Sequence[NodeInfo]:
        """The feasible nodes with the best total."""
        most = max(self.totals, default=0)
        return [node for node, total in zip(self.feasible, self.totals, strict=True) if total == most]


def _path_in_heap(place: int) -> str:
    """The way from the top of a heap to a place: 0 for left, 1 for right; parents come before their children."""
    return f"{place + 1:b}"[1:]


def checks_of(cycle: Cycle) -> Iterator[Check | Rejection]:
    """What the filters have to say about the pod; a rejection is the last of them."""
    for plugin in PLUGINS:
        if plugin.filter is not None and plugin.name not in cycle.profile.no_filters:
            found = plugin.filter(cycle)
            if found is not None:
                yield found
            if isinstance(found, Rejection):
                return


def first_rejection(checks: Sequence[Check], node: NodeInfo) -> Rejection | None:
    """What is against a node, as the first of the filters says."""
    return next((rejection for check in checks if (rejection := check(node)) is not None), None)


def filtered(
    checks: Sequence[Check], nodes: Sequence[NodeInfo], enough: int
) -> tuple[list[NodeInfo], dict[NodeInfo, Rejection]]:
    """The first feasible nodes, and what is against the others that were looked at.

    The search ends with the first feasible node that is not needed any more.
    """
    feasible: list[NodeInfo] = []
    rejected: dict[NodeInfo, Rejection] = {}
    for node in nodes:
        rejection = first_rejection(checks, node)
        if rejection is not None:
            rejected[node] = rejection
        elif len(feasible) == enough:
            break
        else:
            feasible.append(node)
    return feasible, rejected


def scored(cycle: Cycle, feasible: Sequence[NodeInfo]) -> dict[str, Sequence[int]]:
    """The weighted scores of feasible nodes, by plugin."""
    found: dict[str, Sequence[int]] = {}
    for plugin in PLUGINS:
        if plugin.score is not None and plugin.name not in cycle.profile.no_scores:
            scoring = plugin.score(cycle, feasible)
            if scoring is not None:
                weight = cycle.profile.weights.get(plugin.name, plugin.weight)
                scores = scoring.normalise([scoring.score(node) for node in feasible])
                found[plugin.name] = [weight * score for score in scores]
    return found
