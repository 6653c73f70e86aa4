"""Preemption: whom it would evict, as a dry run, and what it says.

Source: ``framework/plugins/defaultpreemption/default_preemption.go``, ``framework/preemption/preemption.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dralloc.compile.pods import PodInfo
from dralloc.objects.errors import FatalError
from dralloc.solve.scheduler.filters import checks_of, first_rejection
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.nominated import beside_nominated
from dralloc.solve.scheduler.plugin import Cycle
from dralloc.solve.scheduler.verdicts import Rejected, Rejection, fit_error

__all__ = ["Started", "after_filters", "choose_victims", "supposed_gone"]

_NO_VICTIMS: Final = Rejection(
    ("No preemption victims found for incoming pod",)
)

_OFFSET: Final = 2**31
"""Makes priorities count as more than nothing, so that fewer victims are better."""

Started = tuple[bool, str]
"""Whether a pod has not started yet, and otherwise when it did."""

Preference = tuple[int, int, int, Started]
"""How good it is to evict some pods, the larger the better."""

_NOBODY: Final[Preference] = (-_OFFSET, 0, 0, (False, ""))
"""Where there is nobody to evict, nothing is gained."""

_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


def after_filters(
    cycle: Cycle, rejected: Rejected, *, tells_errors: bool = False
) -> str:
    """Return what plugins say once every node is rejected; nothing if pods could be evicted for this one.

    Parameters
    ----------
    tells_errors
        Whether errors of the dry run are told instead of raised. They may name claims, so nothing that is shared with
        equal pods may be asked then.

    Raises
    ------
    FatalError
        On a node without its pods of lower priority the search for devices ends with an error.
    """
    # Who is turned away before nodes are looked at has not come as far as to its claims.
    claims = "no new claims to deallocate"
    if rejected and cycle.devices.claims_of(cycle.pod):
        claims = "still not schedulable"
    if cycle.in_placement:
        return f"{claims}, preemption: not eligible due to placement-based pod group scheduling limitation"
    if cycle.pod.kind.spec.preemption_policy == "Never":
        return (
            f"{claims}, preemption: not eligible due to preemptionPolicy=Never."
        )
    resolvable = rejected.resolvable_places()
    lowest = cycle.snapshot.columns.lowest_priority[resolvable]
    # Where nobody has a lower priority the answer is known: only the other nodes need a dry run.
    with_victims = resolvable[lowest < cycle.pod.kind.priority]
    without_victims = len(resolvable) - len(with_victims)
    looked_at: Counter[Rejection] = Counter()
    if without_victims:
        looked_at[_NO_VICTIMS] = without_victims
    errors: dict[str, None] = {}
    for position in with_victims.tolist():
        node = cycle.snapshot.nodes[position]
        try:
            rejection = _without(cycle, node, _below(cycle, node))
        except FatalError as error:
            if not tells_errors:
                raise
            # It ends the dry run of this node alone.
            errors[str(error)] = None
            continue
        if rejection is None:
            # One such node is enough: whom the pod would evict is not asked here.
            return ""
        looked_at[rejection] += 1
    if errors:
        # Upstream says nothing else then, and puts several errors in brackets.
        several = ", ".join(errors)
        return f"preemption: {several if len(errors) == 1 else f'[{several}]'}"
    message = fit_error(len(cycle.snapshot.nodes), looked_at, _NOT_HELPFUL)
    return f"{claims}, preemption: {message}"


def _below(cycle: Cycle, node: NodeInfo) -> list[PodInfo]:
    """The pods on a node that have a lower priority."""
    return [
        pod for pod in node.pods if pod.kind.priority < cycle.pod.kind.priority
    ]


def _without(
    cycle: Cycle, node: NodeInfo, pods: Sequence[PodInfo]
) -> Rejection | None:
    """Return what is against the node without some of its pods."""
    with supposed_gone(cycle, node, pods):
        checks = [
            (plugin, check)
            for plugin, check in checks_of(cycle)
            if not isinstance(check, Rejection)
        ]
        asked = [*checks, *beside_nominated(cycle, checks)]
        return first_rejection([check for _, check in asked], node)


def _fits_without(
    cycle: Cycle, node: NodeInfo, pods: Sequence[PodInfo]
) -> bool:
    """Whether the pod could go to the node without some of its pods; not where that ends with an error."""
    try:
        return _without(cycle, node, pods) is None
    except FatalError:
        return False


@contextmanager
def supposed_gone(
    cycle: Cycle, node: NodeInfo, pods: Sequence[PodInfo]
) -> Iterator[None]:
    """Some pods are off their node as long as this lasts.

    They keep their devices: upstream looks no further, unless DRAPreemption is on (KEP-5690).
    """
    before = cycle.snapshot.states_at((node.place,))
    in_order = list(node.pods)
    for pod in pods:
        cycle.snapshot.remove(pod, node)
    try:
        with cycle.devices.supposing(cycle.devices.released(pods, cycle.pod)):
            yield
    finally:
        # Also if an error ends the attempt.
        for pod in pods:
            cycle.snapshot.add(pod, node)
        # Of pods that are equally important the first ones stay: upstream tries on a copy of the node.
        node.pods[:] = in_order
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
    best: tuple[NodeInfo, Sequence[PodInfo]] | None = None
    best_preference: Preference | None = None
    for node in rejected.resolvable():
        most = _most_preferred(_below(cycle, node), started)
        if best_preference is not None and most <= best_preference:
            continue
        victims = _select(cycle, node, started)
        if not victims:
            continue
        preference = _preference(victims, started)
        if best_preference is None or preference > best_preference:
            best, best_preference = (node, victims), preference
    return best


def _select(
    cycle: Cycle, node: NodeInfo, started: Callable[[PodInfo], Started]
) -> list[PodInfo]:
    """Whom to evict on a node (``SelectVictimsOnNode``): the most important ones stay if they can."""
    victims = sorted(
        _below(cycle, node), key=lambda pod: (-pod.kind.priority, started(pod))
    )
    if not victims or not _fits_without(cycle, node, victims):
        return []
    # Without all of them the pod fits: now let each stay that need not go.
    for pod in tuple(victims):
        fewer = [victim for victim in victims if victim is not pod]
        if _fits_without(cycle, node, fewer):
            victims = fewer
    return victims


def _most_preferred(
    candidates: Sequence[PodInfo], started: Callable[[PodInfo], Started]
) -> Preference:
    """No victims among these are preferred to this: nobody but the one of lowest priority that started last."""
    if not candidates:
        return _NOBODY
    lowest = min(pod.kind.priority for pod in candidates)
    latest = max(
        started(pod) for pod in candidates if pod.kind.priority == lowest
    )
    return -lowest, -(lowest + _OFFSET), -1, latest


def _preference(
    victims: Sequence[PodInfo], started: Callable[[PodInfo], Started]
) -> Preference:
    """The larger the better (``pickOneNodeForPreemption``): of equal ones the first is taken."""
    highest = victims[0].kind.priority
    total = sum(pod.kind.priority + _OFFSET for pod in victims)
    earliest = min(
        started(pod) for pod in victims if pod.kind.priority == highest
    )
    return -highest, -total, -len(victims), earliest
