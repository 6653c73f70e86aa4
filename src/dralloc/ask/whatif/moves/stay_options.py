"""Staying as something to be placed: a demand that only what a claim holds can serve, at what it has consumed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.ask.context.context import Context
from dralloc.ask.context.offers import Offers
from dralloc.ask.whatif.moves.migration import Migration, MovableClaim
from dralloc.check import violations
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Demand,
    Eligibility,
    Problem,
    Request,
)
from dralloc.problem.eligibility import Overlay
from dralloc.problem.holdings import Holding
from dralloc.problem.solution import Grant, Placement, Solution

__all__ = ["StayEligibility", "broken", "stay_grants", "stay_options"]

_FIRST: Final = 2**32
"""Alternatives of a problem have smaller numbers."""


def stay_options(migration: Migration) -> tuple[Sequence[Demand | None], Eligibility]:
    """One demand for each movable claim and each of their pods, and who can serve them.

    None stands for those who break a rule as things are now: they hold what they hold.
    """
    problem, movers = migration.problem, migration.holders
    eligibility = StayEligibility(problem.eligibility)
    demands = []
    for mover in movers:
        key = ClaimKey(mover.key.namespace, f"{mover.key.name} (stays)")
        claim = eligibility.claim(problem, key, mover.holdings, mover.devices)
        demands.append(
            Demand(
                key,
                (claim,),
                weight=0,
                nodes=(mover.home,),
                gang=str(key),
                roles=mover.roles,
            )
        )
    if _as_published(problem, movers):
        placements = (
            Placement(place, one.home, (stay_grants(one.devices),))
            for place, one in enumerate(movers)
        )
        whole = replace(problem, demands=tuple(demands), eligibility=eligibility)
        if not violations(whole, Solution(tuple(placements))):
            return demands, eligibility
    return list(_regular(migration, demands, eligibility)), eligibility


def _as_published(problem: Problem, movers: Iterable[MovableClaim]) -> bool:
    """Whether the claims have shares of shareable devices, and others as a whole."""
    return all(
        holding.share == problem.devices[device].shareable
        for mover in movers
        for holding, device in zip(mover.holdings, mover.devices, strict=True)
    )


def _regular(
    migration: Migration, demands: Sequence[Demand], eligibility: Eligibility
) -> Iterator[Demand | None]:
    """The demands of the holders that could be allocated what they have, beside everybody else."""
    ledger = migration.ledger.copy()
    for mover, demand in zip(migration.holders, demands, strict=True):
        ledger.release([mover.key])
        yield (
            demand
            if _is_regular(
                Context(migration.problem, Offers(eligibility), ledger), mover, demand
            )
            else None
        )
        ledger.hold(mover.holdings)


@dataclass(eq=False)
class StayEligibility(Overlay):
    """The eligibility of a problem, with requests, of numbers beyond all others, for what claims hold.

    Only certain devices can serve these, at what is consumed of them already.
    """

    entries: dict[int, tuple[int, Charge]] = field(default_factory=dict)
    devices: set[int] = field(default_factory=set)

    def claim(
        self,
        problem: Problem,
        key: ClaimKey,
        holdings: Sequence[Holding],
        devices: Sequence[int],
    ) -> Claim:
        """A claim that asks for what is held, of these devices: one request for each."""
        requests = []
        for number, (holding, device) in enumerate(zip(holdings, devices, strict=True)):
            known = problem.devices[device].capacity if holding.share else {}
            taken = tuple(
                (name, amount)
                for name, amount in holding.charge.capacity
                if name in known
            )
            index, name = _FIRST + len(self.entries), RequestName(f"device-{number}")
            self.entries[index] = (
                device,
                Charge(capacity=taken, counters=holding.charge.counters),
            )
            self.devices.add(device)
            requests.append(Request(str(name), (Alternative(index, name, 0, 1),)))
        return Claim(key, "", tuple(requests))

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`."""
        own = self.entries.get(alternative)
        return super().selects(alternative, device) if own is None else own[0] == device

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return alternative in self.entries or super().admits(alternative, device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        own = self.entries.get(alternative)
        return super().charge(alternative, device) if own is None else own[1]

    def request_key(self, alternative: int) -> Hashable:
        """As in `Eligibility`."""
        return (
            alternative
            if alternative in self.entries
            else super().request_key(alternative)
        )

    def device_key(self, device: int) -> Hashable:
        """As in `Eligibility`."""
        return super().device_key(device), device if device in self.devices else None


def stay_grants(devices: Iterable[int]) -> tuple[Grant, ...]:
    """What a claim that stays is granted: the devices that it has."""
    return tuple(Grant(number, 0, device) for number, device in enumerate(devices))


def _is_regular(context: Context, mover: MovableClaim, demand: Demand) -> bool:
    offered = set(context.problem.nodes[mover.home].devices())
    if not offered.issuperset(mover.devices) or not _as_published(
        context.problem, [mover]
    ):
        return False
    return not broken(
        context, [demand], [Placement(0, mover.home, (stay_grants(mover.devices),))]
    )


def broken(
    context: Context, demands: Sequence[Demand], placements: Sequence[Placement]
) -> list[str]:
    """The rules that some placements of the demands would break at the moment; looks only at their nodes."""
    nodes = list(dict.fromkeys(placement.node for placement in placements))
    part = context.part(
        nodes,
        [Demand(demand.key, demand.claims, roles=demand.roles) for demand in demands],
    )
    place = {device: number for number, device in enumerate(part.devices)}
    here = tuple(
        Placement(
            one.demand,
            nodes.index(one.node),
            tuple(
                tuple(grant._replace(device=place[grant.device]) for grant in claim)
                for claim in one.grants
            ),
        )
        for one in placements
    )
    return violations(part.problem, Solution(here))
