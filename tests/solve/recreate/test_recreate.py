"""Ruin and recreate keeps every rule at every step, never makes an answer worse, and comes close to the optimum."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import inf
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wire
from any_problem import weighted
from common_pools import common_pools, seen
from dralloc.check.problem import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Backend, Options
from dralloc.problem import DemandIndex, NodeIndex, Problem, indices
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    Placement,
    Solution,
)
from dralloc.solve import work
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.recreate.answer import WorkingAnswer
from dralloc.solve.recreate.change import ChangeSearch
from dralloc.solve.recreate.orders import placed_in_orders
from dralloc.solve.recreate.search import _PartTask, recreated
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.recreate.units import movable_units
from examples import examples
from pod_strategies import bound_pods
from scheduling_wire import node, pod
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    all_but_a_full_device,
)

THOROUGH = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def worth(problem: Problem, placements: Sequence[Placement]) -> int:
    return sum(
        problem.demands[placement.demand].weight for placement in placements
    )


def appraisals(problem: Problem) -> st.SearchStrategy[Appraisal]:
    """Any sizes and values at all: they say where to search, and not what is right."""

    def amounts(count: int, least: int) -> st.SearchStrategy[list[int]]:
        return st.lists(st.integers(least, 10), min_size=count, max_size=count)

    def by_demand(values: Sequence[int]) -> dict[DemandIndex, int]:
        # Some demands fit on no node: they have no size.
        return {
            DemandIndex(demand): value
            for demand, value in enumerate(values)
            if value
        }

    demands = len(problem.demands)
    return st.builds(
        Appraisal,
        amounts(demands, 0).map(by_demand),
        amounts(demands, -10).map(by_demand),
        amounts(len(problem.nodes), 0),
    )


@THOROUGH
@given(weighted(), st.integers(0, 1000), st.data())
def test_every_change_keeps_the_rules_and_is_not_worse(
    problem: Problem, seed: int, data: st.DataObject
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    search = ChangeSearch(
        problem, start, seed, data.draw(st.none() | appraisals(problem))
    )
    reached = [worth(problem, start)]
    for _ in range(20):
        search.step()
        answer = search.answer.placements()
        assert violations(problem, Solution(tuple(answer))) == []
        reached.append(worth(problem, answer))
    assert all(after >= before for before, after in pairwise(reached))


@THOROUGH
@given(common_pools(), st.integers(0, 1000))
def test_what_several_nodes_can_use_is_given_once(
    problem: Problem, seed: int
) -> None:
    start = first_fit(problem).placements
    search = ChangeSearch(problem, start, seed)
    for _ in range(40):
        search.step()
        answer = Solution(tuple(search.answer.placements()))
        assert violations(problem, answer) == []


@THOROUGH
@given(
    st.lists(
        st.lists(st.booleans(), min_size=1, max_size=3), min_size=2, max_size=8
    ),
    st.integers(0, 1000),
)
def test_what_is_held_beside_admin_access_is_not_given_away(
    pods: list[list[bool]], seed: int
) -> None:
    """Of each pod's claims, some ask for admin access, which holds nothing; the others do."""
    builder = ProblemBuilder(nodes=2)
    for node_index in (0, 0, 1, 1):
        builder.device(node_index)
    for claims in pods:
        builder.pod(
            *[builder.claim(AlternativeSpec(admin=admin)) for admin in claims]
        )
    problem = builder.problem()
    search = ChangeSearch(problem, first_fit(problem).placements, seed)
    for _ in range(20):
        search.step()
        answer = Solution(tuple(search.answer.placements()))
        assert violations(problem, answer) == []


@THOROUGH
@given(weighted(), st.integers(0, 1000))
def test_answers_of_rounds_keep_the_rules(problem: Problem, seed: int) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    bound = solve(problem, Options(per_device=True)).tiers[0].bound
    for answer in recreated(
        problem, start, Options(seed=seed, steps=2), lambda: 60.0
    ):
        assert violations(problem, Solution(answer)) == []
        assert worth(problem, start) <= worth(problem, answer) <= bound


FOOTPRINTS = bound_pods(footprints=st.just(True)).map(lambda pods: pods.whole)


