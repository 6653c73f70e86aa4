"""Demands of higher priorities are searched as if the others were not there; these come back where there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from dralloc.check.problem import violations
from dralloc.objects.choices import Options
from dralloc.problem import Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.recreate import top_down
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.recreate.top_down import TopDown
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

NODES = 8


def sizes_of_two_priorities() -> Problem:
    """Nodes that are full with one for 4 and one for 6 each of the higher priority, or of many small ones.

    First fit puts those for 4 side by side: a quarter of the higher priority waits.
    """
    builder = ProblemBuilder(nodes=NODES)
    for node in range(NODES):
        builder.device(node, capacity={"memory": 10})
    for size in (*[4] * NODES, *[6] * NODES):
        claim = builder.claim(AlternativeSpec(capacity={"memory": size}))
        builder.pod(claim, priority=1, weight=100)
    for _ in range(10 * NODES):
        claim = builder.claim(AlternativeSpec(capacity={"memory": 1}))
        builder.pod(claim)
    return builder.problem()


def placed_of_higher(problem: Problem, placements: Sequence[Placement]) -> int:
    return sum(
        problem.demands[placement.demand].priority for placement in placements
    )


def improved_from_the_top(
    problem: Problem,
    start: Sequence[Placement],
    options: Options | None = None,
    seconds_left: Callable[[], float] = lambda: 60.0,
) -> list[tuple[Placement, ...]]:
    search = TopDown(problem, 60.0)
    return list(search.improved(start, options or Options(), seconds_left))


def test_higher_priorities_are_placed_as_if_the_others_were_not_there() -> None:
    problem = sizes_of_two_priorities()
    start = first_fit(problem).placements
    assert placed_of_higher(problem, start) < 2 * NODES
    [answer] = improved_from_the_top(problem, start)
    assert violations(problem, Solution(answer)) == []
    assert placed_of_higher(problem, answer) == 2 * NODES


def test_the_others_come_back_where_there_is_room() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(2):
        builder.device(node, capacity={"memory": 10})
    for size in (4, 4, 6, 6):
        claim = builder.claim(AlternativeSpec(capacity={"memory": size}))
        builder.pod(claim, priority=1, weight=100)
    builder.device(2, capacity={"memory": 1})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 1})))
    problem = builder.problem()
    start = first_fit(problem).placements
    [answer] = improved_from_the_top(problem, start)
    assert len(answer) == len(problem.demands)


def test_nobody_steps_aside_whose_gang_does_not() -> None:
    """Where the second of the gang stands there would be room for who waits; but then the first could not stay."""
    builder = ProblemBuilder(nodes=2)
    for node in range(2):
        builder.device(node, capacity={"memory": 10})
    for priority in (1, 0):
        claim = builder.claim(AlternativeSpec(capacity={"memory": 10}))
        builder.pod(claim, priority=priority, weight=100, gang="gang")
    claim = builder.claim(AlternativeSpec(capacity={"memory": 10}))
    builder.pod(claim, priority=1, weight=100)
    problem = builder.problem()
    start = first_fit(problem).placements
    assert [placement.demand for placement in start] == [0, 1]
    assert not improved_from_the_top(problem, start)


def test_where_few_wait_all_are_searched_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_down, "_MANY", 1)
    problem = sizes_of_two_priorities()
    start = first_fit(problem).placements
    assert placed_of_higher(problem, start) > 0
    assert not improved_from_the_top(problem, start)


def test_no_priority_is_begun_when_half_of_the_time_is_over() -> None:
    problem = sizes_of_two_priorities()
    start = first_fit(problem).placements
    assert not improved_from_the_top(problem, start, seconds_left=lambda: 29.0)


def test_values_inside_a_priority_are_no_reason() -> None:
    problem = sizes_of_two_priorities()
    demands = [replace(demand, priority=0) for demand in problem.demands]
    problem = replace(problem, demands=tuple(demands))
    start = first_fit(problem).placements
    assert not improved_from_the_top(problem, start)


@pytest.mark.parametrize(
    ("options", "is_searched"), [(Options(), True), (Options(steps=5), False)]
)
def test_starts_begin_with_them_unless_steps_are_counted(
    monkeypatch: pytest.MonkeyPatch, options: Options, is_searched: bool
) -> None:
    asked = noted_searches(monkeypatch)
    problem = sizes_of_two_priorities()
    list(Starts(problem, options)((), lambda: None, lambda: 60.0))
    assert ("from the top" in asked) is is_searched


def noted_searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what starts search: other orders, from the top, or small changes of all; they find nothing."""
    noted: list[str] = []
    module = "dralloc.solve.recreate.starts"
    names = {
        f"{module}.placed_in_orders": "orders",
        f"{module}.TopDown.improved": "from the top",
        f"{module}.recreated": "all",
    }
    for target, name in names.items():

        def search(*_: object, name: str = name) -> tuple[()]:
            noted.append(name)
            return ()

        monkeypatch.setattr(target, search)
    return noted


def test_starts_that_are_asked_again_try_no_orders_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = noted_searches(monkeypatch)
    starts = Starts(sizes_of_two_priorities(), Options())
    for _ in range(2):
        list(starts((), lambda: None, lambda: 60.0))
    assert asked == ["orders", "from the top", "all", "from the top", "all"]


def test_a_priority_is_searched_once_whoever_asks_again() -> None:
    problem = sizes_of_two_priorities()
    start = first_fit(problem).placements
    search = TopDown(problem, 60.0)
    assert next(search.improved(start, Options(), lambda: 60.0), None)
    assert not list(search.improved(start, Options(), lambda: 60.0))


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(weighted(), st.integers(0, 1000))
def test_answers_keep_the_rules(problem: Problem, seed: int) -> None:
    """Those that step aside are no company that others need, and hold nothing that these took in the meantime."""
    demands = [
        replace(demand, priority=demand.weight) for demand in problem.demands
    ]
    within = replace(problem, demands=tuple(demands), budgets=())
    start = first_fit(within).placements
    search = TopDown(within, inf)
    for answer in search.improved(start, Options(seed=seed), lambda: inf):
        assert violations(within, Solution(answer)) == []
