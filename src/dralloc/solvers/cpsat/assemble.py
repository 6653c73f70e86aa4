"""From a problem to its exact model."""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from dralloc.problem import Problem
from dralloc.solvers.cpsat.candidates import CandidateSite, survey
from dralloc.solvers.cpsat.constraints import add_all
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.stopping import Stop
from dralloc.solvers.cpsat.variables import create

__all__ = ["build", "build_for"]


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
    problem: Problem, sites: Mapping[int, tuple[CandidateSite, ...]], stop: Stop, *, named: bool = False
) -> Model:
    """Build the model of the demands that the sites are given for.

    ``named``: whether it is decided who gets which of equal devices; so it is where it matters to budgets.

    Raises
    ------
    Stopped
        It is time to stop: what there is of the model is of no use.
    """
    cp = cp_model.CpModel()
    model = Model(problem, cp, create(cp, problem, sites, stop, named=named or bool(problem.budgets)))
    add_all(model, sites)
    return model