@THOROUGH
@given(st.one_of(weighted(), FOOTPRINTS))
def test_whoever_leaves_can_come_back(problem: Problem) -> None:
    """What is known of a node is forgotten when somebody leaves it: they find the room that they had.

    Those with rules may have come before somebody who is there now.
    """
    start = within_caps(problem, first_fit(problem).placements)
    answer = WorkingAnswer(problem, start, Random(0))
    for unit in set(answer.unit_of.values()):
        if unit.rules:
            continue
        sites = {
            member: answer.leave(member)
            for member in unit.members
            if member in answer
        }
        for member, site in sites.items():
            assert list(answer.may_hold(member, [site.node]))
            answer.restore(member, site)
    assert answer.placements() == list(start)


def test_who_fills_a_device_that_all_devices_are_without_stays() -> None:
    problem = all_but_a_full_device()
    start = first_fit(problem).placements
    search = ChangeSearch(problem, start, seed=0)
    for _ in range(20):
        search.step()
    assert tuple(search.answer.placements()) == start
    assert list(recreated(problem, start, Options(), lambda: 60.0)) == [start]


def test_nodes_that_devices_take_of_are_filled() -> None:
    """A node of 4 CPUs serves one of two pods with a device that takes 2 and a request for 1 (KEP-5517)."""
    taking = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
    asked = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    pods = [
        pod(
            name,
            containers=[{"name": "c", "resources": asked}],
            resourceClaims=[{"name": "gpu", "resourceClaimName": name}],
        )
        for name in "pq"
    ]
    cluster = wire.cluster(
        node("a", {"cpu": "4", "pods": "10"}),
        wire.device_class(),
        wire.resource_slice(
            wire.gpus(2, nodeAllocatableResources=taking),
            name="s",
            pool="a",
            nodeName="a",
        ),
        [wire.claim(name, wire.request()) for name in "pq"],
        pods,
    )
    problem = compile_cluster(cluster).whole
    search = ChangeSearch(problem, (), seed=0)
    for _ in range(50):
        search.step()
    assert len(search.answer.placements()) == 1


def mixed_sizes() -> Problem:
    """Six nodes with a shared device of 10 each, and demands for 4 and 6 in an order with which first fit wastes."""
    builder = ProblemBuilder(nodes=6)
    for node_index in range(6):
        builder.device(node_index, capacity={"memory": 10})
    for size in (4, 4, 4, 4, 4, 4, 6, 6, 6, 6, 6, 6):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": size})))
    return builder.problem()


def test_gaps_are_filled() -> None:
    problem = mixed_sizes()
    start = first_fit(problem).placements
    assert len(start) < len(problem.demands)
    *_, best = recreated(problem, start, Options(), lambda: 60.0)
    assert len(best) == len(problem.demands)


def test_empty_nodes_are_filled() -> None:
    problem = mixed_sizes()
    *_, best = recreated(problem, (), Options(), lambda: 60.0)
    assert len(best) == len(problem.demands)


def recorded_parts(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """A list that gets the nodes of each part that is to be searched; nothing is searched."""
    parts: list[set[str]] = []

    def run(task: _PartTask, *_: object) -> Sequence[Placement]:
        nodes = task.part.excerpt().problem.nodes
        parts.append({node.name for node in nodes})
        return task.present

    monkeypatch.setattr(_PartTask, "run", run)
    return parts


def test_nodes_without_devices_are_in_no_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most nodes of many clusters have none; parts are as large as if they were not there."""
    monkeypatch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 3)
    parts = recorded_parts(monkeypatch)
    builder = ProblemBuilder(nodes=30)
    for node_index in range(0, 30, 5):
        builder.device(node_index, capacity={"memory": 10})
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 4})))
    list(recreated(builder.problem(), (), Options(), lambda: 60.0))
    assert sorted(map(len, parts)) == [3, 3]
    names = {f"node-{node_index}" for node_index in range(0, 30, 5)}
    assert set(chain.from_iterable(parts)) == names


@THOROUGH
@given(common_pools(), st.integers(0, 1000))
def test_what_all_nodes_can_use_is_dealt_out_to_parts(
    problem: Problem, seed: int
) -> None:
    start = first_fit(problem).placements
    options = Options(seed=seed, steps=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 1)
        for answer in recreated(problem, start, options, lambda: 60.0):
            assert violations(problem, Solution(answer)) == []
            assert len(answer) >= len(start)


def test_a_pool_of_all_nodes_ties_none_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each part has some of it, and nobody has to leave what it has."""
    monkeypatch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 2)
    excerpts: list[Problem] = []

    def run(task: _PartTask, *_: object) -> Sequence[Placement]:
        excerpts.append(task.part.excerpt().problem)
        return task.present

    monkeypatch.setattr(_PartTask, "run", run)
    builder = ProblemBuilder(nodes=4)
    for _ in range(20):
        builder.device(None)
    for _ in range(8):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    start = first_fit(problem).placements
    list(recreated(problem, start[:4], Options(), lambda: 60.0))
    assert [len(excerpt.nodes) for excerpt in excerpts] == [2, 2]
    shares = [20 - len(excerpt.usage.held) for excerpt in excerpts]
    assert sum(shares) == 20
    assert all(shares)


