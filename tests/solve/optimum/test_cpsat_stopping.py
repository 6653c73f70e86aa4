"""When a solve comes to an end, and what it has by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from across_strategies import bound_claims
from budget_strategies import budgeted
from dralloc.check import check
from dralloc.objects.choices import Goal, Thresholds
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.solution import Placement, Status
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, search, solve
from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.candidates import CandidateSurvey, survey
from dralloc.solve.optimum.component import (
    Component,
    TimeSharing,
    build_for,
)
from dralloc.solve.optimum.division import divide
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.search import Watch, solve_linear
from dralloc.solve.optimum.sharing import components
from dralloc.solve.optimum.solvers import cp_model, model_builder
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from examples import INDEPENDENT, examples
from pod_strategies import bound_pods
from rack_strategies import racks
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from solve.optimum.test_cpsat_solve import hard, in_order
from strategies import problems, repeated


def nodes_with_room() -> Problem:
    """Three nodes of four devices, and five pods: two nodes would do."""
    builder = ProblemBuilder(nodes=3)
    for node in (0, 1, 2) * 4:
        builder.device(node)
    for _ in range(5):
        builder.pod(builder.claim(AlternativeSpec()))
    return builder.problem()


@pytest.mark.parametrize("second", [[1, 1], None])
def test_what_a_run_found_and_proved_outlasts_one_that_is_stopped(
    monkeypatch: pytest.MonkeyPatch, second: list[int] | None
) -> None:
    """Where a single strategy gives up, several follow, which may have less by the time they have to stop."""
    cp = cp_model.CpModel()
    terms = [(cp.new_bool_var(name), 1) for name in ("first", "second")]
    outcomes = iter(
        [
            search.SolverOutcome([1, 0], 1),
            search.SolverOutcome(second, 0),
        ]
    )
    monkeypatch.setattr(search, "_run", lambda *_, **__: next(outcomes))
    outcome = search.minimise(cp, terms, Options(), Stop())
    assert (outcome.values, outcome.bound) == ([1, 0], 1)


def test_without_a_reason_nothing_stops() -> None:
    stop = Stop()
    assert stop.seconds() == inf
    assert list(stop.each("abc")) == ["a", "b", "c"]


def test_where_things_are_quick_the_clock_is_looked_at_now_and_then() -> None:
    looks = iter([False, False, True])
    items = Stop(cancelled=Cancelled(lambda: next(looks))).hundreds(range(1000))
    assert list(islice(items, 200)) == list(range(200))
    with pytest.raises(Stopped):
        next(items)


def test_a_deadline_that_is_over_stops() -> None:
    with pytest.raises(Stopped):
        Stop.after(0.0).check()


def test_the_earlier_deadline_counts() -> None:
    stop = Stop.after(50.0)
    assert stop.within(inf) is stop
    assert stop.within(100.0) is stop
    assert stop.within(10.0).seconds() <= 10.0
    assert stop.within(0.0).reached()


def test_what_is_cancelled_is_cancelled_for_all_that_was_made_of_it() -> None:
    stop = Stop.after(50.0)
    part = stop.within(10.0).limited(1.0)
    assert part.effort == 1.0
    stop.cancelled.cancel()
    assert part.reached()


def test_somebody_else_can_say_so() -> None:
    answers = iter([False, False, True])
    stop = Stop(cancelled=Cancelled(lambda: next(answers)))
    assert [stop.reached() for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    "step",
    [
        lambda problem, stop: survey(problem, stop=stop),
        lambda problem, stop: components(problem, survey(problem), stop=stop),
        lambda problem, stop: build_for(problem, survey(problem).sites, stop),
        lambda problem, stop: build_for(
            problem, survey(problem).sites, stop, named=True
        ),
        lambda problem, stop: divide(
            problem, lambda demands: survey(problem, demands), stop=stop
        ),
    ],
    ids=["survey", "components", "model", "named model", "classes"],
)
def test_every_phase_stops_whenever_it_asks(
    step: Callable[[Problem, Stop], object],
) -> None:
    asked: list[bool] = []

    def never() -> bool:
        asked.append(False)
        return False

    step(nodes_with_room(), Stop(cancelled=Cancelled(never)))
    assert len(asked) >= 5
    for questions in range(len(asked)):
        answers = iter([False] * questions)
        with pytest.raises(Stopped):
            step(
                nodes_with_room(),
                Stop(cancelled=Cancelled(partial(next, answers, True))),
            )


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("per_device", [False, True])
def test_without_time_the_answer_in_hand_is_given_back(
    goal: Goal, per_device: bool
) -> None:
    problem = hard()
    hint = in_order(problem)
    solution = solve(
        problem,
        Options(time_limit=1e-9, goal=goal, per_device=per_device),
        hint,
    )
    check(problem, solution)
    assert solution.placements == hint.placements
    assert solution.status is Status.FEASIBLE


@pytest.mark.parametrize(
    "goal", [goal for goal in Goal if goal is not Goal.NONE]
)
def test_a_goal_is_looked_at_when_all_else_is_known(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiers before the goal are solved as without it, and the goal by classes, too, if these can express it."""
    solved: list[int] = []
    improve = Component.improve

    def record(self: Component, level: int, *rest: object) -> None:
        solved.append(level)
        improve(self, level, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Component, "improve", record)
    problem = nodes_with_room()
    solution = solve(problem, Options(goal=goal), first_fit(problem))
    assert [tier.name for tier in solution.tiers] == [
        "weight",
        "alternatives",
        goal.value,
    ]
    assert solution.status is Status.OPTIMAL
    assert set(solved) <= {2}


