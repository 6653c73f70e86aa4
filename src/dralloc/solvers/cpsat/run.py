"""The optimal answer: components in turn, tier by tier, within the time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from dralloc.errors import ModelError
from dralloc.garbage import without_garbage_collection
from dralloc.problem import Problem
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.cpsat.budgets import fairness
from dralloc.solvers.cpsat.candidates import Survey, survey
from dralloc.solvers.cpsat.classes.divide import divide
from dralloc.solvers.cpsat.classes.part import CountedComponent
from dralloc.solvers.cpsat.components import components
from dralloc.solvers.cpsat.interrupt import asked_to_stop, heeding_interrupts
from dralloc.solvers.cpsat.objective import Objective, Part, objectives
from dralloc.solvers.cpsat.options import Goal, Options, Progress
from dralloc.solvers.cpsat.packing.part import PackedComponent
from dralloc.solvers.cpsat.parts import Component, Solvable
from dralloc.timing import phase

__all__ = ["solve"]

_LEAST_SECONDS = 0.01
"""Less time than this is not worth a run."""


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
        weight, *others = objectives(options.goal)
        self.tiers = (weight, *fairness(problem), *others)
        self.components: list[Solvable] = []
        self.warnings: list[str] = []
        self.timings: dict[str, float] = {}

    @without_garbage_collection()
    def run(self, hint: Solution | None) -> Solution:
        with heeding_interrupts():
            self._split(hint.placements if hint else ())
            for level, tier in enumerate(self.tiers):
                before = self._elapsed()
                try:
                    interrupted = self._tier(level)
                except KeyboardInterrupt:
                    if asked_to_stop():
                        raise
                    interrupted = True
                self.timings[tier.name] = self._elapsed() - before
                if interrupted:
                    break
            return self._solution()

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
            part, hint = self._part(counted.demands, placed)
            self.components.append(CountedComponent(part, self.tiers, counted.classes, counted.supplies, hint))
        for store in division.packed:
            part, hint = self._part(store.demands, placed)
            packed = PackedComponent(part, self.tiers, store, hint, self.options)
            packed.begin()
            self.components.append(packed)
        return division.left

    def _part(self, demands: Sequence[int], placed: dict[int, Placement]) -> tuple[Part, list[Placement]]:
        """The demands, and the hint's placements of them, which are taken out."""
        return Part(self.problem, demands), [placed.pop(demand) for demand in demands if demand in placed]

    def _split_by_device(self, placed: Mapping[int, Placement], demands: Sequence[int] | None) -> None:
        found = self._survey(demands)
        self.warnings += found.warnings
        for demand in placed.keys() - found.sites.keys():
            raise ModelError(f"hint: demand {self.problem.demands[demand].key} is placed, but nothing can serve it")
        for members in components(self.problem, found, self.options.goal):
            part = Part(self.problem, members, {demand: found.sites[demand] for demand in members})
            hint = [placed[demand] for demand in members if demand in placed]
            self.components.append(Component(part, self.tiers, hint))

    def _survey(self, demands: Sequence[int] | None) -> Survey:
        return survey(self.problem, demands, strict_cel=self.options.strict_cel)

    def _tier(self, level: int) -> bool:
        """Solve one tier of all components, the small ones first: what they leave of the time is for the large ones."""
        todo = [
            part
            for part in self.components
            if all(part.is_proven(before) for before in range(level)) and not part.is_proven(level)
        ]
        todo.sort(key=lambda part: part.size)
        to_come = sum(part.size for part in todo)
        for part in todo:
            limit = self._share(part.size / to_come if to_come else 1.0)
            to_come -= part.size
            if asked_to_stop():
                return True
            if limit is not None and limit < _LEAST_SECONDS:
                continue
            if part.improve(level, self.options, limit, lambda *news, part=part: self._report(level, part, *news)):
                return True
        return False

    def _share(self, share: float) -> float | None:
        if self.options.time_limit is None:
            return None
        return max(0.0, self.options.time_limit - self._elapsed()) * share

    def _elapsed(self) -> float:
        return perf_counter() - self.started

    def _report(self, level: int, running: Solvable, best: int, bound: int) -> None:
        """Tell the tier's state over the whole problem, with what the running component has reached."""
        if self.progress:
            others = [part for part in self.components if part is not running]
            costs = [part.cost(level) for part in others] + [best]
            bounds = [part.bounds[level] for part in others] + [max(bound, running.bounds[level])]
            tier = self._summary(self.tiers[level], costs, bounds)
            self.progress(Progress(tier.name, tier.value, tier.bound, self._elapsed()))

    def _summary(self, tier: Objective, costs: Sequence[int], bounds: Sequence[int]) -> Tier:
        cost, bound = tier.total(costs), tier.total(bounds)
        if tier.worth is not None:
            worth = tier.worth(self.problem, [one for part in self.components for one in part.placements])
            return Tier(tier.name, worth, worth + cost - bound, sense=1)
        if tier is not self.tiers[0]:
            return Tier(tier.name, cost, bound, sense=-1)
        weight = sum(part.part.weight for part in self.components)
        return Tier(tier.name, weight - cost, weight - bound, sense=1)

    def _solution(self) -> Solution:
        placements = [placement for part in self.components for placement in part.placements]
        tiers = tuple(
            self._summary(
                tier,
                [part.cost(level) for part in self.components],
                [part.bounds[level] for part in self.components],
            )
            for level, tier in enumerate(self.tiers)
        )
        proven = all(tier.proven for tier in tiers)
        return Solution(
            placements=tuple(sorted(placements, key=lambda placement: placement.demand)),
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            tiers=tiers,
            warnings=tuple(dict.fromkeys(self.warnings)),
            timings={**self.timings, "total": self._elapsed()},
        )
