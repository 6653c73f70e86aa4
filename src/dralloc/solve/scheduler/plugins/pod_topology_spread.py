"""How evenly pods are spread over the domains of a topology.

Source: ``framework/plugins/podtopologyspread`` (``common.go``, ``filtering.go``, ``scoring.go``). Scores are computed
with float64 as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Final

import numpy as np

from dralloc.compile.pods.kinds import PodKind
from dralloc.compile.pods.selectors import spread_selector
from dralloc.objects.api import TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.tolerating import all_tolerated
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Check,
    Cycle,
    Plugin,
    Rejection,
    Scores,
    Scoring,
    rounded,
)
from dralloc.solve.scheduler.snapshot import EVERY_NODE, Snapshot, Tally

__all__ = ["POD_TOPOLOGY_SPREAD"]

_UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
_TOO_UNEVEN: Final = Rejection((_UNEVEN,), resolvable=True, eased=True)
_NO_DOMAIN: Final = Rejection((f"{_UNEVEN} (missing required label)",))
_IGNORED: Final = -1
"""The score of a node that lacks a label."""


_Whose = tuple[Hashable, Callable[[PodKind], bool], bool]
"""A sort of pods, whether a pod is of it, and whether the pods of the kind in question are."""


@dataclass(frozen=True, eq=False)
class _SpreadConstraint:
    """A constraint of a kind of pods.

    Parameters
    ----------
    sort
        Stands for the pods that count.
    selects
        Whether a pod counts.
    itself
        Whether the pods themselves count.
    eligible
        The nodes on which pods count, by place, with their domains.
    """

    given: TopologySpreadConstraint
    sort: Hashable
    selects: Callable[[PodKind], bool]
    itself: bool
    eligible: Mapping[int, str]
    snapshot: Snapshot

    @property
    def key(self) -> str:
        return self.given.topology_key

    @cached_property
    def domains(self) -> frozenset[str]:
        """The domains of eligible nodes."""
        return frozenset(self.eligible.values())

    @cached_property
    def tally(self) -> Tally:
        """Pods by domain."""
        places = frozenset(self.eligible)
        return self.snapshot.tally((self.sort, places), self.key, self.selects, places)

    @cached_property
    def by_node(self) -> Tally:
        """Pods by node, eligible or not."""
        return self.snapshot.tally(self.sort, EVERY_NODE, self.selects)


def _filter(cycle: Cycle) -> Check | None:
    constraints = _constraints(cycle, "DoNotSchedule")
    if not constraints:
        return None
    limits = [(one, one.tally, _most(one)) for one in constraints]

    def check(node: NodeInfo) -> Rejection | None:
        for one, tally, most in limits:
            if one.key not in node.labels:
                return _NO_DOMAIN
            if tally.on(node) > most:
                return _TOO_UNEVEN
        return None

    return check


def _most(one: _SpreadConstraint) -> int:
    """How many pods may be in a domain already: the fewest that are in any, and the skew, with the pod itself."""
    counts = one.tally.counts
    few = len(one.domains) < (one.given.min_domains or 1)
    least = 0 if few else min(counts.get(domain, 0) for domain in one.domains)
    return one.given.max_skew + least - one.itself


def _score(cycle: Cycle) -> Scoring | None:
    constraints = _constraints(cycle, "ScheduleAnyway")
    if not constraints:
        return None
    keys = _needed(cycle, [one.given for one in constraints])
    rated = [node for node in cycle.feasible if _has(node, keys)]
    weighed = [(one, *_counted(one, rated)) for one in constraints]

    def score(node: NodeInfo) -> int:
        if not _has(node, keys):
            return _IGNORED
        total = 0.0
        for one, tally, weight in weighed:
            if one.key in node.labels:
                total += float(tally.on(node)) * weight + float(one.given.max_skew - 1)
        return rounded(total)

    return Scoring(score, _few_is_good)


def _counted(one: _SpreadConstraint, rated: Sequence[NodeInfo]) -> tuple[Tally, float]:
    """What counts for a constraint, and its weight: less for fewer domains."""
    if one.key == HOSTNAME_LABEL:
        return one.by_node, log(float(len(rated) + 2))
    return one.tally, log(
        float(len({node.labels.get(one.key, "") for node in rated}) + 2)
    )


def _few_is_good(counts: Scores) -> Scores:
    rated = counts[counts != _IGNORED]
    most = rated.max(initial=0)
    shares = MAX_SCORE * (most + rated.min() - counts) // most if most else MAX_SCORE
    return np.where(counts == _IGNORED, 0, shares)


def _needed(cycle: Cycle, constraints: Iterable[TopologySpreadConstraint]) -> list[str]:
    """The labels without which a node is left out: all, but for the system's default constraints."""
    own = (
        bool(cycle.pod.kind.spec.topology_spread_constraints)
        or not cycle.profile.spread_by_system
    )
    return [one.topology_key for one in constraints] if own else []


def _has(node: NodeInfo, keys: Iterable[str]) -> bool:
    return all(key in node.labels for key in keys)


def _constraints(cycle: Cycle, action: str) -> Sequence[_SpreadConstraint]:
    """The pod's constraints with this answer to uneven pods, or the default ones."""
    memo, key = cycle.pod.kind.memo, ("spread", action)
    if key not in memo:
        memo[key] = list(_worked_out(cycle, action))
    found: Sequence[_SpreadConstraint] = memo[key]
    return found


def _worked_out(cycle: Cycle, action: str) -> Iterator[_SpreadConstraint]:
    kind, profile = cycle.pod.kind, cycle.profile
    own = kind.spec.topology_spread_constraints
    if not own and kind.controller is None:
        return
    given = [
        one
        for one in own or profile.default_constraints
        if one.when_unsatisfiable == action
    ]
    keys = _needed(cycle, given)
    for one in given:
        eligible = {
            node.place: node.labels.get(one.topology_key, "")
            for node in cycle.snapshot.nodes
            if _has(node, keys) and _counts(one, kind, node)
        }
        whose = _of_selector(one, kind) if own else _of_controller(kind)
        yield _SpreadConstraint(one, *whose, eligible, cycle.snapshot)


def _counts(one: TopologySpreadConstraint, kind: PodKind, node: NodeInfo) -> bool:
    """Whether pods on the node count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
    if one.node_affinity_policy == "Honor" and not kind.may_run_on(node.node):
        return False
    return one.node_taints_policy != "Honor" or all_tolerated(
        node.node.spec.taints, kind.spec.tolerations
    )


def _of_selector(one: TopologySpreadConstraint, kind: PodKind) -> _Whose:
    selector = spread_selector(one, kind.labels)

    def selects(other: PodKind) -> bool:
        # An empty selector counts nobody (upstream's countPodsMatchSelector).
        return (
            other.namespace == kind.namespace
            and not selector.is_empty
            and selector.matches(other.labels)
        )

    return (
        ("selected", kind.namespace, selector),
        selects,
        selector.matches(kind.labels),
    )


def _of_controller(kind: PodKind) -> _Whose:
    """Pods of the same controller: those that its selector selects are those that it controls."""

    def selects(other: PodKind) -> bool:
        return other.namespace == kind.namespace and other.controller == kind.controller

    return ("controlled", kind.namespace, kind.controller), selects, True


POD_TOPOLOGY_SPREAD: Final = Plugin(
    "PodTopologySpread", _filter, _score, weight=2, looks_around=True
)
