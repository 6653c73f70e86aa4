"""The optimal answer: components in turn, tier by tier, within the time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Final

from dralloc.backends import backend_named, is_elsewhere
from dralloc.choices import Goal
from dralloc.errors import ModelError
from dralloc.garbage import without_garbage_collection
from dralloc.problem import Problem
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.cpsat.budgets import fairness
from dralloc.solvers.cpsat.candidates import CandidateSurvey, survey
from dralloc.solvers.cpsat.classes.component import CountedComponent
from dralloc.solvers.cpsat.component import Answered, Component, Solvable, improve_all, is_next
from dralloc.solvers.cpsat.components import components
from dralloc.solvers.cpsat.division import divide
from dralloc.solvers.cpsat.interrupt import asked_to_stop, heeding_interrupts
from dralloc.solvers.cpsat.objective import DemandSubset, Objective, objectives
from dralloc.solvers.cpsat.options import Options, Progress
from dralloc.solvers.cpsat.packing.component import PackedComponent
from dralloc.solvers.cpsat.parallel import work_out
from dralloc.timing import phase

__all__ = ["solve"]

_FEWEST: Final = 2
"""A single component is not worth sending to another process."""

_START: Final = 5.0
"""With less seconds than these, starting processes would take too many of them."""


def solve(
    problem: Problem,
    options: Options | None = None,
    hint: Solution | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Find the best answer and prove it, or come as far as the time limit allows.

    The tiers of the objective, most important first: ``weight``, the weight of the placed demands; fairness between
    namespaces, if the problem has budgets that say so; ``alternatives``, the ranks of the picked alternatives
    (KEP-4816); and the goal, if there is one. Each is solved with those before it
    fixed. A tier that could not be proven leaves those after it with the bounds that are known without solving.

    Parameters
    ----------
    problem
        What is to be placed, and on what.
    options
        Time limit, goal and the like; the defaults if None.
    hint
        An answer to start from, such as first fit's; it must keep the rules. The result is never worse.
    progress
        Called from this thread whenever there is a better answer.

    Returns
    -------
    Solution
        With the status ``OPTIMAL`` if every tier is proven. Ctrl-C (in the main thread), or a ``KeyboardInterrupt`` of
        the listener, ends the search like the time limit: the best answer so far is returned, with its bounds. A
        second Ctrl-C, if that takes too long, is a ``KeyboardInterrupt``.

    Raises
    ------
    ModelError
        Amounts or weights do not fit the solver's int64, or the hint places what cannot be placed.
    AllocationError
        A selector failed on a device, and the option ``strict_cel`` is set.
    """
    return _Solve(problem, options or Options(), progress).run(hint)


