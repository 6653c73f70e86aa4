"""Device taints and the tolerations of requests (KEP-5055).

Source: upstream's ``ToleratesTaint``. Only the effects NoSchedule and NoExecute keep a device from being allocated.
"""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.api import DeviceTaint, DeviceToleration

__all__ = ["all_tolerated", "tolerates"]

_PREVENTING = frozenset(("NoSchedule", "NoExecute"))


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration covers a taint: an empty key or effect of the toleration covers all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def all_tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Whether every taint that would prevent allocation is tolerated."""
    return all(
        any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _PREVENTING
    )
