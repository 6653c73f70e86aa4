"""How many of several demands fit together: every way in which none can be had more often without loss of others.

From the bottom: first fit on nodes that have nothing to do with each other, and sums of what fits on each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.ask.whatif.copies import (
    JointPacking,
    PerDeviceBound,
    Vector,
    find_front,
    replicated,
)
from dralloc.ask.whatif.models.selection import best_sum
from dralloc.ask.whatif.node_types import NotRepresentativeError
from dralloc.ask.whatif.partitions import read_single
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.objects.errors import FatalError
from dralloc.problem import Charge, Demand, Node, Problem
from dralloc.problem.equivalence import equivalent_nodes
from dralloc.problem.subproblem import cut_alone, separated
from dralloc.solve.first_fit import first_fit

__all__ = [
    "ParetoFront",
    "divide",
    "isolated_first_fit",
    "minkowski_sum",
    "pareto_front",
]

# ----------------------------------------------------------------------------
# First fit of many demands, one class after the other, on nodes that have nothing to
# do with each other.
#
# What it puts on a node depends only on what the node is like, and on what has been
# put there before. So one node of each class is asked for all (see
# `dralloc.problem.equivalence`), and once for each state that it comes into.


class _EndedError(Exception):
    """An error on a node ends the attempt for every node."""


def isolated_first_fit(
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    order: Sequence[int] | None = None,
) -> IsolatedFirstFit | None:
    """Sort the nodes by what they are like; None if they have to do with each other.

    Parameters
    ----------
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        return None
    first = {node: group[0] for group in classes.groups for node in group}
    nodes = problem.all_nodes if order is None else order
    return IsolatedFirstFit(
        problem, demands, most, tuple(first[node] for node in nodes if node in first)
    )


@dataclass
class IsolatedFirstFit:
    """Nodes in search order.

    Parameters
    ----------
    most
        Not more of each fit alone.
    representatives
        By node, the first one that is equivalent.
    """

    problem: Problem
    demands: Sequence[Demand]
    most: Vector
    representatives: tuple[int, ...]
    _counts: dict[tuple[int, Vector], int] = field(default_factory=dict)
    _parts: dict[int, tuple[Problem, list[Demand], Vector]] = field(
        default_factory=dict
    )

    def first_fit(self, numbers: Vector) -> Vector | None:
        """How many of each are placed, of so many; None if an error ends that."""
        states: list[Vector] = [()] * len(self.representatives)
        try:
            for number in numbers:
                left = number
                for place, representative in enumerate(self.representatives):
                    taken = (
                        min(left, self._count(representative, states[place]))
                        if left
                        else 0
                    )
                    left -= taken
                    states[place] = (*states[place], taken)
        except _EndedError:
            return None
        return (
            tuple(map(sum, zip(*states, strict=True)))
            if states
            else (0,) * len(numbers)
        )

    def _count(self, representative: int, before: Vector) -> int:
        """How many of the next demand a node takes behind so many of those before."""
        key = representative, before
        if key not in self._counts:
            part, demands, most = self._part(representative)
            numbers = (*before, most[len(before)])
            problem = replicated(part, demands[: len(numbers)], numbers)
            solution = first_fit(problem)
            if any(isinstance(error, FatalError) for error in solution.errors.values()):
                raise _EndedError
            check(problem, solution)
            self._counts[key] = len(solution.placements) - sum(before)
        return self._counts[key]

    def _part(self, representative: int) -> tuple[Problem, list[Demand], Vector]:
        """The node alone, the demands there, and how many of each could fit at most."""
        if representative not in self._parts:
            part, demands = cut_alone(self.problem, self.demands, representative)
            totals = (PerDeviceBound(part, demand).total() for demand in demands)
            most = (
                high if total is None else min(high, total)
                for high, total in zip(self.most, totals, strict=True)
            )
            self._parts[representative] = part, demands, tuple(most)
        return self._parts[representative]


# ----------------------------------------------------------------------------
# What fits together on nodes that have nothing to do with each other: sums of what
# fits on each.
#
# Of equivalent nodes (see `dralloc.problem.equivalence`) one front is found,
# with all of its points. A point of the whole is a sum with one point for each node,
# so the best sum is found in numbers of nodes, however many there are (a Minkowski
# sum of fronts; Ehrgott, Multicriteria Optimization, 2005).
#
# For demands of one device each, what shares nothing might as well be nodes of their
# own. A GPU with all its partitions draws on counters that no other GPU draws on, so
# that equal GPUs stand for each other on whatever nodes they are (KEP-4815).

_MOST_CLASSES: Final = 64
_MOST_POINTS: Final = 600
"""With more classes of nodes, or more points of them together, that is no less work than to look at the whole."""


@dataclass
class MinkowskiSum:
    """What fits on nodes of so many classes together.

    Parameters
    ----------
    sets
        By the points that fit on one node, each of which has been placed and checked, how many nodes there are.
    proven
        Whether everything that was said so far is proven.
    """

    sets: Mapping[tuple[Vector, ...], int]
    most: Vector
    options: Options
    proven: bool = True

    def reach(self, least: Vector, last: int = 0) -> Vector | None:
        """The most of each beyond so many, each before the one that comes last; None if that is too many."""
        extra = self.most[last] - least[last]
        worth = [1 if place == last else extra + 1 for place in range(len(least))]
        found, proven = best_sum(self.sets, least, worth, self.options)
        self.proven &= proven
        return found


