"""The constructive heuristic: a packing is built greedily, many bins at a time.

Options are taken one after the other, those with the most precious single item first, because few units have room for
it. An item goes to the unit of the bin in which it wastes least: what the unit can still give, at the prices of
the relaxation, should shrink by no more than the price of the item. Other things equal it goes to the fullest unit.
An option is put into the bins that waste least first (best fit), until it has been placed as often as in the
relaxation; what is left of the demand is tried in the end, the most weight per price first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dralloc.solve.optimum.packing.automaton import Automaton, Flags, Numbers, Values
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.relaxation import Prices
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "BinContent",
    "ConstructiveHeuristic",
    "Packing",
    "PlacementRound",
    "Targets",
]

Targets = Mapping[tuple[int, int], int]
"""By option and area, how many to place."""

BinContent = Sequence[tuple[int, Sequence[int]]]
"""What is served in a bin: options, each with the units (by their place in the bin type) that give its items."""

_WASTE: Final = 1000.0
"""How much more waste matters than room that is left."""

_IMPOSSIBLE: Final = 1e18


class PlacementRound(NamedTuple):
    """An option that was put into some bins, once each, with the units that gave the items."""

    option: int
    bins: Numbers
    units: Numbers


@dataclass(frozen=True, eq=False)
class Packing:
    """What each bin serves; the bins are those of the bin types in a row.

    ``counts``: by bin and option, how often. ``rounds``: the options that were put into bins, in order.
    """

    counts: Numbers
    rounds: Sequence[PlacementRound]

    @cached_property
    def contents(self) -> Sequence[BinContent]:
        """By bin, what is served there. Most packings are never asked."""
        found: list[list[tuple[int, list[int]]]] = [[] for _ in self.counts]
        for option, bins, units in self.rounds:
            for number, suppliers in zip(bins.tolist(), units.tolist(), strict=True):
                found[number].append((option, suppliers))
        return found


class ConstructiveHeuristic:
    """Builds packings; ``prices`` say what an item is worth."""

    def __init__(self, instance: PackingInstance, prices: Prices) -> None:
        self.instance = instance
        self.automaton = automaton = Automaton(instance, prices)
        self.areas: Numbers = np.repeat(
            [bin_type.area for bin_type in instance.bin_types],
            [len(bin_type.instances) for bin_type in instance.bin_types],
        )
        self.start = self._start()
        types = range(automaton.next.shape[1])
        self.prices: Values = np.array(
            [[prices[type_] for type_ in types] for prices in automaton.prices]
        )
        mean = self.prices.mean(axis=0)
        # The most precious item is given first.
        self.places: list[list[int]] = [
            np.argsort(
                -mean[[item.type for item in option.items]], kind="stable"
            ).tolist()
            for option in instance.options
        ]
        self.allowed: list[Flags] = [
            np.array(
                [option.requirement.nodes in sets for sets in instance.areas],
                dtype=bool,
            )[self.areas]
            for option in instance.options
        ]

    def _start(self) -> Numbers:
        width = max(len(bin_type.unit_types) for bin_type in self.instance.bin_types)
        rows = []
        for bin_type in self.instance.bin_types:
            row = [
                self.automaton.starts[unit_type] for unit_type in bin_type.unit_types
            ]
            rows.append(
                np.tile(
                    np.array(row + [0] * (width - len(row))),
                    (len(bin_type.instances), 1),
                )
            )
        return np.vstack(rows)

    def construct(
        self, targets: Targets, random: np.random.Generator, noise: float, stop: Stop
    ) -> Packing:
        """Pack all bins; ``noise`` is by how much (as an exponent) the order is left to chance.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        run = _Construction(self, random)
        largest, total = self._sizes()
        noisy = [
            each * np.exp(random.normal(0, noise, len(each)))
            for each in (largest, total)
        ]
        for option in stop.each(
            sorted(
                range(len(total)),
                key=lambda option: (-noisy[0][option], -noisy[1][option]),
            )
        ):
            for area in range(len(self.instance.areas)):
                run.place(option, targets.get((option, area), 0), self.areas == area)
        return self._finish(run, total, stop)

    def construct_densely(self, random: np.random.Generator, stop: Stop) -> Packing:
        """Pack all bins with the most weight per price first, whatever the relaxation places. Raises as `construct`."""
        return self._finish(_Construction(self, random), self._sizes()[1], stop)

    def _finish(self, run: _Construction, sizes: Values, stop: Stop) -> Packing:
        missed = np.array(self.instance.weights)[
            :, [option.cls for option in self.instance.options]
        ]
        weights = missed - np.array(self.instance.option_costs[:-1])
        ranks = [option.mode.rank for option in self.instance.options]
        for option in stop.each(
            np.lexsort((ranks, *reversed(-weights / sizes))).tolist()
        ):
            run.place(option, self.instance.demand[self.instance.options[option].cls])
        return Packing(run.counts, run.rounds)

    def _sizes(self) -> tuple[Values, Values]:
        """By option, the largest price of an item, and of all."""
        mean = self.prices.mean(axis=0)
        prices = [
            mean[[item.type for item in option.items]]
            for option in self.instance.options
        ]
        return np.array([each.max() for each in prices]), np.array(
            [each.sum() for each in prices]
        )


