"""The search: choose neighbourhoods, solve them side by side, keep what is better; again and again.

Source: Shaw 1998.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.errors import AllocationError
from dralloc.problem.solution import Appraisal, Placement
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.neighbourhood import (
    Neighbourhood,
    neighbourhood,
)
from dralloc.solve.optimum.improve.selection import (
    NeighbourhoodSelection,
    Proposal,
)
from dralloc.solve.optimum.improve.task import ExtraRules, NeighbourhoodTask
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.work import Parcel, jobs_in, run_all

__all__ = ["NeighbourhoodSearch"]


class _Reach(NamedTuple):
    """About so many demands are freed at once, and so much the solver may do about it (see `Stop.effort`)."""

    size: int
    effort: float


_REACHES: Final = (_Reach(24, 0.1), _Reach(40, 0.2))
"""Small neighbourhoods as long as they help: they are decided in a third of the time. Then large ones."""

_FARTHEST: Final = _Reach(100, 2.0)
"""At last neighbourhoods that hold all of a few nodes, or of the whole problem if it is small. Each takes seconds; none
takes more work of the solver, not for a gang either."""

_FEWEST_SIDE_BY_SIDE: Final = 8
_MOST_SIDE_BY_SIDE: Final = 32
_NODES_FOR_A_NEIGHBOURHOOD: Final = 12
"""Neighbourhoods that have nothing in common are solved at a time: one for every twelve nodes, within these limits, by
however many processes. So the answer after a number of steps does not depend on how many processes there are. With more
neighbourhoods, processes wait less for the last one; but each is solved without what the others bring."""

_DRAWS: Final = 3
"""So many are drawn at most for each neighbourhood that is solved: many have nothing to gain, or meet others."""

_PATIENCE: Final = 3
"""So often all could have had a turn in the largest neighbourhoods without any gain before the search gives up."""


class NeighbourhoodSearch:
    """Improves an answer to some demands of a problem.

    Parameters
    ----------
    subset
        The demands. Others take nothing that these could take.
    tiers
        What counts, most important first.
    placements
        The answer to begin with.
    options
        The seed, the jobs and where they are done.
    aim
        An answer is better if one of so many tiers is, the first ones, without loss in those before it; None for all.
        Later tiers come with it.
    extra
        Rules beyond those of the problem, which the placements keep.
    appraisal
        What demands and nodes are worth; None if that is not known.
    thorough
        Whether to try neighbourhoods at last that take seconds each. Where an exact model of the whole follows, that
        does better with the time.

    Attributes
    ----------
    steps
        How many neighbourhoods were solved.
    failures
        Selectors that failed on a device, by what they say.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        options: Options,
        *,
        aim: int | None = None,
        extra: ExtraRules | None = None,
        appraisal: Appraisal | None = None,
        thorough: bool = True,
    ) -> None:
        self.subset = subset
        self.problem = subset.problem
        self.tiers = tiers
        self.aim = len(tiers) if aim is None else aim
        self.options = options
        self._reaches = (*_REACHES, _FARTHEST) if thorough else _REACHES
        self.incumbent = Incumbent(self.problem, placements)
        self.extra = extra
        self.bonds = Bonds(
            self.problem, extra.together(self.problem) if extra else ()
        )
        self.selection = NeighbourhoodSelection(
            self.incumbent,
            self.bonds,
            subset.demands,
            options.seed,
            self._reaches[-1].size,
            appraisal,
            counts_weight_alone=all(
                tier.weights is not None for tier in tiers[: self.aim]
            ),
        )
        self._whole = Parcel(self.problem)
        self.steps = 0
        self.failures: dict[str, AllocationError] = {}
        self._side_by_side = min(
            max(
                len(self.problem.nodes) // _NODES_FOR_A_NEIGHBOURHOOD,
                _FEWEST_SIDE_BY_SIDE,
            ),
            _MOST_SIDE_BY_SIDE,
        )

    def run(self, stop: Stop) -> Iterator[tuple[Placement, ...]]:
        """Search, and give out each better answer, until nothing helps any more.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        for reach in self._reaches:
            patience = _PATIENCE if reach is self._reaches[-1] else 1
            in_vain = 0
            while (
                in_vain < patience * self.selection.turns(reach.size)
                and self.steps != self.options.steps
            ):
                stop.check()
                proposals = self._proposals(reach)
                gains = self._round(proposals, reach, stop)
                in_vain += max(1, len(proposals))
                if any(gains):
                    in_vain = 0
                    yield self.incumbent.in_order()

    def _proposals(self, reach: _Reach) -> list[Proposal]:
        """Neighbourhoods that can be solved side by side."""
        # What a namespace may still use is known to one neighbourhood at a time.
        limited = self.problem.budgets or (self.extra and self.extra.is_limited)
        proposal_limit = 1 if limited else self._side_by_side
        if self.options.steps is not None:
            proposal_limit = min(
                proposal_limit, self.options.steps - self.steps
            )
        proposals: list[Proposal] = []
        for _ in range(_DRAWS * proposal_limit):
            if len(proposals) == proposal_limit:
                break
            proposal = self.selection.propose(proposals, reach.size)
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def _round(
        self, proposals: Sequence[Proposal], reach: _Reach, stop: Stop
    ) -> list[bool]:
        """Solve these neighbourhoods, and take over what is better; whether each of them was."""
        areas: list[Neighbourhood] = []
        answers = dict(
            run_all(
                self._tasks(proposals, reach, areas, stop),
                Backend(self.options.backend),
                jobs_in(stop.seconds(), self.problem, self.options.jobs),
                as_made=True,
            )
        )
        gains = []
        for place, area in enumerate(areas):
            answer = answers[place]
            self.failures.update(
                (str(failure), failure) for failure in answer.failures
            )
            gain = self._take_over(area, answer.placements)
            self.selection.learn(proposals[place], better=gain)
            gains.append(gain)
        self.steps += len(proposals)
        return gains

    def _tasks(
        self,
        proposals: Sequence[Proposal],
        reach: _Reach,
        areas: list[Neighbourhood],
        stop: Stop,
    ) -> Iterator[NeighbourhoodTask]:
        """Make the tasks of neighbourhoods one by one; fewer if it is time to stop.

        Parameters
        ----------
        areas
            Filled in here, task by task: the neighbourhoods.
        """
        end = inf if stop.seconds() == inf else time.time() + stop.seconds()
        for place, proposal in enumerate(proposals):
            # What is under way is still solved: `run` asks again whether to stop before the next round.
            if stop.reached():
                break
            area = neighbourhood(
                self._whole,
                self.incumbent,
                self.bonds,
                proposal.blocks,
                proposal.nodes,
            )
            areas.append(area)
            yield NeighbourhoodTask(
                area.cutting,
                area.present,
                self.tiers,
                self.aim,
                self._extra(area),
                self._options(place),
                min(_FARTHEST.effort, reach.effort * proposal.effort),
                end,
            )

    def _extra(self, area: Neighbourhood) -> ExtraRules | None:
        """The further rules as they are beside all that is not freed."""
        if self.extra is None:
            return None
        freed, placed = set(area.freed), self.incumbent.placements
        beside = (
            placement
            for demand, placement in placed.items()
            if demand not in freed
        )
        return self.extra.beside(self.problem, beside)

    def _options(self, index: int) -> Options:
        """With a seed for each step, so that the solver does not go wrong in the same way again."""
        seed = (self.options.seed + self.steps + index) % MAX_SEED
        return Options(seed=seed, strict_cel=self.options.strict_cel)

    def _take_over(
        self, area: Neighbourhood, answer: Sequence[Placement] | None
    ) -> bool:
        """Take over the answer to a neighbourhood, if it is not worse; whether it is better."""
        after = None if answer is None else area.after(answer)
        if after is None:
            return False
        costs = self._costs(area, area.before)
        self._exchange(area.before, after)
        new_costs = self._costs(area, after)
        if new_costs > costs:
            self._exchange(after, area.before)
        return new_costs < costs

    def _exchange(
        self, withdrawn: Iterable[Placement], entered: Iterable[Placement]
    ) -> None:
        for placement in withdrawn:
            self.incumbent.withdraw(placement.demand)
        for placement in entered:
            self.incumbent.enter(placement)

    def _costs(
        self, area: Neighbourhood, placements: Sequence[Placement]
    ) -> list[int]:
        """What the answer costs by tier: of what adds up, the part of those who are freed."""
        freed = DemandSubset(self.problem, area.freed)
        answer = (
            ()
            if all(tier.adds_up for tier in self.tiers)
            else self.incumbent.in_order()
        )
        return [
            tier.cost(freed, placements)
            if tier.adds_up
            else tier.cost(self.subset, answer)
            for tier in self.tiers
        ]
