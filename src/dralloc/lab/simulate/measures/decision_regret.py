"""How much more each decision could have placed, with a proof.

At each decision the problem is that of everybody who waits, with what is in use at that moment. What the policy places
is one of its answers. The optimum is searched for from there, so that it is never worse; how far it can be at most is
proven. Of answers of this moment nothing says that they are good later on: that is what the clairvoyant bound is about
(see `dralloc.lab.simulate.measures.clairvoyant_bound`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from dralloc.check import violations
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.measures.clairvoyant_bound import values_of
from dralloc.lab.simulate.placing import Placer
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.choices import Choices, Goal
from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.optimum import solve

__all__ = ["DecisionRegret", "WatchedPlacer"]


@dataclass(frozen=True, slots=True)
class DecisionRegret:
    """The devices that a decision placed, beside the optimum.

    Parameters
    ----------
    placed
        What the policy placed.
    best
        What the best known answer places.
    bound
        What no answer can exceed.
    """

    placed: int
    best: int
    bound: int

    @property
    def regret(self) -> int:
        """The most that can have been missed, proven; never negative."""
        return self.bound - self.placed


_REGRETS: Final = TypeAdapter(DecisionRegret)


class WatchedPlacer(Placer):
    """A placer whose decisions are held against the optimum.

    Attributes
    ----------
    regrets
        One for each decision.
    """

    def __init__(
        self,
        watched: Placer,
        choices: Choices,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(watched.incoming)
        self._kept = kept or KeptAnswers()
        self.regrets: list[DecisionRegret] = []
        self._watched = watched
        self._choices = replace(choices, goal=Goal.NONE)
        self._values = values_of(watched.incoming)

    def equal_jobs(self, job: int) -> Hashable:
        """Ask the watched placer."""
        return self._watched.equal_jobs(job)

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Let the watched placer decide, then look for something better."""
        waiting = [
            arrival
            for job in queue.in_order()
            for arrival in self.incoming.jobs[job]
            if self.incoming.demands[arrival] is not None
        ]
        before = self._problem_of(waiting)
        placed: set[int] = set()
        for job in self._watched.decide(queue):
            placed.update(self.incoming.jobs[job])
            yield job
        judged = self._kept.once(
            _REGRETS, lambda: self._judged(before, waiting, placed)
        )
        self.regrets.append(judged)

    def _problem_of(self, waiting: Sequence[int]) -> Problem:
        """Return the problem of those who wait, where each is worth the devices that it asks for."""
        demand_indices = [
            demand_index
            for arrival in waiting
            if (demand_index := self.incoming.demands[arrival]) is not None
        ]
        problem = self._watched.waiting_problem(demand_indices)
        pairs = zip(waiting, problem.demands, strict=True)
        demands = tuple(
            replace(demand, weight=self._values[arrival])
            for arrival, demand in pairs
        )
        return replace(problem, demands=demands)

    def _judged(
        self, problem: Problem, waiting: Sequence[int], placed: set[int]
    ) -> DecisionRegret:
        value = sum(
            self._values[arrival] for arrival in waiting if arrival in placed
        )
        if value == sum(self._values[arrival] for arrival in waiting):
            return DecisionRegret(value, value, value)
        held = self._watched.whole_placements()
        answer = Solution(
            tuple(
                replace(held[arrival], demand=DemandIndex(demand_index))
                for demand_index, arrival in enumerate(waiting)
                if arrival in placed and arrival in held
            )
        )
        start = first_fit(problem) if violations(problem, answer) else answer
        best = solve(problem, self._choices, start)
        tier = best.tiers[0]
        return DecisionRegret(
            value, max(value, tier.value), max(value, tier.bound)
        )

    def release(self, arrival: int) -> None:
        """Let the watched placer do it."""
        self._watched.release(arrival)

    def exchange(
        self, leaving: Sequence[int], entering: Sequence[Placement]
    ) -> bool:
        """Let the watched placer do it."""
        return self._watched.exchange(leaving, entering)

    @property
    def problem(self) -> Problem:
        """The same as that of the watched placer."""
        return self._watched.problem

    def as_running(self, demand: Demand) -> Demand:
        """Ask the watched placer."""
        return self._watched.as_running(demand)

    @property
    def placements(self) -> Mapping[int, Placement]:
        """The placements of the watched placer."""
        return self._watched.placements

    @property
    def ledger(self) -> SearchLedger:
        """The same as that of the watched placer."""
        return self._watched.ledger

    def node_of(self, arrival: int) -> str:
        """Ask the watched placer."""
        return self._watched.node_of(arrival)

    def placement_of(self, arrival: int) -> Placement | None:
        """Ask the watched placer."""
        return self._watched.placement_of(arrival)
