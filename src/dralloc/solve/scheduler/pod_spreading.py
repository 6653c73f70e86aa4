"""The plugin for spreading: how evenly pods are over the domains of a topology.

Source: ``framework/plugins/podtopologyspread`` (``common.go``, ``filtering.go``, ``scoring.go``) of
``kubernetes/pkg/scheduler``. Scores are computed with float64 as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Final

import numpy as np

from dralloc.compile.pods import PodKind
from dralloc.compile.pods.selectors import spread_selector
from dralloc.objects.api import TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.selecting import all_tolerated
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.node_traits import node_affinity_of, tolerations_of
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Cycle,
    Plugin,
    Scores,
    Scoring,
    rounded,
)
from dralloc.solve.scheduler.snapshot import (
    EVERY_NODE,
    EligibleNodes,
    Snapshot,
    Tally,
)
from dralloc.solve.scheduler.verdicts import (
    Check,
    Places,
    Rejection,
    RejectionColumn,
)

__all__ = ["POD_TOPOLOGY_SPREAD"]

_UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
_TOO_UNEVEN: Final = Rejection((_UNEVEN,), resolvable=True, eased=True)
_NO_DOMAIN: Final = Rejection((f"{_UNEVEN} (missing required label)",))
_LACKS_DOMAIN: Final = 1
_IS_UNEVEN: Final = 2
"""The places of these two in a column, counted from 1."""
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
        The nodes on which pods count.
    """

    spec: TopologySpreadConstraint
    sort: Hashable
    selects: Callable[[PodKind], bool]
    itself: bool
    eligible: EligibleNodes
    snapshot: Snapshot

    @property
    def key(self) -> str:
        return self.spec.topology_key

    @cached_property
    def tally(self) -> Tally:
        """Pods by domain."""
        positions = self.eligible.places
        return self.snapshot.tally(
            (self.sort, positions), self.key, self.selects, positions
        )

    @cached_property
    def by_node(self) -> Tally:
        """Pods by node, eligible or not."""
        return self.snapshot.tally(self.sort, EVERY_NODE, self.selects)


def _filter_by_spread(cycle: Cycle) -> Check | None:
    constraints = _constraints(cycle, "DoNotSchedule")
    if not constraints:
        return None
    limits = [
        (constraint, constraint.tally, _most_in_domain(constraint))
        for constraint in constraints
    ]

    def check(node: NodeInfo) -> Rejection | None:
        for constraint, tally, limit in limits:
            if constraint.key not in node.labels:
                return _NO_DOMAIN
            if tally.on(node) > limit:
                return _TOO_UNEVEN
        return None

    return check


def _uneven_column(cycle: Cycle, positions: Places) -> RejectionColumn | None:
    """Return what `_filter_by_spread` says about nodes."""
    codes = np.zeros(len(positions), np.int64)
    for constraint in _constraints(cycle, "DoNotSchedule"):
        domains, index_of = cycle.snapshot.columns.domains(constraint.key)
        # The last stands for nodes without a domain.
        pods = np.zeros(len(index_of) + 1, np.int64)
        for domain, count in constraint.tally.counts.items():
            pods[index_of[domain]] = count
        domain_at = domains[positions]
        too_many = pods[domain_at] > _most_in_domain(constraint)
        against = np.where(domain_at < 0, _LACKS_DOMAIN, too_many * _IS_UNEVEN)
        codes = np.where(codes, codes, against)
    return RejectionColumn(codes, (_NO_DOMAIN, _TOO_UNEVEN))


def _most_in_domain(constraint: _SpreadConstraint) -> int:
    """Return how many pods may be in a domain already: the fewest in any, and the skew, with the pod itself."""
    counts, spec = constraint.tally.counts, constraint.spec
    fewest = 0
    # With fewer domains than asked for, one that does not exist yet counts as empty.
    if len(constraint.eligible.domains) >= (spec.min_domains or 1):
        fewest = min(
            counts.get(domain, 0) for domain in constraint.eligible.domains
        )
    return spec.max_skew + fewest - constraint.itself


def _score_spread(cycle: Cycle) -> Scoring | None:
    constraints = _constraints(cycle, "ScheduleAnyway")
    if not constraints:
        return None
    keys = _needed(cycle, [constraint.spec for constraint in constraints])
    # A node that lacks a needed label is not rated, and its domain does not count for the weights.
    rated = [node for node in cycle.feasible if _has(node, keys)]
    weighed = [
        (constraint, *_counted(constraint, rated)) for constraint in constraints
    ]

    def score(node: NodeInfo) -> int:
        if not _has(node, keys):
            return _IGNORED
        total = 0.0
        for constraint, tally, weight in weighed:
            # With the system's default constraints no label is needed: a node is rated by those that it has.
            if constraint.key in node.labels:
                # Upstream adds the skew, less one, whatever the count is (``scoreForCount``).
                skew = float(constraint.spec.max_skew - 1)
                total += float(tally.on(node)) * weight + skew
        return rounded(total)

    return Scoring(score, _few_is_good)


