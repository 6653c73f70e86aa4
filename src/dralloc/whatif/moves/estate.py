"""A problem in which some of the allocated claims may move."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.holdings import ClaimLedger, Holding

__all__ = ["Estate", "Resident", "Way"]


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
    def ledger(self) -> ClaimLedger:
        """What is held as long as nobody has moved. Copy before changing."""
        ledger = ClaimLedger(self.problem)
        ledger.hold(holding for resident in self.residents for holding in resident.holdings)
        return ledger

    def without(self, residents: Iterable[int]) -> ClaimLedger:
        """What is held once some residents have given back what they hold."""
        ledger = self.ledger.copy()
        ledger.release(self.residents[number].key for number in residents)
        return ledger

    def only(self, units: Collection[int]) -> Estate:
        """The estate in which just these units may move."""
        ways = [way for way in self.ways if way.unit in units]
        movers = sorted({number for way in ways for number in way.residents})
        place = {number: new for new, number in enumerate(movers)}
        return Estate(
            self.without(movers).applied(),
            tuple(self.residents[number] for number in movers),
            tuple(replace(way, residents=tuple(place[number] for number in way.residents)) for way in ways),
        )
