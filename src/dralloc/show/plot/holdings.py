"""Who holds what under a plan: claims that were allocated before, and those that the plan places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from dralloc.objects.names import ClaimKey
from dralloc.problem import Charge, CounterIndex, DeviceIndex, numbered
from dralloc.show.plan import Plan
from dralloc.show.plot.profiles import RequestProfile, RequestProfiles

__all__ = ["HeldDevice", "held_devices"]


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device, or a share of it, that a claim holds.

    Parameters
    ----------
    owner
        The demand that it was placed with; the claim itself if it was allocated before.
    claim, profile
        The claim, and the request profile of the request that is served.
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
    profile: RequestProfile
    device: DeviceIndex
    new: bool
    amounts: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[CounterIndex, int], ...] = ()
    admin: bool = False


def held_devices(
    plan: Plan, profiles: RequestProfiles
) -> tuple[HeldDevice, ...]:
    """Return everything that is held once the plan is carried out: first what was held before, both in order."""
    return tuple(chain(_before(plan, profiles), _new(plan, profiles)))


def _before(plan: Plan, profiles: RequestProfiles) -> Iterator[HeldDevice]:
    devices = plan.compiled.problem.devices
    device_indices = {device.id: index for index, device in numbered(devices)}
    for claim in plan.compiled.cluster.claims:
        for result in claim.results:
            device_index = device_indices.get(result.device_id)
            # A device that is not published any more has no box to be drawn in.
            if device_index is not None:
                amounts = tuple(
                    (name, amount.nanos)
                    for name, amount in result.consumed_capacity.items()
                )
                profile, counters = (
                    profiles.of(claim.key, result.request),
                    devices[device_index].consumes,
                )
                yield HeldDevice(
                    claim.key,
                    claim.key,
                    profile,
                    device_index,
                    False,
                    amounts,
                    counters,
                    result.admin_access,
                )


def _new(plan: Plan, profiles: RequestProfiles) -> Iterator[HeldDevice]:
    problem = plan.compiled.problem
    for placement, claim, grant in plan.grants():
        alternative = claim.requests[grant.request].alternatives[
            grant.alternative
        ]
        charge = (
            problem.eligibility.charge(alternative.index, grant.device)
            or Charge()
        )
        yield HeldDevice(
            owner=plan.demands[placement.demand].key,
            claim=claim.key,
            profile=profiles.of(claim.key, str(alternative.name)),
            device=grant.device,
            new=True,
            amounts=charge.capacity,
            counters=(
                *problem.devices[grant.device].consumes,
                *charge.counters,
            ),
            admin=alternative.admin,
        )