def test_nodes_with_a_few_devices_in_common_are_in_one_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here in pairs, three of which come to two parts."""
    monkeypatch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 3)
    parts = recorded_parts(monkeypatch)
    builder = ProblemBuilder(nodes=6)
    devices = [builder.device(None) for _ in range(3)]
    builder.pod(builder.claim(AlternativeSpec()))
    views = [[devices[node_index // 2]] for node_index in range(6)]
    problem = seen(builder.problem(), views)
    list(recreated(problem, (), Options(), lambda: 60.0))
    pairs = [{f"node-{2 * n}", f"node-{2 * n + 1}"} for n in range(3)]
    assert sorted(map(len, parts)) == [2, 4]
    assert all(
        pair <= part or pair.isdisjoint(part)
        for pair in pairs
        for part in parts
    )


def test_nodes_that_have_nothing_but_common_counters_are_in_one_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counters of one pool are not divided: the other part would have nothing to do."""
    monkeypatch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 2)
    parts = recorded_parts(monkeypatch)
    builder = ProblemBuilder(nodes=4)
    memory = builder.counter(10)
    for _ in range(20):
        builder.device(None, {memory: 1})
    builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    list(recreated(problem, (), Options(), lambda: 60.0))
    assert set(map(len, parts)) == {4}


def test_where_no_node_can_serve_anybody_nothing_is_searched() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0, capacity={"memory": 10})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 11})))
    answers = recreated(builder.problem(), (), Options(), lambda: 60.0)
    assert list(answers) == [()]


@pytest.mark.parametrize(("seconds", "elsewhere"), [(2.0, set()), (1e9, {2})])
def test_parts_that_would_arrive_too_late_elsewhere_are_searched_here(
    monkeypatch: pytest.MonkeyPatch, seconds: float, elsewhere: set[int]
) -> None:
    asked: list[int] = []

    def run_here(
        tasks: Iterable[work.Task[object]], backend: Backend, jobs: int
    ) -> Iterator[tuple[int, object]]:
        asked.append(jobs)
        return work.run_all(tasks, backend, 1)

    monkeypatch.setattr(work, "_SENDING", 1e6)
    monkeypatch.setattr("dralloc.solve.recreate.search.run_all", run_here)
    list(recreated(mixed_sizes(), (), Options(jobs=2), lambda: seconds))
    assert set(asked) == elsewhere


def test_a_search_without_a_limit_ends_where_nothing_can_be_placed() -> None:
    builder = ProblemBuilder()
    builder.device(0, capacity={"memory": 10})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 11})))
    answers = recreated(builder.problem(), (), Options(), lambda: inf)
    assert all(answer == () for answer in answers)


def test_without_a_limit_all_orders_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = mixed_sizes()
    in_two_orders = [first_fit(problem).placements, ()]
    monkeypatch.setattr(
        "dralloc.solve.recreate.starts.placed_in_orders",
        lambda *_: iter(in_two_orders),
    )
    answers = Starts(problem, Options(steps=0))((), lambda: None, lambda: inf)
    assert list(answers) == in_two_orders


