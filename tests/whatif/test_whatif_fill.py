"""How many more fit, against trying every way to place one more than that."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from crowd_strategies import crowds
from dralloc.problem import Demand, Problem
from dralloc.solvers.cpsat import Options, solve
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.copies import copies, takes_nothing
from dralloc.whatif.fill import fill

EXAMPLES = int(os.environ.get("DRALLOC_WHATIF_EXAMPLES", "50"))
MANY = 4
"""So many copies are too many to try every answer."""
THOROUGH = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def most_of(problem: Problem, demand: Demand, number: int) -> int:
    """How many of so many copies fit."""
    return brute_force.best(replace(problem, demands=tuple(copies(demand, number))))[0]


@THOROUGH
@given(strategies.problems(max_demands=1, max_devices=4))
def test_any_demand(problem: Problem) -> None:
    demand = problem.demands[0]
    found = fill(problem, demand)
    if found.number is None:
        assert takes_nothing(problem, demand)
        return
    assert found.exact
    assume(found.number < MANY)
    assert found.number == most_of(problem, demand, found.number + 1)
    assert found.first_fit is not None
    assert found.first_fit <= found.number
    assert found.per_device is None or found.number <= found.per_device


@THOROUGH
@given(crowds(), st.data())
def test_equal_nodes_are_solved_once(problem: Problem, data: st.DataObject) -> None:
    demand = data.draw(st.sampled_from(problem.demands))
    found = fill(problem, demand)
    assert found.number == found.bound
    crowd = replace(problem, demands=tuple(copies(demand, (found.number or 0) + 1)))
    assert found.first_fit == len(first_fit(crowd).placements)
    assert solve(crowd, Options(per_device=True)).tiers[0].value == found.number
