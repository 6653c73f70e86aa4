"""What a solution says, with every index looked up and every sum built once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dralloc.problem import Alternative, Charge, Claim, Device, PoolState, Problem
from dralloc.quantity import Quantity
from dralloc.solution import Placement, Solution

__all__ = ["Award", "Use", "View", "amount"]


class Use(NamedTuple):
    """One grant: a device (with its index in the problem) for an alternative of a claim's request."""

    claim: Claim
    request: int
    alternative: Alternative
    device_index: int
    device: Device
    charge: Charge | None

    def __str__(self) -> str:
        return f"claim {self.claim.key}: request {self.alternative.name}: device {self.device.id}"


class Award(NamedTuple):
    """Everything that one claim got, on the node with that index."""

    node: int
    claim: Claim
    uses: tuple[Use, ...]

    def __str__(self) -> str:
        return f"claim {self.claim.key}"


@dataclass(frozen=True)
class View:
    """A solution whose references are known to exist."""

    problem: Problem
    solution: Solution

    @cached_property
    def awards(self) -> tuple[Award, ...]:
        """What each claim of each placement got."""
        return tuple(award for placement in self.solution.placements for award in self._read(placement))

    def _read(self, placement: Placement) -> Iterator[Award]:
        devices, eligibility = self.problem.devices, self.problem.eligibility
        for claim, grants in zip(self.problem.demands[placement.demand].claims, placement.grants, strict=True):
            uses = []
            for request, position, index in grants:
                alternative = claim.requests[request].alternatives[position]
                charge = eligibility.charge(alternative.index, index)
                uses.append(Use(claim, request, alternative, index, devices[index], charge))
            yield Award(placement.node, claim, tuple(uses))

    @cached_property
    def by_slot(self) -> Mapping[int, list[Use]]:
        """All grants of each physical device."""
        slots: dict[int, list[Use]] = defaultdict(list)
        for award in self.awards:
            for use in award.uses:
                slots[use.device.slot].append(use)
        return slots

    @cached_property
    def capacity_taken(self) -> Mapping[tuple[int, str], int]:
        """Nanos that allocated claims and all grants, with admin access too, take of shareable devices (KEP-5075)."""
        taken: dict[tuple[int, str], int] = defaultdict(int)
        for slot, consumed in self.problem.usage.consumed.items():
            for name, nanos in consumed.items():
                taken[slot, name] += nanos
        for slot, uses in self.by_slot.items():
            for use in uses:
                if use.device.shareable and use.charge is not None:
                    for name, nanos in use.charge.capacity:
                        taken[slot, name] += nanos
        return taken

    @cached_property
    def opened(self) -> tuple[int, ...]:
        """Slots that come into use: granted without admin access, and not shared by allocated claims already."""
        shares = self.problem.usage.shares
        return tuple(
            slot
            for slot, uses in self.by_slot.items()
            if slot not in shares and any(not use.alternative.admin for use in uses)
        )

    @cached_property
    def offered(self) -> Mapping[int, frozenset[int]]:
        """The devices in usable pools of each node with a placement."""
        nodes = {award.node: self.problem.nodes[award.node] for award in self.awards}
        return {
            index: frozenset(device for pool in node.pools_in(PoolState.USABLE) for device in pool.devices)
            for index, node in nodes.items()
        }


def amount(nanos: int) -> str:
    """An amount as Kubernetes prints it."""
    return str(Quantity(nanos))
