"""What a region has of the same kind is one, in integers and in one unit."""

from __future__ import annotations

import numpy as np

from dralloc.solve.optimum.relax.market import Market, market_of
from dralloc.solve.optimum.relax.merged import merged_offers
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def shared_devices() -> Market:
    """Two nodes with a shared device each, of 12 and of 9, and pods for 6, which fits on both, and for 10."""
    builder = ProblemBuilder(nodes=2)
    builder.device(node=0, capacity={"memory": 12})
    builder.device(node=1, capacity={"memory": 9})
    for memory in (6, 10):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    return market_of(builder.problem(), Stop())


def test_rows_of_equal_role_have_one_unit() -> None:
    """Only one of them is drawn on by 10, but the common divisor of 6 and 10 is the unit of both."""
    market = shared_devices()
    assert market.units == [2.0, 2.0]
    # What is left of 9 is no use to anybody.
    assert market.limits.tolist() == [6, 4, 0]


def test_what_nodes_of_a_region_have_is_added_up() -> None:
    merged = merged_offers(shared_devices(), np.zeros(2, dtype=np.int64))
    assert merged.limits == [10]
    # One request of 10, and two of 6 on one device and one on the other.
    assert {
        draws: most for ways in merged.ways for draws, most in ways.items()
    } == {((0, 3),): 3, ((0, 5),): 1}


def test_nodes_of_different_regions_stay_apart() -> None:
    merged = merged_offers(shared_devices(), np.arange(2))
    assert merged.row_of == [0, 1]
    assert merged.limits == [6, 4]
