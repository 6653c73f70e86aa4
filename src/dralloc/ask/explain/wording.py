"""How things are named in explanations: holders, taints, amounts and their policies, pools."""

from __future__ import annotations

from collections.abc import Mapping

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.inventory.compatibility_groups import set_name
from dralloc.objects.api import (
    CapacityRequestPolicy,
    DeviceTaint,
    DeviceToleration,
)
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.objects.report import amount, counted, listed
from dralloc.problem import (
    NO_GROUPS,
    Alternative,
    Claim,
    Constraint,
    DeviceIndex,
    PoolAccess,
    PoolState,
    Request,
    Scalar,
    numbered,
)

__all__ = [
    "Wording",
    "constraint_text",
    "devices_text",
    "groups_text",
    "request_text",
    "taint_text",
    "toleration_text",
]

_NAMED = 3


def taint_text(taint: DeviceTaint) -> str:
    """A taint as ``kubectl`` writes it."""
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
    )


def toleration_text(toleration: DeviceToleration) -> str:
    """A toleration as the taints that it is for."""
    value = "" if toleration.operator == "Exists" else f"={toleration.value}"
    effect = f":{toleration.effect}" if toleration.effect else ""
    return (
        f"{toleration.key}{value}{effect}"
        if toleration.key
        else f"every taint{effect}"
    )


def devices_text(count: int | None) -> str:
    """So many devices, all of them if it is None."""
    return "all devices" if count is None else counted(count, "device")


def request_text(claim: Claim, request: Alternative | Request) -> str:
    """A request of a claim, or an alternative of one."""
    return f"claim {claim.key}, request {request.name}"


def groups_text(groups: frozenset[str]) -> str:
    """The groups that a device declares, as a property."""
    named = sorted(groups - {NO_GROUPS})
    return f"in group {', '.join(named)}" if named else "in no group"


def constraint_text(constraint: Constraint, constraint_index: int) -> str:
    """A constraint of a claim, or one over several of them, with what devices carry that count already."""
    rule = f"{constraint.kind.value} {constraint.attribute}"
    if constraint.scope is None:
        return f"constraint #{constraint_index} {rule}"
    held = "; ".join(map(_values_text, constraint.scope.held))
    over = (
        f"all pods of {constraint.scope.group}"
        if constraint.scope.group
        else "the pod"
    )
    return f"constraint over the claims of {over}: {rule}{f', with devices that have {held}' if held else ''}"


def _values_text(values: frozenset[Scalar]) -> str:
    return ", ".join(sorted(str(value) for _, value in values))


class Wording:
    """Names things.

    Parameters
    ----------
    placed
        The claims that have been placed in the same batch.
    compiled
        The objects behind the problem, if there are any.
    """

    def __init__(
        self,
        placed: Mapping[ClaimKey, int],
        compiled: CompiledCluster | None = None,
    ) -> None:
        self._placed = placed
        self._compiled = compiled

    def holders(
        self, held: Mapping[ClaimKey, int], *, amounts: bool = True
    ) -> str:
        """Return the holders of a resource, the largest first."""
        if not held:
            return (
                "held by nobody known"
                if self._compiled is None
                else "held by nobody"
            )
        order = sorted(held, key=lambda key: -held[key])
        named = [
            self.holder(key) + (f" {amount(held[key])}" if amounts else "")
            for key in order
        ]
        return f"held by {listed(named, _NAMED)}"

    def holder(self, key: ClaimKey) -> str:
        """A claim that holds something."""
        return (
            f"{key} (placed in this batch)" if key in self._placed else str(key)
        )

    def users(self, groups: Mapping[ClaimKey, frozenset[str]]) -> str:
        """Return the users of a resource, by group."""
        named = [
            f"by {self.holder(key)} {groups_text(theirs)}"
            for key, theirs in list(groups.items())[:_NAMED]
        ]
        further = (
            [f"{len(groups) - _NAMED} more"] if len(groups) > _NAMED else []
        )
        return ", ".join((*named, *further)) or "by somebody"

    def counter_set(self, device: DeviceIndex, counter_set: int) -> str:
        """A numbered counter set, by the name that a device has for it."""
        if self._compiled is None:
            return "its counter set"
        devices, sources = (
            self._compiled.problem.devices,
            self._compiled.inventory.sources,
        )
        pool = (
            sources[neighbour_index].device
            for neighbour_index, neighbour in numbered(devices)
            if neighbour.group == devices[device].group
        )
        return f"counter set {set_name(counter_set, devices[device], sources[device].device, pool)}"

    def pool(self, pool: PoolAccess) -> str:
        """Return the fault of a pool, in words."""
        if pool.state is PoolState.INVALID:
            return f"pool {pool.id} is invalid: {pool.reason}"
        return f"pool {pool.id} is incomplete{self._slices(pool)}"

    def _slices(self, pool: PoolAccess) -> str:
        if self._compiled is None:
            return ""
        views = [
            slice_.spec.pool
            for slice_ in self._compiled.cluster.slices
            if slice_.pool_id == pool.id
        ]
        newest = max((view.generation for view in views), default=0)
        counts = [
            view.resource_slice_count
            for view in views
            if view.generation == newest
        ]
        if not counts:
            return ""
        return f": {len(counts)} of {counts[0]} slices of generation {newest}"

    def taken(
        self,
        device: DeviceIndex,
        name: str,
        requested: Quantity | None,
        nanos: int,
    ) -> str:
        """An amount that is taken of a capacity, and how it came about."""
        if requested is not None and requested.nanos == nanos:
            return amount(nanos)
        policy = self._policy(device, name)
        if requested is None:
            has_default = policy is not None and policy.default is not None
            why = (
                "the policy's default"
                if has_default
                else "all of it, as no amount is asked"
            )
            return f"{amount(nanos)} ({why})"
        return f"{amount(nanos)} ({requested} asked, rounded up by {_policy_text(policy)})"

    def _policy(
        self, device: DeviceIndex, name: str
    ) -> CapacityRequestPolicy | None:
        if self._compiled is None:
            return None
        entry = self._compiled.inventory.sources[device].device.capacity.get(
            name
        )
        return None if entry is None else entry.request_policy


def _policy_text(policy: CapacityRequestPolicy | None) -> str:
    if policy is None:
        return "the request policy"
    if policy.valid_range is not None:
        bounds = {
            "min": policy.valid_range.min,
            "max": policy.valid_range.max,
            "step": policy.valid_range.step,
        }
        return "validRange " + ", ".join(
            f"{name} {value}"
            for name, value in bounds.items()
            if value is not None
        )
    return "validValues " + ", ".join(map(str, policy.valid_values))
