from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from dralloc.objects.errors import ModelError
from dralloc.solve.optimum import Options, build, solve
from dralloc.solve.optimum.rows import fix_cost, reduced
from dralloc.solve.optimum.search import row_of_better
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def literals(count: int) -> list[cp_model.IntVar]:
    model = cp_model.CpModel()
    return [model.new_bool_var(f"x{index}") for index in range(count)]


def test_a_row_is_divided_by_the_common_factor_and_its_limit_rounded_down() -> (
    None
):
    x, y, z = literals(3)
    terms, impossible, limit = reduced([(x, 4), (y, 6), (z, 6)], 11)
    assert [amount for _, amount in terms] == [2, 3, 3]
    assert (impossible, limit) == ([], 5)


def test_a_row_that_cannot_bind_vanishes() -> None:
    x, y = literals(2)
    assert reduced([(x, 4), (y, 6)], 10)[0] == []


def test_what_never_fits_is_ruled_out() -> None:
    x, y = literals(2)
    terms, impossible, _ = reduced([(x, 4), (y, 11)], 10)
    assert terms == []
    assert impossible == [y]
    assert reduced([(x, 0)], -1)[1] == [x]


def test_a_variable_that_is_listed_twice_counts_twice() -> None:
    x, y = literals(2)
    terms, impossible, _ = reduced([(x, 2), (y, 3), (x, 2)], 3)
    assert terms == []
    assert impossible == [x]


def test_a_tier_about_which_nothing_here_is_binds_nothing() -> None:
    model = cp_model.CpModel()
    count = model.new_int_var(0, 3, "count")
    fix_cost(model, [(count, 0)], 0, "tier weight")
    model.maximize(count)
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    assert solver.value(count) == 3


def test_amounts_beyond_int64_are_an_error_that_names_the_counter() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(3 * 2**61)
    for extra in range(3):
        builder.device(consumes={counter: 2**62 + extra})
        builder.pod(builder.claim(AlternativeSpec()))
    with pytest.raises(
        ModelError,
        match=r"counter driver/pool/set/counter-0: amounts add up to \d+",
    ):
        solve(builder.problem(), Options(per_device=True))


def test_amounts_beyond_int64_are_an_error_that_names_the_capacity() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 3 * 2**61})
    for extra in range(3):
        builder.pod(
            builder.claim(AlternativeSpec(capacity={"memory": 2**62 + extra}))
        )
    with pytest.raises(
        ModelError,
        match="device driver/pool-0/device-0: capacity memory: amounts add up to",
    ):
        build(builder.problem())


def test_huge_amounts_with_a_common_factor_are_fine() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(5 * 2**80)
    for _ in range(3):
        builder.device(consumes={counter: 2 * 2**80})
        builder.pod(builder.claim(AlternativeSpec()))
    assert len(solve(builder.problem()).placements) == 2


def test_weights_beyond_what_one_sum_can_tell_apart_are_tiers_of_it() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec()), weight=2**53 + 1)
    builder.pod(builder.claim(AlternativeSpec()), weight=2**53)
    solution = solve(builder.problem(), Options(per_device=True))
    assert [placement.demand for placement in solution.placements] == [0]
    assert solution.tiers[0].value == solution.tiers[0].bound == 2**53 + 1


COSTS = st.lists(st.integers(0, 6), min_size=3, max_size=3)


@given(st.lists(COSTS, min_size=1, max_size=3), st.tuples(*[st.booleans()] * 3))
def test_a_row_of_better_answers_lets_these_in_and_no_others(
    tiers: list[list[int]], known: tuple[bool, ...]
) -> None:
    variables = literals(3)

    def costs(answer: tuple[bool, ...]) -> list[int]:
        return [
            sum(
                cost
                for cost, chosen in zip(tier, answer, strict=True)
                if chosen
            )
            for tier in tiers
        ]

    row, limit = row_of_better(
        [list(zip(variables, tier, strict=True)) for tier in tiers],
        costs(known),
    )
    for answer in product((False, True), repeat=3):
        value = sum(
            coefficient * answer[variable.index]
            for variable, coefficient in row
        )
        assert (value <= limit) == (costs(answer) < costs(known))


def test_a_row_of_better_answers_has_as_many_tiers_as_numbers_allow() -> None:
    [x] = literals(1)
    row, limit = row_of_better([[(x, 1)], [(x, 1), (x, 2**60)]], [1, 0])
    assert (row, limit) == ([(x, 1)], 1)
