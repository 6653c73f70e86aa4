"""Nodes that hold everything, by search: for mixes in which hardly two demands are equal.

Relax, improve: a linear program says about how many nodes of each type there should be, and what no nodes can cost less
than (`dralloc.solve.optimum.relax.cover`). First fit places everything, the largest first, on copies of these nodes;
where they do not suffice, copies are added of types that have room. Then large-neighbourhood search empties nodes: of
two answers with equally cheap nodes that is better which has more on nodes that come first, so that the last ones
become empty by and by.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from math import ceil
from typing import Final

from dralloc.ask.whatif.copies import replicated
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Demand,
    DemandIndex,
    NodeIndex,
    Numbered,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.subproblem import cut, replicate
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.improve import NeighbourhoodSearch
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    placed_weight,
    used_nodes,
)
from dralloc.solve.optimum.relax.cover import RelaxedCover, relaxed_cover
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.stopping import Stop, Stopped, late_stop

__all__ = [
    "CoverQuestion",
    "FitsNowhereError",
    "NodeCost",
    "NodeCover",
    "NodeSearch",
]

_SPARE: Final = 1.02
"""So many times as many nodes as hold everything in fractions are offered first."""

_SIZES: Final = 1000
"""The largest demand counts so much on its way to nodes that come first, the smallest 1."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A type of node: an isolated node of the problem without anything in use, and its price."""

    node: NodeIndex
    cost: int


class FitsNowhereError(Exception):
    """Some demands, by index, fit on no type of node, and all of them should."""

    def __init__(self, demands: Set[int]) -> None:
        super().__init__(demands)
        self.demands = demands


@dataclass(frozen=True, slots=True)
class CoverQuestion:
    """Which nodes hold everything, and cost the least.

    Parameters
    ----------
    problem
        With the types of nodes, each isolated and with nothing in use.
    demands, needs
        What is to be held, and how many of each.
    node_costs
        The types of nodes to choose from.
    all_must_fit
        Whether a demand that fits on no type of node is an error; if not, it is left out.
    """

    problem: Problem
    demands: Sequence[Demand]
    needs: tuple[int, ...]
    node_costs: Sequence[NodeCost]
    options: Options
    stop: Stop
    all_must_fit: bool = False

    def without(self, homeless: Set[int]) -> CoverQuestion:
        """Ask about all but demands that fit nowhere; they keep their indices. Raises `FitsNowhereError`."""
        if homeless and self.all_must_fit:
            raise FitsNowhereError(homeless)
        needs = (
            0 if demand in homeless else need
            for demand, need in enumerate(self.needs)
        )
        return replace(self, needs=tuple(needs))


@dataclass(frozen=True)
class NodeCover:
    """The number of nodes of each type that hold everything.

    Parameters
    ----------
    numbers
        By node type.
    cost
        What they cost. The demands have been placed on so many copies, and the checker has accepted it.
    bound
        Nothing cheaper holds everything.
    homeless
        The indices of demands that fit on no type of node, and do not count.
    """

    numbers: tuple[int, ...]
    cost: int
    bound: int
    homeless: frozenset[int] = frozenset()


