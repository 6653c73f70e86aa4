"""A neighbourhood on its way to the solver, in this process or in another one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.problem import Problem
from dralloc.problem.solution import Placement
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.optimum.assemble import build_for
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.excerpt import Excerpts
from dralloc.solve.optimum.improve.neighbourhood import Neighbourhood
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.rows import fix_cost
from dralloc.solve.optimum.search import as_few, minimise
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.optimum.symmetry import equal_demands, in_order

__all__ = ["ExtraRules", "NeighbourhoodTask", "as_task"]


class ExtraRules(Protocol):
    """Rules about who is placed instead of whom. They can be sent, and name demands in no numbers."""

    @property
    def is_limited(self) -> bool:
        """Whether they limit a sum over all demands."""

    def together(self, problem: Problem) -> Iterable[Sequence[int]]:
        """The demands that have to be decided together."""

    def beside(self, problem: Problem, placements: Iterable[Placement]) -> ExtraRules:
        """The rules for others, beside these placements."""

    def add_to(self, model: Model) -> None:
        """Add the rules to a model, as far as they are about its demands."""


@dataclass(frozen=True, slots=True)
class NeighbourhoodTask:
    """What one run of the solver decides. It can be sent: everything in it is plain data.

    Parameters
    ----------
    excerpt
        Those demands of the neighbourhood that have anywhere to go, with all that they could touch.
    sites
        By demand of the excerpt, where it could go.
    hint
        How it is now, in numbers of the excerpt.
    tiers
        What counts, most important first.
    extra
        Rules beyond those of the problem.
    options
        Of these the seed counts.
    effort
        How much work of the solver it may take (see `Stop.effort`): so its answer does not depend on the clock.
    end
        When to give up all the same, in seconds since the epoch.
    failures
        Selectors that failed on a device, which is left out.
    """

    excerpt: Excerpt
    sites: Mapping[int, tuple[CandidateSite, ...]]
    hint: Sequence[Placement]
    tiers: Sequence[Objective]
    extra: ExtraRules | None
    options: Options
    effort: float
    end: float
    failures: tuple[AllocationError, ...]

    @without_garbage_collection()
    def run(self) -> tuple[Placement, ...] | None:
        """Solve it; None if there is no answer that is better than the hint.

        All tiers are one cost, as far as the numbers allow: for most neighbourhoods one run is enough.
        """
        stop = Stop.after(self.end - time.time() if self.end < inf else None).limited(
            self.effort
        )
        problem = self.excerpt.problem
        found: Sequence[Placement] | None = None
        try:
            model = build_for(problem, self.sites, stop)
            if self.extra:
                self.extra.add_to(model)
            equals = equal_demands(model, stop)
            for cost in as_few([tier.terms(model) for tier in self.tiers]):
                model.hint(in_order(equals, self.hint if found is None else found))
                outcome = minimise(model.cp, cost, self.options, stop, presolve=False)
                values = outcome.values
                if values is None:
                    break
                found = _placements(model, values)
                fix_cost(
                    model.cp,
                    cost,
                    sum(factor * values[variable.index] for variable, factor in cost),
                    "tiers",
                )
        except Stopped:
            return None
        return None if found is None else tuple(self.excerpt.outward(found))


def _placements(model: Model, values: Sequence[int]) -> Sequence[Placement]:
    return model.placements(lambda variable: values[variable.index])


def as_task(  # noqa: PLR0913 - what to solve, and how
    area: Neighbourhood,
    tiers: Sequence[Objective],
    extra: ExtraRules | None,
    options: Options,
    effort: float,
    stop: Stop,
) -> NeighbourhoodTask | None:
    """A neighbourhood as a part for the solver; None if nobody in it has anywhere to go.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    Stopped
        It is time to stop.
    """
    candidates = survey(area.excerpt.problem, strict_cel=options.strict_cel, stop=stop)
    if not candidates.sites:
        return None
    excerpt, inside = Excerpts(area.excerpt.problem).of_sites(candidates.sites)
    end = inf if stop.seconds() == inf else time.time() + stop.seconds()
    return NeighbourhoodTask(
        excerpt,
        inside,
        excerpt.inward(area.hint),
        tiers,
        extra,
        options,
        effort,
        end,
        candidates.failures,
    )
