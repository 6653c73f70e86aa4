"""Large-neighbourhood search keeps every rule at every step, never makes an answer worse, and finds the optimum."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from budget_strategies import renamed
from common_pools import common_pools
from dralloc.check.problem import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Backend, Goal, Options, Thresholds
from dralloc.objects.user_rules import Budget
from dralloc.problem import NodeIndex, Problem, indices
from dralloc.problem.inter_pod import Affinity, Role
from dralloc.problem.solution import Placement, Solution
from dralloc.solve import backends, work
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Progress, solve
from dralloc.solve.optimum.improve import NeighbourhoodSearch
from dralloc.solve.optimum.improve import search as improve_search
from dralloc.solve.optimum.improve import selection as improve_selection
from dralloc.solve.optimum.improve.search import _Reach
from dralloc.solve.optimum.improve.task import (
    NeighbourhoodAnswer,
    NeighbourhoodTask,
)
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    after_weight,
    fairness,
    placed_weight,
)
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from examples import examples
from mixed_strategies import mixed_clusters
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    all_but_a_full_device,
    rack_with_a_waiting_gang,
)
from tied_strategies import tied_pods

THOROUGH = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

GOALS = st.sampled_from(Goal)

PART = 0.4
"""Of nodes and demands, so many are free at random."""


def tiers_of(problem: Problem, goal: Goal) -> tuple[Objective, ...]:
    return (*placed_weight(problem), *fairness(problem), *after_weight(goal))


def costs(
    problem: Problem, goal: Goal, placements: Sequence[Placement]
) -> list[int]:
    everything = DemandSubset(problem, indices(problem.demands))
    return [
        tier.cost(everything, placements) for tier in tiers_of(problem, goal)
    ]


def searched(
    problem: Problem,
    placements: Sequence[Placement],
    goal: Goal = Goal.NONE,
    jobs: int = 1,
    steps: int | None = None,
) -> list[tuple[Placement, ...]]:
    """The answers of a search, from the one that it starts with."""
    everything = DemandSubset(problem, indices(problem.demands))
    options = Options(goal=goal, jobs=jobs, steps=steps)
    search = NeighbourhoodSearch(
        everything, tiers_of(problem, goal), placements, options
    )
    return [tuple(placements), *search.run(Stop())]


@THOROUGH
@given(weighted(), GOALS)
def test_every_step_keeps_the_rules_and_is_better(
    problem: Problem, goal: Goal
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    answers = searched(problem, start, goal)
    for answer in answers[1:]:
        assert violations(problem, Solution(answer)) == []
    reached = [costs(problem, goal, answer) for answer in answers]
    assert all(after < before for before, after in pairwise(reached))


@THOROUGH
@given(common_pools(), st.integers(0, 1000))
def test_what_several_nodes_can_use_is_given_once(
    problem: Problem, seed: int
) -> None:
    """Of neighbourhoods that are decided side by side, here of a node each, one at a time may take of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(improve_search, "_REACHES", (_Reach(2, 0.1),))
        patch.setattr(improve_selection, "_BREADTHS", (1,))
        search = NeighbourhoodSearch(
            DemandSubset(problem, indices(problem.demands)),
            placed_weight(problem),
            (),
            Options(seed=seed),
            thorough=False,
        )
    for answer in search.run(Stop()):
        assert violations(problem, Solution(answer)) == []


@pytest.mark.parametrize(("freed_at_once", "most"), [(2, 4), (5, 5)])
def test_who_fills_a_device_leaves_only_with_who_passed_it_over(
    monkeypatch: pytest.MonkeyPatch, freed_at_once: int, most: int
) -> None:
    """The gang with the claim for all is not freed where it is too large."""
    reaches = (_Reach(freed_at_once, 0.1),)
    monkeypatch.setattr(improve_search, "_REACHES", reaches)
    problem = all_but_a_full_device()
    start = first_fit(problem).placements
    search = NeighbourhoodSearch(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        start,
        Options(),
        thorough=False,
    )
    *_, best = start, *search.run(Stop())
    assert violations(problem, Solution(best)) == []
    assert len(best) == most


