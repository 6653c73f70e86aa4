"""The problem in which everybody stays or moves, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dralloc.ask.whatif.models.relocation import Exchange
from dralloc.ask.whatif.moves.migration import Migration, MoveOption
from dralloc.ask.whatif.moves.pods_there import counting
from dralloc.ask.whatif.moves.stay_options import stay_grants, stay_options
from dralloc.ask.whatif.moves.steps import Move
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand
from dralloc.problem.solution import Placement, Solution

__all__ = ["MigrationProblem"]


class MigrationProblem:
    """A migration as one problem: first the demands of staying, then those of moving, then what is pending.

    Parameters
    ----------
    most
        How many claims may move; None for any number.
    """

    def __init__(self, migration: Migration, most: int | None) -> None:
        self.migration = migration
        staying, eligibility = stay_options(migration)
        movable = [
            number for number, demand in enumerate(staying) if demand is not None
        ]
        self.places = {number: place for place, number in enumerate(movable)}
        demands = [demand for demand in staying if demand is not None]
        self.leads: list[int] = []
        for number, option in enumerate(migration.move_options):
            self.leads.append(len(demands))
            demands += _of_option(option, number)
        self.first_pending = len(demands)
        problem = migration.without(movable).applied()
        self.demands = (*demands, *migration.problem.demands)
        # Who cannot be placed where it is stays there in any case, for all that rules know.
        fixed = migration.there(movable)
        self.problem = replace(
            problem, demands=counting(self.demands, fixed), eligibility=eligibility
        )
        self.exchange = self._exchange(most)

    def _exchange(self, most: int | None) -> Exchange:
        moving: dict[int, list[str]] = {
            number: [] for number in range(len(self.migration.holders))
        }
        groups: dict[int, list[str]] = {}
        costs: dict[str, int] = {}
        for number, option in enumerate(self.migration.move_options):
            name = _name_of(number)
            costs[name] = len(option.movers)
            groups.setdefault(option.group, []).append(name)
            for holder in self.migration.holders_of(option):
                moving[holder].append(name)
        stays = {
            number: self.demands[place].gang for number, place in self.places.items()
        }
        return Exchange(
            stay_options=tuple(
                (stays.get(number), tuple(names)) for number, names in moving.items()
            ),
            groups=tuple(map(tuple, groups.values())),
            costs=costs,
            most=most,
        )

    def staying(self, moving: Iterable[int] = ()) -> Iterator[Placement]:
        """All holders stay but those who move, by index."""
        gone = set(moving)
        for number, place in self.places.items():
            if number not in gone:
                holder = self.migration.holders[number]
                yield Placement(place, holder.home, (stay_grants(holder.devices),))

    def demands_of(self, option: int) -> tuple[Demand, ...]:
        """The demands of an option, under names of their own."""
        lead = self.leads[option]
        return self.demands[
            lead : lead + len(self.migration.move_options[option].demands)
        ]

    def moves(self, solution: Solution) -> tuple[Move, ...]:
        """Who moves in an answer."""
        placed = {placement.demand: placement for placement in solution.placements}
        return tuple(
            Move(
                option,
                self.demands_of(number),
                tuple(
                    replace(placed[lead + place], demand=place)
                    for place in range(len(option.demands))
                ),
            )
            for number, (lead, option) in enumerate(
                zip(self.leads, self.migration.move_options, strict=True)
            )
            if lead in placed
        )


def _of_option(option: MoveOption, number: int) -> Iterator[Demand]:
    """The demands of an option, apart from those of other options that move the same claims."""
    gang = _name_of(number)
    for place, demand in enumerate(option.demands):
        claims = tuple(
            replace(
                claim, key=ClaimKey(claim.key.namespace, f"{claim.key.name} ({gang})")
            )
            for claim in demand.claims
        )
        yield replace(
            demand,
            claims=claims,
            gang=gang,
            parent=None,
            weight=0 if place else option.weight,
        )


def _name_of(option: int) -> str:
    """What the gang of an option's demands is called."""
    return f"option {option}"
