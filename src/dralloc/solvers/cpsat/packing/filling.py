"""Fillings: answers that are built greedily, many bins at a time.

Ways are taken one after the other, those with the most precious single piece first, because only few units have room
for it. A piece goes to the unit of the bin in which it wastes least: what the unit can still give, at the prices of
the relaxation, should shrink by no more than the price of the piece. Other things equal it goes to the fullest unit.
A way is put into the bins that waste least first, until it has been placed as often as in the relaxation; what is left
of the demand is tried in the end, the most weight per price first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dralloc.solvers.cpsat.packing.automaton import Automaton, Flags, Numbers, Values
from dralloc.solvers.cpsat.packing.store import Piece, Store

__all__ = ["Deal", "Filler", "Filling", "Targets"]

Targets = Mapping[tuple[int, int], int]
"""By way and area, how many to place."""

Dealt = tuple[int, tuple[int, ...]]
"""A way that is served, and the unit (by its place in the bay) that gives each piece."""

Deal = tuple[Dealt, ...]
"""What is served in a bin."""

_WASTE: Final = 1000.0
"""How much more waste matters than room that is left."""

_IMPOSSIBLE: Final = 1e18


class Round(NamedTuple):
    """A way that was put into some bins, once each, with the units that gave the pieces."""

    way: int
    bins: Numbers
    units: Numbers


class Filling:
    """What one run has put where; the bins are those of the bays in a row.

    Parameters
    ----------
    counts
        By bin and way, how often.
    rounds
        What was put where, as it came.
    deals
        By bin, the same; worked out from the rounds if it is not known.
    """

    def __init__(self, counts: Numbers, rounds: Sequence[Round] = (), deals: Sequence[Sequence[Dealt]] = ()) -> None:
        self.counts = counts
        self._rounds = rounds
        self._deals = list(map(list, deals))

    def deal(self, bin_: int) -> Deal:
        """What is served in a bin."""
        if not self._deals:
            self._deals = [[] for _ in self.counts]
            for way, bins, units in self._rounds:
                for number, givers in zip(bins.tolist(), units.tolist(), strict=True):
                    self._deals[number].append((way, tuple(givers)))
        return tuple(self._deals[bin_])


class Filler:
    """Makes fillings of a store.

    Parameters
    ----------
    store
        The store.
    automaton
        The states of its units.
    """

    def __init__(self, store: Store, automaton: Automaton) -> None:
        self.store = store
        self.automaton = automaton
        self.areas: Numbers = np.repeat([bay.area for bay in store.bays], [len(bay.slots) for bay in store.bays])
        self.start = self._start()
        types = range(automaton.next.shape[1])
        self.prices: Values = np.array([[prices[type_] for type_ in types] for prices in automaton.prices])
        self.places = [self._precious_first(way.pieces) for way in store.ways]
        self.allowed: list[Flags] = [
            np.array([way.requirement.nodes in sets for sets in store.areas], dtype=bool)[self.areas]
            for way in store.ways
        ]

    def _start(self) -> Numbers:
        width = max(len(bay.kinds) for bay in self.store.bays)
        rows = []
        for bay in self.store.bays:
            row = [self.automaton.starts[kind] for kind in bay.kinds]
            rows.append(np.tile(np.array(row + [0] * (width - len(row))), (len(bay.slots), 1)))
        return np.vstack(rows)

    def _precious_first(self, pieces: Sequence[Piece]) -> list[int]:
        """The places of the pieces, in the order in which they are given."""
        mean = self.prices.mean(axis=0)
        return sorted(range(len(pieces)), key=lambda place: -mean[pieces[place].type])

    def fill(self, targets: Targets, random: np.random.Generator, noise: float) -> Filling:
        """Fill all bins; ``noise`` is by how much (as an exponent) the order is left to chance."""
        run = _Run(self, random)
        largest, total = self._sizes()
        noisy = [each * np.exp(random.normal(0, noise, len(each))) for each in (largest, total)]
        for way in sorted(range(len(total)), key=lambda way: (-noisy[0][way], -noisy[1][way])):
            for area in range(len(self.store.areas)):
                run.place(way, targets.get((way, area), 0), self.areas == area)
        return self._finish(run, total)

    def fill_densely(self, random: np.random.Generator) -> Filling:
        """Fill all bins with the most weight per price first, whatever the relaxation places."""
        return self._finish(_Run(self, random), self._sizes()[1])

    def _finish(self, run: _Run, sizes: Values) -> Filling:
        density = [self.store.classes[way.cls].weight / sizes[number] for number, way in enumerate(self.store.ways)]
        for way in sorted(range(len(density)), key=lambda way: (-density[way], self.store.ways[way].mode.rank)):
            run.place(way, len(self.store.classes[self.store.ways[way].cls].members))
        return Filling(run.counts, run.rounds)

    def _sizes(self) -> tuple[Values, Values]:
        """By way, the largest price of a piece, and of all."""
        mean = self.prices.mean(axis=0)
        prices = [mean[[piece.type for piece in way.pieces]] for way in self.store.ways]
        return np.array([each.max() for each in prices]), np.array([each.sum() for each in prices])


class _Run:
    """A filling that is under way. Which of equally good bins come first is drawn by lot."""

    def __init__(self, filler: Filler, random: np.random.Generator) -> None:
        self.filler = filler
        self.states = filler.start.copy()
        self.order: Numbers = random.permutation(len(self.states))
        self.left = [len(each.members) for each in filler.store.classes]
        self.counts: Numbers = np.zeros((len(self.states), len(filler.store.ways)), dtype=np.int64)
        self.rounds: list[Round] = []

    def place(self, way: int, limit: int, where: Flags | None = None) -> None:
        """Put a way into bins, at most so often in all."""
        cls = self.filler.store.ways[way].cls
        limit = min(limit, self.left[cls])
        may = self.filler.allowed[way] if where is None else self.filler.allowed[way] & where
        bins = self.order[may[self.order]]
        while limit > 0 and len(bins):
            fits, waste, states, units = self._try(way, bins)
            bins, waste, states, units = bins[fits], waste[fits], states[fits], units[fits]
            chosen = np.argsort(waste, kind="stable")[:limit]
            if not len(chosen):
                return
            self.states[bins[chosen]] = states[chosen]
            self.counts[bins[chosen], way] += 1
            self.rounds.append(Round(way, bins[chosen], units[chosen]))
            self.left[cls] -= len(chosen)
            limit -= len(chosen)

    def _try(self, way: int, bins: Numbers) -> tuple[Flags, Values, Numbers, Numbers]:
        """Whether the way fits into each bin, what is wasted, the states after it, and the units that give."""
        pieces, automaton = self.filler.store.ways[way].pieces, self.filler.automaton
        states, areas, row = self.states[bins], self.filler.areas[bins][:, None], np.arange(len(bins))
        fits, waste = np.ones(len(bins), dtype=bool), np.zeros(len(bins))
        units: Numbers = np.full((len(bins), len(pieces)), -1)
        for place in self.filler.places[way]:
            piece = pieces[place]
            after = automaton.advance(states, piece.type)
            left = automaton.worth[areas, states]
            lost = left - automaton.worth[areas, np.maximum(after, 0)] - self.filler.prices[areas, piece.type]
            score = np.where(after >= 0, lost * _WASTE + left, _IMPOSSIBLE)
            best = score.argmin(axis=1)
            fits &= score[row, best] < _IMPOSSIBLE
            waste += lost[row, best]
            states[row, best] = np.where(fits, after[row, best], states[row, best])
            units[:, place] = best
        return fits, waste.round(9), states, units
