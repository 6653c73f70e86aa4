"""What preemption would say: a dry run, in which nobody is evicted.

Source: ``framework/plugins/defaultpreemption/default_preemption.go``, ``framework/preemption/preemption.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from dralloc.compile.pods.kinds import PodInfo
from dralloc.solve.scheduler.attempt import checks_of, first_rejection
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import Cycle, Rejection
from dralloc.solve.scheduler.verdicts import Rejected, fit_error

__all__ = ["Started", "after_filters", "choose_victims"]

_NO_VICTIMS: Final = Rejection(("No preemption victims found for incoming pod",))
_OFFSET: Final = 2**31
"""Makes priorities count as more than nothing, so that fewer victims are better."""

Started = tuple[bool, str]
"""Whether a pod has not started yet, and otherwise when it did."""

_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


def after_filters(cycle: Cycle, rejected: Rejected) -> str:
    """What plugins say once every node is rejected; nothing if pods could be evicted for this one."""
    # Who is turned away before nodes are looked at has not come as far as to its claims.
    claims = (
        "still not schedulable"
        if rejected and cycle.devices.claims_of(cycle.pod)
        else "no new claims to deallocate"
    )
    if cycle.pod.kind.spec.preemption_policy == "Never":
        return f"{claims}, preemption: not eligible due to preemptionPolicy=Never."
    if cycle.in_placement:
        return f"{claims}, preemption: not eligible due to placement-based pod group scheduling limitation"
    places = rejected.resolvable_places()
    with_victims = places[
        cycle.snapshot.columns.lowest_priority[places] < cycle.pod.kind.priority
    ]
    without_victims = len(places) - len(with_victims)
    looked_at = Counter({_NO_VICTIMS: without_victims} if without_victims else {})
    for place in with_victims.tolist():
        node = cycle.snapshot.nodes[place]
        rejection = _without(cycle, node, _below(cycle, node))
        if rejection is None:
            return ""
        looked_at[rejection] += 1
    return f"{claims}, preemption: {fit_error(len(cycle.snapshot.nodes), looked_at, _NOT_HELPFUL)}"


def _below(cycle: Cycle, node: NodeInfo) -> list[PodInfo]:
    """The pods on a node that have a lower priority."""
    return [pod for pod in node.pods if pod.kind.priority < cycle.pod.kind.priority]


def _without(cycle: Cycle, node: NodeInfo, pods: Sequence[PodInfo]) -> Rejection | None:
    """What is against the node without some of its pods, which keep their devices: upstream looks no further."""
    before = cycle.snapshot.states_at((node.place,))
    for pod in pods:
        cycle.snapshot.remove(pod, node)
    try:
        checks = [
            check for _, check in checks_of(cycle) if not isinstance(check, Rejection)
        ]
        return first_rejection(checks, node)
    finally:
        # Also if an error ends the attempt.
        for pod in pods:
            cycle.snapshot.add(pod, node)
        cycle.snapshot.restore(before)


def choose_victims(
    cycle: Cycle, rejected: Rejected, started: Callable[[PodInfo], Started]
) -> tuple[NodeInfo, Sequence[PodInfo]] | None:
    """The node that upstream nominates, and whom it evicts there; None if that helps nowhere.

    Every node is looked at, as upstream does with up to a hundred of them; there are no PodDisruptionBudgets.

    Parameters
    ----------
    started
        When a pod started, so that later ones compare as larger.
    """
    if cycle.pod.kind.spec.preemption_policy == "Never":
        return None
    found = [
        (node, victims)
        for node in rejected.resolvable()
        if (victims := _select(cycle, node, started))
    ]
    return max(found, key=lambda each: _preference(each[1], started), default=None)


def _select(
    cycle: Cycle, node: NodeInfo, started: Callable[[PodInfo], Started]
) -> list[PodInfo]:
    """Whom to evict on a node (``SelectVictimsOnNode``): the most important ones stay if they can."""
    victims = sorted(
        _below(cycle, node), key=lambda pod: (-pod.kind.priority, started(pod))
    )
    if not victims or _without(cycle, node, victims) is not None:
        return []
    for pod in tuple(victims):
        rest = [one for one in victims if one is not pod]
        if _without(cycle, node, rest) is None:
            victims = rest
    return victims


def _preference(
    victims: Sequence[PodInfo], started: Callable[[PodInfo], Started]
) -> tuple[int, int, int, Started]:
    """The larger the better (``pickOneNodeForPreemption``): of equal ones the first is taken."""
    highest = victims[0].kind.priority
    total = sum(pod.kind.priority + _OFFSET for pod in victims)
    earliest = min(started(pod) for pod in victims if pod.kind.priority == highest)
    return -highest, -total, -len(victims), earliest
