"""The optimal mode: an exact CP-SAT model, solved tier by tier, with a proof or a bound.

`solve` answers a `dralloc.problem.Problem`; `build` gives the model itself, e.g. to export it. No type of OR-Tools
appears in what `solve` takes and returns.

Here the answer is put together: components in turn, tier by tier, within the time limit.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from math import inf
from time import perf_counter
from typing import Final

from dralloc.objects.choices import Backend, Goal, Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import Problem
from dralloc.problem.solution import (
    AskAppraisal,
    LevelPrices,
    Placement,
    Progress,
    Solution,
    Status,
    Tier,
)
from dralloc.solve.backends import is_elsewhere, starting_processes
from dralloc.solve.caps import within_caps
from dralloc.solve.optimum.admin_claims import AdminClaims, admin_claims
from dralloc.solve.optimum.answered import is_next
from dralloc.solve.optimum.classes.component import CountedComponent
from dralloc.solve.optimum.climbing import Climb, bounds_in_turn
from dralloc.solve.optimum.component import Part, Solvable, TimeSharing, build
from dralloc.solve.optimum.improve import (
    SearchedComponent,
    relaxation_stop,
)
from dralloc.solve.optimum.improve.task import WarmUp
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import (
    after_weight,
    fairness,
    placed_weight,
)
from dralloc.solve.optimum.packing.component import PackedComponent
from dralloc.solve.optimum.parallel import work_out
from dralloc.solve.optimum.relax.component import recall, take_over
from dralloc.solve.optimum.selector_failures import summed_up
from dralloc.solve.optimum.stage import Split, Stage, Surveys
from dralloc.solve.optimum.standing import Standing
from dralloc.solve.optimum.stopping import (
    Stop,
    Stopped,
    heeding_interrupts,
)
from dralloc.solve.optimum.turns import Turns
from dralloc.solve.work import phase

__all__ = [
    "Earlier",
    "Model",
    "Options",
    "Progress",
    "build",
    "solve",
]

_ENDING: Final = 3e-5
"""Seconds per demand for names, and for giving up what was made on the way."""

_STARTS: Final = 0.8
"""The part of the time in which answers to start from are made; one that is begun is made to the end."""

_STARTS_IN_BETWEEN: Final = 0.6
"""The same, of the time that a component has left that asks for them when it has begun."""

_NOT_EASY: Final = 0.4
"""After this part of the time, what is not proven yet gets a bound by relaxations beside the work on it."""

StartSearch = Callable[
    [Sequence[Placement], AskAppraisal, Callable[[], float], int],
    Iterable[Sequence[Placement]],
]
"""Makes answers to start from, given one, whom to ask what demands and nodes are worth, a clock that tells how many
seconds are left for that, and the number of jobs."""

_BEFORE_LAST: Final = 0.6
"""The part of the time until the last tiers are searched for, too, even if those before them are not proven."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The knowledge from an answer to a similar problem.

    Parameters
    ----------
    prices
        What proved its bound. They are tried before anything else.
    is_enough
        Told of the tier of the weight, says whether the search may end with that.
    """

    prices: Sequence[LevelPrices]
    is_enough: Callable[[Tier], bool] = lambda _: False


@without_garbage_collection()
def solve(  # noqa: PLR0913 - what to solve, and all that is known of it
    problem: Problem,
    options: Options | None = None,
    hint: Solution | None = None,
    progress: Callable[[Progress], None] | None = None,
    starts: StartSearch | None = None,
    earlier: Earlier | None = None,
) -> Solution:
    """Find the best answer and prove it, or come as far as the time limit allows.

    The tiers of the objective, most important first: ``weight``, the weight of the placed demands; fairness between
    namespaces, if the problem has budgets that say so; ``alternatives``, the ranks of the picked alternatives
    (KEP-4816); and the goal, if there is one. Each is solved with those before it
    fixed at what was found without it. A tier that could not be proven leaves those after it with the bounds that are
    known without solving, and those that relaxations prove of answers which place as much.

    Parameters
    ----------
    problem
        What is to be placed, and on what.
    options
        Time limit, goal and the like; the defaults if None.
    hint
        An answer to start from, such as first fit's; it must keep the rules. The result is never worse.
    starts
        Makes further answers to start from, which keep every rule but budgets. They are looked at one by one where the
        problem has to be searched, as long as there is time.
    progress
        Called from this thread whenever there is a better answer.
    earlier
        What an answer to a problem that differed little has come to.

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
    options = options or Options()
    limit = options.time_limit
    if limit is not None:
        # So that an answer with names is there in time.
        limit = max(limit / 2, limit - _ENDING * len(problem.demands))
    with heeding_interrupts() as cancelled:
        stop = Stop.after(limit, cancelled)
        aside = _set_aside(problem, options, stop)
        start = aside.without(hint.placements) if hint else ()

        def more_starts(
            known: Sequence[Placement],
            appraisal: AskAppraisal,
            seconds: Callable[[], float],
            jobs: int,
        ) -> Iterator[Sequence[Placement]]:
            if starts:
                present = aside.granted(Solution(tuple(known))).placements
                for placements in starts(present, appraisal, seconds, jobs):
                    yield aside.without(placements)

        # What was made on the way is given up here, before anybody would look whether it is garbage.
        return aside.granted(
            _Solve(
                aside.problem,
                options,
                stop,
                progress,
                start,
                more_starts,
                earlier,
            ).run()
        )


