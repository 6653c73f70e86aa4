"""The cheapest nodes, against trying every set of nodes that is cheaper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from importlib import import_module
from itertools import chain, product
from operator import mul
from time import process_time
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
import dralloc
import strategies
from benchmarks.registry import WORKLOADS
from benchmarks.workloads.mixed import mixed
from crowd_strategies import crowds
from dralloc.ask.whatif.copies import copies
from dralloc.ask.whatif.fewest_nodes import NodeCost, cover_demands
from dralloc.ask.whatif.fronts import JointPacking
from dralloc.ask.whatif.models.selection import CoverColumn, cover
from dralloc.ask.whatif.node_columns import ColumnGeneration, NodeVectors
from dralloc.ask.whatif.node_search import CoverQuestion
from dralloc.check import check
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents
from dralloc.problem import (
    Demand,
    DemandIndex,
    NodeIndex,
    Problem,
    Usage,
    numbered,
)
from dralloc.problem.equivalence import equivalent_nodes
from dralloc.problem.solution import Solution
from dralloc.problem.subproblem import cut, replicate
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.stopping import Stop, Stopped
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from whatif_apart import apart
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

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
        NodeIndex(index)
        for index, node in enumerate(nodes)
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
            node_cost.cost * count
            for node_cost, count in zip(node_costs, times, strict=True)
        )
        if cost - cheapest <= total < cost and any(times):
            yield [
                node_cost.node
                for node_cost, count in zip(node_costs, times, strict=True)
                for _ in range(count)
            ]


@THOROUGH
@given(strategies.problems(max_demands=2, max_devices=4), st.data())
def test_small_mixes(problem: Problem, data: st.DataObject) -> None:
    problem = emptied(problem)
    demands = [
        apart(demand, index) for index, demand in numbered(problem.demands)
    ]
    classes = equivalent_nodes(problem, demands)
    assume(classes is not None and classes.groups)
    assert classes is not None
    node_costs = [
        NodeCost(group[0], data.draw(st.integers(1, 3)))
        for group in classes.groups
    ]
    needs = tuple(data.draw(st.integers(1, 2)) for _ in demands)
    answer = cover_demands(problem, demands, needs, node_costs)
    nodes = [node_cost.node for node_cost in node_costs]
    for demand in answer.homeless:
        alone = holding(problem, [demands[demand]], [1], nodes)
        assert brute_force.best(alone) == (0, 0)
    needs = without(needs, answer.homeless)
    assert (
        answer.cost
        == answer.bound
        == sum(
            node_cost.cost * count
            for node_cost, count in zip(node_costs, answer.numbers, strict=True)
        )
    )
    for nodes in cheaper(node_costs, answer.cost):
        placed, _ = brute_force.best(holding(problem, demands, needs, nodes))
        assert placed < sum(needs)


def without(needs: Sequence[int], homeless: Set[int]) -> tuple[int, ...]:
    return tuple(
        0 if demand in homeless else need for demand, need in enumerate(needs)
    )


@THOROUGH
@given(crowds(), st.data())
def test_larger_mixes(problem: Problem, data: st.DataObject) -> None:
    problem = emptied(problem)
    demands = list(
        {
            len(demand.claims[0].requests): demand for demand in problem.demands
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
    answer = cover_demands(problem, demands, needs, node_costs)
    assert answer.cost == answer.bound
    needs = without(needs, answer.homeless)
    for nodes in cheaper(node_costs, answer.cost):
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
            len(demand.claims[0].requests): demand for demand in problem.demands
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
    best = cover_demands(problem, demands, needs, node_costs)
    question = CoverQuestion(
        problem, demands, needs, node_costs, Options(steps=8), Stop()
    )
    answer = covering._searched(question)
    assert answer.homeless == best.homeless
    assert answer.bound <= best.cost <= answer.cost
    costs = [node_cost.cost for node_cost in node_costs]
    assert answer.cost == sum(map(mul, costs, answer.numbers))


def test_mixed_clusters() -> None:
    answer = dralloc.fewest_nodes(mixed(nodes=30, seed=1), steps=4)
    assert not answer.left_out
    assert 0 < answer.bound <= answer.cost <= 30


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
    answer = cover(columns, needs)
    costs = [
        sum(
            column.cost * count
            for column, count in zip(columns, times, strict=True)
        )
        for times in product(range(max(needs) + 1), repeat=len(columns))
        if all(
            sum(
                column.brings[need_index] * count
                for column, count in zip(columns, times, strict=True)
            )
            >= needs[need_index]
            for need_index in (0, 1)
        )
    ]
    assert (answer and answer.cost) == min(costs, default=None)
    if answer:
        assert answer.bound == answer.cost


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
    packing = JointPacking.alone(
        problem, demands, NodeIndex(0), (2, 2), Options(), Stop()
    )
    assert packing.max_counts == (2, 1)
    assert set(packing.placed) == {(2, 0), (0, 1)}
    node_type = NodeVectors(1, packing)
    assert node_type.list_all()
    packing.stop = Stop.after(0)
    assert not node_type.list_all()


def test_demands_that_fit_nowhere_do_not_count() -> None:
    """Both ways find all of them at once, in the time of one question."""
    builder = ProblemBuilder(nodes=1)
    builder.device(0)
    for count in (2, 1, 3):
        builder.pod(builder.claim(AlternativeSpec(count)))
    problem = builder.problem()
    demands = list(problem.demands)
    costs = [NodeCost(NodeIndex(0), 1)]
    needs = (2, 3, 1)
    question = CoverQuestion(
        problem, demands, needs, costs, Options(steps=1), Stop()
    )
    for answer in (
        cover_demands(problem, demands, needs, costs),
        covering._searched(question),
    ):
        assert answer.homeless == {0, 2}
        assert answer.numbers == (3,)
        assert answer.bound == answer.cost == 3


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


def test_very_many_copies_are_held_within_the_time_limit() -> None:
    """The checker looked at each node, and went through all of them for each pod."""
    problem, demands = two_kinds()
    costs = [NodeCost(NodeIndex(node), 1) for node in (0, 1)]
    began = process_time()
    answer = cover_demands(
        problem, demands, (50_000, 50_000), costs, Options(time_limit=2)
    )
    assert process_time() - began < 6
    assert (answer.cost, answer.numbers) == (50_000, (0, 50_000))


def test_first_fit_of_very_many_copies_ends_soon_after_the_time_limit() -> None:
    problem, demands = two_kinds()
    costs = [NodeCost(NodeIndex(node), 1) for node in (0, 1)]
    began = process_time()
    with pytest.raises(DrallocError, match="too short to find nodes"):
        cover_demands(
            problem, demands, (50_000, 50_000), costs, Options(time_limit=1e-3)
        )
    assert process_time() - began < 10


def test_nobody_waits_through_a_round_for_each_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the relaxation had no time: all nodes are added by first fit, more and more at once."""
    searching = import_module(CoverQuestion.__module__)
    waiting: list[int] = []

    def ended(*_: object) -> None:
        raise Stopped

    def placed(
        run: PlainRun,
        problem: Problem,
        order: Sequence[DemandIndex],
        *others: Any,
    ) -> Solution:
        waiting.append(len(order))
        return place_all(run, problem, order, *others)

    monkeypatch.setattr(searching, "relaxed_cover", ended)
    monkeypatch.setattr(searching, "place_all", placed)
    problem, demands = two_kinds()
    costs = [NodeCost(NodeIndex(node), 1) for node in (0, 1)]
    question = CoverQuestion(
        problem, demands, (200, 200), costs, Options(steps=0), Stop()
    )
    answer = covering._searched(question)
    assert (answer.bound, answer.numbers) == (0, (140, 140))
    # One by one it would be some 140 times.
    assert len(waiting) < 20