@dataclass
class NodeSearch:
    """The search.

    Parameters
    ----------
    homeless
        The indices of demands that fit on no type of node; known after `run`.
    """

    question: CoverQuestion
    homeless: frozenset[int] = field(default=frozenset(), init=False)

    @cached_property
    def _nodes(self) -> Sequence[NodeIndex]:
        """Return a node of each type."""
        return [node_cost.node for node_cost in self.question.node_costs]

    @cached_property
    def _costs(self) -> Sequence[int]:
        """What a node of each type costs."""
        return [node_cost.cost for node_cost in self.question.node_costs]

    @cached_property
    def _late(self) -> Stop:
        """The end of first fit, without which there is no answer: shortly after that of the time limit."""
        question = self.question
        return late_stop(question.stop, question.options.time_limit)

    def run(self) -> NodeCover | None:
        """Search as long as there is time.

        Returns
        -------
        None if a demand fits nowhere, or if first fit finds no place for one because selectors fail.

        Raises
        ------
        Stopped
            The time was over before first fit had placed everything.
        """
        relaxed = None
        with suppress(Stopped):
            problem = self._on(range(len(self._nodes)))
            relaxed = relaxed_cover(problem, self._costs, self.question.stop)
        start = self._placed(relaxed)
        if start is None:
            return None
        return self._improved(*start, relaxed)

    def _on(self, types: Sequence[int]) -> Problem:
        """Return the problem of everything that is needed, on nodes of these types."""
        problem = replicate([self._parts[type_] for type_ in types])
        # Many demands have the same nodes: these are translated once.
        homes: dict[tuple[int, ...] | None, tuple[NodeIndex, ...] | None] = {
            None: None
        }
        for nodes in {
            demand.nodes
            for demand in self.question.demands
            if demand.nodes is not None
        }:
            among = frozenset(nodes)
            homes[nodes] = tuple(
                NodeIndex(node)
                for node, type_ in enumerate(types)
                if self._nodes[type_] in among
            )
        demands = (
            replace(demand, nodes=homes[demand.nodes])
            for demand in self._everybody
        )
        return replace(problem, demands=tuple(demands))

    @cached_property
    def _everybody(self) -> Numbered[DemandIndex, Demand]:
        question = self.question
        problem = replicated(question.problem, question.demands, question.needs)
        return problem.demands

    @cached_property
    def _parts(self) -> Sequence[Problem]:
        return [
            cut(self.question.problem, [node]).problem for node in self._nodes
        ]

    def _placed(
        self, relaxed: RelaxedCover | None
    ) -> tuple[list[int], Sequence[Placement]] | None:
        """Place everything by first fit, in the best of some orders.

        Returns
        -------
        The types of nodes, and everything placed on these; None if somebody fits nowhere.
        """
        # As many nodes as the relaxation uses, the most special types first: first fit
        # goes through them in this order.
        node_counts = relaxed.numbers if relaxed else (0.0,) * len(self._nodes)
        rank_of = self._ranks()
        types = [
            type_
            for type_ in sorted(rank_of, key=rank_of.__getitem__)
            for _ in range(ceil(_SPARE * node_counts[type_]))
        ]
        types = types or list(rank_of)
        best: tuple[int, list[int], Sequence[Placement]] | None = None
        for order in self._orders(relaxed):
            if best is not None and self.question.stop.reached():
                break
            # Nodes are added for those who wait until nobody does.
            while True:
                problem = self._on(types)
                placements = self._first_fit(problem, order)
                placed = {placement.demand for placement in placements}
                waiting = [demand for demand in order if demand not in placed]
                if not waiting:
                    break
                types_to_add = self._rooms(waiting)
                if types_to_add is None:
                    return None
                types += types_to_add
            nodes = {placement.node for placement in placements}
            cost = sum(self._costs[types[node]] for node in nodes)
            if best is None or cost < best[0]:
                best = cost, types, placements
        assert best is not None
        return best[1:]

    def _ranks(self) -> Mapping[int, int]:
        """Return the number of demands that can use each type: first fit fills the least wanted types first."""
        problem = self._on(range(len(self._nodes)))
        capabilities = NodeCapabilities(problem)
        demand_counts = Counter(
            type_
            for demand_index, demand in numbered(problem.demands)
            for type_ in problem.candidate_nodes(demand)
            if capabilities.could_serve(type_, demand_index)
        )
        return {
            type_: demand_counts[type_]
            for type_ in map(NodeIndex, range(len(self._nodes)))
        }

    def _orders(
        self, relaxed: RelaxedCover | None
    ) -> Iterator[Sequence[DemandIndex]]:
        """Yield the orders in which nodes are filled: as they come, and the most costly in the relaxation first."""
        as_given = indices(self._everybody)
        yield as_given
        if relaxed:
            yield sorted(as_given, key=lambda demand: -relaxed.worth[demand])

    def _first_fit(
        self, problem: Problem, order: Sequence[DemandIndex]
    ) -> Sequence[Placement]:
        """Place demands in this order; raises `Stopped` if the time is over before the last of them had its turn."""
        self._late.check()
        solution = place_all(
            QuickRun(problem), problem, order, {}, self._late.seconds
        )
        self._late.check()
        return solution.placements

    def _rooms(self, waiting: Sequence[DemandIndex]) -> list[int] | None:
        """The types of nodes that take the waiting demands; None if a demand finds no place."""
        every_type = range(len(self._nodes))
        # One node of each type, and again. Whoever finds no place on the first of these goes to the next: twice as
        # many are offered as long as all are used, so that nobody waits through thousands of rounds.
        rounds, problem = 1, self._on(every_type)
        types_with_room: list[int] = []
        # By demand, the first of its copies.
        placeless: dict[int, DemandIndex] = {}
        while waiting:
            placements = self._first_fit(problem, waiting)
            placed = {placement.demand for placement in placements}
            nodes = sorted({placement.node for placement in placements})
            types_with_room += [node % len(every_type) for node in nodes]
            # Nobody was there before the first of them.
            if waiting[0] not in placed:
                placeless[self._origin_of(waiting[0])] = waiting[0]
            waiting = [
                copy
                for copy in waiting
                if copy not in placed
                and not (placeless and self._origin_of(copy) in placeless)
            ]
            all_used = nodes and nodes[-1] >= (rounds - 1) * len(every_type)
            rounds = 2 * rounds if all_used else 1
            problem = self._on([*every_type] * rounds)
        if not placeless:
            return types_with_room
        problem = self._on(every_type)
        self.homeless = frozenset(
            demand
            for demand, copy in placeless.items()
            if not self._fits_somewhere(problem, copy)
        )
        return None

    def _fits_somewhere(self, problem: Problem, copy: DemandIndex) -> bool:
        """Whether there is a node that holds a copy alone."""
        alone = replace(problem, demands=(problem.demands[copy],))
        return bool(solve(alone).placements)

    def _origin_of(self, copy: int) -> int:
        """Of which demand this is a copy."""
        return bisect(self._ends, copy)

    @cached_property
    def _ends(self) -> Sequence[int]:
        """By demand, the number of the copies of it and of all before it."""
        return list(accumulate(self.question.needs))

    def _improved(
        self,
        types: Sequence[int],
        placements: Sequence[Placement],
        relaxed: RelaxedCover | None,
    ) -> NodeCover:
        """Search for cheaper nodes until the bound is met or time is over."""
        bound = relaxed.bound if relaxed else 0
        problem = self._on(types)
        costs = {
            node.name: self._costs[type_]
            for node, type_ in zip(problem.nodes, types, strict=True)
        }
        # A node is saved only once it is empty, which no small step brings about. So there
        # is a last tier by which late nodes drain into early ones.
        everything = DemandSubset(problem, indices(problem.demands))
        cheapest = _cost_of_nodes(costs)
        tiers = (
            *placed_weight(problem),
            cheapest,
            self._order(problem, relaxed),
        )
        best = placements
        search = NeighbourhoodSearch(
            everything, tiers, best, self.question.options
        )
        with suppress(Stopped):
            answers = (
                search.run(self.question.stop)
                if cheapest.cost(everything, best) > bound
                else ()
            )
            for answer in answers:
                best = answer
                if cheapest.cost(everything, best) <= bound:
                    break
        check(problem, Solution(tuple(best)))
        nodes = {placement.node for placement in best}
        used = Counter(types[node] for node in nodes)
        cost = sum(self._costs[type_] * count for type_, count in used.items())
        node_counts = tuple(used[type_] for type_ in range(len(self._nodes)))
        return NodeCover(node_counts, cost, min(bound, cost))

    def _order(
        self, problem: Problem, relaxed: RelaxedCover | None
    ) -> Objective:
        """The tier by which nodes that come last become empty."""
        worth = relaxed.worth if relaxed else [1] * len(problem.demands)
        largest = max(1, *worth)
        sizes = {
            demand.key: 1 + value * (_SIZES - 1) // largest
            for demand, value in zip(problem.demands, worth, strict=True)
        }
        return _first_nodes_first(
            sizes, {node.name: rank for rank, node in numbered(problem.nodes)}
        )


