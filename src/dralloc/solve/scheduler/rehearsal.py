"""Rehearsals: what equal pods of a group meet in each domain, without binding any of them.

A group is tried in each domain, and what is tried is taken back. Where nothing that its pods meet on a node depends on
other nodes, and the pods are equal, it is enough to know of each node how it is rated with none of them on it, with
one, with two, and so on, and how many of them get devices there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.filters import LEAST_NODES, Checks, together
from dralloc.solve.scheduler.memory import weight_of_choice
from dralloc.solve.scheduler.node_info import NodeInfo, NodesAt
from dralloc.solve.scheduler.nominated import nominated_places
from dralloc.solve.scheduler.plugin import Cycle, Scores, relative
from dralloc.solve.scheduler.scores import independent_totals, scoring_plugins
from dralloc.solve.scheduler.verdicts import Places

if TYPE_CHECKING:
    from dralloc.solve.first_fit.plain import GrantsOfClaims

__all__ = ["Rehearsal"]


class Rehearsal:
    """What equal pods meet on nodes to which they come one after the other.

    Parameters
    ----------
    cycle
        Of one of the pods.
    feasible
        The positions that are feasible for the first of them.
    totals
        Their totals, but for what all of them have in common.
    """

    def __init__(
        self, cycle: Cycle, checks: Checks, feasible: Places, totals: Scores
    ) -> None:
        self._cycle = cycle
        self._check = together(checks[:-1])
        self._wanted_on = cycle.devices.wanted(cycle.pod)
        self._plugins = scoring_plugins(cycle)
        self._totals = dict(
            zip(feasible.tolist(), totals.tolist(), strict=True)
        )
        self._is_nominated = frozenset(nominated_places(cycle))
        # What alternatives count for, relative to the best of the feasible nodes.
        self._weight_of_claims = weight_of_choice(cycle)

    @classmethod
    def of(cls, cycle: Cycle, checks: Checks, feasible: Places) -> Self | None:
        """The rehearsal of pods in parts of the nodes; None if more than what is on a node matters there."""
        kind = cycle.pod.kind
        meets_others = (
            kind.host_ports
            or kind.required_affinity
            or kind.required_anti_affinity
            or kind.preferred
        )
        if meets_others:
            return None
        totals = independent_totals(cycle, feasible)
        return None if totals is None else cls(cycle, checks, feasible, totals)

    def covers(self, within: Places) -> bool:
        """Whether the pods can be rehearsed among these nodes, all of which an attempt looks at."""
        if len(within) >= LEAST_NODES:
            return False
        devices, nodes = self._cycle.devices, self._cycle.snapshot.nodes
        # What is on the other nodes, or comes to them, changes nothing: none of the pods goes there.
        return all(
            position not in self._is_nominated
            and devices.are_alone(nodes[position])
            for position in within.tolist()
            if position in self._totals
        )

    def nodes(
        self,
        pods: Sequence[ClaimKey],
        window: Places,
        choose: Callable[[Attempt], NodeInfo],
    ) -> dict[ClaimKey, NodeInfo]:
        """The nodes that the pods choose, in order, up to the first that has none: then no other has."""
        totals = {
            position: self._totals[position]
            for position in window.tolist()
            if position in self._totals
        }
        earlier = dict.fromkeys(totals, 0)
        chosen: dict[ClaimKey, NodeInfo] = {}
        for key in pods:
            tied = self._best(totals, earlier)
            if not tied:
                break
            best = NodesAt(self._cycle.snapshot.nodes, np.array(tied, np.intp))
            node = chosen[key] = choose(Attempt(key, best, len(window)))
            if len(chosen) == len(pods):
                # Nobody comes to the node after the last one.
                break
            earlier[node.place] += 1
            total = self._total(node, earlier[node.place])
            if total is None:
                del totals[node.place]
            else:
                totals[node.place] = total
        return chosen

    def _best(
        self, totals: dict[int, int], earlier: Mapping[int, int]
    ) -> list[int]:
        """The best positions with devices for one more pod; those without are left out from now on."""
        rated = totals
        if self._weight_of_claims:
            # Which alternatives are had on one node counts on the others.
            for position in self._full(list(totals), earlier):
                del totals[position]
            rated = self._with_claims(totals, earlier)
        while rated:
            best = max(rated.values())
            tied = [
                position for position, total in rated.items() if total == best
            ]
            full = self._full(tied, earlier)
            if not full:
                return tied
            for position in full:
                del totals[position]
        return []

    def _full(
        self, positions: Iterable[int], earlier: Mapping[int, int]
    ) -> list[int]:
        """Those of some positions that have no devices for one more pod."""
        return [
            position
            for position in positions
            if self._get(position, earlier) is None
        ]

    def _get(
        self, position: int, earlier: Mapping[int, int]
    ) -> GrantsOfClaims | None:
        """Return what the claims of one more pod get at a position."""
        node = self._cycle.snapshot.nodes[position]
        return self._cycle.devices.get_again(
            self._wanted_on(node), node, earlier[position]
        )

    def _with_claims(
        self, totals: Mapping[int, int], earlier: Mapping[int, int]
    ) -> dict[int, int]:
        """The totals with what the alternatives count for that the pod would get."""
        ratings = [self._rating(position, earlier) for position in totals]
        scores = self._weight_of_claims * relative(np.array(ratings, np.int64))
        return {
            position: total + score
            for (position, total), score in zip(
                totals.items(), scores.tolist(), strict=True
            )
        }

    def _rating(self, position: int, earlier: Mapping[int, int]) -> int:
        """Return how good the alternatives are that one more pod gets at a position; it gets some."""
        grants = self._get(position, earlier)
        assert grants is not None
        open_claims = self._wanted_on(self._cycle.snapshot.nodes[position])
        grants_by_claim = open_claims.granting(grants)
        return self._cycle.devices.worth(self._cycle.pod, grants_by_claim)

    def _total(self, node: NodeInfo, earlier: int) -> int | None:
        """The total of a node with so many of the pods on it; None if one more is refused there."""
        pod = self._cycle.pod
        for _ in range(earlier):
            node.add(pod)
        try:
            if self._check(node) is not None:
                return None
            return self._cycle.memory.independent_total(
                self._cycle, self._plugins, node
            )
        finally:
            for _ in range(earlier):
                node.remove(pod)
