"""A problem in which some of the allocated claims may move."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.explain.books import Books, Holding
from dralloc.inventory.groups import common_groups
from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem, Usage

__all__ = ["Estate", "Resident", "Way", "in_use"]


@dataclass(frozen=True, slots=True)
class Resident:
    """An allocated claim that may move.

    Parameters
    ----------
    home
        Index of the node where it is used.
    holdings
        What it holds, under its key.
    devices
        The devices of these, by index, as the node sees them.
    """

    key: ClaimKey
    home: int
    holdings: tuple[Holding, ...]
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Some residents that move at the same time.

    Parameters
    ----------
    residents
        Who moves, by index; what they have in common with others stays where it is.
    demands
        What they ask for: placed all or none.
    unit
        Of the ways of a unit at most one is taken.
    weight
        What it is worth.
    """

    residents: tuple[int, ...]
    demands: tuple[Demand, ...]
    unit: int
    weight: int = 0


@dataclass(frozen=True)
class Estate:
    """Who may move.

    Parameters
    ----------
    problem
        What is pending, beside everything that is in use but for what the residents hold.
    residents, ways
        Who may move, and how.
    """

    problem: Problem
    residents: tuple[Resident, ...]
    ways: tuple[Way, ...]

    @cached_property
    def books(self) -> Books:
        """What is held as long as nobody has moved. Copy before changing."""
        books = Books(self.problem)
        books.enter(holding for resident in self.residents for holding in resident.holdings)
        return books

    def without(self, residents: Iterable[int]) -> Books:
        """What is held once some residents have given back what they hold."""
        books = self.books.copy()
        books.release(self.residents[number].key for number in residents)
        return books

    def only(self, units: Collection[int]) -> Estate:
        """The estate in which just these units may move."""
        ways = [way for way in self.ways if way.unit in units]
        movers = sorted({number for way in ways for number in way.residents})
        place = {number: new for new, number in enumerate(movers)}
        return Estate(
            in_use(self.problem, self.without(movers)),
            tuple(self.residents[number] for number in movers),
            tuple(replace(way, residents=tuple(place[number] for number in way.residents)) for way in ways),
        )


def in_use(problem: Problem, books: Books) -> Problem:
    """The problem with the usage that the books say."""
    taken = (device for device in problem.devices if device.slot in books.held or device.slot in books.shares)
    usage = Usage(
        held=frozenset(books.held),
        shares=dict(books.shares),
        consumed={slot: dict(amounts) for slot, amounts in books.consumed.items()},
        compatibility=common_groups(taken) if problem.has_compatibility_groups else {},
    )
    counters = tuple(
        counter if counter.free == free else replace(counter, free=free)
        for counter, free in zip(problem.counters, books.free, strict=True)
    )
    return replace(problem, usage=usage, counters=counters)
