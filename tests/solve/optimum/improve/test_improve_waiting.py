"""Who waits comes in an order in which those tend to be first that most is to be gained by."""

from __future__ import annotations

import numpy as np
import pytest

from dralloc.problem import DemandIndex, indices
from dralloc.problem.solution import APPRAISAL_UNIT, Appraisal
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.waiting import WaitingBlocks, weighted_order
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    rack_with_a_waiting_gang,
)


def test_larger_weights_tend_to_come_first() -> None:
    random = np.random.default_rng(0)
    orders = [weighted_order(random, [100.0, 300.0, 0.0]) for _ in range(1000)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    firsts = [order[0] for order in orders]
    # In proportion to the weights, but for the little that all have.
    assert firsts.count(1) == pytest.approx(730, abs=60)
    assert 0 < firsts.count(2) < 40


def test_nothing_has_an_order() -> None:
    assert weighted_order(np.random.default_rng(0), []) == []


def test_who_waits_is_a_matter_of_the_answer() -> None:
    problem = rack_with_a_waiting_gang()
    incumbent = Incumbent(problem, first_fit(problem).placements)
    bonds = Bonds(problem)
    waiting = WaitingBlocks(
        incumbent,
        bonds,
        indices(bonds.blocks),
        None,
        np.random.default_rng(0),
    )
    [gang] = waiting.at_random()
    assert len(bonds.blocks[gang]) == 4
    placement = incumbent.placements[DemandIndex(0)]
    incumbent.withdraw(placement.demand)
    waiting.look([0])
    assert sorted(waiting.at_random()) == [0, gang]
    assert sorted(waiting.by_promise()) == [0, gang]
    incumbent.enter(placement)
    waiting.look([0, gang])
    assert waiting.at_random() == [gang]


def test_blocks_that_cannot_all_come_do_not_wait_when_they_are_exchanged() -> (
    None
):
    problem = rack_with_a_waiting_gang()
    bonds = Bonds(problem)
    waiting = WaitingBlocks(
        Incumbent(problem, ()), bonds, [0], None, np.random.default_rng(0)
    )
    waiting.look(indices(bonds.blocks))
    assert waiting.at_random() == [0]
    assert waiting.by_promise() == [0]


def test_demands_without_weight_wait_where_not_only_weight_counts() -> None:
    builder = ProblemBuilder()
    for weight in (0, 1):
        builder.pod(builder.claim(AlternativeSpec()), weight=weight)
    problem = builder.problem()
    bonds = Bonds(problem)
    waiting = [
        WaitingBlocks(
            Incumbent(problem, ()),
            bonds,
            indices(bonds.blocks),
            None,
            np.random.default_rng(0),
            counts_weight_alone=counts_weight_alone,
        ).at_random()
        for counts_weight_alone in (True, False)
    ]
    assert list(map(sorted, waiting)) == [[1], [0, 1]]


def test_those_come_first_that_are_worth_more_than_their_price() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    demands = indices(problem.demands)
    # By demand: what it is worth beyond its price. The middle one would pay more than it is worth.
    profits = dict(
        zip(
            demands,
            (APPRAISAL_UNIT // 2, -APPRAISAL_UNIT, APPRAISAL_UNIT),
            strict=True,
        )
    )
    waiting = WaitingBlocks(
        Incumbent(problem, ()),
        Bonds(problem),
        demands,
        Appraisal(dict.fromkeys(demands, 0), profits, (0,)),
        np.random.default_rng(0),
    )
    firsts = [waiting.by_promise()[0] for _ in range(1000)]
    assert firsts.count(2) > firsts.count(0) > 5 * firsts.count(1)
