"""Everybody who waits, placed together: by the optimum, or by a policy with an order of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pydantic import TypeAdapter

from dralloc.compile.compiler.worth import annotated_values, worth_of
from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.placing import RunPlacer
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.choices import Choices, Goal, Priorities
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.solution import LevelPrices, Placement, Solution, grants_of
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.optimum import Earlier, solve
from dralloc.solve.optimum.stopping import ended_by_interrupts
from dralloc.solve.recreate.starts import Starts

__all__ = ["BatchPlacer", "OptimalPlacer", "weighted"]

_BATCHES: Final = TypeAdapter(tuple[Placement, ...])

Answer = Callable[[Problem], Solution]
"""Answers a problem of what waits, with what is in use now."""


class BatchPlacer(RunPlacer):
    """Asks for an answer to all that waits, and accepts it."""

    def __init__(
        self,
        waiting: Incoming,
        answer: Answer,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(waiting, QuickRun(waiting.problem))
        self._answer = answer
        self._kept = kept or KeptAnswers()

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Ask about everybody at once."""
        jobs = queue.in_order()
        members = [
            (demand, job) for job in jobs for demand in self._demands(job)
        ]
        if not members:
            return
        demands = [demand for demand, _ in members]

        def answer() -> tuple[Placement, ...]:
            return self._answer(self.waiting_problem(demands)).placements

        placed = set()
        for placement in self._kept.once(_BATCHES, answer):
            demand, job = members[placement.demand]
            self.accept(replace(placement, demand=demand))
            placed.add(job)
        yield from (job for job in jobs if job in placed)

    def _demands(self, job: int) -> list[DemandIndex]:
        demands = (
            self.incoming.demands[arrival]
            for arrival in self.incoming.jobs[job]
        )
        return [demand for demand in demands if demand is not None]


class OptimalPlacer(BatchPlacer):
    """The optimum of each batch, as `dralloc.allocate` finds it."""

    def __init__(
        self,
        waiting: Incoming,
        choices: Choices,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(waiting, self._optimum, kept)
        self._choices = choices
        self._prices: tuple[LevelPrices, ...] = ()

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Place everybody by first fit if all get their best alternatives, as nothing is better; else solve."""
        jobs = queue.in_order()
        fitting = Goal(self._choices.goal) is Goal.NONE and self._all_fit(jobs)
        yield from jobs if fitting else super().decide(queue)

    def _all_fit(self, jobs: Sequence[int]) -> bool:
        """Place all jobs by first fit, or none of them."""
        placements = self._run.placements
        before = len(placements)
        for job in jobs:
            before_job = len(placements)
            fits = self.place(job)
            if not fits or any(
                served.rank
                for _, served, _ in grants_of(
                    self.incoming.problem, placements[before_job:]
                )
            ):
                for placement in reversed(placements[before:]):
                    self.release(self.incoming.arrival_of[placement.demand])
                return False
        return True

    def _optimum(self, problem: Problem) -> Solution:
        valued = weighted(self.incoming, problem, self._choices)
        # Ctrl-C ends the simulation, and not one decision of it.
        with ended_by_interrupts() as check:
            solution = solve(
                valued,
                self._choices,
                first_fit(valued),
                starts=Starts(valued, self._choices),
                earlier=Earlier(self._prices),
            )
            check()
        # What proved a bound most often proves that of the next batch, too.
        self._prices = solution.prices or self._prices
        return solution


def weighted(incoming: Incoming, problem: Problem, choices: Choices) -> Problem:
    """Return a problem whose demands have the weights that `dralloc.allocate` would give them."""
    values = annotated_values(incoming.compiled.cluster, problem.demands)
    worth = worth_of(
        problem, Priorities(choices.priorities), choices.objective, values
    )
    return worth.applied(problem)
