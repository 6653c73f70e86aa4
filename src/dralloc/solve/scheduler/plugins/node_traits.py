"""Plugins that look at what a node is: cordons, taints, labels, ports and images.

Source: ``framework/plugins`` of ``kubernetes/pkg/scheduler``: ``nodeunschedulable``, ``tainttoleration``,
``nodeaffinity``, ``nodeports``, ``imagelocality``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from operator import attrgetter
from typing import Final

from dralloc.compile.pods.kinds import PodKind
from dralloc.objects.api.node_selectors import names_of, selector_matches, term_matches
from dralloc.objects.api.tolerating import CORDON_TAINT, all_tolerated, tolerates
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Check,
    Cycle,
    Plugin,
    Rejection,
    Scoring,
    relative,
)
from dralloc.solve.scheduler.snapshot import image_names

__all__ = [
    "IMAGE_LOCALITY",
    "NODE_AFFINITY",
    "NODE_PORTS",
    "NODE_UNSCHEDULABLE",
    "TAINT_TOLERATION",
]

_CORDONED: Final = Rejection(("node(s) were unschedulable",))
_TAINTED: Final = Rejection(("node(s) had untolerated taint(s)",))
_NOT_SELECTED: Final = Rejection(("node(s) didn't match Pod's node affinity/selector",))
_CONFLICT: Final = Rejection(("pod affinity terms conflict",))
_NOT_ENFORCED: Final = Rejection(
    ("node(s) didn't match scheduler-enforced node affinity",)
)
_TAKEN: Final = Rejection(
    ("node(s) didn't have free ports for the requested pod ports",), resolvable=True
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
        one
        for one in cycle.pod.kind.spec.tolerations
        if one.effect in ("", _PREFER_NOT)
    ]

    def intolerable(node: NodeInfo) -> int:
        taints = (
            taint for taint in node.node.spec.taints if taint.effect == _PREFER_NOT
        )
        return sum(
            not any(tolerates(one, taint) for one in tolerations) for taint in taints
        )

    return Scoring(intolerable, lambda counts: MAX_SCORE - relative(counts))


def _named(cycle: Cycle) -> Set[str] | None:
    """The nodes that the terms of required affinity name; None if one of them names none."""
    required = cycle.pod.kind.spec.required_nodes
    return None if required is None else names_of(required)


def _not_selected(cycle: Cycle) -> Check | Rejection | None:
    kind, added = cycle.pod.kind, cycle.profile.added_affinity.required
    if _named(cycle) == set():
        return _CONFLICT
    if (
        not kind.spec.node_selector
        and kind.spec.required_nodes is None
        and added is None
    ):
        return None

    def check(node: NodeInfo) -> Rejection | None:
        if added is not None and not selector_matches(added, node.node):
            return _NOT_ENFORCED
        return None if kind.may_run_on(node.node) else _NOT_SELECTED

    return check


def _preferred(cycle: Cycle) -> Scoring | None:
    affinity = (
        cycle.pod.kind.spec.affinity and cycle.pod.kind.spec.affinity.node_affinity
    )
    terms = (
        *cycle.profile.added_affinity.preferred,
        *(affinity.preferred if affinity else ()),
    )
    if not terms:
        return None
    return Scoring(
        lambda node: sum(
            one.weight for one in terms if term_matches(one.preference, node.node)
        ),
        relative,
    )


def _ports_taken(cycle: Cycle) -> Check | None:
    wanted = cycle.pod.kind.host_ports
    if not wanted:
        return None
    return lambda node: (
        _TAKEN
        if any(port.collides(other) for port in wanted for other in node.ports)
        else None
    )


def _images_there(cycle: Cycle) -> Scoring:
    kind, worth = cycle.pod.kind, cycle.snapshot.images
    wanted = list(_images(kind))
    most = _MOST * len(kind.containers)

    def score(node: NodeInfo) -> int:
        here = image_names(node.node)
        sizes = sum(worth[image] for image in wanted if image in here) if here else 0
        return (
            MAX_SCORE
            * (min(max(sizes, _LEAST), max(most, _LEAST)) - _LEAST)
            // (most - _LEAST)
        )

    return Scoring(score)


def _images(kind: PodKind) -> Iterator[str]:
    """The images of containers and of volumes, with their tags."""
    volumes = (
        volume.image.reference
        for volume in kind.spec.volumes
        if volume.image is not None
    )
    for image in (*(one.image for one in kind.containers), *volumes):
        yield image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


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
    "TaintToleration", _tainted, _intolerable, weight=3, view=_PLACE, reads=_tolerations
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
