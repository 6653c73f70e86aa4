"""What a solution says, with every index looked up and every sum built once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.problem import Alternative, Charge, Claim, Device, PoolState, Problem
from dralloc.problem.inter_pod import InterPodRule, Role
from dralloc.problem.solution import Placement, Solution

__all__ = ["Award", "PlacedRole", "Use", "View", "amount"]


class Use(NamedTuple):
    """One grant: a device (with its index in the problem) for an alternative of a claim's request.

    ``demand`` is the index of the demand in whose placement it is.
    """

    demand: int
    claim: Claim
    request: int
    alternative: Alternative
    device_index: int
    device: Device
    charge: Charge | None

    def __str__(self) -> str:
        return f"claim {self.claim.key}: request {self.alternative.name}: device {self.device.id}"


class Award(NamedTuple):
    """Everything that one claim got with the placement of a demand on a node (both by index)."""

    demand: int
    node: int
    claim: Claim
    uses: tuple[Use, ...]

    def __str__(self) -> str:
        return f"claim {self.claim.key}"


class PlacedRole(NamedTuple):
    """A placed demand, by index, with its role in a rule and the name of its node."""

    demand: int
    role: Role
    node: str


@dataclass(frozen=True)
class View:
    """A solution whose references are known to exist."""

    problem: Problem
    solution: Solution

    @cached_property
    def awards(self) -> tuple[Award, ...]:
        """By claim, what it got. A shared claim is only listed where it got something (see `sharing`)."""
        shared = {awards[0].claim.key for awards in self.sharing}
        return tuple(
            award
            for award in self._everything
            if award.uses or not award.claim.requests or award.claim.key not in shared
        )

    @cached_property
    def sharing(self) -> tuple[tuple[Award, ...], ...]:
        """By claim that several placed demands list, what it got with each of them: it should be with one."""
        listed: dict[ClaimKey, list[Award]] = defaultdict(list)
        for award in self._everything:
            listed[award.claim.key].append(award)
        return tuple(tuple(awards) for awards in listed.values() if _is_shared(awards))

    @cached_property
    def _everything(self) -> tuple[Award, ...]:
        return tuple(
            award
            for placement in self.solution.placements
            for award in self._read(placement)
        )

    def _read(self, placement: Placement) -> Iterator[Award]:
        devices, eligibility, demand = (
            self.problem.devices,
            self.problem.eligibility,
            placement.demand,
        )
        for claim, grants in zip(
            self.problem.demands[demand].claims, placement.grants, strict=True
        ):
            uses = []
            for request, position, index in grants:
                alternative = claim.requests[request].alternatives[position]
                charge = eligibility.charge(alternative.index, index)
                uses.append(
                    Use(
                        demand,
                        claim,
                        request,
                        alternative,
                        index,
                        devices[index],
                        charge,
                    )
                )
            yield Award(demand, placement.node, claim, tuple(uses))

    @cached_property
    def by_slot(self) -> Mapping[int, list[Use]]:
        """All grants of each physical device."""
        slots: dict[int, list[Use]] = defaultdict(list)
        for award in self.awards:
            for use in award.uses:
                slots[use.device.slot].append(use)
        return slots

    @cached_property
    def roles(self) -> Mapping[InterPodRule, list[PlacedRole]]:
        """The placed demands with a role in each rule between pods."""
        members: dict[InterPodRule, list[PlacedRole]] = defaultdict(list)
        for placement in self.solution.placements:
            for role in self.problem.demands[placement.demand].roles:
                members[role.rule].append(
                    PlacedRole(
                        placement.demand, role, self.problem.nodes[placement.node].name
                    )
                )
        return members

    def capacity_taken(self, slot: int, name: str, uses: Iterable[Use]) -> int:
        """Nanos of a shareable device's capacity that allocated claims and these grants of it take (KEP-5075)."""
        granted = (
            nanos
            for use in uses
            if use.device.shareable and use.charge is not None
            for charged, nanos in use.charge.capacity
            if charged == name
        )
        return self.problem.usage.consumed.get(slot, {}).get(name, 0) + sum(granted)

    @cached_property
    def opened(self) -> tuple[int, ...]:
        """Slots that come into use: granted without admin access, and not shared by allocated claims already."""
        shares = self.problem.usage.shares
        slots = []
        for slot, uses in self.by_slot.items():
            holding = [use for use in uses if not use.alternative.admin]
            if holding and slot not in shares:
                slots.append(slot)
        return tuple(slots)

    @cached_property
    def in_force(self) -> tuple[int, ...]:
        """Devices that come into use, by index: each in the versions by which it can be opened.

        While a pool is updated, only one of the generations that nodes see has counters (slices with counters matter to
        every node, KEP-4815). A further share of a device in use asks for no counters, whatever version its node sees
        (upstream behaviour). So where some share is of a version without counters, the device is opened by that one;
        and nobody stands in another's way if such devices are opened last.
        """
        in_force: list[int] = []
        for slot in self.opened:
            versions = {
                use.device_index: use.device
                for use in self.by_slot[slot]
                if not use.alternative.admin
            }
            free = [
                index for index, device in versions.items() if device.is_opened_freely
            ]
            in_force += free or versions
        return tuple(in_force)

    @cached_property
    def offered(self) -> Mapping[int, frozenset[int]]:
        """The devices in usable pools of each node with a placement."""
        nodes = {award.node: self.problem.nodes[award.node] for award in self.awards}
        offered = {}
        for index, node in nodes.items():
            usable = node.pools_in(PoolState.USABLE)
            offered[index] = frozenset(
                chain.from_iterable(pool.devices for pool in usable)
            )
        return offered


def _is_shared(awards: Sequence[Award]) -> bool:
    """Whether the awards of one claim are of several demands."""
    return len({award.demand for award in awards}) > 1


def amount(nanos: int) -> str:
    """An amount as Kubernetes prints it."""
    return str(Quantity(nanos))
