"""A stage of a solve: some tiers, and the components into which the problem is split for them.

What can be counted is solved over classes, and what shares nodes in bundles is packed. The rest is split by what it
shares, if it is small enough to look at every device; it is searched, and decided by the exact model at last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Final

from dralloc.objects.choices import Goal, Options
from dralloc.objects.errors import AllocationError, ModelError
from dralloc.problem import DemandIndex, Problem
from dralloc.solve.optimum.answered import Answered
from dralloc.solve.optimum.candidates import (
    CandidateSite,
    CandidateSurvey,
    survey,
)
from dralloc.solve.optimum.classes.component import CountedComponent
from dralloc.solve.optimum.classes.count_model import Counted
from dralloc.solve.optimum.classes.counted_goals import with_goal
from dralloc.solve.optimum.component import Component, Part
from dralloc.solve.optimum.division import divide
from dralloc.solve.optimum.improve import SearchedComponent
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.packing.component import PackedComponent
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.room import (
    CrampedGroup,
    cramped_groups,
    waiting_groups,
)
from dralloc.solve.optimum.sharing import components
from dralloc.solve.optimum.stopping import Stop, Stopped, TooLarge
from dralloc.solve.work import phase

__all__ = ["Split", "Stage", "Surveys"]

_DIVISION: Final = 0.4
"""The part of the time that may pass until it is known what classes can count."""

_CANDIDATES_OF_SUSPECTS: Final = 40_000
"""Where a cluster is too large to look at every device, demands that wait and have so many candidates together are
looked at by themselves."""

_demand_of = attrgetter("demand")


@dataclass(frozen=True, slots=True)
class Stage:
    """Some of the tiers, most important first, and the problem that they are solved for.

    Parameters
    ----------
    tiers
        What components count.
    levels
        How many of these tiers are solved.
    goal
        What joins components beyond the rules.
    """

    problem: Problem
    tiers: tuple[Objective, ...]
    levels: int
    goal: Goal = Goal.NONE


class Surveys:
    """Works out where demands could go.

    Not by the solve itself: components that knew it would keep each other alive with all that they have built, until
    garbage is collected.

    Attributes
    ----------
    found_too_large
        Whether a component had too many candidates for the exact model.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.found_too_large = False

    def survey(
        self, problem: Problem, demands: Sequence[DemandIndex], stop: Stop
    ) -> CandidateSurvey:
        """Raises `Stopped` if there is no time for it, or `TooLarge`."""
        return survey(
            problem,
            demands,
            strict_cel=self._options.strict_cel,
            stop=stop,
            most_candidates=self._options.thresholds.candidates,
        )

    def sites(
        self, problem: Problem, demands: Sequence[DemandIndex], stop: Stop
    ) -> Mapping[DemandIndex, tuple[CandidateSite, ...]]:
        """Look up sites for the exact model; raises as `survey`."""
        try:
            return self.survey(problem, demands, stop).sites
        except TooLarge:
            self.found_too_large = True
            raise


