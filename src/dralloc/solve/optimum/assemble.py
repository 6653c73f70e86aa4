"""From a problem to its exact model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ortools.sat.python import cp_model

from dralloc.problem import Problem
from dralloc.solve.optimum import constraints
from dralloc.solve.optimum.all_exceptions import all_but_full
from dralloc.solve.optimum.attribute_constraints import attribute_constraints
from dralloc.solve.optimum.budgets import add_caps
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.inter_pod import inter_pod_rules, spread_in_turn
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.optimum.symmetry import equal_demands_in_order
from dralloc.solve.optimum.variables import create

__all__ = ["RULES", "build", "build_for"]

RULES: Final[Sequence[Callable[[Model], None]]] = (
    *constraints.PLACES_AND_AMOUNTS,
    all_but_full,
    attribute_constraints,
    constraints.gangs,
    inter_pod_rules,
    constraints.shared_claims,
    add_caps,
    equal_demands_in_order,
)


def build(problem: Problem, *, strict_cel: bool = False) -> Model:
    """Build one model of all demands that have anywhere to go, to be inspected or exported.

    Raises
    ------
    ModelError
        Amounts of a counter or a capacity do not fit the solver's int64.
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    """
    return build_for(problem, survey(problem, strict_cel=strict_cel).sites, Stop())


def build_for(
    problem: Problem,
    sites: Mapping[int, tuple[CandidateSite, ...]],
    stop: Stop,
    *,
    named: bool = False,
    in_turn: bool = True,
) -> Model:
    """Build the model of the demands that the sites are given for.

    Parameters
    ----------
    named
        Whether it is decided who gets which of equal devices; so it is where it matters to budgets.
    in_turn
        Whether all rules between pods must have one order; if not, those of affinity have one, and each of spread.

    Raises
    ------
    Stopped
        It is time to stop: what there is of the model is of no use.
    """
    cp = cp_model.CpModel()
    model = Model(
        problem,
        sites,
        cp,
        create(cp, problem, sites, stop, named=named or bool(problem.budgets)),
    )
    for rule in RULES:
        rule(model)
    if in_turn:
        spread_in_turn(model)
    return model
