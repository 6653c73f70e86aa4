"""Attempts without any memory: counts, verdicts, searches and scores are made anew for every pod and every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import NodeIndex
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.search import DepthFirstSearch
from dralloc.solve.scheduler import Attempt, Profile, Scheduler
from dralloc.solve.scheduler.devices import Devices
from dralloc.solve.scheduler.filters import (
    checks_of,
    feasible_nodes_to_find,
    first_rejection,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Cycle
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.pod_claims import OpenClaims
from dralloc.solve.scheduler.preemption import after_filters
from dralloc.solve.scheduler.verdicts import (
    Check,
    Rejected,
    Rejection,
    Verdicts,
    fit_error,
    refused,
)

__all__ = ["PlainScheduler"]


class PlainDevices(Devices):
    """Devices that are searched for as upstream does, without anything that shortens the search."""

    def find(self, wanted: OpenClaims, node: NodeInfo) -> GrantsOfClaims | None:
        claims = wanted.claims
        grants = DepthFirstSearch(
            self._problem, self._ledger, claims, node.number, leaks=True
        ).run()
        self._ledger.revert()
        return grants


class PlainScheduler:
    """What was bound, and where the next search starts; all else is found out again for each attempt."""

    def __init__(
        self,
        compiled: CompiledCluster,
        profiles: Sequence[Profile],
        heard_of: Sequence[NodeIndex],
    ) -> None:
        self._made_of = compiled, profiles, heard_of
        self._bound: list[tuple[ClaimKey, str]] = []
        self._start = 0

    def bind(self, key: ClaimKey, node: str) -> None:
        """Put a pod on a node."""
        self._bound.append((key, node))

    def attempt(self, key: ClaimKey) -> Attempt:
        """Look at every node for a pod."""
        scheduler = Scheduler(*self._made_of, remembers=False)
        scheduler._devices = PlainDevices(self._made_of[0])
        for pod, node in self._bound:
            scheduler.bind(pod, scheduler.snapshot.by_name[node])
        attempt = _attempt(scheduler._cycle(key), self._start)
        self._start = (self._start + attempt.evaluated) % len(
            scheduler.snapshot.nodes
        )
        return attempt


def _attempt(cycle: Cycle, start: int) -> Attempt:
    key, nodes = cycle.pod.key, list(cycle.snapshot.nodes)
    checks: list[Check] = []
    for _, check in checks_of(cycle):
        if isinstance(check, Rejection):
            return Attempt(
                key,
                message=refused(
                    len(nodes), check, after_filters(cycle, Rejected())
                ),
            )
        checks.append(check)
    feasible: list[NodeInfo] = []
    rejected: dict[NodeInfo, Rejection] = {}
    enough = feasible_nodes_to_find(cycle.profile.percentage, len(nodes))
    try:
        for node in nodes[start:] + nodes[:start]:
            rejection = first_rejection(checks, node)
            if rejection is not None:
                rejected[node] = rejection
            elif len(feasible) == enough:
                break
            else:
                feasible.append(node)
    except FatalError as error:
        return Attempt(key, message=str(error))
    evaluated = len(feasible) + len(rejected)
    verdicts = Verdicts(len(nodes))
    for node, rejection in rejected.items():
        verdicts.enter(node.place, rejection)
    against = Rejected(
        cycle.snapshot.nodes,
        np.array([node.place for node in rejected], np.intp),
        verdicts,
    )
    if feasible:
        return Attempt(
            key,
            feasible,
            evaluated,
            _scores(cycle, feasible) if len(feasible) > 1 else {},
            against,
        )
    after = after_filters(cycle, against)
    return Attempt(
        key,
        evaluated=evaluated,
        rejected=against,
        message=fit_error(len(nodes), Counter(rejected.values()), after=after),
        has_victims=not after,
    )


def _scores(
    cycle: Cycle, feasible: Sequence[NodeInfo]
) -> dict[str, NDArray[np.int64]]:
    weighted_scores = {}
    cycle = cycle._replace(feasible=feasible)
    for plugin in PLUGINS:
        scores = (
            plugin.score is not None
            and plugin.name not in cycle.profile.no_scores
        )
        scoring = plugin.score(cycle) if scores and plugin.score else None
        if scoring is not None:
            raw = np.array([scoring.score(node) for node in feasible], np.int64)
            weighted_scores[plugin.name] = cycle.profile.weights.get(
                plugin.name, plugin.weight
            ) * scoring.normalise(raw)
    return weighted_scores