class Split:
    """Splits the problem of a stage into components.

    Parameters
    ----------
    answers
        What is known of the demands, which components start from.
    stop
        What there is no time for stays as it is, as one component.

    Attributes
    ----------
    components
        What is to be solved: once it has run, each demand is in one of them.
    failures
        Selectors that failed on a device, which was left out.
    """

    def __init__(
        self,
        stage: Stage,
        answers: Sequence[Answered],
        options: Options,
        surveys: Surveys,
        stop: Stop,
    ) -> None:
        self._stage = stage
        self._options = options
        self._surveys = surveys
        self._stop = stop
        self.components: list[Part] = []
        self.failures: list[AllocationError] = []
        # Of gangs of which not all members have room, how many have.
        self._most_of_gang: dict[str, int] = {}
        self._demands: Sequence[DemandIndex] = sorted(
            demand for answer in answers for demand in answer.subset.demands
        )
        # Of demands that are in no component yet.
        self._placed = {
            placement.demand: placement
            for answer in answers
            for placement in answer.placements
        }

    def run(self, timings: dict[str, float]) -> None:
        """Count what can be counted, pack what can be packed, and split the rest by device.

        Parameters
        ----------
        timings
            By phase, the seconds that it took; they are added here.

        Raises
        ------
        ModelError
            A demand is placed that nothing can serve.
        """
        try:
            if not self._options.per_device:
                with phase(timings, "classes"), suppress(Stopped):
                    self._demands = self._by_class()
            with phase(timings, "survey"):
                self._by_device()
        except Stopped as reason:
            self._surveys.found_too_large |= isinstance(reason, TooLarge)
            subset = DemandSubset(self._stage.problem, self._demands)
            present = sorted(self._placed.values(), key=_demand_of)
            self.components.append(
                Component(subset, self._stage.tiers, present)
            )

    def _by_class(self) -> Sequence[DemandIndex]:
        """Split off what can be counted or packed, and return the demands that are left."""
        stage, problem = self._stage, self._stage.problem
        # What is too mixed for classes shows late, and then needs time to be searched.
        stop = self._stop.within(_DIVISION * self._stop.seconds())
        survey_all = partial(self._surveys.survey, problem, stop=self._stop)
        division = divide(problem, survey_all, self._options, stop)
        self.failures += division.failures
        parts: Sequence[Counted | PackingInstance] = (
            *division.counted,
            *division.packed,
        )
        if stage.goal is not Goal.NONE:
            # A goal is about all demands together: classes count it if they have all.
            joint = None
            if not division.per_device and not division.packed:
                joint = with_goal(
                    stage.goal, problem, division.counted, self._stop
                )
            if joint is None:
                return self._demands
            parts = (joint,)
        for part in parts:
            subset = DemandSubset(problem, part.demands)
            hint = [
                self._placed.pop(demand)
                for demand in part.demands
                if demand in self._placed
            ]
            self.components.append(
                CountedComponent(subset, stage.tiers, part, hint)
                if isinstance(part, Counted)
                else PackedComponent(
                    subset, stage.tiers, part, hint, self._options
                )
            )
        return division.per_device

    def _by_device(self) -> None:
        """Split what is left by what it shares, if it is small enough to look at every device."""
        problem = self._stage.problem
        if not self._options.per_device and self._is_too_large_to_survey():
            # Demands that wait and have few candidates can be asked about all the same.
            hopeless: Set[DemandIndex] = frozenset()
            with suppress(Stopped):
                hopeless = self._without_room(self._suspects())
            demands = [
                demand for demand in self._demands if demand not in hopeless
            ]
            if demands:
                self._add_searched(
                    DemandSubset(
                        problem, demands, most_of_gang=self._most_of_gang
                    )
                )
            return
        surveyed = self._surveys.survey(problem, self._demands, self._stop)
        for demand in self._placed.keys() - surveyed.sites.keys():
            raise ModelError(
                f"hint: demand {problem.demands[demand].key} is placed, but nothing can serve it"
            )
        self.failures += surveyed.failures
        # The per-device model alone is a referee, and is told nothing beforehand.
        if not self._options.per_device:
            hopeless = self._without_room(surveyed.sites)
            sites = {
                demand: demand_sites
                for demand, demand_sites in surveyed.sites.items()
                if demand not in hopeless
            }
            surveyed = replace(surveyed, sites=sites)
        parts = components(problem, surveyed, self._stage.goal, self._stop)
        for members in parts:
            sites = {demand: surveyed.sites[demand] for demand in members}
            self._add_searched(
                DemandSubset(problem, members, sites, self._most_of_gang)
            )

    def _without_room(
        self, sites: Mapping[DemandIndex, tuple[CandidateSite, ...]]
    ) -> Set[DemandIndex]:
        """Return demands that nobody can place; and note the gangs of which not all can be placed."""
        hopeless: set[DemandIndex] = set()
        for group in cramped_groups(
            self._stage.problem,
            sites,
            self._placed.keys(),
            self._options,
            self._stop,
        ):
            if group.most == 0:
                hopeless.update(group.members)
            else:
                self._note_most(group)
        return hopeless

    def _note_most(self, group: CrampedGroup) -> None:
        """Note how many of a gang have room. Of several gangs that are placed together it is not known who has."""
        demands = self._stage.problem.demands
        gangs = {demands[member].gang for member in group.members}
        if len(gangs) == 1:
            [gang] = gangs
            self._most_of_gang[gang] = group.most

    def _suspects(self) -> Mapping[DemandIndex, tuple[CandidateSite, ...]]:
        """The sites of demands that wait and have few candidates, where there is too much to survey all of it."""
        problem = self._stage.problem
        waiting = waiting_groups(problem, self._demands, self._placed.keys())
        sizes = [
            (sum(map(self._capabilities.all_candidates, members)), members)
            for members in self._stop.hundreds(waiting)
        ]
        asked: list[DemandIndex] = []
        allowance = _CANDIDATES_OF_SUSPECTS
        for candidates, members in sorted(sizes):
            allowance -= candidates
            if allowance < 0:
                break
            asked += members
        return self._surveys.survey(problem, asked, self._stop).sites

    @cached_property
    def _capabilities(self) -> NodeCapabilities:
        """What nodes have for demands."""
        return NodeCapabilities(self._stage.problem)

    def _is_too_large_to_survey(self) -> bool:
        """Whether what is left has more candidates than are looked at one by one."""
        candidates = sum(
            self._capabilities.all_candidates(demand)
            for demand in self._stop.hundreds(self._demands)
        )
        return candidates > self._options.thresholds.surveyed

    def _add_searched(self, subset: DemandSubset) -> None:
        tiers = self._stage.tiers
        hint = [
            self._placed[demand]
            for demand in subset.demands
            if demand in self._placed
        ]
        if self._options.per_device:
            self.components.append(Component(subset, tiers, hint))
            return
        find_sites = partial(self._surveys.sites, self._stage.problem)
        self.components.append(
            SearchedComponent(subset, tiers, hint, find_sites)
        )
