"""All unit types as one table: a state per row, a type of item per column, the state after giving the item.

The table grows as states are met, so that the constructive heuristic can look up the next states of thousands of units
at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np
import numpy.typing as npt

from dralloc.solve.optimum.classes.demand_classes import Listed
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.relaxation import Prices

__all__ = ["Automaton", "Flags", "Numbers", "Values"]

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

_NONE: Final = -1
_UNKNOWN: Final = -2
_EMPTY: Final = 0
"""The state of a place without unit: it gives nothing."""


class Automaton:
    """The states of an instance's units, and what is left in them at the prices of items."""

    def __init__(self, instance: PackingInstance, prices: Prices) -> None:
        self.unit_types = instance.unit_types
        areas, types = len(instance.areas), instance.types[-1] + 1
        self.prices = [
            {type_: prices.get((area, type_), 0.0) for type_ in range(types)}
            for area in range(areas)
        ]
        self.next: Numbers = np.full((1024, types), _UNKNOWN, dtype=np.int32)
        self.next[_EMPTY] = _NONE
        self.worth: Values = np.zeros((areas, 1024))
        self._states: Listed[tuple[int, Hashable]] = Listed([(-1, None)])
        self.starts = [
            self._number(number, unit_type.start)
            for number, unit_type in enumerate(self.unit_types)
        ]

    def advance(self, states: Numbers, type_: int) -> Numbers:
        """The states after giving an item; negative where there is none to give."""
        after: Numbers = self.next[states, type_]
        if (after == _UNKNOWN).any():
            for state in np.unique(states[after == _UNKNOWN]).tolist():
                self.next[state, type_] = self._follow(state, type_)
            after = self.next[states, type_]
        return after

    def _follow(self, state: int, type_: int) -> int:
        number, known = self._states[state]
        unit_type = self.unit_types[number]
        after = unit_type.step(known, type_) if type_ in unit_type.types else None
        return _NONE if after is None else self._number(number, after)

    def _number(self, unit_type: int, state: Hashable) -> int:
        known = len(self._states)
        number = self._states.number((unit_type, state))
        if number == known:
            if number == len(self.next):
                self._grow()
            for area, prices in enumerate(self.prices):
                self.worth[area, number] = self.unit_types[unit_type].worth(
                    state, prices
                )
        return number

    def _grow(self) -> None:
        """Make room for as many states again."""
        self.next = np.vstack([self.next, np.full_like(self.next, _UNKNOWN)])
        self.worth = np.hstack([self.worth, np.zeros_like(self.worth)])
