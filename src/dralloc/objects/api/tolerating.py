"""Taints of devices and the tolerations of requests (KEP-5055); taints of nodes and the tolerations of pods.

Source: upstream's ``ToleratesTaint``, the same for both. Only the effects NoSchedule and NoExecute keep anything away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dralloc.objects.api.allocation import DeviceToleration
from dralloc.objects.api.node_selectors import integer
from dralloc.objects.api.nodes import Taint
from dralloc.objects.api.placement import Toleration
from dralloc.objects.api.slices import DeviceTaint
from dralloc.objects.api.workloads import Pod

__all__ = [
    "CORDON_TAINT",
    "CORDON_TOLERATION",
    "all_tolerated",
    "goes_to_cordoned",
    "tolerates",
]

CORDON_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node has."""
CORDON_TOLERATION: Final = Toleration(
    key=CORDON_TAINT.key, operator="Exists", effect=CORDON_TAINT.effect
)
"""What a pod has that may go to cordoned nodes, as those of a DaemonSet do."""

_PREVENTING = frozenset(("NoSchedule", "NoExecute"))


def tolerates(
    toleration: DeviceToleration | Toleration, taint: DeviceTaint | Taint
) -> bool:
    """Whether a toleration covers a taint: an empty key or effect of the toleration covers all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    compare = _OPERATORS.get(toleration.operator)
    return compare is not None and compare(taint.value, toleration.value)


def _numeric(compare: Callable[[int, int], bool]) -> Callable[[str, str], bool]:
    """A comparison of integers in canonical form; with anything else it does not hold."""

    def holds(taint: str, toleration: str) -> bool:
        left, right = integer(taint), integer(toleration)
        if (
            left is None
            or right is None
            or (taint, toleration) != (str(left), str(right))
        ):
            return False
        return compare(left, right)

    return holds


_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "": str.__eq__,
    "Equal": str.__eq__,
    "Exists": lambda _taint, _toleration: True,
    "Gt": _numeric(int.__gt__),
    "Lt": _numeric(int.__lt__),
}
"""How the value of a taint has to compare with that of the toleration; numbers only for nodes (KEP-5471)."""


def all_tolerated(
    taints: Sequence[DeviceTaint] | Sequence[Taint],
    tolerations: Sequence[DeviceToleration] | Sequence[Toleration],
) -> bool:
    """Whether every taint that keeps something away is tolerated."""
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _PREVENTING
    )


def goes_to_cordoned(pod: Pod) -> bool:
    """Whether a pod may be placed on cordoned nodes, as those of a DaemonSet may (upstream's NodeUnschedulable)."""
    return any(
        tolerates(toleration, CORDON_TAINT) for toleration in pod.spec.tolerations
    )
