"""The plugins for what a node is and for who is near: traits of nodes, affinity between pods, and spreading.

Cordons, taints, labels, ports and images are traits of a node. Affinity and spreading look at the pods of a domain.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
    Set,
)
from dataclasses import dataclass
from functools import cached_property, partial
from math import log
from operator import attrgetter
from typing import Final

import numpy as np

from dralloc.compile.pods import PodKind, Term, spread_selector
from dralloc.objects.api import Taint, TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.selecting import (
    CORDON_TAINT,
    all_tolerated,
    names_of,
    selector_matches,
    term_matches,
    tolerates,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Cycle,
    Plugin,
    Scores,
    Scoring,
    relative,
    rounded,
)
from dralloc.solve.scheduler.snapshot import (
    EVERY_NODE,
    EligibleNodes,
    Snapshot,
    Tally,
    image_names,
)
from dralloc.solve.scheduler.verdicts import (
    Check,
    Places,
    Rejection,
    RejectionColumn,
)

__all__ = [
    "IMAGE_LOCALITY",
    "INTER_POD_AFFINITY",
    "NODE_AFFINITY",
    "NODE_PORTS",
    "NODE_UNSCHEDULABLE",
    "POD_TOPOLOGY_SPREAD",
    "TAINT_TOLERATION",
]

# ----------------------------------------------------------------------------
# Traits of nodes: cordons, taints, labels, ports and images. Source:
# ``framework/plugins`` of ``kubernetes/pkg/scheduler``: ``nodeunschedulable``,
# ``tainttoleration``, ``nodeaffinity``, ``nodeports``, ``imagelocality``.

_CORDONED: Final = Rejection(("node(s) were unschedulable",))
_TAINTED: Final = Rejection(("node(s) had untolerated taint(s)",))
_NOT_SELECTED: Final = Rejection(
    ("node(s) didn't match Pod's node affinity/selector",)
)
_CONFLICT: Final = Rejection(("pod affinity terms conflict",))
_NOT_ENFORCED: Final = Rejection(
    ("node(s) didn't match scheduler-enforced node affinity",)
)
_TAKEN: Final = Rejection(
    ("node(s) didn't have free ports for the requested pod ports",),
    resolvable=True,
)

_PREFER_NOT: Final = "PreferNoSchedule"
_MEBIBYTE: Final = 1024 * 1024
_LEAST: Final = 23 * _MEBIBYTE
_MOST: Final = 1000 * _MEBIBYTE
"""What images have to come to for a score at all, and for the best one, by container."""


def _cordoned(cycle: Cycle) -> Check | None:
    if all_tolerated((CORDON_TAINT,), cycle.pod.kind.spec.tolerations):
        return None
    return lambda node: _CORDONED if node.node.spec.unschedulable else None


def _tainted(cycle: Cycle) -> Check:
    tolerations = cycle.pod.kind.spec.tolerations
    return lambda node: (
        None if all_tolerated(node.node.spec.taints, tolerations) else _TAINTED
    )


def _intolerable(cycle: Cycle) -> Scoring:
    tolerations = [
        toleration
        for toleration in cycle.pod.kind.spec.tolerations
        if toleration.effect in ("", _PREFER_NOT)
    ]

    def is_tolerated(taint: Taint) -> bool:
        return any(tolerates(toleration, taint) for toleration in tolerations)

    def intolerable(node: NodeInfo) -> int:
        taints = node.node.spec.taints
        preferences = [taint for taint in taints if taint.effect == _PREFER_NOT]
        return sum(not is_tolerated(taint) for taint in preferences)

    return Scoring(intolerable, lambda counts: MAX_SCORE - relative(counts))


def _named(cycle: Cycle) -> Set[str] | None:
    """The nodes that the terms of required affinity name; None if one of them names none."""
    required = cycle.pod.kind.spec.required_nodes
    if required is None:
        return None
    return names_of(required)


def _not_selected(cycle: Cycle) -> Check | Rejection | None:
    kind, added = cycle.pod.kind, cycle.profile.added_affinity.required
    # Terms that name nodes, and no node that is in all of them.
    if _named(cycle) == set():
        return _CONFLICT
    own_rules = kind.spec.node_selector or kind.spec.required_nodes is not None
    if not own_rules and added is None:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        if added is not None and not selector_matches(added, node.node):
            return _NOT_ENFORCED
        if kind.may_run_on(node.node):
            return None
        return _NOT_SELECTED

    return check


def _preferred(cycle: Cycle) -> Scoring | None:
    terms = list(cycle.profile.added_affinity.preferred)
    affinity = cycle.pod.kind.spec.affinity
    if affinity and affinity.node_affinity:
        terms += affinity.node_affinity.preferred
    if not terms:
        return None

    def score(node: NodeInfo) -> int:
        return sum(
            term.weight
            for term in terms
            if term_matches(term.preference, node.node)
        )

    return Scoring(score, relative)


def _ports_taken(cycle: Cycle) -> Check | None:
    ports = cycle.pod.kind.host_ports
    if not ports:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        for port in ports:
            if any(port.collides(taken_port) for taken_port in node.ports):
                return _TAKEN
        return None

    return check


def _images_there(cycle: Cycle) -> Scoring:
    kind, worth = cycle.pod.kind, cycle.snapshot.images
    images = list(_images(kind))
    upper = _MOST * len(kind.containers)

    def score(node: NodeInfo) -> int:
        names = image_names(node.node)
        size = (
            sum(worth[image] for image in images if image in names)
            if names
            else 0
        )
        size = min(max(size, _LEAST), max(upper, _LEAST))
        return MAX_SCORE * (size - _LEAST) // (upper - _LEAST)

    return Scoring(score)


def _images(kind: PodKind) -> Iterator[str]:
    """The images of containers and of volumes, with their tags."""
    images = [container.image for container in kind.containers]
    images += [
        volume.image.reference
        for volume in kind.spec.volumes
        if volume.image is not None
    ]
    for image in images:
        # A colon before the last slash belongs to the registry's port.
        has_tag = image.rfind(":") > image.rfind("/")
        yield image if has_tag else f"{image}:latest"


def _tolerations(cycle: Cycle) -> Hashable:
    return cycle.pod.kind.spec.tolerations


def _affinity(cycle: Cycle) -> Hashable:
    spec = cycle.pod.kind.spec
    affinity = spec.affinity and spec.affinity.node_affinity
    return (
        frozenset(spec.node_selector.items()),
        repr(affinity) if affinity else "",
        cycle.profile.name,
    )


def _image_names(cycle: Cycle) -> Hashable:
    kind = cycle.pod.kind
    return tuple(_images(kind)), len(kind.containers)


_PLACE: Final = attrgetter("place")
NODE_UNSCHEDULABLE: Final = Plugin(
    "NodeUnschedulable", _cordoned, view=_PLACE, reads=_tolerations
)
TAINT_TOLERATION: Final = Plugin(
    "TaintToleration",
    _tainted,
    _intolerable,
    weight=3,
    view=_PLACE,
    reads=_tolerations,
)
NODE_AFFINITY: Final = Plugin(
    "NodeAffinity",
    _not_selected,
    _preferred,
    weight=2,
    view=_PLACE,
    named=_named,
    reads=_affinity,
)
NODE_PORTS: Final = Plugin(
    "NodePorts", _ports_taken, view=lambda node: tuple(node.ports)
)
IMAGE_LOCALITY: Final = Plugin(
    "ImageLocality", score=_images_there, view=_PLACE, reads=_image_names
)


# ----------------------------------------------------------------------------
# Affinity: pods that want to be near to others, or away from them. Source:
# ``framework/plugins/interpodaffinity`` (``filtering.go``, ``scoring.go``). Scores are
# normalised with float64 as upstream does.

_NOT_NEAR: Final = Rejection(
    ("node(s) didn't match pod affinity rules",), eased=True
)
_NOT_AWAY: Final = Rejection(
    ("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
_NOT_WANTED: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",),
    resolvable=True,
)


def _filter_by_affinity(cycle: Cycle) -> Check | None:
    kind, snapshot = cycle.pod.kind, cycle.snapshot
    unwanted = [
        tally
        for _, tally in _carried(snapshot, "required_anti_affinity", kind)
        if tally.counts
    ]
    if (
        not unwanted
        and not kind.required_affinity
        and not kind.required_anti_affinity
    ):
        return None
    near = [
        _meant(snapshot, kind.required_affinity, term.topology_key)
        for term in kind.required_affinity
    ]
    away = [
        _meant(snapshot, (term,), term.topology_key)
        for term in kind.required_anti_affinity
    ]
    # The first of pods that want to be near to each other may go anywhere.
    nobody_there = not any(tally.counts for tally in near)
    first = nobody_there and _means(kind.required_affinity, kind)

    def check(node: NodeInfo) -> Rejection | None:
        for tally in near:
            if tally.topology_key not in node.labels:
                return _NOT_NEAR
            if not first and not tally.on(node):
                return _NOT_NEAR
        if any(tally.on(node) for tally in away):
            return _NOT_AWAY
        if any(tally.on(node) for tally in unwanted):
            return _NOT_WANTED
        return None

    return check


def _score_affinity(cycle: Cycle) -> Scoring | None:
    kind, snapshot, profile = cycle.pod.kind, cycle.snapshot, cycle.profile
    if profile.ignores_preferences_of_others and not kind.preferred:
        return None
    # What the pod prefers, and what pods on nodes require or prefer with it.
    weights: list[tuple[Tally, int]] = []
    for term in kind.preferred:
        tally = _meant(snapshot, (term,), term.topology_key)
        weights.append((tally, term.weight))
    for _, tally in _carried(snapshot, "required_affinity", kind):
        weights.append((tally, profile.hard_affinity_weight))
    for term, tally in _carried(snapshot, "preferred", kind):
        weights.append((tally, term.weight))
    weighed = [
        (tally, weight) for tally, weight in weights if tally.counts and weight
    ]
    if not weighed:
        return None

    def score(node: NodeInfo) -> int:
        return sum(tally.on(node) * weight for tally, weight in weighed)

    return Scoring(score, _stretched)


def _stretched(scores: Scores) -> Scores:
    """The worst becomes 0, the best `MAX_SCORE`."""
    above: Scores = scores - scores.min()
    span = above.max()
    if not span:
        return above
    stretched: Scores = (float(MAX_SCORE) * (above / float(span))).astype(
        np.int64
    )
    return stretched


def _carried(
    snapshot: Snapshot, sort: str, kind: PodKind
) -> Iterator[tuple[Term, Tally]]:
    """The terms of pods on nodes that mean the kind, with the number of pods that have them."""
    for term, tally in snapshot.carried[sort].items():
        if kind.is_meant_by(term):
            yield term, tally


def _meant(
    snapshot: Snapshot, terms: tuple[Term, ...], topology_key: str
) -> Tally:
    """The pods that all of the terms of a pod mean."""
    return snapshot.tally(
        ("meant", terms), topology_key, partial(_means, terms)
    )


def _means(terms: tuple[Term, ...], kind: PodKind) -> bool:
    """Whether all of the terms mean the kind; of no terms, none does.

    A selector of namespaces that holds for a namespace without labels means every namespace, as upstream looks up the
    labels of namespaces before, and has none at hand when it comes to the pods.
    """
    return bool(terms) and all(
        kind.is_meant_by(term) or term.matches(kind.namespace, {}, kind.labels)
        for term in terms
    )


INTER_POD_AFFINITY: Final = Plugin(
    "InterPodAffinity",
    _filter_by_affinity,
    _score_affinity,
    weight=2,
    looks_around=True,
)


# ----------------------------------------------------------------------------
# Spreading: how evenly pods are over the domains of a topology. Source:
# ``framework/plugins/podtopologyspread`` (``common.go``, ``filtering.go``,
# ``scoring.go``). Scores are computed with float64 as upstream does.

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
    rated = [node for node in cycle.feasible if _has(node, keys)]
    weighed = [
        (constraint, *_counted(constraint, rated)) for constraint in constraints
    ]

    def score(node: NodeInfo) -> int:
        if not _has(node, keys):
            return _IGNORED
        total = 0.0
        for constraint, tally, weight in weighed:
            if constraint.key in node.labels:
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
        _affinity(cycle) if spec.node_affinity_policy == "Honor" else None,
        _tolerations(cycle) if spec.node_taints_policy == "Honor" else None,
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
