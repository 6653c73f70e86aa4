"""The constructive heuristic: a packing is built greedily, many bins at a time.

Options are taken one after the other, those with the most precious single item first, because few units have room for
it. An item goes to the unit of the bin in which it wastes least: what the unit can still give, at the prices of the
relaxation, should shrink by no more than the price of the item. Other things equal it goes to the fullest unit. An
option is put into the bins that waste least first (best fit), until it has been placed as often as in the relaxation;
the rest of the demand is tried in the end, the most weight per price first.

The states of all units are numbers in one table (`Automaton`), so that the next states of thousands of units are looked
up at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.packing.instance import Item, PackingInstance, Prices
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "BinContent",
    "ConstructiveHeuristic",
    "Packing",
    "PlacementRound",
    "Targets",
]

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

Targets = Mapping[tuple[int, int], int]
"""By option and area, how many to place."""

BinContent = Sequence[tuple[int, Sequence[int]]]
"""What is served in a bin: options, each with the units (by their place in the bin type) that give its items."""

_WASTE_WEIGHT: Final = 1000.0
"""How much more waste matters than room that remains."""

_IMPOSSIBLE: Final = 1e18
"""The score of a unit that cannot give an item."""

_NO_STATE: Final = -1
"""Stands for the state after an item that a unit does not have."""

_UNKNOWN_STATE: Final = -2
"""Stands for a state that nobody has asked for."""

_NO_UNIT: Final = 0
"""The state of a place without unit: it gives nothing."""

_FIRST_ROWS: Final = 1024
"""So many states the table has room for at first."""


class Automaton:
    """All unit types as one table: a state per row, a type of item per column, the state after giving the item.

    The table grows as states are met. With it goes what the units can still give, at the prices of items.
    """

    def __init__(self, instance: PackingInstance, prices: Prices) -> None:
        self.unit_types = instance.unit_types
        area_count = len(instance.areas)
        type_count = instance.types[-1] + 1
        # Columns are the numbers of types themselves, whether or not an item has them.
        self.prices: list[dict[int, float]] = []
        for area in range(area_count):
            prices_here = {}
            for item_type in range(type_count):
                prices_here[item_type] = prices.get((area, item_type), 0.0)
            self.prices.append(prices_here)
        self.next: Numbers = np.full(
            (_FIRST_ROWS, type_count),
            _UNKNOWN_STATE,
            dtype=np.int32,
        )
        self.next[_NO_UNIT] = _NO_STATE
        self.worth: Values = np.zeros((area_count, _FIRST_ROWS))
        # The first row is that of a place without unit (`_NO_UNIT`).
        self._states: Listed[tuple[int, Hashable]] = Listed([(-1, None)])
        self.starts: list[int] = []
        for unit_type_index, unit_type in enumerate(self.unit_types):
            self.starts.append(self._number(unit_type_index, unit_type.start))

    def advance(self, states: Numbers, item_type: int) -> Numbers:
        """Return the states after giving an item; negative where there is none to give."""
        after: Numbers = self.next[states, item_type]
        is_unknown = after == _UNKNOWN_STATE
        if is_unknown.any():
            for state in np.unique(states[is_unknown]).tolist():
                self.next[state, item_type] = self._follow(state, item_type)
            after = self.next[states, item_type]
        return after

    def _follow(self, state: int, item_type: int) -> int:
        unit_type_index, state_of_unit = self._states[state]
        unit_type = self.unit_types[unit_type_index]
        if item_type not in unit_type.types:
            return _NO_STATE
        after = unit_type.step(state_of_unit, item_type)
        if after is None:
            return _NO_STATE
        return self._number(unit_type_index, after)

    def _number(self, unit_type: int, state: Hashable) -> int:
        """Return the row of a state; a new one gets the next, and its worth in each area."""
        count = len(self._states)
        row = self._states.number((unit_type, state))
        if row < count:
            return row
        if row == len(self.next):
            self._grow()
        for area, prices in enumerate(self.prices):
            worth = self.unit_types[unit_type].worth(state, prices)
            self.worth[area, row] = worth
        return row

    def _grow(self) -> None:
        """Make room for as many states again."""
        more_states = np.full_like(self.next, _UNKNOWN_STATE)
        self.next = np.vstack([self.next, more_states])
        self.worth = np.hstack([self.worth, np.zeros_like(self.worth)])


class PlacementRound(NamedTuple):
    """An option that was put into some bins, once each, with the units that gave the items."""

    option: int
    bins: Numbers
    units: Numbers


@dataclass(frozen=True, eq=False)
class Packing:
    """The content of bins, which are those of the bin types in a row.

    Parameters
    ----------
    counts
        By bin and option, how often it is served.
    rounds
        The options that were put into bins, in order.
    """

    counts: Numbers
    rounds: Sequence[PlacementRound]

    @cached_property
    def contents(self) -> Sequence[BinContent]:
        """By bin, what is served there. Most packings are never asked."""
        contents: list[list[tuple[int, list[int]]]] = [[] for _ in self.counts]
        for option, bins, units in self.rounds:
            for bin_number, suppliers in zip(
                bins.tolist(), units.tolist(), strict=True
            ):
                contents[bin_number].append((option, suppliers))
        return contents


class ConstructiveHeuristic:
    """Builds packings; ``prices`` say what an item is worth."""

    def __init__(self, instance: PackingInstance, prices: Prices) -> None:
        self.instance = instance
        self.automaton = Automaton(instance, prices)
        bin_counts = [
            len(bin_type.instances) for bin_type in instance.bin_types
        ]
        areas = [bin_type.area for bin_type in instance.bin_types]
        self.areas: Numbers = np.repeat(areas, bin_counts)
        self.start = self._start_states()
        self.shared = self._shared_units()
        # By area and type of item.
        self.prices: Values = np.array(
            [
                list(prices_here.values())
                for prices_here in self.automaton.prices
            ]
        )
        mean_prices = self.prices.mean(axis=0)
        # The most precious item of an option is given first.
        self.item_orders: list[list[int]] = []
        for option in instance.options:
            item_types = [item.type for item in option.items]
            order = np.argsort(-mean_prices[item_types], kind="stable")
            self.item_orders.append(order.tolist())
        self.allowed: list[Flags] = []
        for option in instance.options:
            is_allowed = [
                option.requirement.nodes in node_sets
                for node_sets in instance.areas
            ]
            self.allowed.append(np.array(is_allowed, dtype=bool)[self.areas])

    def _start_states(self) -> Numbers:
        """Return the states of the units of all bins, a row for each bin."""
        return self._by_bin(self.automaton.starts, _NO_UNIT)

    def _shared_units(self) -> Flags:
        """Return which units of all bins are shared, a row for each bin."""
        is_shared = [unit_type.shared for unit_type in self.instance.unit_types]
        return self._by_bin(is_shared, False).astype(bool)

    def _by_bin(self, of_unit_types: Sequence[int], nothing: int) -> Numbers:
        """Return what is known of unit types for the units of all bins, a row for each; nothing where there is none."""
        bin_types = self.instance.bin_types
        width = max(len(bin_type.unit_types) for bin_type in bin_types)
        blocks = []
        for bin_type in bin_types:
            row = [nothing] * width
            for column, unit_type in enumerate(bin_type.unit_types):
                row[column] = of_unit_types[unit_type]
            blocks.append(np.tile(np.array(row), (len(bin_type.instances), 1)))
        return np.vstack(blocks)

    def construct(
        self,
        targets: Targets,
        random: np.random.Generator,
        noise: float,
        stop: Stop,
    ) -> Packing:
        """Pack all bins; ``noise`` is by how much (as an exponent) the order is left to chance.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        construction = _Construction(self, random)
        largest, total = self._option_prices()
        # Both are drawn, the largest first, so that a seed means the same packings.
        noisy_largest = largest * np.exp(random.normal(0, noise, len(largest)))
        noisy_total = total * np.exp(random.normal(0, noise, len(total)))
        order = sorted(
            range(len(total)),
            key=lambda option: (-noisy_largest[option], -noisy_total[option]),
        )
        for option in stop.each(order):
            for area in range(len(self.instance.areas)):
                target = targets.get((option, area), 0)
                construction.place(option, target, self.areas == area)
        return self._finish(construction, total, stop)

    def _finish(
        self, construction: _Construction, option_prices: Values, stop: Stop
    ) -> Packing:
        """Try what remains of the demand, the most weight per price first; lower ranks first among equals."""
        options = self.instance.options
        classes = [option.cls for option in options]
        missed_weights = np.array(self.instance.weights)[:, classes]
        placed_weights = missed_weights - np.array(
            self.instance.option_costs[:-1]
        )
        ranks = [option.mode.rank for option in options]
        # The last key counts most.
        keys = (ranks, *reversed(-placed_weights / option_prices))
        for option in stop.each(np.lexsort(keys).tolist()):
            construction.place(
                option, self.instance.demand[options[option].cls]
            )
        return Packing(construction.counts, construction.rounds)

    def _option_prices(self) -> tuple[Values, Values]:
        """Return by option the largest price of an item, and the price of all."""
        mean_prices = self.prices.mean(axis=0)
        largest = []
        total = []
        for option in self.instance.options:
            prices = mean_prices[[item.type for item in option.items]]
            largest.append(prices.max())
            total.append(prices.sum())
        return np.array(largest), np.array(total)


