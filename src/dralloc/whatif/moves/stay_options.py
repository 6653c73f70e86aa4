"""Staying as something to be placed: a demand that only what a claim holds can serve, at what it has consumed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.check import violations
from dralloc.context.context import Context
from dralloc.context.offers import Offers
from dralloc.errors import AllocationError
from dralloc.names import ClaimKey, RequestName
from dralloc.problem import Alternative, Charge, Claim, Demand, Eligibility, Problem, Request
from dralloc.problem.eligibility import Overlay
from dralloc.solution import Grant, Placement, Solution
from dralloc.whatif.moves.migration import Migration, MovableClaim

__all__ = ["StayOptions", "broken", "stay_grants"]


@dataclass(frozen=True)
class StayOptions:
    """One demand for each movable claim, and who can serve them.

    ``demands`` has None for movable claims whose allocation breaks a rule as things are now: those hold what they hold.
    """

    demands: tuple[Demand | None, ...]
    eligibility: Eligibility

    @classmethod
    def of(cls, migration: Migration) -> StayOptions:
        """The demands of all movable claims that could be allocated again what they have."""
        table: dict[int, tuple[int, Charge]] = {}
        demands = [_stay(migration.problem, mover, table) for mover in migration.movers]
        eligibility = _WithStayOptions(
            migration.problem.eligibility, table, frozenset(device for device, _ in table.values())
        )
        regular = _as_published(migration.problem, migration.movers)
        if regular and not violations(*_all_stay(migration, demands, eligibility)):
            return cls(tuple(demands), eligibility)
        return cls(tuple(_regular(migration, demands, eligibility)), eligibility)


def _as_published(problem: Problem, movers: Iterable[MovableClaim]) -> bool:
    """Whether the claims have shares of shareable devices, and others as a whole."""
    return all(
        holding.share == problem.devices[device].shareable
        for mover in movers
        for holding, device in zip(mover.holdings, mover.devices, strict=True)
    )


def _all_stay(migration: Migration, demands: Sequence[Demand], eligibility: Eligibility) -> tuple[Problem, Solution]:
    """The problem and the answer in which every movable claim is granted what it has."""
    problem = replace(migration.problem, demands=tuple(demands), eligibility=eligibility)
    placements = (Placement(place, one.home, (stay_grants(one),)) for place, one in enumerate(migration.movers))
    return problem, Solution(tuple(placements))


def _regular(migration: Migration, demands: Sequence[Demand], eligibility: Eligibility) -> Iterator[Demand | None]:
    """The demands of the movable claims that could be allocated what they have, beside everybody else."""
    ledger = migration.ledger.copy()
    for mover, demand in zip(migration.movers, demands, strict=True):
        ledger.release([mover.key])
        yield demand if _is_regular(Context(migration.problem, Offers(eligibility), ledger), mover, demand) else None
        ledger.hold(mover.holdings)


def _stay(problem: Problem, mover: MovableClaim, table: dict[int, tuple[int, Charge]]) -> Demand:
    key = ClaimKey(mover.key.namespace, f"{mover.key.name} (stays)")
    requests = []
    for number, (holding, device) in enumerate(zip(mover.holdings, mover.devices, strict=True)):
        index = -1 - len(table)
        known = problem.devices[device].capacity if holding.share else {}
        taken = tuple((name, amount) for name, amount in holding.charge.capacity if name in known)
        table[index] = device, Charge(capacity=taken, counters=holding.charge.counters)
        name = f"device-{number}"
        requests.append(Request(name, (Alternative(index, RequestName(name), 0, 1),)))
    claim = Claim(key, "", tuple(requests))
    return Demand(key, (claim,), weight=0, nodes=(mover.home,), gang=str(key))


def stay_grants(mover: MovableClaim) -> tuple[Grant, ...]:
    """What a movable claim that stays is granted."""
    return tuple(Grant(number, 0, device) for number, device in enumerate(mover.devices))


def _is_regular(context: Context, mover: MovableClaim, demand: Demand) -> bool:
    offered = set(context.problem.nodes[mover.home].devices())
    if not offered.issuperset(mover.devices) or not _as_published(context.problem, [mover]):
        return False
    return not broken(context, [demand], [Placement(0, mover.home, (stay_grants(mover),))])


def broken(context: Context, demands: Sequence[Demand], placements: Sequence[Placement]) -> list[str]:
    """The rules that some placements of the demands would break at the moment; looks only at their nodes."""
    nodes = list(dict.fromkeys(placement.node for placement in placements))
    part = context.part(nodes, [Demand(demand.key, demand.claims) for demand in demands])
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


@dataclass(eq=False)
class _WithStayOptions(Overlay):
    """The eligibility of a problem, with negative numbers for what movable claims hold."""

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
