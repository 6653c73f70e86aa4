"""The cheapest set of nodes that holds given numbers of some demands, with a bound that is proven.

A node of a type holds some vector of numbers; the cheapest nodes are a cover of what is needed by such vectors (see
`dralloc.whatif.models.set_cover`). Vectors are generated: those that are worth the most at the prices that the
relaxation over the known ones sets, until the prices prove the bound or no vector is worth more than its node costs.
Where the cover still costs more than the bound, all vectors of which none can be raised are listed, as far as they are
few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from math import gcd
from typing import Final

from dralloc.check import check
from dralloc.errors import DrallocError
from dralloc.problem import Demand, Problem
from dralloc.problem.replicas import replicate
from dralloc.problem.subproblem import cut
from dralloc.solution import Grant, Placement, Solution
from dralloc.solvers.cpsat import Options
from dralloc.whatif.copies import copies
from dralloc.whatif.front import Vector, find_front
from dralloc.whatif.joint_packing import JointPacking, PlacedMultiset
from dralloc.whatif.models.set_cover import Cover, CoverColumn, cover, prices
from dralloc.whatif.per_device_bound import PerDeviceBound

__all__ = ["NodeCost", "NodeCover", "cover_demands"]

_ROUNDS: Final = 200
"""So many times vectors are priced."""

_POINTS: Final = 200
"""A front with more vectors is not listed to its end."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A type of node: an isolated node of the problem without anything in use, and its price."""

    node: int
    cost: int


@dataclass(frozen=True)
class NodeCover:
    """How many nodes of each type hold everything.

    Parameters
    ----------
    numbers
        By node type.
    cost
        What they cost. The demands have been placed on so many copies, and the checker has accepted it.
    bound
        Nothing cheaper holds everything.
    """

    numbers: tuple[int, ...]
    cost: int
    bound: int


def cover_demands(
    problem: Problem,
    demands: Sequence[Demand],
    needs: Vector,
    node_costs: Sequence[NodeCost],
    options: Options | None = None,
) -> NodeCover | int:
    """Find the cheapest nodes for so many of each demand.

    Returns
    -------
    The place of a demand of which none fits on any node_type of node, if there is one.

    Raises
    ------
    DrallocError
        The time limit leaves no answer.
    """
    if not any(needs):
        return NodeCover((0,) * len(node_costs), 0, 0)
    generation = _ColumnGeneration(
        demands, needs, [_PricedNodeType(problem, demands, needs, each, options) for each in node_costs], options
    )
    homeless = generation.homeless()
    return generation.run() if homeless is None else homeless


class _PricedNodeType:
    """A type of node, and the vectors that are known to fit on one."""

    def __init__(
        self, problem: Problem, demands: Sequence[Demand], needs: Vector, node_cost: NodeCost, options: Options | None
    ) -> None:
        self.cost = node_cost.cost
        self.part = cut(problem, [node_cost.node]).problem
        allowed = [demand.nodes is None or node_cost.node in demand.nodes for demand in demands]
        here = [replace(demand, nodes=None) for demand in demands]
        most = tuple(
            self._most(demand, need, options) if fits else 0
            for demand, need, fits in zip(here, needs, allowed, strict=True)
        )
        self.mix = JointPacking(self.part, here, most, options or Options())
        self.known: dict[Vector, PlacedMultiset] = {}
        for place, number in enumerate(most):
            if number:
                self.price(tuple(int(place == each) for each in range(len(most))))

    def _most(self, demand: Demand, need: int, options: Options | None) -> int:
        """How many of a demand fit on a node, but not more than are needed."""
        estimate = PerDeviceBound(self.part, demand).total()
        number = need if estimate is None else min(need, estimate)
        _, solution = JointPacking(self.part, [demand], (number,), options or Options()).best([[1] * number])
        return solution.tiers[0].bound

    def price(self, values: Sequence[int]) -> int:
        """Add the vector that is worth the most at these values; returns what none is worth more than."""
        numbers = tuple(most if value else 0 for most, value in zip(self.mix.most, values, strict=True))
        placed, solution = self.mix.best([[value] * number for value, number in zip(values, numbers, strict=True)])
        if any(placed.numbers):
            self.known.setdefault(placed.numbers, placed)
        return solution.tiers[0].bound

    def list_all(self) -> bool:
        """Add the whole front, if it is short; whether it is."""

        def reach(least: Vector, last: int) -> Vector | None:
            placed = self.mix.reach(least, last)
            if placed is None:
                return None
            self.known[placed.numbers] = placed
            return placed.numbers

        return find_front(self.mix.most, reach, _POINTS).complete and self.mix.proven


