"""All kinds of units as one table: a state per row, a type of piece per column, the state after giving the piece.

The table grows as states are met, so that fillings can look up the next states of thousands of units at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dralloc.solvers.cpsat.packing.kinds import Kind
from dralloc.solvers.cpsat.packing.relaxation import Prices

__all__ = ["Automaton", "Flags", "Numbers", "Values"]

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

_NONE: Final = -1
_UNKNOWN: Final = -2
_EMPTY: Final = 0
"""The state of a place without unit: it gives nothing."""


class Automaton:
    """States of units.

    Parameters
    ----------
    kinds
        The kinds of units.
    areas
        How many areas there are.
    types
        How many types of pieces.
    prices
        What a piece is worth.
    """

    def __init__(self, kinds: Sequence[Kind], areas: int, types: int, prices: Prices) -> None:
        self.kinds = kinds
        self.prices = [{type_: prices.get((area, type_), 0.0) for type_ in range(types)} for area in range(areas)]
        self.next: Numbers = np.full((1024, types), _UNKNOWN)
        self.next[_EMPTY] = _NONE
        self.worth: Values = np.zeros((areas, 1024))
        self._states: list[tuple[int, Hashable]] = [(-1, None)]
        self._numbers: dict[tuple[int, Hashable], int] = {(-1, None): _EMPTY}
        self.starts = [self._number(number, kind.start) for number, kind in enumerate(kinds)]

    def advance(self, states: Numbers, type_: int) -> Numbers:
        """The states after giving a piece; negative where there is none to give."""
        after: Numbers = self.next[states, type_]
        if (after == _UNKNOWN).any():
            for state in np.unique(states[after == _UNKNOWN]).tolist():
                self.next[state, type_] = self._follow(state, type_)
            after = self.next[states, type_]
        return after

    def _follow(self, state: int, type_: int) -> int:
        number, known = self._states[state]
        kind = self.kinds[number]
        after = kind.step(known, type_) if type_ in kind.types else None
        return _NONE if after is None else self._number(number, after)

    def _number(self, kind: int, state: Hashable) -> int:
        key = kind, state
        if key not in self._numbers:
            number = self._numbers[key] = len(self._states)
            self._states.append(key)
            if number == len(self.next):
                self._grow()
            for area, prices in enumerate(self.prices):
                self.worth[area, number] = self.kinds[kind].worth(state, prices)
        return self._numbers[key]

    def _grow(self) -> None:
        """Make room for as many states again."""
        self.next = np.vstack([self.next, np.full_like(self.next, _UNKNOWN)])
        self.worth = np.hstack([self.worth, np.zeros_like(self.worth)])