@pytest.mark.parametrize(("small", "starts_from"), [(99, 0), (101, 1)])
def test_one_of_a_high_priority_counts_no_more_than_a_hundred_below(
    monkeypatch: pytest.MonkeyPatch, small: int, starts_from: int
) -> None:
    """Room for it is soon made; what the final answer is worth is another matter."""
    builder = ProblemBuilder()
    builder.pod(weight=1_000_000)
    for _ in range(small):
        builder.pod()
    problem = builder.problem()
    high, *low = (
        Placement(demand, NodeIndex(0), ())
        for demand in indices(problem.demands)
    )
    answers = [(high,), tuple(low)]
    began: list[Sequence[Placement]] = []

    def noted(
        _: Problem, placements: Sequence[Placement], *__: object
    ) -> Iterator[Sequence[Placement]]:
        began.append(placements)
        return iter(())

    module = "dralloc.solve.recreate.starts"
    monkeypatch.setattr(f"{module}.placed_in_orders", lambda *_: iter(answers))
    monkeypatch.setattr(f"{module}.recreated", noted)
    list(Starts(problem, Options())((), lambda: None, lambda: inf))
    assert began == [answers[starts_from]]


def test_equal_seeds_and_steps_give_equal_answers_with_any_number_of_jobs() -> (
    None
):
    problem = mixed_sizes()
    start = first_fit(problem).placements
    alone, together = (
        [
            *recreated(
                problem,
                start,
                Options(seed=3, steps=3, jobs=jobs),
                lambda: 60.0,
            )
        ]
        for jobs in (1, 2)
    )
    assert alone == together