def near_each_other() -> Problem:
    """Two pods in a zone that want each other's company, each of which came after somebody else, who could leave.

    Others wait for the devices of those who could leave. If both did, neither of the two could have come first.
    """
    builder = ProblemBuilder(nodes=6)
    devices = [builder.device(node) for node in range(6)]
    zone = {f"node-{node}": "ab"[node > 3] for node in range(6)}
    first, second = (Affinity((zone,), (frozenset(),)) for _ in range(2))
    carried = [(), (), (first,), (second,), (), ()]
    counted = [(first,), (second,), (second,), (first,), (), ()]
    homes = [(0, 4), (1, 5), (2,), (3,), (0,), (1,)]
    for nodes in homes:
        only = frozenset(devices[node] for node in nodes)
        builder.pod(builder.claim(AlternativeSpec(only=only)))
    problem = builder.problem()
    demands = []
    for demand, carries, counts in zip(
        problem.demands, carried, counted, strict=True
    ):
        roles = [Role(rule, carries=True, counts=False) for rule in carries]
        roles += [Role(rule, carries=False, counts=True) for rule in counts]
        demands.append(replace(demand, roles=tuple(roles)))
    return replace(problem, demands=tuple(demands))


def searched_in_small_steps(
    problem: Problem, placements: Sequence[Placement], seed: int
) -> list[tuple[Placement, ...]]:
    """The answers of a search that frees about three demands at a time, from the one that it starts with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(improve_search, "_REACHES", (_Reach(3, 0.1),))
        patch.setattr(improve_selection, "_BREADTHS", (3,))
        patch.setattr(improve_selection, "_GANG_SIZE", 3)
        search = NeighbourhoodSearch(
            DemandSubset(problem, indices(problem.demands)),
            placed_weight(problem),
            placements,
            Options(seed=seed),
            thorough=False,
        )
        return [tuple(placements), *search.run(Stop())]


@pytest.mark.parametrize("seed", range(3))
def test_pods_that_want_each_other_keep_somebody_who_came_before(
    seed: int,
) -> None:
    """Each of the two rules holds by itself in an answer to all; one who knows a single rule sees no more."""
    problem = near_each_other()
    start = first_fit(problem).placements
    *_, best = searched_in_small_steps(problem, start, seed)
    assert violations(problem, Solution(best)) == []
    assert len(best) == 5


@settings(THOROUGH, max_examples=examples(20))
@given(tied_pods(), st.integers(0, 1000))
def test_rules_between_pods_have_one_order_after_each_step(
    problem: Problem, seed: int
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    for answer in searched_in_small_steps(problem, start, seed):
        assert violations(problem, Solution(answer)) == []


@THOROUGH
@given(weighted())
def test_small_problems_are_solved_from_nothing(problem: Problem) -> None:
    """What fits into one neighbourhood is solved as a whole: the search alone reaches the proven optimum."""
    *_, best = searched(problem, [])
    proven = solve(problem, Options(per_device=True))
    assert costs(problem, Goal.NONE, best) == costs(
        problem, Goal.NONE, proven.placements
    )


@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(mixed_clusters(most_nodes=3))
def test_mixed_clusters(cluster: object) -> None:
    compiled = compile_cluster(cluster)  # type: ignore[arg-type]
    problem = compiled.whole
    start = first_fit(problem).placements
    solution = solve(problem, Options(steps=4), hint=Solution(start))
    assert violations(problem, solution) == []
    assert costs(problem, Goal.NONE, solution.placements) <= costs(
        problem, Goal.NONE, start
    )


def crowded(nodes: int = 6) -> Problem:
    """Nodes with two devices, which hold a demand for both that is worth one, beside demands for one that wait."""
    builder = ProblemBuilder(nodes=nodes)
    for node in range(nodes):
        builder.device(node)
        builder.device(node)
        builder.pod(builder.claim(AlternativeSpec(2)))
    for _ in range(nodes):
        builder.pod(builder.claim(AlternativeSpec()))
    return builder.problem()


def test_small_demands_take_the_place_of_large_ones() -> None:
    problem = crowded()
    start = first_fit(problem).placements
    *_, best = searched(problem, start)
    assert len(start) == 6
    assert len(best) == 9


def test_a_gang_takes_more_work_but_none_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    efforts: set[float] = set()

    def run(task: NeighbourhoodTask) -> NeighbourhoodAnswer:
        efforts.add(task.effort)
        return NeighbourhoodAnswer(None)

    monkeypatch.setattr(NeighbourhoodTask, "run", run)
    problem = rack_with_a_waiting_gang()
    assert searched(problem, first_fit(problem).placements)[1:] == []
    # The gang has four times as much, but where neighbourhoods are largest.
    assert {0.1, 0.4} <= efforts
    assert max(efforts) == 2.0


@pytest.mark.parametrize("thorough", [True, False])
def test_a_large_gang_has_room_only_where_many_leave(thorough: bool) -> None:
    """A gang of sixty is worth more than the sixty that stand there, who have to go at once."""
    builder = ProblemBuilder(nodes=6)
    for device in range(60):
        builder.device(device // 10)
        builder.pod(builder.claim(AlternativeSpec()))
    for _ in range(60):
        builder.pod(builder.claim(AlternativeSpec()), gang="sixty", weight=2)
    problem = builder.problem()
    start = first_fit(problem).placements
    gang = list(indices(problem.demands))[60:]
    successes = 0
    for seed in range(6):
        search = NeighbourhoodSearch(
            DemandSubset(problem, indices(problem.demands)),
            placed_weight(problem),
            start,
            Options(seed=seed),
            thorough=thorough,
        )
        for answer in search.run(Stop()):
            assert [placement.demand for placement in answer] == gang
            successes += 1
    # Whether the gang is drawn for the largest neighbourhoods is up to the seed.
    assert successes >= 4 if thorough else successes == 0


def with_a_gap(nodes: int = 4) -> Problem:
    """Nodes with five devices: one demand for three fits on each, where sums over devices see room for more.

    One for all that there is, which classes do not count, makes it a matter of search.
    """
    builder = ProblemBuilder(nodes=nodes)
    builder.device(None)
    for node in range(nodes):
        for _ in range(5):
            builder.device(node)
    for count in (1, 1, *[3] * 2 * nodes, None):
        builder.pod(builder.claim(AlternativeSpec(count)))
    return builder.problem()


def test_goals_are_improved_where_the_weight_is_not_proven() -> None:
    problem = with_a_gap()
    start = first_fit(problem)
    options = Options(
        goal=Goal.SPREAD, steps=6, thresholds=Thresholds(surveyed=0)
    )
    solution = solve(problem, options, hint=start)
    weight, _, spread = solution.tiers
    assert costs(problem, Goal.SPREAD, start.placements)[-1] == 3
    assert not weight.proven
    assert spread.value == 2


def test_what_relaxations_prove_is_still_known_when_goals_are_improved() -> (
    None
):
    problem = with_a_gap()
    start = first_fit(problem)
    options = Options(steps=6, thresholds=Thresholds(surveyed=0))
    solutions = [
        solve(problem, replace(options, goal=goal), hint=start)
        for goal in (Goal.NONE, Goal.SPREAD)
    ]
    plain, with_goal = (solution.tiers[0] for solution in solutions)
    assert plain.limits
    assert plain.why
    assert with_goal == plain
    assert solutions[1].prices == solutions[0].prices


def test_no_search_is_left_for_the_garbage_collector() -> None:
    """Collection is off meanwhile: what was searched with would take memory until the end, and seconds then."""
    problem = with_a_gap()
    options = Options(steps=6, thresholds=Thresholds(surveyed=0))
    gc.collect()
    gc.disable()
    try:
        solve(problem, options, hint=first_fit(problem))
        memory = weakref.ref(problem)
        del problem
        assert memory() is None
    finally:
        gc.enable()


def test_progress_tells_of_each_bound_before_there_is_a_better_answer() -> None:
    problem = with_a_gap()
    start = first_fit(problem)
    records: list[Progress] = []
    options = Options(steps=6, thresholds=Thresholds(surveyed=0))
    solution = solve(problem, options, hint=start, progress=records.append)
    placed = len(start.placements)
    bounds = [record.bound for record in records if record.best == placed]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == len(problem.demands)
    assert bounds[-1] == solution.tiers[0].bound < len(problem.demands)


@given(st.sampled_from([1, 10**12 + 1]))
def test_amounts_are_shared_fairly_however_large_they_are(unit: int) -> None:
    """Weights and amounts in one number would be beyond the solver: then they count one after the other."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 20 * unit})
    for amount in (9, 10, 8, 11):
        builder.pod(
            builder.claim(AlternativeSpec(capacity={"memory": amount * unit})),
            weight=10**6,
        )
    problem = builder.problem()
    teams = ("blue", "blue", "red", "red")
    demands = [
        renamed(demand, team)
        for demand, team in zip(problem.demands, teams, strict=True)
    ]
    budgets = tuple(
        Budget(team, "memory", 0, 20 * unit, fair=True)
        for team in ("blue", "red")
    )
    problem = replace(problem, demands=tuple(demands), budgets=budgets)
    *_, best = searched(problem, first_fit(problem).placements)
    assert {placement.demand for placement in best} == {0, 3}