class _Trial(NamedTuple):
    """An option tried in some bins: by bin, whether it fits, what is wasted, the states after, the units that give."""

    fits: Flags
    waste: Values
    states: Numbers
    units: Numbers


class _Construction:
    """A packing that is under way. Which of equally good bins come first is drawn by lot."""

    def __init__(
        self, heuristic: ConstructiveHeuristic, random: np.random.Generator
    ) -> None:
        self.heuristic = heuristic
        self.states = heuristic.start.copy()
        self.order: Numbers = random.permutation(len(self.states))
        self.demand = list(heuristic.instance.demand)
        shape = len(self.states), len(heuristic.instance.options)
        self.counts: Numbers = np.zeros(shape, dtype=np.int64)
        self.rounds: list[PlacementRound] = []

    def place(
        self, option: int, limit: int, where: Flags | None = None
    ) -> None:
        """Put an option into bins, at most so often in all."""
        cls = self.heuristic.instance.options[option].cls
        limit = min(limit, self.demand[cls])
        allowed = self.heuristic.allowed[option]
        if where is not None:
            allowed = allowed & where
        bins = self.order[allowed[self.order]]
        while limit > 0 and len(bins):
            trial = self._try(option, bins)
            bins = bins[trial.fits]
            waste = trial.waste[trial.fits]
            chosen = np.argsort(waste, kind="stable")[:limit]
            if not len(chosen):
                return
            self.states[bins[chosen]] = trial.states[trial.fits][chosen]
            self.counts[bins[chosen], option] += 1
            units = trial.units[trial.fits][chosen]
            self.rounds.append(PlacementRound(option, bins[chosen], units))
            self.demand[cls] -= len(chosen)
            limit -= len(chosen)

    def _try(self, option: int, bins: Numbers) -> _Trial:
        """Serve the option once in each bin, item by item, each from the unit where it wastes least."""
        heuristic = self.heuristic
        automaton = heuristic.automaton
        items = heuristic.instance.options[option].items
        states = self.states[bins]
        areas = heuristic.areas[bins][:, None]
        rows = np.arange(len(bins))
        fits = np.ones(len(bins), dtype=bool)
        waste = np.zeros(len(bins))
        units: Numbers = np.full((len(bins), len(items)), -1)
        suppliers: dict[Item, list[Numbers]] = defaultdict(list)
        for position in heuristic.item_orders[option]:
            item_type = items[position].type
            after = automaton.advance(states, item_type)
            worth = automaton.worth[areas, states]
            worth_after = automaton.worth[areas, np.maximum(after, 0)]
            wasted = worth - worth_after - heuristic.prices[areas, item_type]
            score = np.where(
                after >= 0, wasted * _WASTE_WEIGHT + worth, _IMPOSSIBLE
            )
            if item_type in heuristic.instance.kept_apart:
                # Another device of the same item group is not this shared one again.
                for earlier in suppliers[items[position]]:
                    is_shared = heuristic.shared[bins, earlier]
                    score[rows[is_shared], earlier[is_shared]] = _IMPOSSIBLE
            best = score.argmin(axis=1)
            suppliers[items[position]].append(best)
            fits &= score[rows, best] < _IMPOSSIBLE
            waste += wasted[rows, best]
            states[rows, best] = np.where(
                fits, after[rows, best], states[rows, best]
            )
            units[:, position] = best
        # Rounded, so that equal waste is equal in whatever order it was added up.
        return _Trial(fits, waste.round(9), states, units)