def test_of_very_many_nodes_the_checker_looks_at_those_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = import_module(ColumnGeneration.__module__)
    monkeypatch.setattr(columns, "_MOST_VERIFIED", 1)
    sizes: list[int] = []

    def checked(problem: Problem, solution: Solution) -> None:
        sizes.append(len(problem.nodes))
        check(problem, solution)

    monkeypatch.setattr(columns, "check", checked)
    problem, demands = two_kinds()
    costs = [NodeCost(NodeIndex(node), 1 + node) for node in (0, 1)]
    answer = cover_demands(problem, demands, (6, 2), costs)
    assert answer.cost == answer.bound == sum(answer.numbers) == 5
    assert sizes == [2]


def test_the_last_nodes_hold_what_remains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vectors that are worth the most leave a gap, which nodes that are filled with the rest close."""
    monkeypatch.setattr(NodeVectors, "list_all", lambda _: False)
    documents = WORKLOADS["cluster-plain"].objects(40, 0)
    answer = dralloc.fewest_nodes(load_documents(documents))
    assert answer.exact


def test_named_claims_that_fit_nowhere_are_refused_before_any_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ColumnGeneration, "run")
    reason = "default/large: fits on no node of kind node-0"
    objects = (
        node(),
        device_class(),
        resource_slice(gpus(2)),
        claim("small", request()),
        claim("large", request(count=3)),
    )
    with pytest.raises(DrallocError, match=reason):
        dralloc.fewest_nodes(
            cluster(*objects), "default/small", "default/large"
        )


def test_what_is_left_out_is_in_order() -> None:
    answer = dralloc.fewest_nodes(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(2)),
            claim("a", request(count=3)),
            claim("b", request()),
            claim("c", request(count=4)),
        )
    )
    assert [reason.split(":")[0] for reason in answer.left_out] == [
        "default/a",
        "default/c",
    ]
    assert answer.cost == answer.bound == 1


def test_nothing_that_fits_needs_no_nodes() -> None:
    problem, demands = two_kinds()
    demands = [replace(demand, nodes=()) for demand in demands]
    needs, costs = (1, 1), [NodeCost(NodeIndex(0), 1)]
    question = CoverQuestion(problem, demands, needs, costs, Options(), Stop())
    for answer, counts in (
        (cover_demands(problem, demands, needs, costs), (0,)),
        (cover_demands(problem, demands, needs, []), ()),
        (covering._searched(question), (0,)),
    ):
        assert answer.homeless == {0, 1}
        assert answer.numbers == counts
        assert answer.cost == answer.bound == 0


def test_many_kinds_are_counted_and_not_named() -> None:
    kinds = ["a", "b", "c", "d"]
    assert covering._fits_nowhere([]) == "fits on no node"
    assert covering._fits_nowhere(kinds) == "fits on no node of kind a, b, c, d"
    assert (
        covering._fits_nowhere([*kinds, "e"])
        == "fits on no node of the 5 kinds"
    )


def test_who_asks_for_nothing_fits_on_any_node() -> None:
    given_cluster = cluster(node(), device_class(), claim("none"))
    answer = dralloc.fewest_nodes(given_cluster, "default/none=7")
    assert list(answer.numbers) == [1]
    assert answer.cost == answer.bound == 1
