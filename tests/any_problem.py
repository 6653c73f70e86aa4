"""Problems of every kind that the tests draw, in one strategy."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

import strategies
from across_strategies import bound_claims
from budget_strategies import budgeted
from crowd_strategies import crowds
from dralloc.problem import Problem
from pod_strategies import bound_pods
from rack_strategies import racks

__all__ = ["PROBLEMS", "weighted"]

DRAWN = strategies.problems()

PROBLEMS = st.one_of(
    DRAWN,
    DRAWN.flatmap(strategies.repeated),
    DRAWN.flatmap(budgeted),
    bound_pods().map(lambda pods: pods.whole),
    bound_pods(footprints=st.just(True)).map(lambda pods: pods.whole),
    bound_claims(),
    racks(most_nodes=4),
    crowds(gangs=True, sharing=True),
    crowds(gangs=True, domains=True),
    crowds(budgets=True),
    crowds(every=True, daemons=True),
)


@st.composite
def weighted(draw: st.DrawFn) -> Problem:
    """Draw a problem of any kind, with weights of its own or with others."""
    problem: Problem = draw(PROBLEMS)
    weights = draw(st.sampled_from([(), (1, 2, 3), (1, 1, 40, 1600)]))
    if not weights:
        return problem
    demands = [
        replace(demand, weight=draw(st.sampled_from(weights)))
        for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))
