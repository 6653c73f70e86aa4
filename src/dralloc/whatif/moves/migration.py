"""A problem in which some of the allocated claims may move."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.holdings import ClaimLedger, Holding

__all__ = ["Migration", "MovableClaim", "MoveOption"]


@dataclass(frozen=True, slots=True)
class MovableClaim:
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
class MoveOption:
    """Some movable claims that move at the same time.

    Parameters
    ----------
    movers
        Who moves, by index; what they have in common with others stays where it is.
    demands
        What they ask for: placed all or none.
    group
        Of the options of a group at most one is taken.
    weight
        What it is worth.
    """

    movers: tuple[int, ...]
    demands: tuple[Demand, ...]
    group: int
    weight: int = 0


@dataclass(frozen=True)
class Migration:
    """Who may move.

    Parameters
    ----------
    problem
        What is pending, beside everything that is in use but for what the movable claims hold.
    movers, move_options
        Who may move, and how.
    """

    problem: Problem
    movers: tuple[MovableClaim, ...]
    move_options: tuple[MoveOption, ...]

    @cached_property
    def ledger(self) -> ClaimLedger:
        """What is held as long as nobody has moved. Copy before changing."""
        ledger = ClaimLedger(self.problem)
        ledger.hold(holding for mover in self.movers for holding in mover.holdings)
        return ledger

    def without(self, movers: Iterable[int]) -> ClaimLedger:
        """What is held once some movable claims have given back what they hold."""
        ledger = self.ledger.copy()
        ledger.release(self.movers[number].key for number in movers)
        return ledger

    def only(self, groups: Collection[int]) -> Migration:
        """The migration in which just these groups may move."""
        move_options = [option for option in self.move_options if option.group in groups]
        movers = sorted({number for option in move_options for number in option.movers})
        place = {number: new for new, number in enumerate(movers)}
        return Migration(
            self.without(movers).applied(),
            tuple(self.movers[number] for number in movers),
            tuple(replace(option, movers=tuple(place[number] for number in option.movers)) for option in move_options),
        )
