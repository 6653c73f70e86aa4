"""The search: free neighbourhoods, solve them, keep what is better; again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.errors import AllocationError
from dralloc.problem.solution import Placement
from dralloc.solve.backends import run_all
from dralloc.solve.optimum.improve.bonds import Bonds
from dralloc.solve.optimum.improve.incumbent import Incumbent
from dralloc.solve.optimum.improve.neighbourhood import Neighbourhood, neighbourhood
from dralloc.solve.optimum.improve.selection import NeighbourhoodSelection, Proposal
from dralloc.solve.optimum.improve.task import ExtraRules, NeighbourhoodTask, as_task
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.stopping import Stop

__all__ = ["NeighbourhoodSearch"]


class _Reach(NamedTuple):
    """About so many demands are freed at once, and so much the solver may do about it (see `Stop.effort`)."""

    size: int
    effort: float


_REACHES: Final = (_Reach(16, 0.2), _Reach(40, 1.0))
"""Small neighbourhoods as long as they help: they are decided in a tenth of the time. Then large ones."""

_SIDE_BY_SIDE: Final = 8
"""So many neighbourhoods that have nothing in common are solved at a time, by however many processes: so the answer
after a number of steps does not depend on how many there are."""

_PATIENCE: Final = 3
"""So often all could have had a turn in large neighbourhoods without any gain before the search gives up."""


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
    extra
        Rules beyond those of the problem, which the placements keep.

    Attributes
    ----------
    steps
        How many neighbourhoods were solved.
    failures
        Selectors that failed on a device, by what they say.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        options: Options,
        *,
        extra: ExtraRules | None = None,
    ) -> None:
        self.subset = subset
        self.problem = subset.problem
        self.tiers = tiers
        self.options = options
        self.incumbent = Incumbent(self.problem, placements)
        self.extra = extra
        self.bonds = Bonds(self.problem, extra.together(self.problem) if extra else ())
        self.selection = NeighbourhoodSelection(
            self.incumbent, self.bonds, subset.demands, options.seed, _REACHES[-1].size
        )
        self.steps = 0
        self.failures: dict[str, AllocationError] = {}

    def run(self, stop: Stop) -> Iterator[tuple[Placement, ...]]:
        """Search, and give out each better answer, until nothing helps any more.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        for reach in _REACHES:
            patience = _PATIENCE if reach is _REACHES[-1] else 1
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
        most = 1 if limited else _SIDE_BY_SIDE
        if self.options.steps is not None:
            most = min(most, self.options.steps - self.steps)
        proposals: list[Proposal] = []
        while len(proposals) < most:
            proposal = self.selection.propose(proposals, reach.size)
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def _round(
        self, proposals: Sequence[Proposal], reach: _Reach, stop: Stop
    ) -> list[bool]:
        """Solve these neighbourhoods, and take over what is better; whether each of them was."""
        areas = [
            neighbourhood(self.incumbent, self.bonds, proposal.blocks, proposal.nodes)
            for proposal in stop.each(proposals)
        ]
        tasks = [
            as_task(
                area,
                self.tiers,
                self._extra(area),
                self._options(index),
                reach.effort,
                stop,
            )
            for index, area in enumerate(areas)
        ]
        self.failures.update(
            (str(failure), failure)
            for task in tasks
            if task
            for failure in task.failures
        )
        answers = self._answers(
            {index: task for index, task in enumerate(tasks) if task}
        )
        gains = []
        for index, (proposal, area) in enumerate(zip(proposals, areas, strict=True)):
            gain = self._take_over(area, answers.get(index))
            self.selection.learn(proposal, better=gain)
            gains.append(gain)
        self.steps += len(proposals)
        return gains

    def _extra(self, area: Neighbourhood) -> ExtraRules | None:
        """The further rules as they are beside all that is not freed."""
        if self.extra is None:
            return None
        freed, placed = set(area.freed), self.incumbent.placements
        beside = (one for demand, one in placed.items() if demand not in freed)
        return self.extra.beside(self.problem, beside)

    def _options(self, index: int) -> Options:
        """With a seed for each step, so that the solver does not go wrong in the same way again."""
        seed = (self.options.seed + self.steps + index) % MAX_SEED
        return Options(seed=seed, strict_cel=self.options.strict_cel)

    def _answers(
        self, tasks: Mapping[int, NeighbourhoodTask]
    ) -> dict[int, tuple[Placement, ...] | None]:
        """What comes out of each task."""
        numbers = list(tasks)
        results = run_all(
            list(tasks.values()), Backend(self.options.backend), self.options.jobs
        )
        return {numbers[position]: answer for position, answer in results}

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

    def _costs(self, area: Neighbourhood, placements: Sequence[Placement]) -> list[int]:
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