def _counted(
    constraint: _SpreadConstraint, rated: Sequence[NodeInfo]
) -> tuple[Tally, float]:
    """Return what counts for a constraint, and its weight: less for fewer domains."""
    if constraint.key == HOSTNAME_LABEL:
        return constraint.by_node, log(float(len(rated) + 2))
    domains = {node.labels.get(constraint.key, "") for node in rated}
    return constraint.tally, log(float(len(domains) + 2))


def _few_is_good(counts: Scores) -> Scores:
    rated = counts[counts != _IGNORED]
    highest = rated.max(initial=0)
    if not highest:
        return np.where(counts == _IGNORED, 0, MAX_SCORE)
    shares = MAX_SCORE * (highest + rated.min() - counts) // highest
    return np.where(counts == _IGNORED, 0, shares)


def _needed(
    cycle: Cycle, constraints: Iterable[TopologySpreadConstraint]
) -> list[str]:
    """The labels without which a node is left out: all, but for the system's default constraints."""
    own_constraints = cycle.pod.kind.spec.topology_spread_constraints
    if not own_constraints and cycle.profile.spread_by_system:
        return []
    return [constraint.topology_key for constraint in constraints]


def _has(node: NodeInfo, keys: Iterable[str]) -> bool:
    return all(key in node.labels for key in keys)


def _constraints(cycle: Cycle, action: str) -> Sequence[_SpreadConstraint]:
    """The pod's constraints with this answer to uneven pods, or the default ones."""
    memo, key = cycle.pod.kind.memo, ("spread", action)
    if key not in memo:
        memo[key] = list(_worked_out(cycle, action))
    constraints: Sequence[_SpreadConstraint] = memo[key]
    return constraints


def _worked_out(cycle: Cycle, action: str) -> Iterator[_SpreadConstraint]:
    kind, profile = cycle.pod.kind, cycle.profile
    own_constraints = kind.spec.topology_spread_constraints
    # Default constraints are about pods of one controller.
    if not own_constraints and kind.controller is None:
        return
    specs = [
        spec
        for spec in own_constraints or profile.default_constraints
        if spec.when_unsatisfiable == action
    ]
    keys = _needed(cycle, specs)
    for spec in specs:
        eligible = _eligible(cycle, spec, keys)
        selects = (
            _of_selector(spec, kind)
            if own_constraints
            else _of_controller(kind)
        )
        yield _SpreadConstraint(spec, *selects, eligible, cycle.snapshot)


def _eligible(
    cycle: Cycle, spec: TopologySpreadConstraint, keys: Sequence[str]
) -> EligibleNodes:
    """The nodes with some labels on which pods count, worked out once for all kinds to which the same matters."""
    kind, snapshot = cycle.pod.kind, cycle.snapshot
    identity = (
        spec.topology_key,
        tuple(keys),
        node_affinity_of(cycle)
        if spec.node_affinity_policy == "Honor"
        else None,
        tolerations_of(cycle) if spec.node_taints_policy == "Honor" else None,
    )
    if identity not in snapshot.eligible:
        domain_of = {
            node.place: node.labels.get(spec.topology_key, "")
            for node in snapshot.nodes
            if _has(node, keys) and _counts(spec, kind, node)
        }
        snapshot.eligible[identity] = EligibleNodes(
            frozenset(domain_of), frozenset(domain_of.values())
        )
    return snapshot.eligible[identity]


def _counts(
    spec: TopologySpreadConstraint, kind: PodKind, node: NodeInfo
) -> bool:
    """Whether pods on the node count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
    if spec.node_affinity_policy == "Honor" and not kind.may_run_on(node.node):
        return False
    if spec.node_taints_policy != "Honor":
        return True
    return all_tolerated(node.node.spec.taints, kind.spec.tolerations)


def _of_selector(spec: TopologySpreadConstraint, kind: PodKind) -> _Whose:
    selector = spread_selector(spec, kind.labels)

    def selects(candidate: PodKind) -> bool:
        if candidate.namespace != kind.namespace:
            return False
        # An empty selector counts nobody (upstream's countPodsMatchSelector).
        return not selector.is_empty and selector.matches(candidate.labels)

    identity = ("selected", kind.namespace, selector)
    return identity, selects, selector.matches(kind.labels)


def _of_controller(kind: PodKind) -> _Whose:
    """Pods of the same controller: those that its selector selects are those that it controls."""

    def selects(candidate: PodKind) -> bool:
        same_namespace = candidate.namespace == kind.namespace
        return same_namespace and candidate.controller == kind.controller

    return ("controlled", kind.namespace, kind.controller), selects, True


POD_TOPOLOGY_SPREAD: Final = Plugin(
    "PodTopologySpread",
    _filter_by_spread,
    _score_spread,
    weight=2,
    looks_around=True,
    column=_uneven_column,
)
