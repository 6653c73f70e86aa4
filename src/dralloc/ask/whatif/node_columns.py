"""The cheapest nodes by column generation: for mixes of few kinds, each of which may be wanted many times.

A node of a type holds some vector of numbers, how many of each demand; the cheapest nodes are a cover of what is needed
by such vectors (see `dralloc.ask.whatif.models.selection`). Vectors are generated as columns, in four steps:

1. Of each demand alone, the most that a node holds.
2. Those that are worth the most at the prices that the relaxation over the known ones sets, until the prices prove the
   bound or no vector is worth more than its node costs (Gilmore and Gomory, Operations Research 9, 1961).
3. Those that hold what remains beside the whole nodes of the relaxation: pricing does not look for them, but the last
   nodes of a cover are like that.
4. Where the cover still costs more than the bound, all of which none can be raised, as far as they are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd
from operator import attrgetter, le, mul, sub
from random import Random
from typing import Final

from dralloc.ask.whatif.copies import replicated
from dralloc.ask.whatif.fronts import (
    JointPacking,
    PlacedCopies,
    Vector,
    find_front,
)
from dralloc.ask.whatif.models.selection import (
    CoverColumn,
    cover,
    fractional_cover,
)
from dralloc.ask.whatif.node_search import CoverQuestion, NodeCover
from dralloc.check import check
from dralloc.objects.errors import DrallocError
from dralloc.problem import DemandIndex, DeviceIndex, NodeIndex
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.subproblem import replicate
from dralloc.solve.optimum.stopping import Stop, Stopped, with_time_left

__all__ = ["ColumnGeneration", "NodeVectors", "list_node_vectors", "too_short"]

_ROUNDS: Final = 200
"""So many times vectors are priced."""

_PATTERN_EFFORT: Final = 1_000
"""Patterns of a node are not listed beyond so many devices: each vector is asked for at other prices, with patterns of
its own."""

_POINTS: Final = 200
"""A front with more vectors is not listed to its end."""

_PRICING: Final = 0.5
"""The part of the time that is left which pricing may take."""

_COMPLETING: Final = 0.5
"""The part that filling nodes may take after that."""

_COMPLETIONS: Final = 10
"""So many times nodes are filled with what is missing, after the first time at other prices."""

_SHAKEN: Final = (70, 130)
"""Between these percentages of theirs."""

_COVERING: Final = 0.25
"""The part of the time that is left for a cover in between."""

_MOST_VERIFIED: Final = 2_000
"""The checker looks at so many nodes one by one; of more, at one of those with the same on them."""

_ROUNDING: Final = 1e-6
"""Fractions that are so close to a whole number are one."""


def too_short() -> DrallocError:
    """Return the error that there is no answer."""
    return DrallocError(
        "time limit: too short to find nodes that hold everything"
    )


def list_node_vectors(
    question: CoverQuestion, stop: Stop
) -> list[NodeVectors] | None:
    """Return all types of nodes, with the most that each holds of each demand alone; None if that takes longer."""
    thresholds = replace(
        question.options.thresholds, pattern_effort=_PATTERN_EFFORT
    )
    options = replace(question.options, thresholds=thresholds)
    node_types = []
    with suppress(Stopped):
        for node_cost in question.node_costs:
            packing = JointPacking.alone(
                question.problem,
                question.demands,
                node_cost.node,
                question.needs,
                options,
                stop,
            )
            # What is asked later has all the time that there is.
            packing.stop = question.stop
            node_types.append(NodeVectors(node_cost.cost, packing))
        return node_types
    return None


@dataclass(frozen=True, slots=True)
class NodeVectors:
    """A type of node, and the vectors that are known to fit on one."""

    cost: int
    packing: JointPacking

    def richest(
        self, values: Sequence[int], limits: Vector
    ) -> tuple[Vector, int]:
        """Find the vector that is worth the most at these values, with so many of each at most.

        Returns
        -------
        The vector, and what none is worth more than.
        """
        weights = [
            [value] * min(limit, max_count) if value else []
            for value, limit, max_count in zip(
                values, limits, self.packing.max_counts, strict=True
            )
        ]
        counts, solution = self.packing.best(weights)
        return counts, solution.tiers[0].bound

    def list_all(self) -> bool:
        """Find the whole front, if it is short and there is time; whether it is found."""
        with suppress(Stopped):
            front = find_front(self.packing.max_counts, self._reach, _POINTS)
            return front.complete and self.packing.proven
        return False

    def _reach(self, least: Vector, last: int) -> Vector | None:
        """As `JointPacking.reach`; raises `Stopped` when the time is over."""
        self.packing.stop.check()
        return self.packing.reach(least, last)


@dataclass(frozen=True, slots=True)
class _Column:
    """A node of a type, by its index, and what is placed there."""

    type_index: int
    placed: PlacedCopies

    @property
    def vector(self) -> Vector:
        """How many of each demand there are."""
        return tuple(map(len, self.placed))


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes that hold everything, what they cost, and what nodes of the known columns cannot cost less than."""

    columns: Sequence[_Column]
    cost: int
    bound: int


