"""Pareto fronts, against trying all numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from time import process_time

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from crowd_strategies import crowds
from dralloc.ask.whatif.copies import copies, count_copies
from dralloc.ask.whatif.fronts import Vector, find_front
from dralloc.ask.whatif.headroom import pareto_front
from dralloc.problem import Demand, Problem, numbered
from dralloc.solve.optimum import Options, solve
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from whatif_apart import apart

EXAMPLES = examples(15)
MANY = 5
"""So many copies are too many to try every answer."""
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def best_of(points: set[Vector]) -> list[Vector]:
    """Those that no other exceeds, the largest first."""

    def exceeded(point: Vector) -> bool:
        return any(
            other != point
            and all(a >= b for a, b in zip(other, point, strict=True))
            for other in points
        )

    return sorted(
        (point for point in points if not exceeded(point)), reverse=True
    )


def placed(problem: Problem, demands: list[Demand], counts: Vector) -> Problem:
    groups = (
        copies(demand, count)
        for demand, count in zip(demands, counts, strict=True)
    )
    return replace(
        problem, demands=tuple(copy for group in groups for copy in group)
    )


@THOROUGH
@given(strategies.problems(max_demands=3, max_devices=4))
def test_small_fronts(problem: Problem) -> None:
    demands = [
        apart(demand, index) for index, demand in numbered(problem.demands)
    ]
    alone = [count_copies(problem, demand).number for demand in demands]
    most = tuple(count for count in alone if count is not None)
    assume(len(most) == len(demands) > 1 and sum(most) <= MANY)
    fitting = {
        counts
        for counts in product(*(range(limit + 1) for limit in most))
        if brute_force.best(placed(problem, demands, counts))[0] == sum(counts)
    }
    front = pareto_front(problem, demands, most)
    assert front.complete
    assert front.proven
    assert [point.numbers for point in front.points] == best_of(fitting)
    assert all(
        a <= b
        for point in front.points
        for a, b in zip(point.first_fit, point.numbers, strict=True)
    )


@THOROUGH
@given(crowds())
def test_fronts_over_equal_nodes(problem: Problem) -> None:
    demands = list(
        {
            len(demand.claims[0].requests): demand for demand in problem.demands
        }.values()
    )[:2]
    assume(len(demands) == 2)
    most = tuple(
        count_copies(problem, demand).number or 0 for demand in demands
    )
    fitting = {
        counts
        for counts in product(*(range(limit + 1) for limit in most))
        if solve(placed(problem, demands, counts), Options(per_device=True))
        .tiers[0]
        .value
        == sum(counts)
    }
    assert [
        point.numbers for point in pareto_front(problem, demands, most).points
    ] == best_of(fitting)


@settings(deadline=None)
@given(
    st.sets(st.tuples(*[st.integers(0, 12)] * 3), min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_a_front_is_found_box_by_box(points: set[Vector], limit: int) -> None:
    front = best_of(points)
    most = tuple(max(column) for column in zip(*points, strict=True))

    def reach(least: Vector, _: int) -> Vector | None:
        return next(
            (
                point
                for point in front
                if all(a >= b for a, b in zip(point, least, strict=True))
            ),
            None,
        )

    every = find_front(most, reach)
    assert every.complete
    assert list(every.points) == front
    few = find_front(most, reach, limit)
    assert set(few.points) <= set(front)
    assert len(few.points) == min(limit, len(front))
    if few.complete:
        assert len(front) <= limit


def test_points_of_a_long_front_lie_apart() -> None:
    long = 1000

    def reach(least: Vector, last: int) -> Vector | None:
        if sum(least) > long:
            return None
        return (
            (least[0], long - least[0])
            if last == 0
            else (long - least[1], least[1])
        )

    front = find_front((long, long), reach, 9)
    gaps = [a[0] - b[0] for a, b in pairwise(front.points)]
    assert not front.complete
    assert max(gaps) <= 2 * long // 8


def test_a_front_is_not_complete_where_time_was_over() -> None:
    builder = ProblemBuilder()
    for _ in range(6):
        memory = builder.counter(2)
        for amount in (2, 1, 1):
            builder.device(consumes={memory: amount})
    for count in (1, 2):
        builder.pod(builder.claim(AlternativeSpec(count)))
    problem = builder.problem()
    demands, most = list(problem.demands), (12, 6)
    every = pareto_front(problem, demands, most)
    assert every.proven
    assert every.complete
    hasty = pareto_front(
        problem, demands, most, options=Options(time_limit=1e-6)
    )
    assert len(hasty.points) < len(every.points)
    assert not hasty.proven
    assert not hasty.complete


def test_the_time_limit_is_that_of_the_whole_front() -> None:
    """Each of its searches had it for itself, on the nodes alone and then on all of them."""
    builder = ProblemBuilder()
    for kind in range(2):
        memory = builder.counter(40 + kind)
        for _ in range(24):
            builder.device(consumes={memory: 1 + kind})
    for count in (1, 2, 3):
        builder.pod(builder.claim(AlternativeSpec(count)))
    problem = builder.problem()
    began = process_time()
    front = pareto_front(
        problem,
        list(problem.demands),
        (48, 24, 16),
        options=Options(time_limit=0.2),
    )
    assert process_time() - began < 3
    assert front.points
    assert (front.complete, front.proven) == (False, False)