def _set_aside(problem: Problem, options: Options, stop: Stop) -> AdminClaims:
    """Set aside what classes need not know of. The per-device model decides it itself, as a referee."""
    if not options.per_device:
        with suppress(Stopped):
            return admin_claims(problem, stop, strict_cel=options.strict_cel)
    return AdminClaims(problem)


class _Solve:
    def __init__(  # noqa: PLR0913 - as `solve`
        self,
        problem: Problem,
        options: Options,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
        start: Sequence[Placement],
        make_starts: Callable[
            [
                Sequence[Placement],
                AskAppraisal,
                Callable[[], float],
                int,
            ],
            Iterator[Sequence[Placement]],
        ],
        earlier: Earlier | None,
    ) -> None:
        self.problem = problem
        self.options = options
        self.progress = progress
        self.earlier = earlier
        self._is_enough = False
        self._starting = stop
        self._make_starts = make_starts
        self._more_starts: Iterator[Sequence[Placement]] | None = None
        self.started = perf_counter()
        self.stop = stop
        self.goal = Goal(options.goal)
        self.weight = placed_weight(problem)
        self.tiers = (
            *self.weight,
            *fairness(problem),
            *after_weight(self.goal),
        )
        # A stage of no tiers: so `run` begins the first real one even if the time is over already.
        self.stage = Stage(problem, self.tiers, 0)
        self.standing = Standing(problem, self.weight, self.tiers, start)
        self._surveys = Surveys(options)
        self.failures: list[AllocationError] = []
        self.timings: dict[str, float] = {}

    def run(self) -> Solution:
        at_the_end = self.stop
        *early, last = self._stages()
        try:
            for stage in (*early, last):
                if self.stage.levels and self.stop.reached():
                    break
                # A stage fixes what those before it have reached: so that must be proven.
                if self.standing.is_proven():
                    self.stop = at_the_end
                    if stage is not last:
                        seconds = _BEFORE_LAST * at_the_end.seconds()
                        self.stop = at_the_end.within(seconds)
                    self._begin(stage)
                    self._work()
            self.stop = at_the_end
            if self.stage is not last and not self.options.per_device:
                self._search_all_tiers(last)
        except KeyboardInterrupt:
            if self.stop.cancelled:
                raise
        return self._solution()

    def _stages(self) -> Iterator[Stage]:
        """Tiers that need the per-device model come after those before them are solved without, and fixed."""
        last_tiers = after_weight(Goal.NONE)
        budgets = self.problem.budgets
        if budgets and all(budget.most is None for budget in budgets):
            # Without caps budgets only rank answers: the weight does not need them.
            yield Stage(
                replace(self.problem, budgets=()),
                (*self.weight, *last_tiers),
                len(self.weight),
            )
        plain = (*self.weight, *fairness(self.problem), *last_tiers)
        yield Stage(self.problem, plain, len(plain))
        if self.goal is not Goal.NONE:
            yield Stage(self.problem, self.tiers, len(self.tiers), self.goal)

    def _begin(self, stage: Stage) -> None:
        """Split the problem; what is proven stays so, part by part."""
        split = Split(
            stage,
            self.standing.components,
            self.options,
            self._surveys,
            self.stop,
        )
        split.run(self.timings)
        self.failures += split.failures
        self.standing.begin(split.components, stage.levels)
        self.stage = stage
        with phase(self.timings, "weight"):
            self._recall()
        with phase(self.timings, "starts"):
            self._prepare_search()

    def _recall(self) -> None:
        """Prove what proved much earlier: maybe what is in hand is enough."""
        if self.earlier is None:
            return
        if self.earlier.prices:
            for component in self.standing.searched():
                recall(component, self.earlier.prices, self.stop)
        self._look(self.standing.tiers()[0])

    def _look(self, weight: Tier) -> None:
        """Stop if the tier of the weight is as good as was asked for."""
        if self.earlier is not None and not self.stop.reached():
            self._is_enough = self.earlier.is_enough(weight)
            if self._is_enough:
                self.stop.cancelled.cancel()

    def _work(self) -> None:
        """Here, or in other processes if there is something for more than one."""
        # What namespaces use, and which devices are opened, is not known to an excerpt without devices.
        counted = any(
            isinstance(component, CountedComponent)
            for component in self.standing.components
        )
        # Neighbourhoods are searched from here, each in a process of its own. What goes elsewhere is decided by the
        # exact model alone, which knows nothing of steps.
        counts_steps = self.options.steps is not None
        searched = any(
            (component.needs_start or counts_steps)
            and self._is_unproven(component)
            for component in self.standing.searched()
        )
        stays_here = (
            searched
            or self.stage.problem.budgets
            or (counted and self.stage.goal is not Goal.NONE)
        )
        todo = list(
            compress(
                range(len(self.standing.components)),
                map(self._is_unproven, self.standing.components),
            )
        )
        if todo and not self.stop.reached():
            self._tell()
        if not stays_here and is_elsewhere(
            Backend(self.options.backend), self.options.jobs
        ):
            thresholds = self.options.thresholds
            if (
                len(todo) >= thresholds.components
                and self.stop.seconds() >= thresholds.seconds
            ):
                with phase(self.timings, "components"):
                    return self._work_elsewhere(todo)
        return self._work_here()

    def _search_all_tiers(self, stage: Stage) -> None:
        """Improve the last tiers, too, where those before them are not proven; what is known of these stays so."""
        component = SearchedComponent(
            self.standing.everything,
            stage.tiers,
            self.standing.placements(),
            partial(self._surveys.sites, self.problem),
        )
        self.failures += self.standing.failures()
        self.standing.go_on_with(component, stage.levels)
        self.stage = stage
        is_watched = self.progress or self.earlier
        watch = partial(self._report, 0, component) if is_watched else None
        with phase(self.timings, "all tiers"):
            # Bounds first: they hold for better answers as well, and take little of the time.
            component.climb(relaxation_stop(self.stop), self.stop)
            for level in range(stage.levels):
                component.bound_later(level, self.stop)
            component.improve_all(self.options, self.stop, watch)

    def _is_unproven(self, component: Part) -> bool:
        """Whether there is a tier to be solved."""
        return any(
            is_next(component, level) for level in range(self.stage.levels)
        )

    def _work_here(self) -> None:
        packed = [
            component
            for component in self.standing.components
            if isinstance(component, PackedComponent)
        ]
        for component in packed:
            with phase(self.timings, "classes"):
                component.begin(self.stop)
            component.take_starts = partial(
                self._take_starts_in_between, packed, jobs=self.options.jobs
            )
        searched = self.standing.searched()
        # Where some are large, answers to start from were made before.
        if self._more_starts is None:
            for part in searched:
                if part.needs_start:
                    part.take_starts = partial(
                        self._take_starts_in_between, searched
                    )
        for part in searched:
            part.take_starts_again = partial(self._take_starts_again, searched)
        watch = self._report if self.progress or self.earlier else None
        sharing = TimeSharing(self.options, self.stop, watch, self.timings)
        over_classes = [
            component
            for component in self.standing.components
            if not isinstance(component, SearchedComponent)
        ]
        with self._climbing_on(over_classes):
            sharing.improve(range(self.stage.levels), self.standing.components)
        # Components that knew the solve would be kept alive by each other until garbage is collected.
        asking: Sequence[PackedComponent | SearchedComponent]
        asking = (*packed, *searched)
        for asker in asking:
            asker.take_starts = None
        for part in searched:
            part.take_starts_again = None

    def _work_elsewhere(self, todo: Sequence[int]) -> None:
        sent = [
            self.standing.components[component_index]
            for component_index in todo
        ]
        with (
            self._climbing_on(sent),
            closing(
                work_out(
                    self.stage.problem,
                    sent,
                    self.options,
                    self.stage.levels,
                    self.stop,
                )
            ) as answers,
        ):
            for index, answer in answers:
                answer.enter(sent[index])
                self._tell()

    def _climbing_on(self, components: Sequence[Part]) -> Climb:
        """Bound components in the meantime that do not do so themselves, if they are not easy.

        Not for the per-device model alone, the referee.
        """
        is_wanted = self._is_by_the_clock and not self.options.per_device
        return Climb(
            components if is_wanted else (),
            self.stop,
            patience=_NOT_EASY * self.stop.seconds() if is_wanted else 0.0,
        )

    @property
    def _is_by_the_clock(self) -> bool:
        """Whether what is found may depend on the clock: not where steps are counted, or all the time is there."""
        return self.stop.seconds() < inf and self.options.steps is None

    def _seconds_for_starts(self) -> float:
        return self._starting.seconds()

    def _prepare_search(self) -> None:
        """Bound what is searched, if some of it takes long, and let what is large start from the best that is cheap.

        All parts get a bound: they may have no time for it afterwards.
        """
        components = self.standing.searched()
        is_worthwhile = any(component.needs_start for component in components)
        if not is_worthwhile or self.stop.reached():
            return
        large = [component for component in components if component.is_large]
        small = [
            component for component in components if not component.is_large
        ]
        # Small ones are searched in this process, beside the exact model; if they need others, these start then.
        backend, jobs = Backend(self.options.backend), self.options.jobs
        if not large:
            jobs = 1
        self._tell()
        is_relaxed = bool(self.earlier and self.earlier.prices)
        if large and is_elsewhere(backend, jobs) and self._is_by_the_clock:
            self._relax_beside_starts((*large, *small), is_relaxed=is_relaxed)
            return
        with starting_processes(WarmUp().run, backend, jobs):
            if not is_relaxed:
                self._relax((*large, *small))
        if large:
            # Where none is large, each asks for answers when a glance of the exact model has not decided it.
            self._consider_starts((*large, *small))

    def _relax(self, components: Sequence[SearchedComponent]) -> None:
        """Climb the ladder of relaxations for bounds, and for what demands are worth."""
        until = relaxation_stop(self.stop)
        bounds = bounds_in_turn(
            components, lambda component: component.relaxation.climb(until)
        )
        for component, bound in bounds:
            take_over(component, bound)
            self._tell()
        for component in components:
            # Also where a rung took too long: what is known is what the search goes by.
            component.relaxation.appraise(self.stop)

    def _relax_beside_starts(
        self, components: Sequence[SearchedComponent], *, is_relaxed: bool
    ) -> None:
        """Climb the ladder of relaxations, and on beside the search for answers to start from, which is elsewhere.

        That begins when the prices are good enough to go by, or when it has waited for long. A rung that has been begun
        by then is climbed to its end: its prices are there for what is searched later.

        Parameters
        ----------
        is_relaxed
            Whether the prices of an earlier answer are good enough.
        """
        backend, jobs = Backend(self.options.backend), self.options.jobs
        before_search = None if is_relaxed else relaxation_stop(self.stop)
        until = self.stop.within(_STARTS * self.stop.seconds())
        with Climb(components, until, before_search=before_search) as climb:
            with starting_processes(WarmUp().run, backend, jobs):
                for _ in climb.wait_before_search():
                    self._tell()
            self._consider_starts(components)

    def _consider_starts(self, components: Sequence[SearchedComponent]) -> None:
        """Make answers to start from for the whole problem; all consider their part."""
        self._starting = self.stop.within(_STARTS * self.stop.seconds())
        self._take_starts(components, self.options.jobs)

    def _take_starts(
        self,
        components: Sequence[SearchedComponent | PackedComponent],
        jobs: int,
    ) -> None:
        """Have components consider answers to start from, until there is no time for more or there are no more.

        Where neighbourhoods gain more, they are searched in between; further answers start from what that comes to.
        """
        searched = [
            component
            for component in components
            if isinstance(component, SearchedComponent)
        ]
        turns = Turns(searched if self._is_by_the_clock else (), self._starting)
        for _ in self._considered(components, jobs):
            if turns.end_of_small_changes():
                turns.search_neighbourhoods(replace(self.options, jobs=jobs))
                self._more_starts = None
                self._tell()

    def _considered(
        self,
        components: Sequence[SearchedComponent | PackedComponent],
        jobs: int,
    ) -> Iterator[None]:
        """Have components consider answers to start from, and stop at each of them."""
        while (placements := next(self._starts(jobs), None)) is not None:
            for component in components:
                members = set(component.subset.demands)
                own_placements = [
                    placement
                    for placement in placements
                    if placement.demand in members
                ]
                component.consider(within_caps(self.problem, own_placements))
            self._tell()
            if self.earlier is not None:
                self._look(self.standing.tiers()[0])
            if self._starting.reached():
                break
            yield

    def _take_starts_in_between(
        self,
        components: Sequence[SearchedComponent | PackedComponent],
        stop: Stop,
        jobs: int,
    ) -> None:
        """Have components consider such answers, in a part of the time that is left until the stop.

        Answers are made once for the whole problem: the component that asks first asks for the others, too.
        """
        self._starting = stop.within(_STARTS_IN_BETWEEN * stop.seconds())
        self._take_starts(components, jobs)

    def _take_starts_again(
        self,
        components: Sequence[SearchedComponent | PackedComponent],
        stop: Stop,
        jobs: int,
    ) -> None:
        """Have components consider answers that are made anew, out of what is known now."""
        self._more_starts = None
        self._take_starts_in_between(components, stop, jobs)

    def _starts(self, jobs: int) -> Iterator[Sequence[Placement]]:
        """Return answers to start from: in a later stage, those that were not asked for before."""
        if self._more_starts is None:
            self._more_starts = self._make_starts(
                self.standing.placements(),
                self.standing.appraisal,
                self._seconds_for_starts,
                jobs,
            )
        return self._more_starts

    def _elapsed(self) -> float:
        return perf_counter() - self.started

    def _report(
        self, level: int, running: Solvable, best: int, bound: int
    ) -> None:
        """Tell the state of a tier while a component is solved."""
        tier = self.standing.tier_while(level, running, best, bound)
        if level < len(self.weight):
            self._look(tier)
        self._tell_of(tier)

    def _tell(self) -> None:
        """Tell the state of the first tier that is not proven, or of the last."""
        if self.progress:
            tiers = self.standing.tiers()
            self._tell_of(
                next((tier for tier in tiers if not tier.proven), tiers[-1])
            )

    def _tell_of(self, tier: Tier) -> None:
        if self.progress:
            self.progress(
                Progress(tier.name, tier.value, tier.bound, self._elapsed())
            )

    def _with_reason(self, tier: Tier) -> Tier:
        """A tier that is not proven with why, and by what relaxations the bound of the weight is."""
        if tier.proven:
            return tier
        relaxations = self.standing.reasons() if tier.name == "weight" else ()
        bounds = [f"bound: a relaxation {why}" for why in relaxations]
        return replace(tier, why="; ".join([self._reason(), *bounds]))

    def _reason(self) -> str:
        """Why not everything is proven."""
        if self._is_enough:
            return "it is as good as the answer before"
        if self.stop.cancelled:
            return "it was interrupted"
        if self._surveys.found_too_large:
            return "a model of every device would be too large"
        if self.stop.reached():
            return "the time was over"
        return "the solver gave up"

    def _solution(self) -> Solution:
        tiers = tuple(map(self._with_reason, self.standing.tiers()))
        return Solution(
            placements=self.standing.placements(),
            status=Status.OPTIMAL
            if all(tier.proven for tier in tiers)
            else Status.FEASIBLE,
            tiers=tiers,
            warnings=summed_up((*self.failures, *self.standing.failures())),
            timings={**self.timings, "total": self._elapsed()},
            prices=self.standing.prices(),
            most_placed=self.standing.most_placed(),
        )
