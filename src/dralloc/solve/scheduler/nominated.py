"""Nominations: where pods are nominated for nodes, the filters are asked once more, as if these were there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from dralloc.solve.scheduler.filters import (
    Checks,
    come_apart,
    together,
    verdicts_apart,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Cycle, Plugin
from dralloc.solve.scheduler.verdicts import Check, Places, Rejection

if TYPE_CHECKING:
    from dralloc.compile.pods import PodInfo
    from dralloc.solve.scheduler.devices import Nomination

__all__ = [
    "NOMINATED_PODS",
    "beside_nominated",
    "nominated_beside",
    "nominated_places",
    "turned_away",
]

NOMINATED_PODS: Final = Plugin("NominatedPods", looks_around=True)
"""Stands for the filters beside pods that are nominated for a node."""


def beside_nominated(cycle: Cycle, checks: Checks) -> Checks:
    """The filters once more, as one check; none if no node has nominations that go before the pod."""
    if not nominated_places(cycle):
        return ()
    check = partial(_asked_beside, cycle, tuple(checks))
    return ((NOMINATED_PODS, check),)


def turned_away(
    cycle: Cycle, checks: Checks, window: Places
) -> Mapping[int, Rejection] | None:
    """What is against positions of a window for nothing but nominations; None if that is not only about the node.

    The other filters look at each node by itself, and none ends with an error. So nodes may be asked in any order, and
    a node that is turned away is one that any filter rejects.
    """
    nominated = nominated_places(cycle)
    if not nominated:
        return {}
    if not come_apart(cycle, checks):
        return None
    in_window = np.zeros(len(cycle.snapshot.nodes), np.bool_)
    in_window[window] = True
    *node_checks, (_, claims_check) = checks
    node_check = together(node_checks)
    beside = cycle.memory.claims_beside
    of_nodes, served = verdicts_apart(cycle, checks)
    rejections: dict[int, Rejection] = {}
    for position in nominated:
        node = cycle.snapshot.nodes[position]
        # Pods with such claims have asked about the devices of the node before.
        if (
            not in_window[position]
            or served.ask(claims_check, node) is not None
        ):
            continue
        if of_nodes.ask(node_check, node) is not None:
            continue
        nominations = nominated_beside(cycle.nominations, cycle.pod, position)
        rejection = _asked_among(nominations, node_check, node)
        if rejection is None:
            # What is kept for the same pods on a node that is as it was.
            state = int(cycle.snapshot.states[position])
            whose = tuple(nomination.pod.key for nomination in nominations)
            if beside.get(position, ())[:2] != (state, whose):
                with cycle.devices.beside(nominations):
                    beside[position] = state, whose, claims_check(node)
            _, _, rejection = beside[position]
        if rejection is not None:
            rejections[position] = rejection
    return rejections


def _asked_among(
    nominations: Sequence[Nomination], check: Check, node: NodeInfo
) -> Rejection | None:
    """Return what a check that looks at nothing but the node has against it with nominated pods there."""
    for nomination in nominations:
        node.add(nomination.pod)
    try:
        return check(node)
    finally:
        for nomination in nominations:
            node.remove(nomination.pod)


def nominated_places(cycle: Cycle) -> list[int]:
    """The positions of nodes with nominations that go before the pod."""
    return [
        position
        for position in cycle.nominations
        if nominated_beside(cycle.nominations, cycle.pod, position)
    ]


def _asked_beside(
    cycle: Cycle, checks: Checks, node: NodeInfo
) -> Rejection | None:
    """Return what is against a node once the pods of no lower priority are there that are nominated for it.

    Source: ``RunFilterPluginsWithNominatedPods`` of ``kubernetes/pkg/scheduler``.
    """
    nominations = nominated_beside(cycle.nominations, cycle.pod, node.place)
    if not nominations:
        return None
    before = cycle.snapshot.states_at((node.place,))
    for nomination in nominations:
        cycle.snapshot.add(nomination.pod, node)
    try:
        with cycle.devices.beside(nominations):
            return together(_with_company(cycle, checks))(node)
    finally:
        # Also if an error ends the attempt.
        for nomination in nominations:
            cycle.snapshot.remove(nomination.pod, node)
        cycle.snapshot.restore(before)


def _with_company(cycle: Cycle, checks: Checks) -> Checks:
    """The same checks, those that look around as they are with the nominated pods.

    Such a check begins with what it knows of all nodes: how few pods a domain has, who keeps others away. Upstream
    adds the pods to that (``RunPreFilterExtensionAddPod``), but not for plugins that had nothing to look at before.
    """
    asked: list[tuple[Plugin, Check]] = []
    for plugin, check in checks:
        answer: Check | Rejection | None = check
        if plugin.looks_around and plugin.filter is not None:
            answer = plugin.filter(cycle)
        # Neither of the plugins that look around turns a pod away from all nodes.
        if answer is not None and not isinstance(answer, Rejection):
            asked.append((plugin, answer))
    return asked


def nominated_beside(
    nominations: Mapping[int, Sequence[Nomination]],
    pod: PodInfo,
    position: int,
) -> list[Nomination]:
    """Return the nominations for a node that go before another pod: those of pods that are not less important."""
    return [
        nomination
        for nomination in nominations.get(position, ())
        if nomination.pod.key != pod.key
        and nomination.pod.kind.priority >= pod.kind.priority
    ]
