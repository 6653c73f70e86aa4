"""Unit types of shared devices with many amounts: vector bin packing by what is left of each capacity (KEP-5075)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from dralloc.objects.errors import ModelError
from dralloc.solve.optimum.classes.arcflow import FlowSource, FlowSupply
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.packing.unit_types import Supplied
from dralloc.solve.optimum.rows import SAFE_SUM, Term, sum_of
from dralloc.solve.optimum.search import most_of

__all__ = ["CapacityUnitType", "capacity_units"]

_MOST_ARCS: Final = 20_000
"""With more arcs a capacity is only added up."""

_ANY: Final = Bin((), ())
"""A device that nobody asks for by name."""


@dataclass(frozen=True)
class CapacityUnitType:
    """Shared devices with equal capacities, or whatever else is used up by adding amounts.

    Parameters
    ----------
    types
        The items that fit.
    uses
        What an item of each type takes of each capacity.
    start
        What is left of each capacity.
    """

    types: tuple[int, ...]
    uses: tuple[tuple[int, ...], ...]
    start: tuple[int, ...]
    shared = True
    together = False

    @cached_property
    def _places(self) -> dict[int, int]:
        return {type_: place for place, type_ in enumerate(self.types)}

    @cached_property
    def _amounts(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array(self.uses, dtype=np.float64).reshape(
            len(self.uses), len(self.start)
        )

    def most(self, type_: int) -> int:
        """The most items of a type, if nothing else is taken."""
        uses = self.uses[self._places[type_]]
        return min(
            left // amount
            for left, amount in zip(self.start, uses, strict=True)
            if amount
        )

    def step(self, state: Hashable, type_: int) -> tuple[int, ...] | None:
        """One more item, if there is enough left of all."""
        assert isinstance(state, tuple)
        after = tuple(
            left - amount
            for left, amount in zip(state, self.uses[self._places[type_]], strict=True)
        )
        return after if min(after) >= 0 else None

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """What is left of the scarcest capacity, at the best price that an item that still fits pays for it."""
        assert isinstance(state, tuple)
        left = np.array(state, dtype=np.float64)
        fits = (self._amounts <= left).all(axis=1)
        if not fits.any():
            return 0.0
        paid = np.array([prices[type_] for type_ in self.types])[fits, None]
        amounts = self._amounts[fits]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.nanmax(paid / amounts, axis=0) * left
            scarcest = values[np.isfinite(values)]
            # Where no capacity is asked for by all, each item may get as many as there are of it alone.
            return float(
                scarcest.min()
                if len(scarcest)
                else (paid[:, 0] * np.nanmin(left / amounts, axis=1)).sum()
            )

    def supply(self, cp: cp_model.CpModel, number: int) -> Supplied:
        """One device gives what its capacities hold; several give no more than a flow, or their sum, allows."""
        if number > 1 and len(self.start) == 1:
            sizes = {
                type_: size
                for type_, (size,) in zip(self.types, self.uses, strict=True)
            }
            if (
                len(set(self.uses)) * (self.start[0] // gcd(*sizes.values()))
                <= _MOST_ARCS
            ):
                flow = FlowSupply(
                    [FlowSource(self.start[0], sizes, [_ANY] * number)], sizes
                )
                flow.build(cp)
                return Supplied(
                    [(variable, (type_,)) for type_, variable in flow.served.items()],
                    pooled=True,
                )
        given = [
            cp.new_int_var(0, number * self.most(type_), f"given {type_}")
            for type_ in self.types
        ]
        for place, left in enumerate(self.start):
            terms = [
                (variable, uses[place])
                for variable, uses in zip(given, self.uses, strict=True)
                if uses[place]
            ]
            _at_most(cp, terms, left * number)
        return Supplied(
            [
                (variable, (type_,))
                for type_, variable in zip(self.types, given, strict=True)
            ],
            pooled=True,
        )


def capacity_units(
    uses: Mapping[int, tuple[int, ...]], left: tuple[int, ...], wanted: int
) -> CapacityUnitType:
    """What gives items that take so much of each capacity; of those that take nothing, as many as are wanted."""
    fit = {
        type_: amounts
        for type_, amounts in uses.items()
        if all(map(int.__le__, amounts, left))
    }
    if not all(map(any, fit.values())):
        fit, left = (
            {type_: (*amounts, 1) for type_, amounts in fit.items()},
            (*left, wanted),
        )
    return CapacityUnitType(tuple(fit), tuple(fit.values()), left)


def _at_most(cp: cp_model.CpModel, terms: Sequence[Term], limit: int) -> None:
    """Add ``sum(factor * variable) <= limit`` with the smallest numbers that mean the same."""
    unit = gcd(*(factor for _, factor in terms)) or 1
    smallest = [(variable, factor // unit) for variable, factor in terms]
    if (most := most_of(smallest)) <= limit // unit:
        return
    if most > SAFE_SUM:
        raise ModelError(
            f"capacities add up to {most} after removing common factors, beyond the solver's int64"
        )
    cp.add(sum_of(smallest) <= limit // unit)
