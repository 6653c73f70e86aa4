"""Who holds what under a plan: claims that were allocated before, and those that the plan places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dralloc.api import DeviceRequestAllocationResult, ResourceClaim
from dralloc.names import ClaimKey, DeviceID
from dralloc.plan import Plan
from dralloc.plot.kinds import Kind, Kinds
from dralloc.problem import Claim, Problem
from dralloc.solution import Grant, Placement

__all__ = ["Holding", "holdings"]


@dataclass(frozen=True, slots=True)
class Holding:
    """One device, or a share of it, in the hands of a claim.

    Parameters
    ----------
    owner
        The demand that it was placed with; the claim itself if it was allocated before.
    claim, kind
        The claim, and the kind of the request that is served.
    device
        Index of the device.
    new
        Whether the plan placed it.
    amounts
        What it consumes of the capacity of a shareable device, in nanos.
    counters
        What it consumes of counters, by index, in nanos.
    admin
        Whether it has admin access, which takes nothing.
    """

    owner: ClaimKey
    claim: ClaimKey
    kind: Kind
    device: int
    new: bool
    amounts: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[int, int], ...] = ()
    admin: bool = False


def holdings(plan: Plan, kinds: Kinds) -> tuple[Holding, ...]:
    """Everything that is held once the plan is carried out: first what was held before, both in order."""
    problem = plan.compiled.problem
    devices = {device.id: index for index, device in enumerate(problem.devices)}
    before = (
        holding
        for claim in plan.compiled.cluster.claims
        if claim.status.allocation is not None
        for holding in _before(claim, problem, devices, kinds)
    )
    return (*before, *(_new(plan, *grant, kinds) for grant in plan.grants()))


def _before(claim: ResourceClaim, problem: Problem, devices: Mapping[DeviceID, int], kinds: Kinds) -> Iterator[Holding]:
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    if claim.status.allocation is not None:
        results = claim.status.allocation.devices.results
    for result in results:
        device = devices.get(result.device_id)
        if device is not None:
            amounts = tuple((name, amount.nanos) for name, amount in result.consumed_capacity.items())
            kind = kinds.of(claim.key, result.request)
            counters = problem.devices[device].consumes
            yield Holding(claim.key, claim.key, kind, device, False, amounts, counters, result.admin_access)


def _new(plan: Plan, placement: Placement, claim: Claim, grant: Grant, kinds: Kinds) -> Holding:
    problem = plan.compiled.problem
    alternative = claim.requests[grant.request].alternatives[grant.alternative]
    charge = problem.eligibility.charge(alternative.index, grant.device)
    return Holding(
        owner=plan.demands[placement.demand].key,
        claim=claim.key,
        kind=kinds.of(claim.key, str(alternative.name)),
        device=grant.device,
        new=True,
        amounts=charge.capacity if charge else (),
        counters=(*problem.devices[grant.device].consumes, *(charge.counters if charge else ())),
        admin=alternative.admin,
    )