def minkowski_sum(
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    options: Options,
    order: Sequence[int] | None = None,
) -> MinkowskiSum | None:
    """Find the points of each class of node; None if nodes have to do with each other, or are of too many classes.

    Parameters
    ----------
    order
        As in `dralloc.ask.whatif.pareto.isolated_first_fit`.
    """
    divided = divide(problem, demands)
    times = Counter(problem.all_nodes if order is None else order)
    classes = equivalent_nodes(divided.problem, divided.demands)
    if classes is None or len(classes.groups) > _MOST_CLASSES:
        return None
    fronts: Counter[tuple[Vector, ...]] = Counter()
    left = _MOST_POINTS
    for group in classes.groups:
        packing = JointPacking.alone(
            divided.problem, divided.demands, group[0], most, options
        )
        points = _points(packing, left)
        if points is None:
            return None
        fronts[points] += sum(times[divided.homes[part]] for part in group)
        left -= len(points)
    return MinkowskiSum(fronts, most, options)


def _points(packing: JointPacking, limit: int) -> tuple[Vector, ...] | None:
    """All points of a node; None if there are more than so many, or one of them is not proven."""
    if not any(packing.most):
        return (packing.most,)
    front = find_front(packing.most, packing.reach, limit)
    return front.points if front.complete and packing.proven else None


@dataclass(frozen=True, slots=True)
class Divided:
    """The problem with a node for each part, the demands there, and for each part the node that it is of."""

    problem: Problem
    demands: Sequence[Demand]
    homes: Sequence[int]


def divide(problem: Problem, demands: Sequence[Demand]) -> Divided:
    """Take nodes apart; they stay whole if a demand wants more than one device."""
    if any(read_single(demand) is None for demand in demands):
        return Divided(problem, demands, problem.all_nodes)
    charges = _Charges(problem, demands)
    nodes: list[Node] = []
    homes: list[int] = []
    for number, node in enumerate(problem.nodes):
        wanted = [device for device in node.devices() if charges.of(device)]
        for members in map(frozenset, separated(problem, wanted, charges.counters)):
            pools = (
                replace(
                    pool, devices=tuple(one for one in pool.devices if one in members)
                )
                for pool in node.pools
            )
            nodes.append(
                Node(
                    f"{node.name} #{len(nodes)}",
                    tuple(pool for pool in pools if pool.devices),
                )
            )
            homes.append(number)
    allowed = [None if one.nodes is None else frozenset(one.nodes) for one in demands]
    moved = [
        one
        if own is None
        else replace(
            one, nodes=tuple(part for part, home in enumerate(homes) if home in own)
        )
        for one, own in zip(demands, allowed, strict=True)
    ]
    return Divided(replace(problem, nodes=tuple(nodes)), moved, homes)


class _Charges:
    """What demands would take of devices; equal devices are asked once, as far as they charge no counters."""

    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.eligibility = problem.eligibility
        self.alternatives = [
            one.index for demand in demands for one in demand.alternatives()
        ]
        self.known: dict[Hashable, list[Charge]] = {}

    def of(self, device: int) -> list[Charge]:
        """The charges of a device that is equal to this one; none if no demand selects it."""
        key = self.eligibility.device_key(device)
        if key not in self.known:
            self.known[key] = list(self._asked(device))
        return self.known[key]

    def counters(self, device: int) -> Iterator[int]:
        """The counters that are charged by request."""
        if any(charge.counters for charge in self.of(device)):
            yield from (
                counter
                for charge in self._asked(device)
                for counter, _ in charge.counters
            )

    def _asked(self, device: int) -> Iterator[Charge]:
        offers = self.eligibility
        for alternative in self.alternatives:
            charge = (
                offers.charge(alternative, device)
                if offers.selects(alternative, device) is True
                else None
            )
            if charge is not None:
                yield charge


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """Numbers of demands that fit together, and how many first fit places if it is given exactly these, in order."""

    numbers: Vector
    first_fit: Vector


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """The Pareto front of several demands.

    Parameters
    ----------
    points
        Each has been placed, and the checker has accepted it; where nodes have nothing to do with each other, on one
        node of each class.
    complete
        Whether there is no other point.
    proven
        Whether no point can be improved; false if the time limit has ended a search.
    """

    points: tuple[FrontPoint, ...]
    complete: bool
    proven: bool


def pareto_front(  # noqa: PLR0913 - the last ones have defaults
    problem: Problem,
    demands: Sequence[Demand],
    most: Vector,
    *,
    order: Sequence[int] | None = None,
    limit: int | None = None,
    options: Options | None = None,
) -> ParetoFront:
    """Find the front, or so many points of it that lie well apart.

    Where nodes have nothing to do with each other it is put together from those of single nodes, else of the whole.

    Parameters
    ----------
    problem
        Of which only the inventory is looked at.
    demands
        None of them can be had without end.
    most
        How many of each fit alone, at most.
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    limit
        The largest number of points; None for all.

    Raises
    ------
    NotRepresentativeError
        Some stand for others, and have to do with each other.
    """
    chosen = options or Options()
    packing = JointPacking(problem, demands, most, chosen)
    sums = minkowski_sum(problem, demands, most, chosen, order)
    isolated = isolated_first_fit(problem, demands, most, order)
    alone = order is None or len(order) == len(problem.nodes)
    if not alone and (sums is None or isolated is None):
        raise NotRepresentativeError
    exact = packing if sums is None else sums
    front = find_front(most, exact.reach, limit)

    def first_fit(numbers: Vector) -> Vector:
        found = None if isolated is None else isolated.first_fit(numbers)
        if found is None and not alone:
            raise NotRepresentativeError
        return packing.first_fit(numbers) if found is None else found

    points = tuple(FrontPoint(numbers, first_fit(numbers)) for numbers in front.points)
    return ParetoFront(points, front.complete, exact.proven)