class _Solve:
    def __init__(self, problem: Problem, options: Options, progress: Callable[[Progress], None] | None) -> None:
        self.problem = problem
        self.options = options
        self.progress = progress
        self.started = perf_counter()
        weight, *others = objectives(Goal(options.goal))
        self.tiers = (weight, *fairness(problem), *others)
        self.components: list[Solvable] = []
        self.answers: list[Answered] = []
        self.warnings: list[str] = []
        self.timings: dict[str, float] = {}

    @without_garbage_collection()
    def run(self, hint: Solution | None) -> Solution:
        with heeding_interrupts():
            self._split(hint.placements if hint else ())
            self.answers = list(self.components)
            try:
                self._work()
            except KeyboardInterrupt:
                if asked_to_stop():
                    raise
            return self._solution()

    def _work(self) -> None:
        """Here, or in other processes if there is something for more than one."""
        if is_elsewhere(backend_named(self.options.backend), self.options.jobs):
            levels = range(len(self.tiers))
            todo = [
                place
                for place, component in enumerate(self.components)
                if any(is_next(component, each) for each in levels)
            ]
            left = self._left()
            if len(todo) >= _FEWEST and (left is None or left >= _START):
                with phase(self.timings, "components"):
                    return self._work_elsewhere(todo)
        return self._work_here()

    def _work_here(self) -> None:
        for component in self.components:
            if isinstance(component, PackedComponent):
                with phase(self.timings, "classes"):
                    component.begin()
        for level, tier in enumerate(self.tiers):
            watch = partial(self._report, level) if self.progress else None
            with phase(self.timings, tier.name):
                if improve_all(level, self.components, self.options, self._left, watch):
                    return

    def _work_elsewhere(self, todo: Sequence[int]) -> None:
        self._tell()
        sent = [self.components[place] for place in todo]
        with closing(work_out(self.problem, sent, self.options, self._left())) as answers:
            for number, answer in answers:
                self.answers[todo[number]] = answer
                self._tell()

    def _split(self, placements: Sequence[Placement]) -> None:
        """Count what can be counted; the rest is for the per-device model."""
        placed = {placement.demand: placement for placement in placements}
        left: Sequence[int] | None = None
        if not self.options.per_device and self.options.goal is Goal.NONE and not self.problem.budgets:
            with phase(self.timings, "classes"):
                left = self._split_by_class(placed)
        with phase(self.timings, "survey"):
            self._split_by_device(placed, left)

    def _split_by_class(self, placed: dict[int, Placement]) -> Sequence[int]:
        """Returns the demands that are left."""
        division = divide(self.problem, self._survey, strict_cel=self.options.strict_cel)
        self.warnings += division.warnings
        for counted in division.counted:
            subset, hint = self._subset(counted.demands, placed)
            self.components.append(CountedComponent(subset, self.tiers, counted.classes, counted.supplies, hint))
        for instance in division.packed:
            subset, hint = self._subset(instance.demands, placed)
            self.components.append(PackedComponent(subset, self.tiers, instance, hint, self.options))
        return division.left

    def _subset(self, demands: Sequence[int], placed: dict[int, Placement]) -> tuple[DemandSubset, list[Placement]]:
        """The demands, and the hint's placements of them, which are taken out."""
        return DemandSubset(self.problem, demands), [placed.pop(demand) for demand in demands if demand in placed]

    def _split_by_device(self, placed: Mapping[int, Placement], demands: Sequence[int] | None) -> None:
        found = self._survey(demands)
        self.warnings += found.warnings
        for demand in placed.keys() - found.sites.keys():
            raise ModelError(f"hint: demand {self.problem.demands[demand].key} is placed, but nothing can serve it")
        for members in components(self.problem, found, Goal(self.options.goal)):
            subset = DemandSubset(self.problem, members, {demand: found.sites[demand] for demand in members})
            hint = [placed[demand] for demand in members if demand in placed]
            self.components.append(Component(subset, self.tiers, hint))

    def _survey(self, demands: Sequence[int] | None) -> CandidateSurvey:
        return survey(self.problem, demands, strict_cel=self.options.strict_cel)

    def _left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else max(0.0, limit - self._elapsed())

    def _elapsed(self) -> float:
        return perf_counter() - self.started

    def _report(self, level: int, running: Solvable, best: int, bound: int) -> None:
        """Tell the tier's state over the whole problem, with what the running component has reached."""
        others = [component for component in self.answers if component is not running]
        costs = [component.cost(level) for component in others] + [best]
        bounds = [component.bounds[level] for component in others] + [max(bound, running.bounds[level])]
        self._tell_of(self._summary(self.tiers[level], costs, bounds))

    def _tell(self) -> None:
        """Tell the state of the first tier that is not proven, or of the last."""
        if self.progress:
            tiers = self._tiers()
            self._tell_of(next((tier for tier in tiers if not tier.proven), tiers[-1]))

    def _tell_of(self, tier: Tier) -> None:
        if self.progress:
            self.progress(Progress(tier.name, tier.value, tier.bound, self._elapsed()))

    def _summary(self, tier: Objective, costs: Sequence[int], bounds: Sequence[int]) -> Tier:
        cost, bound = tier.total(costs), tier.total(bounds)
        if tier.worth is not None:
            worth = tier.worth(self.problem, [one for component in self.answers for one in component.placements])
            return Tier(tier.name, worth, worth + cost - bound, sense=1)
        if tier is not self.tiers[0]:
            return Tier(tier.name, cost, bound, sense=-1)
        weight = sum(component.subset.weight for component in self.answers)
        return Tier(tier.name, weight - cost, weight - bound, sense=1)

    def _tiers(self) -> tuple[Tier, ...]:
        return tuple(
            self._summary(
                tier,
                [component.cost(level) for component in self.answers],
                [component.bounds[level] for component in self.answers],
            )
            for level, tier in enumerate(self.tiers)
        )

    def _solution(self) -> Solution:
        placements = [placement for component in self.answers for placement in component.placements]
        tiers = self._tiers()
        proven = all(tier.proven for tier in tiers)
        return Solution(
            placements=tuple(sorted(placements, key=lambda placement: placement.demand)),
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            tiers=tiers,
            warnings=tuple(dict.fromkeys(self.warnings)),
            timings={**self.timings, "total": self._elapsed()},
        )
