"""Everybody who waits, placed together: by the optimum, or by a policy with an order of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dralloc.compile.compiler.worth import annotated_values, worth_of
from dralloc.lab.simulate.incoming import Incoming
from dralloc.lab.simulate.placing import RunPlacer
from dralloc.lab.simulate.queue import WaitingQueue
from dralloc.objects.choices import Choices, Goal, Priorities
from dralloc.problem import Problem
from dralloc.problem.solution import Placement, Solution, grants_of
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.optimum import solve
from dralloc.solve.recreate import Starts

__all__ = ["BatchPlacer", "OptimalPlacer"]

Answer = Callable[[Problem], Solution]
"""Answers a problem of what waits, with what is in use now."""


class BatchPlacer(RunPlacer):
    """Asks for an answer to all that waits, and accepts it."""

    def __init__(self, waiting: Incoming, answer: Answer) -> None:
        super().__init__(waiting, QuickRun(waiting.problem))
        self._answer = answer

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Ask about everybody at once."""
        jobs = queue.in_order()
        members = [(number, job) for job in jobs for number in self._demands(job)]
        if not members:
            return
        numbers = [number for number, _ in members]
        solution = self._answer(self.waiting_problem(numbers))
        placed = set()
        for placement in solution.placements:
            number, job = members[placement.demand]
            self.accept(replace(placement, demand=number))
            placed.add(job)
        yield from (job for job in jobs if job in placed)

    def accept(self, placement: Placement) -> None:
        """Enter a placement of an answer, in the numbers of the whole problem."""
        self._places[placement.demand] = len(self._run.placements)
        self._run.accept(placement)

    def _demands(self, job: int) -> list[int]:
        numbers = (
            self.incoming.demands[arrival] for arrival in self.incoming.jobs[job]
        )
        return [number for number in numbers if number is not None]


class OptimalPlacer(BatchPlacer):
    """The optimum of each batch, as `dralloc.allocate` finds it."""

    def __init__(self, waiting: Incoming, choices: Choices) -> None:
        super().__init__(waiting, self._optimum)
        self._choices = choices

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Where first fit places everybody with the best alternatives, nothing is better, and nothing is solved."""
        jobs = queue.in_order()
        fitting = Goal(self._choices.goal) is Goal.NONE and self._all_fit(jobs)
        yield from jobs if fitting else super().decide(queue)

    def _all_fit(self, jobs: Sequence[int]) -> bool:
        """Place all jobs by first fit, or none of them."""
        placements = self._run.placements
        before = len(placements)
        for job in jobs:
            mine = len(placements)
            fits = self.place(job)
            if not fits or any(
                served.rank
                for _, served, _ in grants_of(self.incoming.problem, placements[mine:])
            ):
                for placement in reversed(placements[before:]):
                    self.release(self.incoming.arrival_of[placement.demand])
                return False
        return True

    def _optimum(self, problem: Problem) -> Solution:
        priorities = Priorities(self._choices.priorities)
        values = annotated_values(self.incoming.compiled.cluster, problem.demands)
        weighted = worth_of(
            problem, priorities, self._choices.objective, values
        ).applied(problem)
        starts = Starts(weighted, self._choices)
        return solve(weighted, self._choices, first_fit(weighted), starts=starts)
