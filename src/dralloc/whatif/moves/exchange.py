"""The problem in which everybody stays or moves, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand
from dralloc.solution import Placement, Solution
from dralloc.whatif.models.relocation import Exchange
from dralloc.whatif.moves.estate import Estate, Way
from dralloc.whatif.moves.stays import Stays, stay_grants
from dralloc.whatif.moves.steps import Move

__all__ = ["Cast"]


class Cast:
    """An estate as one problem: first the demands of staying, then those of all ways, then what is pending.

    Parameters
    ----------
    most
        How many claims may move; None for any number.
    """

    def __init__(self, estate: Estate, most: int | None) -> None:
        self.estate = estate
        stays = Stays.of(estate)
        movable = [number for number, demand in enumerate(stays.demands) if demand is not None]
        self.places = {number: place for place, number in enumerate(movable)}
        demands = [demand for demand in stays.demands if demand is not None]
        self.leads: list[int] = []
        for number, way in enumerate(estate.ways):
            self.leads.append(len(demands))
            demands += _of_way(way, number)
        self.first_pending = len(demands)
        problem = estate.without(movable).applied()
        every = (*demands, *estate.problem.demands)
        self.problem = replace(problem, demands=every, eligibility=stays.eligibility)
        self.exchange = self._exchange(most)

    def _exchange(self, most: int | None) -> Exchange:
        residents = range(len(self.estate.residents))
        mine: dict[int, list[int]] = {number: [] for number in residents}
        units: dict[int, list[int]] = {}
        for lead, way in zip(self.leads, self.estate.ways, strict=True):
            units.setdefault(way.unit, []).append(lead)
            for resident in way.residents:
                mine[resident].append(lead)
        return Exchange(
            stays=tuple((self.places.get(number), tuple(mine[number])) for number in residents),
            units=tuple(map(tuple, units.values())),
            costs={lead: len(way.residents) for lead, way in zip(self.leads, self.estate.ways, strict=True)},
            most=most,
        )

    def stays(self, moving: Iterable[int] = ()) -> Iterator[Placement]:
        """Everybody stays but those who move, by index."""
        gone = set(moving)
        for number, place in self.places.items():
            if number not in gone:
                resident = self.estate.residents[number]
                yield Placement(place, resident.home, (stay_grants(resident),))

    def admitted(self, placements: Iterable[Placement]) -> Iterator[Placement]:
        """Placements of what is pending, in the numbers of the whole."""
        return (replace(one, demand=one.demand + self.first_pending) for one in placements)

    def demands_of(self, way: int) -> tuple[Demand, ...]:
        """The demands of a way, under names of their own."""
        lead = self.leads[way]
        return self.problem.demands[lead : lead + len(self.estate.ways[way].demands)]

    def moves(self, solution: Solution) -> tuple[Move, ...]:
        """Who moves in an answer."""
        placed = {placement.demand: placement for placement in solution.placements}
        return tuple(
            Move(
                way,
                self.demands_of(number),
                tuple(replace(placed[lead + place], demand=place) for place in range(len(way.demands))),
            )
            for number, (lead, way) in enumerate(zip(self.leads, self.estate.ways, strict=True))
            if lead in placed
        )


def _of_way(way: Way, number: int) -> Iterator[Demand]:
    """The demands of a way, apart from those of other ways that move the same claims."""
    gang = f"way {number}"
    for place, demand in enumerate(way.demands):
        claims = tuple(replace(claim, key=_renamed(claim, number)) for claim in demand.claims)
        yield replace(demand, claims=claims, gang=gang, weight=0 if place else way.weight)


def _renamed(claim: Claim, number: int) -> ClaimKey:
    return ClaimKey(claim.key.namespace, f"{claim.key.name} (way {number})")
