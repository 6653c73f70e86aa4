"""A component that is solved over pieces and cells, on its way through the tiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

from dralloc.solution import Placement
from dralloc.solvers.cpsat.interrupt import Interrupted
from dralloc.solvers.cpsat.objective import Objective, Part
from dralloc.solvers.cpsat.options import Options
from dralloc.solvers.cpsat.packing.automaton import Automaton
from dralloc.solvers.cpsat.packing.exact import ExactModel
from dralloc.solvers.cpsat.packing.expand import placements as expand
from dralloc.solvers.cpsat.packing.filling import Filler, Targets
from dralloc.solvers.cpsat.packing.relaxation import Prices, Relaxation, guide
from dralloc.solvers.cpsat.packing.search import Clock, Search
from dralloc.solvers.cpsat.packing.store import Store
from dralloc.solvers.cpsat.search import Watch, limit_cost, minimise

__all__ = ["PackedComponent"]

_ROUNDS: Final = 6
"""Without a better answer in so many rounds the search gives up."""

_BEGIN: Final = 1.0
"""Seconds for the bound that guides the first fillings, and for putting them together."""

_FIRST: Final = 2
"""Fillings to begin with, and of the first round."""

_MOST: Final = 64
"""Fillings of a round."""

_POLISHED: Final = 4
"""Integer masters of a round."""

_SMALL: Final = 64
"""Up to so many cells the exact model may come to an end within a time limit."""


class PackedComponent:
    """Demand classes that are solved together; see `dralloc.solvers.cpsat.parts.Component`.

    Parameters
    ----------
    part
        The demands, without sites.
    tiers
        The objective. Those behind weight and alternatives are only bounded.
    store
        What there is and what is wanted.
    placements
        An answer to begin with.
    options
        The seed.
    """

    def __init__(
        self,
        part: Part,
        tiers: Sequence[Objective],
        store: Store,
        placements: Sequence[Placement],
        options: Options,
    ) -> None:
        self.part = part
        self.tiers = tiers
        self.store = store
        self.options = options
        self.placements = tuple(placements)
        self.size = len(part.demands)
        self.bounds = [0] * len(tiers)
        self._costs = self._costs_of(self.placements)
        self._targets: Targets = {}
        self._raise_bounds()

    @cached_property
    def _search(self) -> Search:
        shadow = Relaxation(self.store).prices()
        fillers = [self._filler(guide(self.store, prices)) for prices in ({}, shadow)]
        return Search(self.store, fillers, self.options)

    def _filler(self, prices: Prices) -> Filler:
        return Filler(self.store, Automaton(self.store.kinds, len(self.store.areas), self.store.types[-1] + 1, prices))

    def cost(self, level: int) -> int:
        """What the best answer costs in a tier."""
        return self._costs[level]

    def is_proven(self, level: int) -> bool:
        """Whether no answer is better in this tier, given the tiers before it."""
        return self._costs[level] == self.bounds[level]

    def begin(self) -> None:
        """Find the answer that is there in no time: the best of what few fillings did."""
        try:
            self._relax(0, self.options, Clock(_BEGIN))
        except Interrupted:
            return
        with suppress(Interrupted):
            if not self._targets:
                self._search.fill_densely()
            for _ in range(_FIRST):
                self._search.fill(self._targets)
            self._search.combine(None, Clock(_BEGIN))
        self._name_best()

    def improve(self, level: int, options: Options, limit: float | None, watch: Watch | None) -> bool:
        """Solve a tier with the tiers before it, which must be proven, fixed. True if interrupted."""
        if level > 1:
            return False
        try:
            self._solve(level, options, Clock(limit), watch)
        except Interrupted:
            return True
        finally:
            self._name_best()
        return False

    def _solve(self, level: int, options: Options, clock: Clock, watch: Watch | None) -> None:
        def tell() -> None:
            if watch:
                watch(self._best(level), self.bounds[level])

        self._relax(level, options, clock)
        tell()
        for better in self._rounds(level, clock):
            if better:
                tell()
            if self._best(level) == self.bounds[level] or clock.over():
                return
        self._prove(level, options, clock, watch)

    def _best(self, level: int) -> int:
        """What the best answer costs, with or without names yet."""
        return min(self._costs[:2], list(self._search.costs))[level]

    def _relax(self, level: int, options: Options, clock: Clock) -> None:
        """Bound the tier, and find out how often each way should be served."""
        relaxation = Relaxation(self.store)
        if level:
            limit_cost(relaxation.cp, relaxation.missed_weight(), self._costs[0])
        cost = relaxation.ranks() if level else relaxation.missed_weight()
        outcome = minimise(relaxation.cp, cost, options, clock.left())
        self.bounds[level] = max(self.bounds[level], outcome.bound)
        if outcome.values is not None:
            self._targets = relaxation.targets(outcome.values)
        if outcome.interrupted:
            raise Interrupted

    def _rounds(self, level: int, clock: Clock) -> Iterator[bool]:
        """Whether each step found a better answer; ends when that becomes too rare for what the exact model can do."""
        in_vain, fillings = 0, _FIRST
        cells = sum(len(bay.slots) for bay in self.store.bays)
        while in_vain < _ROUNDS or not (clock.end is None or cells <= _SMALL):
            better = False
            for step in self._steps(level, clock, fillings):
                better |= step
                yield step
            fillings = min(2 * fillings, _MOST)
            in_vain = 0 if better else in_vain + 1

    def _steps(self, level: int, clock: Clock, fillings: int) -> Iterator[bool]:
        """A round: fillings, the linear master, and some integer ones."""
        for _ in range(fillings):
            yield self._search.fill(self._targets)
        yield self._search.combine(self._costs[0] if level else None, clock)
        for _ in range(_POLISHED):
            yield self._search.polish(clock)

    def _prove(self, level: int, options: Options, clock: Clock, watch: Watch | None) -> None:
        """Let the exact model decide."""
        model = ExactModel(self.store)
        if level:
            limit_cost(model.cp, model.missed_weight(), self._costs[0])
        model.hint(self._search.best)
        cost = model.ranks() if level else model.missed_weight()
        outcome = minimise(model.cp, cost, options, clock.left(), watch)
        self.bounds[level] = max(self.bounds[level], outcome.bound)
        if outcome.values is not None:
            self._search.learn(model.read(outcome.values))
        if outcome.interrupted:
            raise Interrupted

    def _name_best(self) -> None:
        if self._search.costs < tuple(self._costs[:2]):
            self.placements = tuple(expand(self.part.problem, self.store, self._search.best))
            self._costs = self._costs_of(self.placements)
        self._raise_bounds()

    def _costs_of(self, placements: Sequence[Placement]) -> list[int]:
        return [tier.cost(self.part, placements) for tier in self.tiers]

    def _raise_bounds(self) -> None:
        """What is known without solving: with everything placed, each demand has at least its best way's rank."""
        if self._costs[0] == 0:
            least = sum(each.modes[0].rank * len(each.members) for each in self.store.classes)
            self.bounds[1] = max(self.bounds[1], least)
        for level, tier in enumerate(self.tiers[2:], 2):
            self.bounds[level] = max(self.bounds[level], tier.floor(self.part, self.placements))
