"""One search through small changes: some demands leave a few nodes, and come back among others in a new order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Final

from dralloc.problem import Demand, NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped, indices
from dralloc.problem.inter_pod import Arrival
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    Placement,
)
from dralloc.solve.policies.sizes import PARTS, Sizes
from dralloc.solve.recreate.answer import WorkingAnswer
from dralloc.solve.recreate.devices import Site
from dralloc.solve.recreate.units import MovableUnit

__all__ = ["ChangeSearch"]

_MOST_NODES: Final = 4
"""On so many nodes at most demands make room."""

_MOST_LEAVING: Final = 4
"""So many leave each of these at most."""

_MOST_WAITING: Final = 30
"""So many of those that wait are asked whether they fit now."""

_TRUST: Final = 20
"""Kinds of nodes begin as if so many changes had been tried there, all for the better."""

_LEAST_REPUTATION: Final = 0.001
"""Where hardly any change is for the better, nodes still have a turn now and then."""

_GANG_TURN: Final = 0.05
"""How often room is made for a gang that waits."""

_LESS_OFTEN: Final = 10
"""Where everything is paid for, changes are tried so many times less often than on average."""

_AT_RANDOM: Final = 0.1
"""How often demands come back in any order, and not about the small before the large."""

_SIZE_NOISE: Final = 0.6
"""By what factor the sizes of demands are disturbed, as the standard deviation of its logarithm."""

_LARGEST_LOSS: Final = 0.03
"""Without prices, an answer worth as much is taken over if what is placed is smaller by no more than this part: where
large demands stand, small ones wait, which find room more easily. A little less is allowed, so that the search gets
anywhere."""

_GATHERING: Final = 10
"""In `_use`, the square of what is not paid for, in demands of the last priority, counts so many times what it is."""

_LARGEST_LOSS_OF_USE: Final = APPRAISAL_UNIT // 10
"""With prices, an answer worth as much is taken over if it loses no more use (see `_use`) than this: again a little, so
that the search gets anywhere."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Who left, from where, and who is placed instead."""

    departures: Sequence[tuple[DemandIndex, Site]]
    entered: Sequence[DemandIndex]


@dataclass(slots=True, eq=False)
class _NodeKind:
    """Nodes that are alike, and how often changes there were tried, and were for the better."""

    nodes: Sequence[NodeIndex]
    tries: int = 0
    successes: int = 0

    @property
    def reputation(self) -> float:
        """How often a change is for the better, as far as that is known; nodes are never given up."""
        return max(
            _LEAST_REPUTATION, (_TRUST + self.successes) / (_TRUST + self.tries)
        )