def test_processes_change_no_answer() -> None:
    problem = crowded(nodes=90)
    start = first_fit(problem).placements
    single, two = (
        searched(problem, start, jobs=jobs, steps=12)[-1] for jobs in (1, 2)
    )
    assert single == two
    assert len(single) > len(start)


def test_a_gang_outside_of_the_neighbourhood_stays_whole() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()), gang="trio")
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    heavy = tuple(
        replace(demand, weight=2 if demand.gang else 1)
        for demand in problem.demands
    )
    problem = replace(problem, demands=heavy)
    *_, best = searched(problem, first_fit(problem).placements)
    assert [placement.demand for placement in best] == [0, 1, 2]


def test_a_search_makes_room_for_a_gang() -> None:
    """Two of six pods have to go, so that a gang of four has a rack."""
    problem = rack_with_a_waiting_gang()
    start = first_fit(problem).placements
    assert len(start) == 6
    *_, best = searched(problem, start)
    assert len(best) == 8


@pytest.mark.parametrize(("seconds", "processes"), [(2.0, 1), (1000.0, 2)])
def test_what_would_arrive_too_late_in_other_processes_is_searched_here(
    monkeypatch: pytest.MonkeyPatch, seconds: float, processes: int
) -> None:
    asked: list[int] = []

    def executor_here(
        backend: Backend, jobs: int
    ) -> AbstractContextManager[Executor]:
        asked.append(jobs)
        return backends.executor(backend, 1)

    monkeypatch.setattr(work, "_SENDING", 10.0)
    monkeypatch.setattr(improve_search, "executor", executor_here)
    problem = rack_with_a_waiting_gang()
    search = NeighbourhoodSearch(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        first_fit(problem).placements,
        Options(jobs=2),
    )
    for _ in search.run(Stop.after(seconds)):
        pass
    assert set(asked) == {processes}


