"""A neighbourhood on its way to the solver, in this process or in another one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex
from dralloc.problem.solution import Placement
from dralloc.solve.excerpt import Cutting
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import build_for
from dralloc.solve.optimum.equal_demands import equal_demands, in_order
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.rows import fix_cost
from dralloc.solve.optimum.search import as_few, minimise, row_of_better
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["ExtraRules", "NeighbourhoodAnswer", "NeighbourhoodTask", "WarmUp"]


class ExtraRules(Protocol):
    """Rules about who is placed instead of whom. They can be sent, and name demands in no numbers."""

    @property
    def is_limited(self) -> bool:
        """Whether they limit a sum over all demands."""

    def together(self, problem: Problem) -> Iterable[Sequence[DemandIndex]]:
        """The demands that have to be decided together."""

    def beside(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> ExtraRules:
        """The rules for others, beside these placements."""

    def add_to(self, model: Model) -> None:
        """Add the rules to a model, as far as they are about its demands."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Has a process import what neighbourhoods need before there are any."""

    def run(self) -> None:
        """Use the solver, which is imported when it is used first."""
        cp_model.CpModel()


class NeighbourhoodAnswer(NamedTuple):
    """The outcome of a neighbourhood.

    Parameters
    ----------
    placements
        In numbers of the whole problem; None if there is nothing better than before, or nothing was found.
    failures
        Selectors that failed on a device, which was left out.
    """

    placements: Sequence[Placement] | None
    failures: Sequence[AllocationError] = ()


@dataclass(frozen=True, slots=True)
class NeighbourhoodTask:
    """What one run of the solver decides. It can be sent: everything in it is plain data.

    Parameters
    ----------
    cutting
        The neighbourhood as a problem.
    present
        How it is now, in numbers of the whole problem.
    tiers
        What counts, most important first.
    aim
        One of so many tiers, the first ones, has to become better, without loss in those before it.
    extra
        Rules beyond those of the problem.
    options
        Of these the seed counts, and whether selectors may fail.
    effort
        How much work of the solver it may take (see `Stop.effort`): so its answer does not depend on the clock.
    end
        When to give up all the same, in seconds since the epoch.
    """

    cutting: Cutting
    present: Sequence[Placement]
    tiers: Sequence[Objective]
    aim: int
    extra: ExtraRules | None
    options: Options
    effort: float
    end: float

    @without_garbage_collection()
    def run(self) -> NeighbourhoodAnswer:
        """Solve it.

        Raises
        ------
        AllocationError
            A selector failed on a device, and ``strict_cel`` is set.
        """
        seconds = self.end - time.time() if self.end < inf else None
        stop = Stop.after(seconds).limited(self.effort)
        excerpt = self.cutting.excerpt()
        problem = excerpt.problem
        failures: Sequence[AllocationError] = ()
        placements = None
        with suppress(Stopped):
            candidates = survey(
                problem, strict_cel=self.options.strict_cel, stop=stop
            )
            failures = candidates.failures
            if candidates.sites:
                model = build_for(problem, candidates.sites, stop)
                if self.extra:
                    self.extra.add_to(model)
                placements = self._better(
                    model, excerpt.inward(self.present), stop
                )
        return NeighbourhoodAnswer(
            None if placements is None else excerpt.outward(placements),
            failures,
        )

    def _better(
        self, model: Model, hint: Sequence[Placement], stop: Stop
    ) -> Sequence[Placement] | None:
        """Find a better answer than the hint; None if there is none, or if it is not found with so much work.

        All tiers are one cost, as far as the numbers allow: for most neighbourhoods one run is enough.
        """
        if not self._ask_for_better(model, hint):
            return None
        equals = equal_demands(model, stop)
        answer: Sequence[Placement] | None = None
        for cost in as_few([tier.terms(model) for tier in self.tiers]):
            # The present answer is ruled out by now, and only says where to look. What a run finds is an answer to the
            # next one.
            model.hint(in_order(equals, hint if answer is None else answer))
            outcome = minimise(
                model.cp,
                cost,
                self.options,
                stop,
                presolve=False,
                hint_is_answer=answer is not None,
            )
            values = outcome.values
            if values is None:
                break
            answer = _placements(model, values)
            reached = sum(
                factor * values[variable.index] for variable, factor in cost
            )
            # Tiers that did not fit into this cost are improved without loss in it.
            fix_cost(model.cp, cost, reached, "tiers")
        return answer

    def _ask_for_better(self, model: Model, hint: Sequence[Placement]) -> bool:
        """Rule out all that is no better than the hint, and return whether anything else can be.

        Most often there is nothing better. That is proven several times as fast as that the hint is one of the best in
        all tiers: most often a linear program says that there is no room for one demand more.
        """
        subset = DemandSubset(model.problem, list(model.sites), model.sites)
        aims = self.tiers[: self.aim]
        row, limit = row_of_better(
            [tier.terms(model) for tier in aims],
            [tier.cost(subset, hint) for tier in aims],
        )
        if limit < 0:
            return False
        fix_cost(model.cp, row, limit, "tiers")
        return True


def _placements(model: Model, values: Sequence[int]) -> Sequence[Placement]:
    return model.placements(lambda variable: values[variable.index])
