"""One attempt to schedule a pod: nodes are filtered, the feasible ones are scored.

Source: ``schedule_one.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import groupby
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.memory import FEW
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    Check,
    Cycle,
    Plugin,
    Rejection,
    RejectionColumn,
    Scores,
)
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.verdicts import Places, Rejected, Verdicts

__all__ = [
    "Attempt",
    "Checks",
    "checked_at_once",
    "checks_of",
    "feasible_nodes_to_find",
    "filtered",
    "first_rejection",
    "ruled_out",
    "scored",
    "together",
]

_LEAST_NODES: Final = 100
_LEAST_PERCENTAGE: Final = 5

Checks = Sequence[tuple[Plugin, Check]]
"""Plugins with what they say about nodes, in their order."""


@dataclass(frozen=True)
class Attempt:
    """How an attempt went.

    Parameters
    ----------
    feasible
        The nodes that were found, in order. With more than one they are scored, if not only the best were looked for.
    evaluated
        How many nodes were looked at.
    scores
        Weighted scores by plugin, each in the order of the feasible nodes.
    rejected
        What is against each other node that was looked at.
    message
        The scheduler's words, if no node is feasible.
    is_error
        Whether the attempt ended with an error, which no node could have helped.
    has_victims
        Whether some node would be feasible if pods of lower priority were evicted.
    """

    pod: ClaimKey
    feasible: Sequence[NodeInfo] = ()
    evaluated: int = 0
    scores: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    rejected: Rejected = field(default_factory=Rejected)
    message: str = ""
    is_error: bool = False
    has_victims: bool = False

    @property
    def may_be_helped(self) -> bool:
        """Whether it could go otherwise once more pods are bound: they may be company, or allocate a shared claim."""
        return any(rejection.eased for rejection in self.rejected.tally)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """The sum of the scores of each feasible node."""
        totals = np.zeros(len(self.feasible), np.int64)
        for scores in self.scores.values():
            totals += scores
        return totals

    @property
    def best(self) -> Sequence[NodeInfo]:
        """The feasible nodes with the best total."""
        return [self.feasible[index] for index in self._tied]

    @property
    def chosen(self) -> NodeInfo:
        """The node that the scheduler takes, of the best ones, if nodes were found in order.

        Scores are put into a heap (``nodeScoreHeap``), whose top is taken. On the way there a node only gives way to a
        strictly better one below it, and of two equal ones below it to the left one. So among the best nodes it is the
        first that is met when the heap, as an implicit tree, is gone through from parents to children. The heap knows
        random numbers for ties, but as of 1.36 they all are 0 unless there are extenders.
        """
        tied = self._tied
        first = int(_turns_in_heap(len(self.feasible))[tied].argmin())
        return self.feasible[int(tied[first])]

    def drawn(self, random: Random) -> NodeInfo:
        """The node that the scheduler takes, of the best ones, if nodes were found in no order: any of them."""
        return self.feasible[int(random.choice(self._tied))]

    @cached_property
    def _tied(self) -> Places:
        best: NDArray[np.bool_] = self.totals == self.totals.max(initial=0)
        return best.nonzero()[0]


@lru_cache(maxsize=64)
def _turns_in_heap(size: int) -> NDArray[np.intp]:
    """When each place of a heap is met, from parents to children and from left to right."""
    paths = sorted(range(size), key=lambda place: f"{place + 1:b}"[1:])
    turns = np.empty(size, np.intp)
    turns[paths] = np.arange(size)
    return turns


def checks_of(cycle: Cycle) -> Iterator[tuple[Plugin, Check | Rejection]]:
    """What the filters have to say about the pod; a rejection is the last of them."""
    for plugin in PLUGINS:
        if plugin.filter is not None and plugin.name not in cycle.profile.no_filters:
            found = cycle.memory.answer(plugin, plugin.filter, cycle)
            if found is not None:
                yield plugin, found
            if isinstance(found, Rejection):
                return


def first_rejection(checks: Sequence[Check], node: NodeInfo) -> Rejection | None:
    """What is against a node, as the first of the filters says."""
    for check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection
    return None


def feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """How many feasible nodes are scored at most, of so many nodes (``numFeasibleNodesToFind``).

    Upstream looks at nodes in parallel, so that a few more than needed may be looked at; here, as with
    ``parallelism: 1``, none are.

    Parameters
    ----------
    percentage
        ``percentageOfNodesToScore``; 0 for one that falls from 50 for few nodes to 5 for many.
    """
    if nodes < _LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, _LEAST_NODES)


def filtered(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> tuple[Places, Places, Verdicts]:
    """The first feasible nodes of a window, the others that were looked at, and what is against these.

    The search ends with the first feasible node that is not needed any more. Checks in a row that look at nothing but
    the node are asked again only where something has changed.
    """
    nodes = cycle.snapshot.nodes
    verdicts = Verdicts(len(nodes))
    if not cycle.memory.is_kept:
        checks = checked_at_once(cycle, checks, window, verdicts)
    elif not any(plugin.looks_around for plugin, _ in checks):
        verdicts = _known(cycle, checks)
        if len(verdicts.open(window)) < FEW:
            verdicts.ask_for(together(checks), window, nodes, enough)
            return (*verdicts.found(window, enough), verdicts)
        checks = checked_at_once(cycle, checks, window, verdicts)
    parts = [
        (around, [*part])
        for around, part in groupby(checks, key=lambda each: each[0].looks_around)
    ]
    if [around for around, _ in parts] == [False]:
        known, behind = _known(cycle, checks), verdicts.open(window)
        ruled_out(cycle, checks, behind, known)
        known.ask_for(together(checks), behind, nodes, enough)
        if known is not verdicts:
            verdicts.enter_known(behind, known)
    else:
        each = [
            together(one) if around else partial(_known(cycle, one).ask, together(one))
            for around, one in parts
        ]
        verdicts.ask_for(partial(first_rejection, each), window, nodes, enough)
    return (*verdicts.found(window, enough), verdicts)


def checked_at_once(
    cycle: Cycle, checks: Checks, window: Places, verdicts: Verdicts
) -> Checks:
    """The checks that are left once the first of them were asked about all nodes at once, as far as they can be."""
    for number, (plugin, check) in enumerate(checks):
        places = verdicts.open(window)
        if plugin.reads is not None:
            column: RejectionColumn | None = _traits(cycle, plugin, check, places)
        else:
            column = plugin.column and plugin.column(cycle, places)
        if column is None:
            return checks[number:]
        verdicts.enter_column(places, column)
    return ()


def ruled_out(cycle: Cycle, checks: Checks, places: Places, known: Verdicts) -> None:
    """Know what the only check that is left is certain to have against nodes, without asking it."""
    if len(checks) == 1 and len(places := known.open(places)) >= FEW:
        [(plugin, _)] = checks
        column = plugin.rules_out and plugin.rules_out(cycle, places)
        if column is not None:
            known.enter_column(places, column)


def _traits(
    cycle: Cycle, plugin: Plugin, check: Check, places: Places
) -> RejectionColumn:
    """What is against nodes for what they are, asked once for all pods to which the same matters."""
    assert plugin.reads is not None
    rejections = cycle.snapshot.rejections
    key = plugin.name, plugin.reads(cycle)

    def code(node: NodeInfo) -> int:
        rejection = check(node)
        return (
            0
            if rejection is None
            else rejections.setdefault(rejection, 1 + len(rejections))
        )

    return RejectionColumn(
        cycle.snapshot.columns.trait(key, code)[places], list(rejections)
    )


def _known(cycle: Cycle, checks: Checks) -> Verdicts:
    return cycle.memory.verdicts(tuple(plugin.name for plugin, _ in checks))


def together(checks: Checks) -> Check:
    """What is against a node, as the first of several says."""
    return partial(first_rejection, [check for _, check in checks])


def scored(
    cycle: Cycle, places: Places, feasible: Sequence[NodeInfo]
) -> Mapping[str, Scores]:
    """The weighted scores of feasible nodes, by plugin."""
    plugins = [
        plugin
        for plugin in PLUGINS
        if plugin.score and plugin.name not in cycle.profile.no_scores
    ]
    found = cycle.memory.scores(cycle, plugins, places)
    cycle = cycle._replace(feasible=feasible)
    for plugin in plugins:
        scoring = plugin.score(cycle) if plugin.looks_around and plugin.score else None
        if scoring is not None:
            raw = np.array([scoring.score(node) for node in feasible], np.int64)
            found[plugin.name] = plugin.weight_in(cycle.profile) * scoring.normalise(
                raw
            )
    return found
