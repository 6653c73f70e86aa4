"""Which claims of a mix matter when capacity is filled up.

A claim that takes several devices takes nothing that others could not take together which take one device each, of the
same devices and without constraints. If the mix has such claims, the larger one need not be looked at, and devices
need not be looked at together because of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from dralloc.match import MatchTable
from dralloc.problem import Alternative, Claim, Demand

__all__ = ["Choice", "Essential"]


@dataclass(frozen=True)
class Choice:
    """A claim of the mix, with one alternative for each of its requests."""

    demand: int
    claim: Claim
    alternatives: tuple[Alternative, ...]

    @property
    def takes_one(self) -> bool:
        """Whether it takes one device, whatever its attributes."""
        [first, *others] = self.alternatives
        constrained = any(constraint.covers(first.name) for constraint in self.claim.constraints)
        return not others and first.count == 1 and not first.admin and not constrained


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an alternative accepts, by the looks of devices: those that it selects, those that it also tolerates."""

    amounts: Hashable
    selected: frozenset[Hashable]
    tolerated: frozenset[Hashable]

    def within(self, other: _Wanted) -> bool:
        """Whether the other gets all of these devices for the same amounts."""
        return self.amounts == other.amounts and self.selected <= other.selected and self.tolerated <= other.tolerated


class Essential:
    """The choices of a mix that matter.

    Parameters
    ----------
    demands
        One of each kind.
    table
        What devices offer to them.
    """

    def __init__(self, demands: Sequence[Demand], table: MatchTable) -> None:
        self._demands = demands
        self._table = table
        self._wanted: dict[int, _Wanted] = {}

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that no other ones make superfluous."""
        singles = [choice.alternatives[0] for choice in self.singles]
        several = (
            choice
            for choice in self._every
            if not choice.takes_one and not all(each.admin or self._met(each, singles) for each in choice.alternatives)
        )
        return (*self.singles, *several)

    @cached_property
    def singles(self) -> tuple[Choice, ...]:
        """Those that take one device, whatever its attributes."""
        return tuple(self._widest(choice for choice in self._every if choice.takes_one))

    @cached_property
    def pieces(self) -> tuple[Choice, ...]:
        """Every device of every choice wanted on its own, and without constraints: never less can be taken."""
        pieces = (
            Choice(choice.demand, replace(choice.claim, constraints=()), (replace(each, count=1),))
            for choice in self._every
            for each in choice.alternatives
            if not each.admin
        )
        return tuple(self._widest(pieces))

    @property
    def _every(self) -> Iterator[Choice]:
        for number, demand in enumerate(self._demands):
            for claim in demand.claims:
                for chosen in product(*(request.alternatives for request in claim.requests)):
                    yield Choice(number, claim, chosen)

    def _widest(self, singles: Iterable[Choice]) -> Iterator[Choice]:
        """Without those that another one covers; of equal ones the first stays."""
        every = list(singles)
        for place, choice in enumerate(every):
            own = self._of(choice.alternatives[0])
            others = ((rank, self._of(other.alternatives[0])) for rank, other in enumerate(every) if rank != place)
            if not any(own.within(other) and (rank < place or not other.within(own)) for rank, other in others):
                yield choice

    def _met(self, alternative: Alternative, singles: Iterable[Alternative]) -> bool:
        own = self._of(alternative)
        return alternative.count is not None and any(own.within(self._of(single)) for single in singles)

    def _of(self, alternative: Alternative) -> _Wanted:
        index = alternative.index
        if index not in self._wanted:
            table = self._table
            amounts = tuple((name, str(amount)) for name, amount in table.criteria[index].amounts)
            selected = {look: device for look, device in self._looks.items() if table.selects(index, device) is True}
            tolerated = frozenset(look for look, device in selected.items() if table.admits(index, device))
            self._wanted[index] = _Wanted(amounts, frozenset(selected), tolerated)
        return self._wanted[index]

    @cached_property
    def _looks(self) -> dict[Hashable, int]:
        """One device of each look."""
        found: dict[Hashable, int] = {}
        for device in range(len(self._table.inventory.devices)):
            found.setdefault(self._table.look(device), device)
        return found
