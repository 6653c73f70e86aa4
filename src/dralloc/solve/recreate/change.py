"""One search through small changes: some demands leave a few nodes, and come back among others in a new order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Placement
from dralloc.solve.policies.sizes import PARTS, Sizes
from dralloc.solve.recreate.units import MovableUnit
from dralloc.solve.recreate.working_answer import WorkingAnswer

__all__ = ["ChangeSearch"]

_MOST_NODES: Final = 4
"""On so many nodes at most demands make room."""

_MOST_LEAVING: Final = 4
"""So many leave each of these at most."""

_MOST_WAITING: Final = 30
"""So many of those that wait are asked whether they fit now."""

_TRUST: Final = 20
"""Kinds of nodes begin as if so many changes had been tried there, all for the better."""

_LEAST_REPUTATION: Final = 0.01
"""Where hardly any change is for the better, nodes still have a turn now and then."""

_AT_RANDOM: Final = 0.1
"""How often demands come back in any order, and not about the small before the large."""

_SIZE_NOISE: Final = 0.6
"""By what factor the sizes of demands are disturbed, as the standard deviation of its logarithm."""

_LARGEST_LOSS: Final = 0.03
"""An answer worth as much is taken over if what is placed is not smaller than this part less: where large demands
stand, small ones wait, which find room more easily. A little less is allowed, so that the search gets anywhere."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Who left, from where, and who is placed instead."""

    left: Sequence[Placement]
    entered: Sequence[int]


@dataclass(slots=True, eq=False)
class _NodeKind:
    """Nodes that are alike, and how often changes there were tried, and were for the better."""

    nodes: Sequence[int]
    tries: int = 0
    successes: int = 0

    @property
    def reputation(self) -> float:
        """How often a change is for the better, as far as that is known; nodes are never given up."""
        return max(_LEAST_REPUTATION, (_TRUST + self.successes) / (_TRUST + self.tries))