def _cost_of_nodes(costs: Mapping[str, int]) -> Objective:
    """Return the objective that sums up the cost of the nodes in use, by name."""
    return Objective(
        "nodes", partial(_cost, costs), partial(_cost_terms, costs)
    )


def _cost(
    costs: Mapping[str, int],
    subset: DemandSubset,
    placements: Sequence[Placement],
) -> int:
    nodes = subset.problem.nodes
    used = {placement.node for placement in placements}
    return sum(costs[nodes[node].name] for node in used)


def _cost_terms(costs: Mapping[str, int], model: Model) -> list[Term]:
    nodes = model.problem.nodes
    return [
        (literal, costs[nodes[node].name])
        for node, literal in used_nodes(model).items()
    ]


def _first_nodes_first(
    sizes: Mapping[ClaimKey, int], ranks: Mapping[str, int]
) -> Objective:
    """Return the objective that prefers early nodes, above all for large demands."""
    return Objective(
        "order",
        partial(_lateness, sizes, ranks),
        partial(_lateness_terms, sizes, ranks),
        adds_up=True,
    )


def _lateness(
    sizes: Mapping[ClaimKey, int],
    ranks: Mapping[str, int],
    subset: DemandSubset,
    placements: Sequence[Placement],
) -> int:
    problem = subset.problem
    return sum(
        sizes[problem.demands[placement.demand].key]
        * ranks[problem.nodes[placement.node].name]
        for placement in placements
    )


def _lateness_terms(
    sizes: Mapping[ClaimKey, int], ranks: Mapping[str, int], model: Model
) -> list[Term]:
    problem = model.problem
    return [
        (
            on,
            sizes[problem.demands[demand].key]
            * ranks[problem.nodes[node].name],
        )
        for (demand, node), on in model.variables.on.items()
        if ranks[problem.nodes[node].name]
    ]