class LateAnswer(Future[Any]):
    """Is worked out when it is asked for, and not before."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.work = work

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            self.set_result(self.work())
        return super().result(timeout)


class Late(Executor):
    """Begins nothing before its answer is asked for."""

    def __init__(self) -> None:
        self.answers: list[LateAnswer] = []

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> LateAnswer:
        self.answers.append(LateAnswer(partial(function, *args, **kwargs)))
        return self.answers[-1]


def sizes_at_random() -> Problem:
    """Sixty nodes, and demands of which first fit places too few."""
    random = Random(5)
    builder = ProblemBuilder(nodes=60)
    for node in range(60):
        builder.device(node, capacity={"memory": random.randint(80, 120)})
    for _ in range(270):
        memory = random.randint(15, 60)
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": memory})))
    problem = builder.problem()
    # Whatever several nodes can use is for one neighbourhood at a time.
    nodes = [
        replace(
            node,
            pools=tuple(
                pool for pool in node.pools if pool.id.pool != "common"
            ),
        )
        for node in problem.nodes
    ]
    return replace(problem, nodes=tuple(nodes))


def searching(problem: Problem, options: Options) -> NeighbourhoodSearch:
    return NeighbourhoodSearch(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        first_fit(problem).placements,
        options,
    )


def test_when_neighbourhoods_are_solved_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, options = sizes_at_random(), Options(steps=24)
    at_once = list(searching(problem, options).run(Stop()))
    monkeypatch.setattr(
        improve_search, "executor", lambda *_: nullcontext(Late())
    )
    late = list(searching(problem, options).run(Stop()))
    assert len(at_once) > 3
    assert at_once == late


def test_neighbourhoods_that_nobody_waits_for_any_more_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = Late()
    monkeypatch.setattr(
        improve_search, "executor", lambda *_: nullcontext(workers)
    )
    answers = searching(sizes_at_random(), Options()).run(Stop())
    next(answers)
    under_way = [answer for answer in workers.answers if not answer.done()]
    assert len(under_way) > 1
    answers.close()
    assert all(answer.cancelled() for answer in under_way)


def test_no_more_neighbourhoods_are_solved_than_steps_are_allowed() -> None:
    search = searching(sizes_at_random(), Options(steps=7))
    list(search.run(Stop()))
    assert search.steps == 7


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_what_is_under_way_when_the_time_is_over_counts(
    monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """Who cancels does not wait for it."""
    workers = Late()
    monkeypatch.setattr(
        improve_search, "executor", lambda *_: nullcontext(workers)
    )
    search = searching(sizes_at_random(), Options())
    over = Cancelled()
    stop = Stop(cancelled=over) if is_cancelled else Stop.after(2.0)
    answers = search.run(stop)
    next(answers)
    if is_cancelled:
        over.cancel()
    else:
        time.sleep(stop.seconds())
    with pytest.raises(Stopped):
        list(answers)
    answered = [answer.cancelled() for answer in workers.answers]
    assert search.steps == (1 if is_cancelled else len(answered))
    assert answered == [False, *[is_cancelled] * (len(answered) - 1)]


def test_a_device_that_a_node_does_not_reach_stands_in_nobodys_way() -> None:
    """One pool for two nodes, with a shared device for each: a pod has all that its node reaches."""
    builder = ProblemBuilder(nodes=2)
    shared = [builder.device(None, capacity={"memory": 1}) for _ in range(2)]
    for node, device in enumerate(shared):
        builder.devices[device] = replace(
            builder.devices[device], nodes=frozenset({NodeIndex(node)})
        )
    first, second = builder.device(0), builder.device(1)
    builder.pod(builder.claim(AlternativeSpec(None, only=shared)))
    builder.pod(builder.claim(AlternativeSpec(only=[first, second])))
    builder.pod(builder.claim(AlternativeSpec(only=[first])))
    problem = builder.problem()
    placements = first_fit(problem).placements
    assert [placement.demand for placement in placements] == [0, 1]
    everything = DemandSubset(problem, indices(problem.demands))
    search = NeighbourhoodSearch(
        everything, tiers_of(problem, Goal.NONE), placements, Options()
    )
    [better] = search.run(Stop())
    assert len(better) == 3
