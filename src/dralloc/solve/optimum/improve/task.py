"""A neighbourhood on its way to the solver, in this process or in another one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from dralloc.objects.choices import Goal, Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.problem.solution import Placement
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.optimum.assemble import build_for
from dralloc.solve.optimum.budgets import fairness
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.excerpt import Excerpts
from dralloc.solve.optimum.improve.neighbourhood import Neighbourhood
from dralloc.solve.optimum.objective import after_weight, placed_weight
from dralloc.solve.optimum.search import as_one, minimise
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.optimum.symmetry import equal_demands, in_order

__all__ = ["NeighbourhoodTask", "as_task"]


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
    options
        Of these the goal and the seed count.
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
    options: Options
    effort: float
    end: float
    failures: tuple[AllocationError, ...]

    @without_garbage_collection()
    def run(self) -> tuple[Placement, ...] | None:
        """Solve it; None if there is no answer that is better than the hint.

        All tiers are one cost, as far as the numbers allow: for a neighbourhood one run is enough. What it leaves out
        of the last tiers counts when the answer is compared.
        """
        stop = Stop.after(self.end - time.time() if self.end < inf else None).limited(
            self.effort
        )
        problem = self.excerpt.problem
        tiers = (
            *placed_weight(problem),
            *fairness(problem),
            *after_weight(Goal(self.options.goal)),
        )
        try:
            model = build_for(problem, self.sites, stop)
            model.hint(in_order(equal_demands(model, stop), self.hint))
            cost = as_one([tier.terms(model) for tier in tiers])
            outcome = minimise(model.cp, cost, self.options, stop, presolve=False)
        except Stopped:
            return None
        values = outcome.values
        if values is None:
            return None
        return tuple(
            self.excerpt.outward(
                model.placements(lambda variable: values[variable.index])
            )
        )


def as_task(
    area: Neighbourhood, options: Options, effort: float, stop: Stop
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
        options,
        effort,
        end,
        candidates.failures,
    )