def test_where_all_nodes_are_searched_together_the_best_search_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here a search places as many as the last digit of its seed says."""
    problem = mixed_sizes()
    best = max(recreated(problem, (), Options(), lambda: 60.0), key=len)
    seeds: list[int] = []

    def run(task: _PartTask, *_: object) -> list[Placement]:
        seeds.append(task.seed)
        return list(best[: task.seed % 10])

    monkeypatch.setattr(_PartTask, "run", run)
    first_answer = next(recreated(problem, (), Options(jobs=1), lambda: inf))
    assert len(set(seeds)) == len(seeds) > 1
    assert len(first_answer) == max(seed % 10 for seed in seeds)


def test_no_time_no_answer() -> None:
    problem = mixed_sizes()
    assert (
        list(
            recreated(
                problem, first_fit(problem).placements, Options(), lambda: 0.0
            )
        )
        == []
    )


def test_parts_that_there_is_no_time_for_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To begin a search takes a while by itself: none begins when the time of the round is over."""

    def begin(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("dralloc.solve.recreate.search.ChangeSearch", begin)
    problem = mixed_sizes()
    start = first_fit(problem).placements
    [answer] = recreated(problem, start, Options(), lambda: 1e-9)
    assert answer == start


@THOROUGH
@given(weighted(), st.integers(0, 6))
def test_an_order_ends_where_it_is_when_the_time_is_over(
    problem: Problem, ticks: int
) -> None:
    clock = iter([1.0] * ticks)
    answer, *_ = placed_in_orders(problem, seconds=lambda: next(clock, 0.0))
    unlimited, *_ = placed_in_orders(problem)
    assert set(answer) <= set(unlimited)
    # It is asked for the time before each gang, and before each demand without one.
    placed = [placement.demand for placement in answer]
    units = {problem.demands[demand].placed_with or demand for demand in placed}
    assert len(units) <= ticks
    has_time_left = next(clock, None) is not None
    if has_time_left:
        assert answer == unlimited
    within = replace(problem, budgets=())
    assert violations(within, Solution(answer)) == []


def test_starts_end_with_the_best() -> None:
    problem = mixed_sizes()
    *_, best = Starts(problem, Options(steps=20))(
        first_fit(problem).placements, lambda: None, lambda: 60.0
    )
    assert len(best) == len(problem.demands)


@pytest.mark.parametrize(
    ("seconds", "steps", "searches"),
    [
        (60.0, None, 1),
        # The answer does not depend on the number of jobs.
        (inf, None, 2),
        (60.0, 20, 2),
    ],
)
def test_few_nodes_are_searched_twice_where_that_takes_no_longer(
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    steps: int | None,
    searches: int,
) -> None:
    """One search is enough where time is limited and the second one would come after it."""
    seeds: list[int] = []

    def run(task: _PartTask, *_: object) -> Sequence[Placement]:
        seeds.append(task.seed)
        return task.present

    monkeypatch.setattr(_PartTask, "run", run)
    problem = mixed_sizes()
    start = first_fit(problem).placements
    list(recreated(problem, start, Options(steps=steps), lambda: seconds))
    assert len(seeds) == searches


def test_a_search_in_this_process_ends_when_nobody_needs_it_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when an exact model beside it has the proof."""
    problem = mixed_sizes()
    tries = 0

    def step(_: ChangeSearch) -> None:
        nonlocal tries
        tries += 1

    monkeypatch.setattr(ChangeSearch, "step", step)
    start = first_fit(problem).placements
    list(recreated(problem, start, Options(), lambda: float(tries < 100)))
    assert 100 <= tries < 200


def test_who_comes_and_goes_with_whom() -> None:
    builder = ProblemBuilder()
    common, of_gang, of_two = (
        builder.claim(AlternativeSpec()) for _ in range(3)
    )
    builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(of_gang, gang="g")
    builder.pod(of_gang, gang="g")
    builder.pod(common)
    builder.pod(common)
    # A gang and somebody without one: what is allocated with the one is not the other's to give back.
    builder.pod(of_two, gang="h")
    builder.pod(of_two)
    builder.pod(builder.claim(AlternativeSpec(defect="no such class")))
    units = movable_units(builder.problem(), ())
    assert [(unit.members, unit.quorum) for unit in units] == [
        ((0,), 1),
        ((1, 2), 2),
        ((3, 4), 1),
    ]


def test_where_prices_are_known_who_pays_less_comes_first() -> None:
    problem = mixed_sizes()
    # At these prices the demands for 6 are the small ones.
    sizes = {
        demand: 1 if demand >= 6 else 2 for demand in indices(problem.demands)
    }
    answer, *_ = placed_in_orders(problem, Appraisal(sizes, sizes, [0] * 6))
    small = [placement for placement in answer if placement.demand >= 6]
    assert len(small) == 6


@THOROUGH
@given(weighted(), st.data())
def test_higher_priorities_come_as_first_fit_places_them(
    problem: Problem, data: st.DataObject
) -> None:
    """Only those of the last priority come in the order of what they pay."""
    priorities = [data.draw(st.integers(0, 2)) for _ in problem.demands]
    ranked = tuple(
        replace(demand, priority=priority)
        for demand, priority in zip(
            problem.demands, sorted(priorities, reverse=True), strict=True
        )
    )
    problem = replace(problem, demands=ranked)
    last = min(priorities, default=0)
    appraisal = data.draw(st.none() | appraisals(problem))
    answer, *_ = placed_in_orders(problem, appraisal)

    def above(placements: Sequence[Placement]) -> list[Placement]:
        return [
            placement
            for placement in placements
            if ranked[placement.demand].priority > last
        ]

    assert above(answer) == above(first_fit(problem).placements)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_paid_for_is_gathered(seed: int) -> None:
    """Five of ten parts of each node are free at first, and all ten of one node in the end, and then for ever."""
    builder = ProblemBuilder(nodes=2)
    for node_number in range(2):
        builder.device(node_number, capacity={"memory": 10})
    for _ in range(10):
        small = AlternativeSpec(capacity={"memory": 1})
        builder.pod(builder.claim(small))
    problem = builder.problem()
    one_each = dict.fromkeys(indices(problem.demands), APPRAISAL_UNIT)
    appraisal = Appraisal(one_each, {}, [10 * APPRAISAL_UNIT] * 2)
    spread = first_fit(
        replace(
            problem,
            demands=tuple(
                replace(demand, nodes=(NodeIndex(demand_index % 2),))
                for demand_index, demand in enumerate(problem.demands)
            ),
        )
    ).placements
    search = ChangeSearch(problem, spread, seed, appraisal)
    for step in range(400):
        search.step()
        if step >= 300:
            by_node = Tally(
                placement.node for placement in search.answer.placements()
            )
            assert list(by_node.values()) == [10]