@dataclass(frozen=True, slots=True)
class _Remainder:
    """What is missing beside the whole nodes of a fractional cover, and the price of each demand there."""

    missing: Vector
    prices: Vector

    def shaken(self, random: Random) -> _Remainder:
        """Change the prices somewhat."""
        low, high = _SHAKEN
        prices = (
            max(1, price * random.randint(low, high) // 100)
            for price in self.prices
        )
        return replace(self, prices=tuple(prices))


@dataclass
class ColumnGeneration:
    """The restricted master problem is the cover; a node type's pricing problem is the most that fits on one node."""

    question: CoverQuestion
    node_types: Sequence[NodeVectors]
    bound: int = 0

    def run(self) -> NodeCover:
        """Price; fill nodes until a cover meets the bound; if none does, price again, and look for all vectors."""
        best = self._cover(self.question.stop)
        if best is None:
            raise too_short()
        remainder = self._priced()
        random = Random(self.question.options.seed)
        best = self._cheaper(best)
        stop = self._part(_COMPLETING)
        for attempt in range(_COMPLETIONS):
            if stop.reached() or not self._is_open(best):
                break
            with suppress(Stopped):
                self._complete(
                    remainder.shaken(random) if attempt else remainder, stop
                )
            best = self._cheaper(best)
        # Where time was over before the prices were right, the new vectors help to find them.
        if self._is_open(best):
            self._priced()
            best = self._cheaper(best)
        if self._is_open(best):
            listed = [node_type.list_all() for node_type in self.node_types]
            last = self._cover(self.question.stop)
            if last is not None:
                best = min(best, last, key=_cost_of)
                self.bound = max(self.bound, last.bound if all(listed) else 0)
        return self._answer(best)

    def _is_open(self, best: _Nodes) -> bool:
        """Whether there may be a cheaper cover, and time to look for it."""
        return best.cost > self.bound and not self.question.stop.reached()

    def _part(self, part: float) -> Stop:
        """Return a stop after a part of the time that is left."""
        stop = self.question.stop
        return stop.within(part * stop.seconds())

    def _cheaper(self, best: _Nodes) -> _Nodes:
        """Cover with the columns that are known by now; returns the nodes at hand if these are no more expensive."""
        if not self._is_open(best):
            return best
        cover = self._cover(self._part(_COVERING))
        return best if cover is None else min(best, cover, key=_cost_of)

    def _priced(self) -> _Remainder:
        """Price until no vector is worth more than its node, or for a part of the time; returns the last relaxation."""
        stop = self._part(_PRICING)
        for _ in range(_ROUNDS):
            columns = self._columns()
            fractional = fractional_cover(
                self._cover_columns(columns), self.question.needs
            )
            self.bound = max(self.bound, self._bound(fractional.prices))
            # Without a new vector the prices stay as they are, and so does all that follows from them.
            if len(self._columns()) == len(columns) or stop.reached():
                break
        missing = list(self.question.needs)
        for column, times in zip(columns, fractional.times, strict=True):
            whole = int(times + _ROUNDING)
            missing = [
                max(0, count - whole * held)
                for count, held in zip(missing, column.vector, strict=True)
            ]
        return _Remainder(tuple(missing), fractional.prices)

    def _complete(self, remainder: _Remainder, stop: Stop) -> None:
        """Fill nodes with what is missing beside whole nodes of the relaxation, one after the other.

        Pricing looks for vectors as if everything were there in the end, too; the last nodes of a cover hold what
        remains. Raises `Stopped` when the time is over.
        """
        missing = remainder.missing
        # What costs nothing at the margin has to be placed as well.
        values = [max(1, price) for price in remainder.prices]
        while any(missing):
            stop.check()
            vectors = [
                (node_type.richest(values, missing)[0], node_type.cost)
                for node_type in self.node_types
            ]
            vector, _ = max(
                vectors,
                key=lambda filled: Fraction(
                    sum(map(mul, values, filled[0])), filled[1]
                ),
            )
            if not any(vector):
                break
            missing = tuple(map(sub, missing, vector))

    def _bound(self, values: Sequence[int]) -> int:
        """No set of nodes can be cheaper: whatever it holds is worth as much as is needed, each node at most its most.

        The cost of every set is a multiple of what all costs have in common.
        """
        needs = self.question.needs
        worth = sum(map(mul, values, needs))
        richest = max(
            Fraction(node_type.richest(values, needs)[1], node_type.cost)
            for node_type in self.node_types
        )
        unit = gcd(*(node_type.cost for node_type in self.node_types))
        return -(-Fraction(worth) // (richest * unit)) * unit if richest else 0

    def _columns(self) -> list[_Column]:
        """All that are known."""
        return [
            _Column(type_index, placed)
            for type_index, node_type in enumerate(self.node_types)
            for placed in node_type.packing.placed.values()
        ]

    def _cover_columns(self, columns: Iterable[_Column]) -> list[CoverColumn]:
        return [
            CoverColumn(self.node_types[column.type_index].cost, column.vector)
            for column in columns
        ]

    def _cover(self, stop: Stop) -> _Nodes | None:
        """Cover what is needed with all columns that are known; None without time."""
        columns = self._columns()
        best = cover(
            self._cover_columns(columns),
            self.question.needs,
            with_time_left(self.question.options, stop),
        )
        if best is None:
            return None
        chosen = [
            column
            for column, times in zip(columns, best.times, strict=True)
            for _ in range(times)
        ]
        return _Nodes(chosen, best.cost, best.bound)

    def _answer(self, best: _Nodes) -> NodeCover:
        """The nodes by type, when the checker has accepted everything on them."""
        columns, needs = best.columns, self.question.needs
        if len(columns) > _MOST_VERIFIED:
            # Nodes have nothing to do with each other: those with the same on them are looked at once.
            times = Counter(map(id, columns))
            by_id = {id(column): column for column in columns}
            held = [
                [times[key] * count for count in column.vector]
                for key, column in by_id.items()
            ]
            totals = tuple(map(sum, zip(*held, strict=True)))
            assert all(map(le, needs, totals)), "everything is placed"
            columns = list(by_id.values())
            vectors = [column.vector for column in columns]
            needs = tuple(map(sum, zip(*vectors, strict=True)))
        self._verify(columns, needs)
        node_counts = Counter(column.type_index for column in best.columns)
        types = range(len(self.node_types))
        numbers = tuple(node_counts[type_index] for type_index in types)
        return NodeCover(numbers, best.cost, self.bound)

    def _verify(self, columns: Sequence[_Column], needs: Vector) -> None:
        """Place so many of each on copies of the nodes, and let the checker look at it."""
        if not columns:
            return
        problem = replicate(
            [
                self.node_types[column.type_index].packing.problem
                for column in columns
            ]
        )
        demands = [
            replace(demand, nodes=self._homes(columns, index))
            for index, demand in enumerate(self.question.demands)
        ]
        placements = sorted(
            self._placements(columns, needs),
            key=lambda placement: placement.demand,
        )
        assert len(placements) == sum(needs), "everything is placed"
        check(replicated(problem, demands, needs), Solution(tuple(placements)))

    def _homes(
        self, columns: Sequence[_Column], demand: int
    ) -> tuple[NodeIndex, ...]:
        """The copies of nodes where the demand may go."""
        return tuple(
            NodeIndex(node)
            for node, column in enumerate(columns)
            if self.node_types[column.type_index].packing.max_counts[demand]
        )

    def _placements(
        self, columns: Sequence[_Column], needs: Vector
    ) -> Iterator[Placement]:
        # By demand, the indices of its copies that are not placed yet. Nodes may hold more than is needed.
        spans = pairwise(accumulate(needs, initial=0))
        waiting = [iter(range(*span)) for span in spans]
        start = 0
        for node, column in enumerate(columns):
            for copies, placements in zip(waiting, column.placed, strict=True):
                for placement, demand in zip(placements, copies, strict=False):
                    yield _shifted(
                        placement, DemandIndex(demand), NodeIndex(node), start
                    )
            node_type = self.node_types[column.type_index]
            start += len(node_type.packing.problem.devices)


_cost_of = attrgetter("cost")


def _shifted(
    placement: Placement, demand: DemandIndex, node: NodeIndex, start: int
) -> Placement:
    """A placement on a node alone as one on a copy of the node, whose devices begin at `start`."""
    grants = []
    for of_claim in placement.grants:
        shifted = (
            grant._replace(device=DeviceIndex(start + grant.device))
            for grant in of_claim
        )
        grants.append(tuple(shifted))
    return Placement(demand, node, tuple(grants))