class ChangeSearch:
    """Improves a working answer; an answer is never worth less than those before it.

    Parameters
    ----------
    problem, placements
        What is asked for, and the answer to begin with.
    seed
        Equal seeds take equal steps.
    appraisal
        What demands and nodes are worth: changes are tried more often where more of a node is not paid for. If None,
        demands are as large as the parts that they take of each resource, added up.
    bystanders
        As `WorkingAnswer` takes them.

    Attributes
    ----------
    answer
        The answer.
    """

    def __init__(
        self,
        problem: Problem,
        placements: Iterable[Placement],
        seed: int,
        appraisal: Appraisal | None = None,
        bystanders: Sequence[Arrival] = (),
    ) -> None:
        self._random = Random(seed)
        self.answer = WorkingAnswer(
            problem, placements, self._random, bystanders
        )
        self._weights = [demand.weight for demand in problem.demands]
        self._appraisal = appraisal
        self._sizes = (
            _parts(problem)
            if appraisal is None
            else [
                appraisal.sizes.get(demand, 0)
                for demand in indices(problem.demands)
            ]
        )
        units = list(dict.fromkeys(self.answer.unit_of.values()))
        self._unit_worth = {unit: self._worth(unit.members) for unit in units}
        self._random.shuffle(units)
        self._waiting = _Waiting(
            unit for unit in units if not self._has_placed(unit)
        )
        alike = grouped(
            (_kind(problem, node), node) for node in problem.all_nodes
        )
        self._kinds: list[_NodeKind] = [
            _NodeKind(nodes) for nodes in alike.values()
        ]
        self._kind_of = {
            node: kind for kind in self._kinds for node in kind.nodes
        }
        # By node, what is not paid for there: the more, the more often it is drawn.
        self._unpaid = [0] * len(problem.nodes)
        staying = grouped(
            (placement.node, placement.demand)
            for placement in self.answer.staying
        )
        self._staying = [staying.get(node, ()) for node in problem.all_nodes]
        self._learn_unpaid(problem.all_nodes)

    def step(self) -> None:
        """Try one change, and keep it if the answer is not worse."""
        gang = self._some_gang()
        nodes = self._some_nodes() if gang is None else self._nodes_for(gang)
        kind = self._kind_of[nodes[0]] if nodes else self._kinds[0]
        kind.tries += 1
        drawn = [demand for node in nodes for demand in self._some_on(node)]
        leaving = self._units(drawn)
        # Units leave as a whole, also with those of their members who stand on other nodes.
        departures = [
            (member, self.answer.leave(member))
            for unit in leaving
            for member in unit.members
            if member in self.answer
        ]
        entered = self._recreate(nodes, leaving, departures, gang)
        change = _Change(departures, entered)
        # Rules are asked last: where they hold, the change counts as made.
        if self._is_worse(change) or not self.answer.keeps_rules():
            self._undo(change)
            return
        before = [demand for demand, _ in departures]
        kind.successes += self._worth(entered) > self._worth(before)
        # Whoever left waits, unless it came back.
        for unit in leaving:
            self._waiting.add(unit)
        for unit in self._units(entered):
            self._waiting.discard(unit)
        self._learn_unpaid(self._touched(change))

    def _touched(self, change: _Change) -> set[NodeIndex]:
        """Return the nodes that a change has to do with."""
        touched = {site.node for _, site in change.departures}
        touched.update(self.answer.node_of(demand) for demand in change.entered)
        return touched

    def _learn_unpaid(self, nodes: Iterable[NodeIndex]) -> None:
        """Work out what is not paid for on some nodes, if anything is known of that."""
        if self._appraisal is None:
            return
        for node in nodes:
            self._unpaid[node] = self._unpaid_now(self._appraisal, node)

    def _unpaid_now(self, appraisal: Appraisal, node: NodeIndex) -> int:
        occupants = (*self._staying[node], *self.answer.on_node(node))
        return appraisal.unpaid(node, occupants)

    def _units(self, demands: Iterable[DemandIndex]) -> list[MovableUnit]:
        """Return the units of demands, each once."""
        return list(
            dict.fromkeys([self.answer.unit_of[demand] for demand in demands])
        )

    # Ruin.

    def _has_placed(self, unit: MovableUnit) -> bool:
        """Whether any of a unit is placed."""
        return any(member in self.answer for member in unit.members)

    def _some_gang(self) -> MovableUnit | None:
        """Draw a gang that waits, to make room for it; most often None."""
        if self._random.random() >= _GANG_TURN:
            return None
        return self._waiting.some_gang(self._random)

    def _some_nodes(self) -> list[NodeIndex]:
        """Draw some nodes of a kind, between which demands can be exchanged."""
        kind = self._some_kind()
        size = self._random.randint(1, _MOST_NODES)
        if self._appraisal is None:
            drawn = self._random.choices(kind.nodes, k=size)
        else:
            unpaid = [self._unpaid[node] for node in kind.nodes]
            least = 1 + sum(unpaid) // (_LESS_OFTEN * len(unpaid))
            weights = [max(least, amount) for amount in unpaid]
            drawn = self._random.choices(kind.nodes, weights, k=size)
        return list(dict.fromkeys(drawn))

    def _unpaid_on(self, nodes: Iterable[NodeIndex]) -> int:
        return sum([self._unpaid[node] for node in nodes])

    def _some_kind(self) -> _NodeKind:
        """Draw a kind of nodes: more often one of which more is not paid for, and where changes helped more often."""
        sizes = [len(kind.nodes) for kind in self._kinds]
        if self._appraisal is not None:
            unpaid = [self._unpaid_on(kind.nodes) for kind in self._kinds]
            least = 1 + sum(unpaid) // (_LESS_OFTEN * len(unpaid))
            sizes = [max(least, amount) for amount in unpaid]
        shares = [
            size * kind.reputation
            for size, kind in zip(sizes, self._kinds, strict=True)
        ]
        return self._random.choices(self._kinds, shares)[0]

    def _nodes_for(self, gang: MovableUnit) -> list[NodeIndex]:
        """Draw some nodes where a gang could stand, in one domain if it needs one."""
        nodes = self.answer.nodes_for(gang)
        most = min(len(nodes), max(_MOST_NODES, len(gang.members)))
        size = self._random.randint(min(1, most), most)
        return self._random.sample(nodes, size)

    def _some_on(self, node: NodeIndex) -> Sequence[DemandIndex]:
        """Draw some of those who stand on a node."""
        occupants = self.answer.on_node(node)
        size = self._random.randint(1, _MOST_LEAVING)
        if len(occupants) <= size:
            return occupants
        return self._random.sample(occupants, size)

    # Recreate.

    def _recreate(
        self,
        nodes: Sequence[NodeIndex],
        leaving: Sequence[MovableUnit],
        departures: Sequence[tuple[DemandIndex, Site]],
        gang: MovableUnit | None,
    ) -> list[DemandIndex]:
        """Let units in: those who left, wherever they fit, and those who wait, where there is room now.

        Parameters
        ----------
        gang
            Who comes first, as room was made for it; it waited.

        Returns
        -------
        list of int
            Who is placed. As soon as those who may still come cannot make up for who failed, nobody else is tried.
        """
        returning = set(leaving)
        pool = [
            unit
            for unit in (*leaving, *self._some_waiting(nodes))
            if unit is not gang
        ]
        order = self._in_new_order(pool)
        if gang is not None:
            order.insert(0, gang)
        needed = self._worth([demand for demand, _ in departures])
        # The most that can be placed: a unit counts in full until it is known how much of it came in.
        possible = sum([self._unit_worth[unit] for unit in order])
        entered: list[DemandIndex] = []
        for unit in order:
            elsewhere = unit in returning or not unit.is_single
            members = self.answer.enter(unit, nodes, elsewhere=elsewhere)
            entered += members
            possible -= self._unit_worth[unit] - self._worth(members)
            if possible < needed:
                break
        return entered

    def _some_waiting(self, nodes: Sequence[NodeIndex]) -> list[MovableUnit]:
        """Draw some of those who wait and may fit now."""
        return self.answer.fitting(
            self._waiting.in_turn(self._random), nodes, _MOST_WAITING
        )

    def _in_new_order(self, pool: Sequence[MovableUnit]) -> list[MovableUnit]:
        """Order units by weight; those of equal weight about the small before the large, or in any order."""
        any_order = self._random.random() < _AT_RANDOM
        gauss = self._random.gauss
        keys = []
        for unit in pool:
            first = unit.members[0]
            noise = gauss(0.0, _SIZE_NOISE)
            size = noise if any_order else self._sizes[first] * exp(noise)
            keys.append((-self._weights[first], size))
        order = sorted(range(len(pool)), key=keys.__getitem__)
        return [pool[index] for index in order]

    # Which answer to keep.

    def _worth(self, demands: Iterable[DemandIndex]) -> int:
        return sum([self._weights[demand] for demand in demands])

    def _is_worse(self, change: _Change) -> bool:
        before = [demand for demand, _ in change.departures]
        worth, worth_before = self._worth(change.entered), self._worth(before)
        if worth != worth_before:
            return worth < worth_before
        if self._appraisal is None:
            size, size_before = self._size(change.entered), self._size(before)
            return size < (1 - _LARGEST_LOSS) * size_before
        gain = sum(
            _use(self._unpaid_now(self._appraisal, node))
            - _use(self._unpaid[node])
            for node in self._touched(change)
        )
        return gain < -_LARGEST_LOSS_OF_USE

    def _size(self, demands: Iterable[DemandIndex]) -> int:
        return sum(self._sizes[demand] for demand in demands)

    def _undo(self, change: _Change) -> None:
        for demand in change.entered:
            self.answer.leave(demand)
        for demand, site in change.departures:
            self.answer.restore(demand, site)


