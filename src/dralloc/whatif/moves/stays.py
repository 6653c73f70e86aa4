"""Staying as something to be placed: a demand that only what a resident holds can serve, at what it has consumed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.check import violations
from dralloc.context.context import Context
from dralloc.context.offers import Offers
from dralloc.errors import AllocationError
from dralloc.names import ClaimKey, RequestName
from dralloc.problem import Alternative, Charge, Claim, Demand, Eligibility, Problem, Request
from dralloc.problem.eligibility import Overlay
from dralloc.solution import Grant, Placement, Solution
from dralloc.whatif.moves.estate import Estate, Resident

__all__ = ["Stays", "broken", "stay_grants"]


@dataclass(frozen=True)
class Stays:
    """One demand for each resident, and who can serve them.

    ``demands`` has None for residents whose allocation breaks a rule as things are now: those hold what they hold.
    """

    demands: tuple[Demand | None, ...]
    eligibility: Eligibility

    @classmethod
    def of(cls, estate: Estate) -> Stays:
        """The demands of all residents that could be allocated again what they have."""
        table: dict[int, tuple[int, Charge]] = {}
        demands = [_stay(estate.problem, resident, table) for resident in estate.residents]
        eligibility = _WithStays(estate.problem.eligibility, table, frozenset(device for device, _ in table.values()))
        if _alike(estate) and not violations(*_all_stay(estate, demands, eligibility)):
            return cls(tuple(demands), eligibility)
        return cls(tuple(_regular(estate, demands, eligibility)), eligibility)


def _alike(estate: Estate) -> bool:
    """Whether everybody has shares of shareable devices, and others as a whole."""
    return all(
        holding.share == estate.problem.devices[device].shareable
        for resident in estate.residents
        for holding, device in zip(resident.holdings, resident.devices, strict=True)
    )


def _all_stay(estate: Estate, demands: Sequence[Demand], eligibility: Eligibility) -> tuple[Problem, Solution]:
    """The problem and the answer in which every resident is granted what it has."""
    problem = replace(estate.problem, demands=tuple(demands), eligibility=eligibility)
    placements = (Placement(place, one.home, (stay_grants(one),)) for place, one in enumerate(estate.residents))
    return problem, Solution(tuple(placements))


def _regular(estate: Estate, demands: Sequence[Demand], eligibility: Eligibility) -> Iterator[Demand | None]:
    """The demands of the residents that could be allocated what they have, beside everybody else."""
    ledger = estate.ledger.copy()
    for resident, demand in zip(estate.residents, demands, strict=True):
        ledger.release([resident.key])
        yield demand if _is_regular(Context(estate.problem, Offers(eligibility), ledger), resident, demand) else None
        ledger.hold(resident.holdings)


def _stay(problem: Problem, resident: Resident, table: dict[int, tuple[int, Charge]]) -> Demand:
    key = ClaimKey(resident.key.namespace, f"{resident.key.name} (stays)")
    requests = []
    for number, (holding, device) in enumerate(zip(resident.holdings, resident.devices, strict=True)):
        index = -1 - len(table)
        known = problem.devices[device].capacity if holding.share else {}
        taken = tuple((name, amount) for name, amount in holding.charge.capacity if name in known)
        table[index] = device, Charge(capacity=taken, counters=holding.charge.counters)
        name = f"device-{number}"
        requests.append(Request(name, (Alternative(index, RequestName(name), 0, 1),)))
    claim = Claim(key, "", tuple(requests))
    return Demand(key, (claim,), weight=0, nodes=(resident.home,), gang=str(key))


def stay_grants(resident: Resident) -> tuple[Grant, ...]:
    """What a resident that stays is granted."""
    return tuple(Grant(number, 0, device) for number, device in enumerate(resident.devices))


def _is_regular(context: Context, resident: Resident, demand: Demand) -> bool:
    devices = [context.problem.devices[device] for device in resident.devices]
    alike = all(holding.share == device.shareable for holding, device in zip(resident.holdings, devices, strict=True))
    offered = set(context.problem.nodes[resident.home].devices())
    if not alike or not offered.issuperset(resident.devices):
        return False
    return not broken(context, [demand], [Placement(0, resident.home, (stay_grants(resident),))])


def broken(context: Context, demands: Sequence[Demand], placements: Sequence[Placement]) -> list[str]:
    """The rules that some placements of the demands would break at the moment; looks only at their nodes."""
    nodes = list(dict.fromkeys(placement.node for placement in placements))
    part = context.part(nodes, [_anywhere(demand) for demand in demands])
    place = {device: number for number, device in enumerate(part.devices)}
    here = tuple(
        Placement(
            one.demand,
            nodes.index(one.node),
            tuple(tuple(grant._replace(device=place[grant.device]) for grant in claim) for claim in one.grants),
        )
        for one in placements
    )
    return violations(part.problem, Solution(here))


def _anywhere(demand: Demand) -> Demand:
    return Demand(demand.key, demand.claims)


@dataclass(eq=False)
class _WithStays(Overlay):
    """The eligibility of a problem, with negative numbers for what residents hold."""

    table: Mapping[int, tuple[int, Charge]]
    devices: frozenset[int]

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        return super().selects(alternative, device) if alternative >= 0 else self.table[alternative][0] == device

    def admits(self, alternative: int, device: int) -> bool:
        return alternative < 0 or super().admits(alternative, device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        return super().charge(alternative, device) if alternative >= 0 else self.table[alternative][1]

    def request_key(self, alternative: int) -> Hashable:
        return super().request_key(alternative) if alternative >= 0 else alternative

    def device_key(self, device: int) -> Hashable:
        return super().device_key(device), device if device in self.devices else None
