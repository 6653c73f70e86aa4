"""Unit types: the states of a unit, what is left in them, and how many items equal units supply together."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Protocol

from ortools.sat.python import cp_model

from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.rows import Term

__all__ = ["ItemCounts", "PatternUnitType", "Supplied", "UnitType"]

ItemCounts = tuple[int, ...]
"""How many items of each type, by position in `UnitType.types`."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """Equal units in a model.

    ``given``: variables, each for how often some items (by type) are given. ``pooled``: whether all of them are given
    by one unit, and not each time by another one.
    """

    given: Sequence[tuple[cp_model.IntVar, tuple[int, ...]]]
    pooled: bool = False

    @property
    def terms(self) -> Mapping[int, Sequence[Term]]:
        """By type, terms that add up to the items that are supplied."""
        return grouped(
            (type_, (variable, count))
            for variable, items in self.given
            for type_, count in Tally(items).items()
        )

    def shares(self, values: Sequence[int]) -> list[tuple[int, ...]]:
        """The items of each unit that gives any, given the values of all variables."""
        found = [
            items
            for variable, items in self.given
            for _ in range(values[variable.index])
        ]
        return [tuple(chain.from_iterable(found))] if self.pooled else found


class UnitType(Protocol):
    """Units that can supply the same items."""

    @property
    def types(self) -> tuple[int, ...]:
        """The types of items that it can give."""

    @property
    def shared(self) -> bool:
        """Whether one device may give several items."""

    @property
    def together(self) -> bool:
        """Whether the supply of several units is exactly what they can give; that of one is."""

    @property
    def start(self) -> Hashable:
        """The state before anything is taken."""

    def most(self, type_: int) -> int:
        """The most items of a type, if nothing else is taken."""

    def step(self, state: Hashable, type_: int) -> Hashable | None:
        """The state after one more item; None if there is none left."""

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """What the items that can still be taken are worth at most."""

    def supply(self, cp: cp_model.CpModel, number: int) -> Supplied:
        """Add variables and rows for so many units."""


@dataclass(frozen=True, slots=True)
class PatternUnitType:
    """Units known by their maximal patterns: a state says how many items of each type have been taken.

    Which devices they are is decided in the end, so no item taken early excludes a later one.
    """

    types: tuple[int, ...]
    patterns: tuple[ItemCounts, ...]
    shared: bool
    together = True

    @property
    def start(self) -> ItemCounts:
        """Nothing taken."""
        return (0,) * len(self.types)

    def most(self, type_: int) -> int:
        """The most items of a type, if nothing else is taken."""
        place = self.types.index(type_)
        return max(pattern[place] for pattern in self.patterns)

    def step(self, state: Hashable, type_: int) -> ItemCounts | None:
        """One more item, if some pattern has as many of all."""
        assert isinstance(state, tuple)
        place = self.types.index(type_)
        after = (*state[:place], state[place] + 1, *state[place + 1 :])
        return after if any(self.around(after)) else None

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """What the most precious pattern around the state adds to it."""
        assert isinstance(state, tuple)
        priced = [prices[type_] for type_ in self.types]
        return max(
            fsum(
                (most - taken) * price
                for most, taken, price in zip(pattern, state, priced, strict=True)
            )
            for pattern in self.around(state)
        )

    def around(self, state: ItemCounts) -> Iterator[ItemCounts]:
        """The patterns that have as many of all items."""
        for pattern in self.patterns:
            if all(map(int.__ge__, pattern, state)):
                yield pattern

    def supply(self, cp: cp_model.CpModel, number: int) -> Supplied:
        """Each unit has one of the patterns. Exact."""
        variables = [
            cp.new_int_var(0, number, f"pattern {pattern}") for pattern in self.patterns
        ]
        cp.add(cp_model.LinearExpr.sum(variables) <= number)
        items = [
            tuple(Tally(dict(zip(self.types, pattern, strict=True))).elements())
            for pattern in self.patterns
        ]
        return Supplied(list(zip(variables, items, strict=True)))
