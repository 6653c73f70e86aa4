"""The plugins for traits of nodes: cordons, taints, labels, ports and images.

Source: ``framework/plugins`` of ``kubernetes/pkg/scheduler``: ``nodeunschedulable``, ``tainttoleration``,
``nodeaffinity``, ``nodeports``, ``imagelocality``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from operator import attrgetter
from typing import Final

from dralloc.compile.pods import PodKind
from dralloc.objects.api import Taint
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
    Scoring,
    relative,
)
from dralloc.solve.scheduler.snapshot import image_names
from dralloc.solve.scheduler.verdicts import Check, Rejection

__all__ = [
    "IMAGE_LOCALITY",
    "NODE_AFFINITY",
    "NODE_PORTS",
    "NODE_UNSCHEDULABLE",
    "TAINT_TOLERATION",
    "node_affinity_of",
    "tolerations_of",
]

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


def tolerations_of(cycle: Cycle) -> Hashable:
    """All of a pod that makes a difference for taints."""
    return cycle.pod.kind.spec.tolerations


def node_affinity_of(cycle: Cycle) -> Hashable:
    """All of a pod that makes a difference for labels of nodes, with its profile, which may ask for some, too."""
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
    "NodeUnschedulable", _cordoned, view=_PLACE, reads=tolerations_of
)
TAINT_TOLERATION: Final = Plugin(
    "TaintToleration",
    _tainted,
    _intolerable,
    weight=3,
    view=_PLACE,
    reads=tolerations_of,
)
NODE_AFFINITY: Final = Plugin(
    "NodeAffinity",
    _not_selected,
    _preferred,
    weight=2,
    view=_PLACE,
    named=_named,
    reads=node_affinity_of,
)
NODE_PORTS: Final = Plugin(
    "NodePorts", _ports_taken, view=lambda node: tuple(node.ports)
)
IMAGE_LOCALITY: Final = Plugin(
    "ImageLocality", score=_images_there, view=_PLACE, reads=_image_names
)
