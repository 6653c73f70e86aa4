"""Large-neighbourhood search keeps every rule at every step, never makes an answer worse, and finds the optimum."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from budget_strategies import renamed
from dralloc.check.problem import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Goal, Options, Thresholds
from dralloc.objects.errors import ModelError
from dralloc.objects.user_rules import Budget
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    Placement,
    Solution,
)
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Progress, solve
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.improve import (
    NeighbourhoodSearch,
    NeighbourhoodSelection,
    Proposal,
    SearchedComponent,
    climbing_on,
)
from dralloc.solve.optimum.neighbourhood import (
    Bonds,
    Incumbent,
    NeighbourhoodTask,
    neighbourhood,
)
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    after_weight,
    fairness,
    placed_weight,
    within_caps,
)
from dralloc.solve.optimum.relax import Bound, RelaxationLadder
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.work import Parcel
from examples import examples
from mixed_strategies import mixed_clusters
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

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
    one, two = (
        searched(problem, start, jobs=jobs, steps=12)[-1] for jobs in (1, 2)
    )
    assert one == two
    assert len(one) > len(start)


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


def rack_with_a_waiting_gang() -> Problem:
    """Two racks of two nodes with two devices each, of which six pods take six: no rack is left for a gang of four."""
    builder = ProblemBuilder(nodes=4)
    for node in range(4):
        for _ in range(2):
            builder.device(node)
    for _ in range(6):
        builder.pod(builder.claim(AlternativeSpec()))
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()), gang="quartet")
    problem = builder.problem()
    racks = {
        node.name: f"rack-{number // 2}"
        for number, node in enumerate(problem.nodes)
    }
    role = Role(OneDomain(racks), carries=True, counts=True)
    demands = [
        replace(demand, roles=(role,)) if demand.gang else demand
        for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


def selection_of(
    problem: Problem, appraisal: Appraisal | None
) -> NeighbourhoodSelection:
    incumbent = Incumbent(problem, first_fit(problem).placements)
    return NeighbourhoodSelection(
        incumbent,
        Bonds(problem),
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=appraisal,
    )


def ten_proposals(
    selection: NeighbourhoodSelection, way: str
) -> list[Proposal]:
    drawn = (selection.propose((), 8) for _ in range(100))
    by_way = [
        proposal
        for proposal in drawn
        if proposal and proposal.approach.way == way
    ]
    return by_way[:10]


def test_neighbourhoods_for_a_gang_free_one_of_its_racks_and_try_it() -> None:
    problem = rack_with_a_waiting_gang()
    selection = selection_of(problem, None)
    proposals = ten_proposals(selection, "for a waiting block")
    assert proposals
    gang = selection.bonds.block_of[DemandIndex(6)]
    for proposal in proposals:
        assert gang in proposal.blocks
        assert set(proposal.nodes) in ({0, 1}, {2, 3})


def test_neighbourhoods_far_from_the_bound_are_where_nodes_are_not_paid_for() -> (
    None
):
    problem = rack_with_a_waiting_gang()
    selection = selection_of(problem, None)
    assert not ten_proposals(selection, "far from the bound")
    sizes = dict.fromkeys(indices(problem.demands), 10)
    # What stands on a node pays 20: of the last node that is hardly anything.
    appraisal = Appraisal(sizes, sizes, (20, 20, 20, 10**9))
    selection = selection_of(problem, appraisal)
    proposals = ten_proposals(selection, "far from the bound")
    assert proposals
    assert all(proposal.nodes[0] == 3 for proposal in proposals)


@settings(THOROUGH, max_examples=examples(200))
@given(weighted(), st.randoms(use_true_random=False))
def test_where_the_bound_leaves_no_room_nothing_is_gained(
    problem: Problem, random: Random
) -> None:
    """Neighbourhoods that are not tried for that are solved here, exactly."""
    tiers = placed_weight(problem)
    ladder = RelaxationLadder(problem, tiers, Stop())
    list(ladder.bounds())
    start = []
    if random.random() < PART:
        start = within_caps(problem, first_fit(problem).placements)
    incumbent, bonds = Incumbent(problem, start), Bonds(problem)
    selection = NeighbourhoodSelection(
        incumbent,
        bonds,
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=ladder.appraisal(),
        counts_weight_alone=True,
    )
    nodes = [node for node in problem.all_nodes if random.random() < PART]
    blocks = [
        block for block in indices(bonds.blocks) if random.random() < PART
    ]
    if selection.may_gain(nodes, blocks):
        return
    area = neighbourhood(incumbent, bonds, blocks, nodes)
    task = NeighbourhoodTask(
        area.packed(Parcel(problem.eligibility)),
        area.hint,
        tiers,
        aim=len(tiers),
        extra=None,
        options=Options(),
        effort=inf,
        end=inf,
    )
    assert task.run().placements is None


def test_room_for_one_that_is_worth_more_is_made_whatever_the_prices_say() -> (
    None
):
    """Two demands stand where one waits that is worth forty: at these prices no more than two."""
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(builder.claim(AlternativeSpec(2)), weight=40)
    problem = builder.problem()
    sizes = {
        demand: APPRAISAL_UNIT * count
        for demand, count in zip(
            indices(problem.demands), (1, 1, 2), strict=True
        )
    }
    nothing = dict.fromkeys(sizes, 0)
    incumbent = Incumbent(problem, first_fit(problem).placements)
    selection = NeighbourhoodSelection(
        incumbent,
        Bonds(problem),
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=Appraisal(sizes, nothing, (2 * APPRAISAL_UNIT,)),
        counts_weight_alone=True,
    )
    assert not selection.may_gain(problem.all_nodes, [0, 1])
    assert selection.may_gain(problem.all_nodes, [0, 1, 2])


def test_a_search_makes_room_for_a_gang() -> None:
    """Two of six pods have to go, so that a gang of four has a rack."""
    problem = rack_with_a_waiting_gang()
    start = first_fit(problem).placements
    assert len(start) == 6
    *_, best = searched(problem, start)
    assert len(best) == 8


def test_ways_that_gain_more_for_their_work_come_up_more_often() -> None:
    selection = selection_of(rack_with_a_waiting_gang(), None)
    [good, *others] = {
        proposal.approach: proposal
        for _ in range(100)
        if (proposal := selection.propose((), 8))
    }.values()
    for _ in range(100):
        selection.learn(good._replace(work=100.0), better=True)
        for proposal in others:
            selection.learn(proposal._replace(work=1000.0), better=False)
    drawn = [selection.propose((), 8) for _ in range(100)]
    good_ones = [
        proposal
        for proposal in drawn
        if proposal and proposal.approach == good.approach
    ]
    assert len(good_ones) > 80


def no_sites(
    demands: Sequence[DemandIndex], stop: Stop
) -> dict[DemandIndex, tuple[CandidateSite, ...]]:
    del demands, stop
    return {}


def test_bounds_that_are_proven_meanwhile_count_afterwards() -> None:
    problem = rack_with_a_waiting_gang()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        tiers_of(problem, Goal.NONE),
        (),
        no_sites,
    )
    # There is a ladder, and nobody had time to climb.
    component.climb(Stop.after(0))
    before = component.relaxation
    with climbing_on([component], Stop()):
        while not component.is_at_the_top:
            time.sleep(0.01)
        meanwhile = component.relaxation
    assert (before, meanwhile) == ("", "")
    assert component.relaxation
    assert component.appraisal is not None


def test_a_failure_while_climbing_is_not_lost() -> None:
    class Failing(SearchedComponent):
        def more_bounds(
            self, stop: Stop, least_gain: float = 0.0
        ) -> Iterator[Bound]:
            del stop, least_gain
            raise ModelError("amounts are too large")

    problem = rack_with_a_waiting_gang()
    component = Failing(
        DemandSubset(problem, indices(problem.demands)),
        tiers_of(problem, Goal.NONE),
        (),
        no_sites,
    )
    with pytest.raises(ModelError), climbing_on([component], Stop()):
        pass
