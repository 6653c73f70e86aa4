"""The best exchange: who stays, who moves where, and what is admitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dralloc.check import check
from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.cpsat import Options
from dralloc.solvers.cpsat.relocation import Exchange, Relocation
from dralloc.whatif.moves.estate import Estate, Way, in_use
from dralloc.whatif.moves.order import Order
from dralloc.whatif.moves.stays import Stays, stay_grants
from dralloc.whatif.moves.steps import Move, Step, find_order, replay, steps_of

__all__ = ["Outcome", "rearrange"]

_MOST_ORDERS = 200
"""So many answers of the same worth are tried for one with fewer restarts."""


@dataclass(frozen=True)
class Outcome:
    """Who moves, in which order, and what that admits.

    Parameters
    ----------
    steps
        The ordered plan; the checker has accepted every step.
    moves
        The moves, in order.
    admitted
        The pending demands that are placed, by index.
    restarts
        How many of the moves stop before they start.
    fewest
        Whether no answer of the same worth needs fewer restarts.
    tiers
        ``weight``, ``moves`` and ``alternatives``, with bounds.
    """

    steps: tuple[Step, ...]
    moves: tuple[Move, ...]
    admitted: tuple[int, ...]
    restarts: int
    fewest: bool
    status: Status
    tiers: tuple[Tier, ...]
    warnings: tuple[str, ...] = ()

    @property
    def moved(self) -> tuple[int, ...]:
        """The residents that move, by index, in order."""
        return tuple(resident for move in self.moves for resident in move.way.residents)


def rearrange(
    estate: Estate, most: int | None = None, options: Options | None = None, admitted: Sequence[Placement] = ()
) -> Outcome:
    """Find the exchange of most weight, then with the fewest moves, then with the fewest restarts.

    Parameters
    ----------
    most
        How many claims may move; None for any number.
    admitted
        Placements of pending demands that are possible without any move, to start from.

    Raises
    ------
    CheckError
        The answer or a step of the plan breaks a rule: a defect of dralloc.
    """
    return _Rearrangement(estate, most, options or Options()).run(admitted)


class _Rearrangement:
    def __init__(self, estate: Estate, most: int | None, options: Options) -> None:
        self.estate = estate
        self.stays = Stays.of(estate)
        self.options = options
        staying = [demand for demand in self.stays.demands if demand is not None]
        self.leads: list[int] = []
        demands = list(staying)
        for number, way in enumerate(estate.ways):
            self.leads.append(len(demands))
            demands += _of_way(way, number)
        self.first_pending = len(demands)
        demands += estate.problem.demands
        movable = [number for number, demand in enumerate(self.stays.demands) if demand is not None]
        problem = in_use(estate.problem, estate.without(movable))
        self.problem = replace(problem, demands=tuple(demands), eligibility=self.stays.eligibility)
        self.exchange = self._exchange(most)

    def _exchange(self, most: int | None) -> Exchange:
        residents = range(len(self.estate.residents))
        mine: dict[int, list[int]] = {number: [] for number in residents}
        units: dict[int, list[int]] = {}
        for lead, way in zip(self.leads, self.estate.ways, strict=True):
            units.setdefault(way.unit, []).append(lead)
            for resident in way.residents:
                mine[resident].append(lead)
        places = self._places()
        return Exchange(
            stays=tuple((places.get(number), tuple(mine[number])) for number in residents),
            units=tuple(map(tuple, units.values())),
            costs={lead: len(way.residents) for lead, way in zip(self.leads, self.estate.ways, strict=True)},
            most=most,
        )

    def _places(self) -> dict[int, int]:
        """The index of the demand that stands for a resident's staying."""
        regular = [number for number, demand in enumerate(self.stays.demands) if demand is not None]
        return {number: place for place, number in enumerate(regular)}

    def run(self, admitted: Sequence[Placement]) -> Outcome:
        relocation = Relocation(
            self.problem, self.exchange, self.options, [*self._everybody_stays(), *self._pending(admitted)]
        )
        best = relocation.solve()
        check(self.problem, best)
        moves, order = self._ordered(best)
        fewest, tries = order.proven, 0
        found: Solution | None = best
        while order.restarts and best.status is Status.OPTIMAL:
            found = relocation.another(found) if found is not None and tries < _MOST_ORDERS else None
            if found is None:
                break
            tries += 1
            check(self.problem, found)
            others, shorter = self._ordered(found)
            fewest = fewest and shorter.proven
            if shorter.restarts < order.restarts:
                best, moves, order = found, others, shorter
        exhausted = found is None and tries < _MOST_ORDERS and best.status is Status.OPTIMAL
        return self._outcome(best, moves, order, fewest=not order.restarts or (fewest and exhausted))

    def _everybody_stays(self) -> Iterator[Placement]:
        for number, place in self._places().items():
            resident = self.estate.residents[number]
            yield Placement(place, resident.home, (stay_grants(resident),))

    def _pending(self, placements: Iterable[Placement]) -> Iterator[Placement]:
        return (replace(one, demand=one.demand + self.first_pending) for one in placements)

    def _ordered(self, solution: Solution) -> tuple[tuple[Move, ...], Order]:
        placed = {placement.demand: placement for placement in solution.placements}
        moves = tuple(
            Move(
                way,
                self.problem.demands[lead : lead + len(way.demands)],
                tuple(replace(placed[lead + place], demand=place) for place in range(len(way.demands))),
            )
            for lead, way in zip(self.leads, self.estate.ways, strict=True)
            if lead in placed
        )
        return moves, find_order(self.estate, moves)

    def _outcome(self, best: Solution, moves: tuple[Move, ...], order: Order, *, fewest: bool) -> Outcome:
        late = [one for one in best.placements if one.demand >= self.first_pending]
        steps = steps_of(order, moves, [(self.problem.demands[one.demand], one) for one in late])
        replay(self.estate, steps)
        return Outcome(
            steps=steps,
            moves=tuple(move for step in steps if step.placements for move in step.moves),
            admitted=tuple(one.demand - self.first_pending for one in late),
            restarts=order.restarts,
            fewest=fewest,
            status=best.status,
            tiers=best.tiers,
            warnings=best.warnings,
        )


def _of_way(way: Way, number: int) -> Iterator[Demand]:
    """The demands of a way, apart from those of other ways that move the same claims."""
    gang = f"way {number}"
    for place, demand in enumerate(way.demands):
        claims = tuple(replace(claim, key=_renamed(claim, number)) for claim in demand.claims)
        yield replace(demand, claims=claims, gang=gang, weight=0 if place else way.weight)


def _renamed(claim: Claim, number: int) -> ClaimKey:
    return ClaimKey(claim.key.namespace, f"{claim.key.name} (way {number})")