class _Construction:
    """A packing that is under way. Which of equally good bins come first is drawn by lot."""

    def __init__(
        self, heuristic: ConstructiveHeuristic, random: np.random.Generator
    ) -> None:
        self.heuristic = heuristic
        self.states = heuristic.start.copy()
        self.order: Numbers = random.permutation(len(self.states))
        self.left = list(heuristic.instance.demand)
        self.counts: Numbers = np.zeros(
            (len(self.states), len(heuristic.instance.options)), dtype=np.int64
        )
        self.rounds: list[PlacementRound] = []

    def place(self, option: int, limit: int, where: Flags | None = None) -> None:
        """Put an option into bins, at most so often in all."""
        cls = self.heuristic.instance.options[option].cls
        limit = min(limit, self.left[cls])
        may = (
            self.heuristic.allowed[option]
            if where is None
            else self.heuristic.allowed[option] & where
        )
        bins = self.order[may[self.order]]
        while limit > 0 and len(bins):
            fits, waste, states, units = self._try(option, bins)
            bins, waste, states, units = (
                bins[fits],
                waste[fits],
                states[fits],
                units[fits],
            )
            chosen = np.argsort(waste, kind="stable")[:limit]
            if not len(chosen):
                return
            self.states[bins[chosen]] = states[chosen]
            self.counts[bins[chosen], option] += 1
            self.rounds.append(PlacementRound(option, bins[chosen], units[chosen]))
            self.left[cls] -= len(chosen)
            limit -= len(chosen)

    def _try(
        self, option: int, bins: Numbers
    ) -> tuple[Flags, Values, Numbers, Numbers]:
        """Whether the option fits into each bin, what is wasted, the states after it, and the units that give."""
        items, automaton = (
            self.heuristic.instance.options[option].items,
            self.heuristic.automaton,
        )
        states, areas, row = (
            self.states[bins],
            self.heuristic.areas[bins][:, None],
            np.arange(len(bins)),
        )
        fits, waste = np.ones(len(bins), dtype=bool), np.zeros(len(bins))
        units: Numbers = np.full((len(bins), len(items)), -1)
        for place in self.heuristic.places[option]:
            item = items[place]
            after = automaton.advance(states, item.type)
            left = automaton.worth[areas, states]
            lost = (
                left
                - automaton.worth[areas, np.maximum(after, 0)]
                - self.heuristic.prices[areas, item.type]
            )
            score = np.where(after >= 0, lost * _WASTE + left, _IMPOSSIBLE)
            best = score.argmin(axis=1)
            fits &= score[row, best] < _IMPOSSIBLE
            waste += lost[row, best]
            states[row, best] = np.where(fits, after[row, best], states[row, best])
            units[:, place] = best
        return fits, waste.round(9), states, units