def test_without_time_for_the_goal_the_tiers_before_it_are_as_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dralloc.solve.optimum.stage.components", stopped)
    problem = nodes_with_room()
    monkeypatch.setattr(
        "dralloc.solve.optimum.stage.with_goal", lambda *_: None
    )
    plain, solution = (
        solve(problem),
        solve(problem, Options(goal=Goal.FEWEST_NODES)),
    )
    assert solution.tiers[:2] == plain.tiers
    assert solution.placements == plain.placements
    assert not solution.tiers[2].proven


def stopped(
    problem: Problem, candidates: CandidateSurvey, goal: Goal, _stop: Stop
) -> list[tuple[DemandIndex, ...]]:
    """No components: as if the time was over if there is a goal."""
    if goal is not Goal.NONE:
        raise Stopped
    return components(problem, candidates, goal)


def test_a_solver_that_gives_up_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first run stops at once by itself: without a proof, although nobody asked for it."""
    runs: list[int] = []
    configured = search._solver

    def tired(options: Options, stop: Stop) -> cp_model.CpSolver:
        solver = configured(options, stop)
        runs.append(options.workers)
        if len(runs) == 1:
            solver.parameters.max_deterministic_time = 0.0
        return solver

    monkeypatch.setattr(search, "_solver", tired)
    solution = solve(hard(pods=8, gpus=2), Options(per_device=True))
    assert runs[:2] == [1, 2]
    assert solution.status is Status.OPTIMAL


def bids_for_what_is_not_there() -> Problem:
    """Two pods share a claim that nothing can serve; a third claim wants one device twice."""
    builder = ProblemBuilder()
    builder.device()
    hopeless = builder.claim(AlternativeSpec(only=(), admin=True))
    builder.pod(builder.claim(AlternativeSpec(admin=True), AlternativeSpec()))
    builder.pod(hopeless)
    builder.pod(hopeless)
    return builder.problem()


def test_what_has_nothing_to_choose_from_has_its_share_of_the_time() -> None:
    problem = bids_for_what_is_not_there()
    limited, unlimited = (
        solve(problem, Options(time_limit=600.0)),
        solve(problem),
    )
    assert (limited.status, limited.tiers) == (Status.OPTIMAL, unlimited.tiers)


MIXTURES = st.one_of(
    problems(),
    problems().flatmap(repeated),
    problems().flatmap(budgeted),
    bound_pods().map(lambda pods: pods.whole),
    bound_claims(),
    racks(),
)
"""Small problems of every family."""


@settings(
    max_examples=examples(100),
    backend=INDEPENDENT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(MIXTURES, st.booleans(), st.sampled_from(Goal))
def test_a_limit_that_is_not_reached_changes_no_proof(
    problem: Problem, per_device: bool, goal: Goal
) -> None:
    plain = Options(goal=goal, per_device=per_device)
    limited, unlimited = (
        solve(problem, replace(plain, time_limit=600.0)),
        solve(problem, plain),
    )
    assert (limited.status, limited.tiers) == (
        unlimited.status,
        unlimited.tiers,
    )
    assert limited.status is Status.OPTIMAL


def test_what_its_share_was_not_enough_for_goes_on_with_the_rest() -> None:
    """The first has a quarter of the time at first, and needs what the second, which is large, leaves."""
    slow, large = (
        Impatient(size=1, needed=0.6),
        Impatient(size=100_000, needed=0.0),
    )
    TimeSharing(Options(), Stop.after(2.0)).improve([0], [slow, large])
    assert (is_proven(slow, 0), is_proven(large, 0)) == (True, True)
    assert slow.runs > 1


def test_however_small_it_is_a_component_has_a_part_of_the_time() -> None:
    """Its size is counted in demands, say, and that of the other one in candidates; that one takes all it can get."""
    small, large = (
        Impatient(size=1, needed=0.1),
        Impatient(size=100_000, needed=inf),
    )
    TimeSharing(Options(), Stop.after(1.0)).improve([0], [small, large])
    assert is_proven(small, 0)


def test_who_waits_alone_has_all_that_is_left() -> None:
    """To begin again takes long: so nothing is held back if nobody waits for a turn with a later tier."""
    slow = Impatient(size=1, needed=0.6, bounds=(0, 1))
    large = Impatient(size=100_000, needed=0.0, bounds=(0, 1))
    TimeSharing(Options(), Stop.after(1.0)).improve([0, 1], [slow, large])
    assert is_proven(slow, 0)
    assert slow.runs == 2


def test_later_tiers_wait_for_what_a_tier_still_needs() -> None:
    """What its share of the time was not enough for has another turn before anybody has one in the next tier."""
    turns: list[tuple[int, int]] = []
    slow = Impatient(size=1, needed=1.2, bounds=(0, 1), turns=turns)
    large = Impatient(size=100_000, needed=0.0, bounds=(0, 1), turns=turns)
    later = Impatient(size=2, needed=0.0, bounds=(1, 0), turns=turns)
    TimeSharing(Options(), Stop.after(4.0)).improve(
        [0, 1], [slow, large, later]
    )
    assert turns == [(1, 0), (100_000, 0), (1, 0), (2, 1)]


class Impatient:
    """A component that is proven if a run has enough time, and otherwise takes all of it in vain."""

    def __init__(
        self,
        size: int,
        needed: float,
        bounds: Sequence[int] = (0,),
        turns: list[tuple[int, int]] | None = None,
    ) -> None:
        self.subset = DemandSubset(nodes_with_room(), ())
        self.bounds = list(bounds)
        self.turns = [] if turns is None else turns
        self.placements: tuple[Placement, ...] = ()
        self.size = size
        weight = placed_weight(self.subset.problem)
        self.tiers: Sequence[Objective] = (*weight, *after_weight(Goal.NONE))
        self.needed = needed
        self.runs = 0

    def cost(self, _: int) -> int:
        return 1

    def improve(
        self, level: int, _options: Options, stop: Stop, _watch: Watch | None
    ) -> None:
        self.runs += 1
        self.turns.append((self.size, level))
        if stop.seconds() > self.needed:
            self.bounds[level] = 1
        while not stop.reached() and not self.bounds[level]:
            pass


def test_what_is_not_proven_says_why() -> None:
    problem = hard()
    late = solve(problem, Options(time_limit=1e-9), in_order(problem))
    assert late.tiers[0].why == "the time was over"
    assert [tier.why for tier in solve(nodes_with_room()).tiers] == ["", ""]


@pytest.mark.parametrize("goal", list(Goal))
def test_too_many_candidates_leave_the_answer_in_hand(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five pods with twelve candidates each: classes need no model of every device, a goal that they lack does."""
    monkeypatch.setattr(
        "dralloc.solve.optimum.stage.with_goal", lambda *_: None
    )
    problem = nodes_with_room()
    choices = Options(goal=goal, thresholds=Thresholds(candidates=59))
    solution = solve(problem, choices, first_fit(problem))
    assert solution.tiers[:2] == solve(problem).tiers
    if goal is not Goal.NONE:
        assert (
            solution.tiers[2].why
            == "a model of every device would be too large"
        )
        enough = Options(goal=goal, thresholds=Thresholds(candidates=60))
        assert (
            solve(problem, enough, first_fit(problem)).status is Status.OPTIMAL
        )


class Endless:
    """A solver that goes on until it is asked to stop."""

    asked = Event()

    def __init__(self, _: str) -> None:
        pass

    def solve(self, _: object) -> model_builder.SolveStatus:
        Endless.asked.wait(600)
        return model_builder.SolveStatus.NOT_SOLVED

    def stop_search(self) -> None:
        Endless.asked.set()


def test_a_linear_program_ends_when_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cp = cp_model.CpModel()
    variable = cp.new_int_var(0, 9, "")
    cp.add(variable >= 1)
    assert solve_linear(cp, [(variable, 1)], Stop()) is not None
    with pytest.raises(Stopped):
        solve_linear(cp, [(variable, 1)], Stop.after(0.0))
    monkeypatch.setattr(model_builder, "Solver", Endless)
    answers = iter([False])
    assert (
        solve_linear(
            cp,
            [(variable, 1)],
            Stop(cancelled=Cancelled(lambda: next(answers, True))),
        )
        is None
    )
    assert Endless.asked.is_set()