def _use(unpaid: int) -> int:
    """Return how useful it is that so much of a node is not paid for.

    Half of what a demand needs here, and half of it there, is of no use to anybody; together on one node they let a
    demand in. So use grows with the square. A little that is not paid for is of less use than nothing: then demands as
    large as possible are placed, and small ones wait, which find room more easily.
    """
    return _GATHERING * unpaid * unpaid // APPRAISAL_UNIT - unpaid


_SHUFFLE: Final = 0.25
"""How often those who wait are brought into another order: doing so takes as long as a change."""


class _Waiting:
    """Units that wait, in an order at random."""

    def __init__(self, units: Iterable[MovableUnit]) -> None:
        self._units = list(units)
        self._place_of = {
            unit: position for position, unit in enumerate(self._units)
        }
        self._gangs = dict.fromkeys(
            [unit for unit in self._units if not unit.is_single]
        )

    def add(self, unit: MovableUnit) -> None:
        """Let a unit wait."""
        if unit not in self._place_of:
            self._place_of[unit] = len(self._units)
            self._units.append(unit)
            if not unit.is_single:
                self._gangs[unit] = None

    def discard(self, unit: MovableUnit) -> None:
        """Let a unit wait no longer; the last one takes its place."""
        position = self._place_of.pop(unit, None)
        if position is None:
            return
        self._gangs.pop(unit, None)
        last = self._units.pop()
        if last is not unit:
            self._units[position] = last
            self._place_of[last] = position

    def some_gang(self, random: Random) -> MovableUnit | None:
        """Draw one of the gangs that wait; None if none does."""
        gangs = list(self._gangs)
        return random.choice(gangs) if gangs else None

    def in_turn(self, random: Random) -> Iterator[MovableUnit]:
        """Give out all units once, from any of them on."""
        if not self._units:
            return
        if random.random() < _SHUFFLE:
            random.shuffle(self._units)
            self._place_of = {
                unit: position for position, unit in enumerate(self._units)
            }
        start = random.randrange(len(self._units))
        yield from self._units[start:]
        yield from self._units[:start]


def _parts(problem: Problem) -> list[int]:
    """Return how large demands are: the parts that they take of each resource, added up."""
    sizes = Sizes(problem)

    def parts(demand: Demand) -> int:
        return sum(
            amount * PARTS // max(1, sizes.totals[name])
            for name, amount in sizes.taken(demand).items()
        )

    return list(map(parts, problem.demands))


def _kind(problem: Problem, node: NodeIndex) -> Hashable:
    """Return what nodes have in common that offer the same numbers of devices by driver."""
    drivers = [
        problem.devices[device].id.driver
        for device in problem.nodes[node].devices()
    ]
    return tuple(
        sorted((driver, drivers.count(driver)) for driver in set(drivers))
    )