class ChangeSearch:
    """Improves a working answer; an answer is never worth less than those before it.

    Parameters
    ----------
    problem, placements
        What is asked for, and the answer to begin with.
    seed
        Equal seeds take equal steps.

    Attributes
    ----------
    answer
        The answer.
    """

    def __init__(
        self, problem: Problem, placements: Iterable[Placement], seed: int
    ) -> None:
        self.answer = WorkingAnswer(problem, placements)
        self._random = np.random.default_rng(seed)
        self._weights = [demand.weight for demand in problem.demands]
        self._sizes = _sizes(problem, self.answer.unit_of)
        self._waits = np.zeros(len(problem.demands), np.bool_)
        placed = self.answer.placed
        for unit in self.answer.unit_of.values():
            waits = placed.keys().isdisjoint(unit.members)
            self._waits[list(unit.members)] = waits
        alike = grouped(
            (_kind(problem, node), node) for node in range(len(problem.nodes))
        )
        self._kinds: list[_NodeKind] = [_NodeKind(nodes) for nodes in alike.values()]

    def step(self) -> None:
        """Try one change, and keep it if the answer is not worse."""
        kind = self._some_kind()
        kind.tries += 1
        nodes = self._some_nodes(kind)
        drawn = [demand for node in nodes for demand in self._some_on(node)]
        leaving = self._units(drawn)
        placements = [
            placement for unit in leaving for placement in self.answer.leave(unit)
        ]
        self.answer.forget({*nodes, *[placement.node for placement in placements]})
        entered = self._recreate(nodes, leaving, placements)
        change = _Change(placements, entered)
        if self._is_worse(change):
            self._undo(change)
            return
        before = [placement.demand for placement in placements]
        kind.successes += self._worth(entered) > self._worth(before)
        for unit in leaving:
            self._waits[list(unit.members)] = True
        for unit in self._units(entered):
            self._waits[list(unit.members)] = False

    def _units(self, demands: Iterable[int]) -> list[MovableUnit]:
        """Return the units of demands, each once."""
        return list(dict.fromkeys([self.answer.unit_of[demand] for demand in demands]))

    # Ruin.

    def _some_kind(self) -> _NodeKind:
        """Draw a kind of nodes: more often one where more changes were for the better."""
        shares = np.array([len(kind.nodes) * kind.reputation for kind in self._kinds])
        return self._kinds[
            int(np.searchsorted(shares.cumsum(), self._random.random() * shares.sum()))
        ]

    def _some_nodes(self, kind: _NodeKind) -> list[int]:
        """Draw some nodes of a kind, between which demands can be exchanged."""
        size = 1 + int(self._random.integers(_MOST_NODES))
        draws = self._random.integers(len(kind.nodes), size=size).tolist()
        return list(dict.fromkeys([kind.nodes[draw] for draw in draws]))

    def _some_on(self, node: int) -> list[int]:
        """Draw some of those who stand on a node."""
        here = self.answer.on_node(node)
        if not here:
            return []
        size = 1 + int(self._random.integers(_MOST_LEAVING))
        return [
            here[place] for place in self._random.permutation(len(here))[:size].tolist()
        ]

    # Recreate.

    def _recreate(
        self,
        nodes: Sequence[int],
        leaving: Sequence[MovableUnit],
        placements: Sequence[Placement],
    ) -> list[int]:
        """Let units in: those who left, wherever they fit, and those who wait, where there is room now.

        Returns
        -------
        list of int
            Who is placed. As soon as those who may still come cannot make up for who failed, nobody else is tried.
        """
        returning = set(leaving)
        pool = [*leaving, *self._some_waiting(nodes)]
        needed = self._worth([placement.demand for placement in placements])
        possible = sum(self._worth(unit.members) for unit in pool)
        entered: list[int] = []
        for unit in self._in_new_order(pool):
            elsewhere = unit in returning or not unit.is_single
            members = self.answer.enter(unit, nodes, self._random, elsewhere=elsewhere)
            entered += members
            possible -= self._worth(unit.members) - self._worth(members)
            if possible < needed:
                break
        return entered

    def _some_waiting(self, nodes: Sequence[int]) -> list[MovableUnit]:
        """Draw some of those who wait and may fit now."""
        fitting = self.answer.fitting(self._waits.nonzero()[0], nodes)
        chosen: list[int] = self._random.permutation(fitting)[:_MOST_WAITING].tolist()
        return self._units(chosen)

    def _in_new_order(self, pool: Sequence[MovableUnit]) -> list[MovableUnit]:
        """Order units by weight; those of equal weight about the small before the large, or in any order."""
        noise = self._random.normal(0.0, _SIZE_NOISE, len(pool))
        firsts = [unit.members[0] for unit in pool]
        if self._random.random() < _AT_RANDOM:
            keys = noise.tolist()
        else:
            sizes = np.array([self._sizes[demand] for demand in firsts], dtype=float)
            keys = (sizes * np.exp(noise)).tolist()
        weights = [self._weights[demand] for demand in firsts]
        order = sorted(
            range(len(pool)), key=lambda index: (-weights[index], keys[index])
        )
        return [pool[index] for index in order]

    # Which answer to keep.

    def _worth(self, demands: Iterable[int]) -> int:
        return sum(self._weights[demand] for demand in demands)

    def _is_worse(self, change: _Change) -> bool:
        before = [placement.demand for placement in change.left]
        worth, worth_before = self._worth(change.entered), self._worth(before)
        if worth != worth_before:
            return worth < worth_before
        size, size_before = (
            sum(self._sizes[demand] for demand in demands)
            for demands in (change.entered, before)
        )
        return size < (1 - _LARGEST_LOSS) * size_before

    def _undo(self, change: _Change) -> None:
        touched = {placement.node for placement in change.left}
        for unit in self._units(change.entered):
            touched.update([placement.node for placement in self.answer.leave(unit)])
        for placement in change.left:
            self.answer.restore(placement)
        self.answer.forget(touched)


def _sizes(problem: Problem, demands: Iterable[int]) -> dict[int, int]:
    """Return how large demands are: the parts that they take of each resource, added up."""
    sizes = Sizes(problem)
    return {demand: _parts(sizes, problem, demand) for demand in demands}


def _parts(sizes: Sizes, problem: Problem, demand: int) -> int:
    taken = sizes.taken(problem.demands[demand])
    return sum(
        amount * PARTS // max(1, sizes.totals[name]) for name, amount in taken.items()
    )


def _kind(problem: Problem, node: int) -> Hashable:
    """Return what nodes have in common that offer the same numbers of devices by driver."""
    drivers = [
        problem.devices[device].id.driver for device in problem.nodes[node].devices()
    ]
    return tuple(sorted((driver, drivers.count(driver)) for driver in set(drivers)))
