"""Taints of devices and the tolerations of requests (KEP-5055); taints of nodes and the tolerations of pods.

Source: upstream's ``ToleratesTaint``, the same for both. Only the effects NoSchedule and NoExecute keep anything away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dralloc.api.allocation import DeviceToleration
from dralloc.api.nodes import Taint
from dralloc.api.slices import DeviceTaint
from dralloc.api.workloads import Toleration

__all__ = ["CORDON_TAINT", "CORDON_TOLERATION", "all_tolerated", "tolerates"]

CORDON_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node has."""
CORDON_TOLERATION: Final = Toleration(key=CORDON_TAINT.key, operator="Exists", effect=CORDON_TAINT.effect)
"""What a pod has that may go to cordoned nodes, as those of a DaemonSet do."""

_PREVENTING = frozenset(("NoSchedule", "NoExecute"))


def tolerates(toleration: DeviceToleration | Toleration, taint: DeviceTaint | Taint) -> bool:
    """Whether a toleration covers a taint: an empty key or effect of the toleration covers all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def all_tolerated(
    taints: Sequence[DeviceTaint] | Sequence[Taint], tolerations: Sequence[DeviceToleration] | Sequence[Toleration]
) -> bool:
    """Whether every taint that keeps something away is tolerated."""
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _PREVENTING
    )
