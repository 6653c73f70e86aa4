"""The cheapest nodes, against trying every set of nodes that is cheaper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain, product
from operator import mul

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
import dralloc
import strategies
from benchmarks.workloads.mixed import mixed
from crowd_strategies import crowds
from dralloc.ask.whatif.copies import copies
from dralloc.ask.whatif.fewest_nodes import (
    FitsNowhereError,
    NodeCost,
    NodeCover,
    cover_demands,
)
from dralloc.ask.whatif.models.selection import CoverColumn, cover
from dralloc.ask.whatif.node_search import NodeSearch
from dralloc.problem import Demand, NodeIndex, Problem, Usage, numbered
from dralloc.problem.equivalence import equivalent_nodes
from dralloc.problem.subproblem import cut, replicate
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from whatif_apart import apart

# In its package, the function has the name.
covering = import_module("dralloc.ask.whatif.fewest_nodes")

EXAMPLES = examples(40)
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def emptied(problem: Problem) -> Problem:
    counters = tuple(
        replace(counter, free=counter.total) for counter in problem.counters
    )
    return replace(problem, usage=Usage(frozenset(), {}, {}), counters=counters)


def holding(
    problem: Problem,
    demands: Sequence[Demand],
    needs: Sequence[int],
    nodes: Sequence[NodeIndex],
) -> Problem:
    """Everything that is needed, on copies of nodes."""
    whole = replicate([cut(problem, [node]).problem for node in nodes])
    groups = (
        copies(replace(demand, nodes=_allowed(demand, nodes)), need)
        for demand, need in zip(demands, needs, strict=True)
    )
    return replace(whole, demands=tuple(chain.from_iterable(groups)))


def _allowed(demand: Demand, nodes: Sequence[int]) -> tuple[NodeIndex, ...]:
    return tuple(
        NodeIndex(place)
        for place, node in enumerate(nodes)
        if demand.nodes is None or node in demand.nodes
    )


def cheaper(
    node_costs: Sequence[NodeCost], cost: int
) -> Iterator[list[NodeIndex]]:
    """Every set of nodes that costs less and cannot be extended without costing as much."""
    cheapest = min(node_cost.cost for node_cost in node_costs)
    for times in product(
        *(range(cost // node_cost.cost + 1) for node_cost in node_costs)
    ):
        total = sum(
            node_cost.cost * number
            for node_cost, number in zip(node_costs, times, strict=True)
        )
        if cost - cheapest <= total < cost and any(times):
            yield [
                node_cost.node
                for node_cost, number in zip(node_costs, times, strict=True)
                for _ in range(number)
            ]


def covered(
    problem: Problem,
    demands: Sequence[Demand],
    needs: Sequence[int],
    node_costs: Sequence[NodeCost],
) -> tuple[NodeCover | None, int]:
    """The cover; without one the place of a demand that fits nowhere."""
    try:
        return cover_demands(problem, demands, tuple(needs), node_costs), -1
    except FitsNowhereError as error:
        return None, error.place


@THOROUGH
@given(strategies.problems(max_demands=2, max_devices=4), st.data())
def test_small_mixes(problem: Problem, data: st.DataObject) -> None:
    problem = emptied(problem)
    demands = [
        apart(demand, number) for number, demand in numbered(problem.demands)
    ]
    classes = equivalent_nodes(problem, demands)
    assume(classes is not None and classes.groups)
    assert classes is not None
    node_costs = [
        NodeCost(group[0], data.draw(st.integers(1, 3)))
        for group in classes.groups
    ]
    needs = tuple(data.draw(st.integers(1, 2)) for _ in demands)
    found, homeless = covered(problem, demands, needs, node_costs)
    if found is None:
        nodes = [node_cost.node for node_cost in node_costs]
        assert brute_force.best(
            holding(problem, [demands[homeless]], [1], nodes)
        ) == (
            0,
            0,
        )
        return
    assert (
        found.cost
        == found.bound
        == sum(
            node_cost.cost * number
            for node_cost, number in zip(node_costs, found.numbers, strict=True)
        )
    )
    for nodes in cheaper(node_costs, found.cost):
        assert brute_force.best(holding(problem, demands, needs, nodes))[
            0
        ] < sum(needs)


@THOROUGH
@given(crowds(), st.data())
def test_larger_mixes(problem: Problem, data: st.DataObject) -> None:
    problem = emptied(problem)
    demands = list(
        {
            len(each.claims[0].requests): each for each in problem.demands
        }.values()
    )
    classes = equivalent_nodes(problem, demands)
    assert classes is not None
    assume(classes.groups)
    node_costs = [
        NodeCost(group[0], data.draw(st.integers(1, 3)))
        for group in classes.groups
    ]
    needs = tuple(data.draw(st.integers(1, 6)) for _ in demands)
    found, _ = covered(problem, demands, needs, node_costs)
    assume(found)
    assert found is not None
    assert found.cost == found.bound
    for nodes in cheaper(node_costs, found.cost):
        best = solve(
            holding(problem, demands, needs, nodes), Options(per_device=True)
        )
        assert best.tiers[0].value < sum(needs)


@THOROUGH
@given(crowds(), st.data())
def test_nodes_that_are_searched_for(
    problem: Problem, data: st.DataObject
) -> None:
    """They hold everything, as the checker says, and the bound is one for the cheapest."""
    problem = emptied(problem)
    demands = list(
        {
            len(each.claims[0].requests): each for each in problem.demands
        }.values()
    )
    classes = equivalent_nodes(problem, demands)
    assert classes is not None
    assume(classes.groups)
    node_costs = [
        NodeCost(group[0], data.draw(st.integers(1, 3)))
        for group in classes.groups
    ]
    needs = tuple(data.draw(st.integers(1, 6)) for _ in demands)
    best, _ = covered(problem, demands, needs, node_costs)
    nodes, costs = zip(
        *((each.node, each.cost) for each in node_costs), strict=True
    )
    search = NodeSearch(
        problem, demands, needs, nodes, costs, Options(steps=8), Stop()
    )
    found = search.run()
    assert (found is None) == (best is None) == (search.homeless is not None)
    if best is not None and found is not None:
        assert found.bound <= best.cost <= found.cost
        assert found.cost == sum(map(mul, costs, found.numbers))


def test_mixed_clusters() -> None:
    found = dralloc.fewest_nodes(mixed(nodes=30, seed=1), steps=4)
    assert not found.left_out
    assert 0 < found.bound <= found.cost <= 30


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=4,
    ),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_covers_are_the_cheapest(
    given_columns: list[tuple[int, int, int]], needs: tuple[int, int]
) -> None:
    columns = [
        CoverColumn(cost, (first, second))
        for cost, first, second in given_columns
    ]
    found = cover(columns, needs)
    costs = [
        sum(
            column.cost * number
            for column, number in zip(columns, times, strict=True)
        )
        for times in product(range(max(needs) + 1), repeat=len(columns))
        if all(
            sum(
                column.brings[place] * number
                for column, number in zip(columns, times, strict=True)
            )
            >= needs[place]
            for place in (0, 1)
        )
    ]
    assert (found and found.cost) == min(costs, default=None)
    if found:
        assert found.bound == found.cost


def two_kinds() -> tuple[Problem, Sequence[Demand]]:
    """One node of two devices, and one of three; a pod asks for one device, another one for two."""
    builder = ProblemBuilder(nodes=2)
    for home in (0, 0, 1, 1, 1):
        builder.device(home)
    for count in (1, 2):
        builder.pod(builder.claim(AlternativeSpec(count)))
    problem = builder.problem()
    return problem, list(problem.demands)


def test_vectors_of_a_type_are_listed_as_long_as_there_is_time() -> None:
    problem, demands = two_kinds()
    cost = NodeCost(NodeIndex(0), 1)
    node_type = covering._NodeType(
        problem, demands, (2, 2), cost, Options(), Stop()
    )
    assert node_type.list_all()
    node_type.stop = Stop.after(0)
    assert not node_type.list_all()


def test_where_vectors_take_too_long_nodes_are_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(covering, "_LISTING", 0)
    problem, demands = two_kinds()
    costs = [NodeCost(NodeIndex(node), 1) for node in (0, 1)]
    options = Options(time_limit=60)
    answer = cover_demands(problem, demands, (3, 3), costs, options)
    # Three of each ask for nine devices.
    assert (answer.cost, answer.bound) == (3, 3)
    assert answer.numbers == (0, 3)
