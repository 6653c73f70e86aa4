"""What a unit can give: its states, what is left in them, and how many pieces equal units give together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.rows import Term

__all__ = ["Counts", "Kind", "PatternKind", "Supplied"]

Counts = tuple[int, ...]
"""How many pieces of each type, by position in `Kind.types`."""


class Supplied(Protocol):
    """Equal units in a model: terms that add up to the pieces that they give; and in the end, who gives what.

    ``shares`` yields the types of the pieces of each unit, given the values of all variables.
    """

    @property
    def terms(self) -> Mapping[int, list[Term]]:
        """By type."""

    def shares(self, values: Sequence[int]) -> Iterator[list[int]]:
        """The pieces of each unit."""


class Kind(Protocol):
    """Units that give the same.

    ``types``: the pieces that it can give. ``shared``: whether one device may give several of them.
    """

    @property
    def types(self) -> tuple[int, ...]:
        """The types of pieces that it can give."""

    @property
    def shared(self) -> bool:
        """Whether one device may give several pieces."""

    @property
    def start(self) -> Hashable:
        """The state before anything is taken."""

    def most(self, type_: int) -> int:
        """The most pieces of a type, if nothing else is taken."""

    def step(self, state: Hashable, type_: int) -> Hashable | None:
        """The state after one more piece; None if there is none left."""

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """What the pieces that can still be taken are worth at most."""

    def supply(self, cp: cp_model.CpModel, number: int) -> Supplied:
        """Add variables and rows for so many units."""


@dataclass(frozen=True, slots=True)
class PatternKind:
    """Units known by their maximal patterns: a state says how many pieces of each type have been taken.

    Which devices they are is decided in the end, so no piece taken early stands in the way of a later one.
    """

    types: tuple[int, ...]
    patterns: tuple[Counts, ...]
    shared: bool

    @property
    def start(self) -> Counts:
        """Nothing taken."""
        return (0,) * len(self.types)

    def most(self, type_: int) -> int:
        """The most pieces of a type, if nothing else is taken."""
        place = self.types.index(type_)
        return max(pattern[place] for pattern in self.patterns)

    def step(self, state: Hashable, type_: int) -> Counts | None:
        """One more piece, if some pattern has as many of all."""
        assert isinstance(state, tuple)
        place = self.types.index(type_)
        after = (*state[:place], state[place] + 1, *state[place + 1 :])
        return after if any(self.around(after)) else None

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """What the most precious pattern around the state adds to it."""
        assert isinstance(state, tuple)
        priced = [prices[type_] for type_ in self.types]
        return max(
            fsum((most - taken) * price for most, taken, price in zip(pattern, state, priced, strict=True))
            for pattern in self.around(state)
        )

    def around(self, state: Counts) -> Iterator[Counts]:
        """The patterns that have as many of all pieces."""
        for pattern in self.patterns:
            if all(map(int.__ge__, pattern, state)):
                yield pattern

    def supply(self, cp: cp_model.CpModel, number: int) -> Supplied:
        """Each unit has one of the patterns. Exact."""
        return _Patterned(self, cp, number)


class _Patterned:
    def __init__(self, kind: PatternKind, cp: cp_model.CpModel, number: int) -> None:
        self.kind = kind
        self.variables = [cp.new_int_var(0, number, "") for _ in kind.patterns]
        cp.add(cp_model.LinearExpr.sum(self.variables) <= number)
        self.terms: dict[int, list[Term]] = defaultdict(list)
        for variable, pattern in zip(self.variables, kind.patterns, strict=True):
            for type_, count in zip(kind.types, pattern, strict=True):
                if count:
                    self.terms[type_].append((variable, count))

    def shares(self, values: Sequence[int]) -> Iterator[list[int]]:
        """The pieces of each unit that has a pattern."""
        for variable, pattern in zip(self.variables, self.kind.patterns, strict=True):
            for _ in range(values[variable.index]):
                yield [type_ for type_, count in zip(self.kind.types, pattern, strict=True) for _ in range(count)]