@dataclass
class _ColumnGeneration:
    demands: Sequence[Demand]
    needs: Vector
    node_types: Sequence[_PricedNodeType]
    options: Options | None
    bound: int = 0
    columns: list[tuple[int, PlacedMultiset]] = field(default_factory=list)

    def homeless(self) -> int | None:
        """A demand of which none fits anywhere."""
        tops = (
            max((node_type.mix.most[place] for node_type in self.node_types), default=0)
            for place in range(len(self.needs))
        )
        return next(
            (place for place, (top, need) in enumerate(zip(tops, self.needs, strict=True)) if need > top == 0), None
        )

    def run(self) -> NodeCover:
        """Price and cover in turn; and list all vectors if that leaves a gap."""
        found = self._cover()
        for _ in range(_ROUNDS):
            before = self._known()
            self.bound = max(self.bound, self._bound(prices(self._columns(), self.needs)))
            if self._known() > before:
                found = self._cover()
            if found.cost == self.bound or self._known() == before:
                break
        if found.cost > self.bound:
            complete = sum(node_type.list_all() for node_type in self.node_types) == len(self.node_types)
            found = self._cover()
            self.bound = max(self.bound, found.bound if complete else 0)
        return self._verified(found)

    def _known(self) -> int:
        return sum(len(node_type.known) for node_type in self.node_types)

    def _bound(self, values: Sequence[int]) -> int:
        """No set of nodes can be cheaper: whatever it holds is worth as much as is needed, each node at most its most.

        The cost of every set is a multiple of what all costs have in common.
        """
        worth = sum(value * need for value, need in zip(values, self.needs, strict=True))
        richest = max(Fraction(node_type.price(values), node_type.cost) for node_type in self.node_types)
        unit = gcd(*(node_type.cost for node_type in self.node_types))
        return -(-Fraction(worth) // (richest * unit)) * unit if richest else 0

    def _columns(self) -> list[CoverColumn]:
        self.columns = [
            (number, placed) for number, each in enumerate(self.node_types) for placed in each.known.values()
        ]
        return [CoverColumn(self.node_types[number].cost, placed.numbers) for number, placed in self.columns]

    def _cover(self) -> Cover:
        columns = self._columns()
        found = cover(columns, self.needs, self.options)
        if found is None:
            raise DrallocError("time limit: too short to find nodes that hold everything")
        return found

    def _verified(self, found: Cover) -> NodeCover:
        """Place everything on the nodes, and let the checker look at it."""
        chosen = [column for column, times in zip(self.columns, found.times, strict=True) for _ in range(times)]
        self._verify(sorted(chosen, key=lambda column: column[0]))
        numbers = tuple(sum(node_type == number for node_type, _ in chosen) for number in range(len(self.node_types)))
        return NodeCover(numbers, found.cost, self.bound)

    def _verify(self, chosen: Sequence[tuple[int, PlacedMultiset]]) -> None:
        if not chosen:
            return
        problem = replicate([self.node_types[number].part for number, _ in chosen])
        firsts = [sum(self.needs[:place]) for place in range(len(self.needs))]
        groups = [copies(demand, need) for demand, need in zip(self._at_home(chosen), self.needs, strict=True)]
        left = [iter(range(first, first + need)) for first, need in zip(firsts, self.needs, strict=True)]
        placements = sorted(self._placements(chosen, left), key=lambda placement: placement.demand)
        assert len(placements) == sum(self.needs), "everything is placed"
        check(replace(problem, demands=tuple(chain.from_iterable(groups))), Solution(tuple(placements)))

    def _at_home(self, chosen: Sequence[tuple[int, PlacedMultiset]]) -> Iterator[Demand]:
        """The demands, which may go to the copies of what they may go to."""
        for place, demand in enumerate(self.demands):
            here = tuple(
                node for node, (node_type, _) in enumerate(chosen) if self.node_types[node_type].mix.most[place]
            )
            yield replace(demand, nodes=here)

    def _placements(
        self, chosen: Sequence[tuple[int, PlacedMultiset]], left: Sequence[Iterator[int]]
    ) -> Iterator[Placement]:
        start = 0
        for node, (node_type, placed) in enumerate(chosen):
            for numbers, placements in zip(left, placed.placements, strict=True):
                for placement, demand in zip(placements, numbers, strict=False):
                    grants = (
                        tuple(Grant(one.request, one.alternative, start + one.device) for one in each)
                        for each in placement.grants
                    )
                    yield Placement(demand, node, tuple(grants))
            start += len(self.node_types[node_type].part.devices)
