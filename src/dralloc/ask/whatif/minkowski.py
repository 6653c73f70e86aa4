"""What fits together on nodes that have nothing to do with each other: sums of what fits on each.

Of equivalent nodes (see `dralloc.problem.equivalent_nodes`) one front is found, with all of its points. A point of the
whole is a sum with one point for each node, so the best sum is found in numbers of nodes, however many there are (a
Minkowski sum of fronts; Ehrgott, Multicriteria Optimization, 2005).

For demands of one device each, what shares nothing might as well be nodes of their own. A GPU with all its partitions
draws on counters that no other GPU draws on, so that equal GPUs stand for each other on whatever nodes they are
(KEP-4815).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dralloc.ask.whatif.front import Vector, find_front
from dralloc.ask.whatif.joint_packing import JointPacking
from dralloc.ask.whatif.models.sums import best_sum
from dralloc.ask.whatif.partitions import read_single
from dralloc.problem import Charge, Demand, Node, Problem
from dralloc.problem.equivalent_nodes import equivalent_nodes
from dralloc.problem.subproblem import separated
from dralloc.solve.optimum import Options

__all__ = ["Divided", "MinkowskiSum", "divide", "minkowski_sum"]

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
        As in `dralloc.ask.whatif.isolated_first_fit.isolated_first_fit`.
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
