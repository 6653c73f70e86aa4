"""First fit for many demands: in order, each on the first node that can hold all of its claims."""

from __future__ import annotations

from time import perf_counter

from dralloc.errors import AllocationError, FatalError, NodeError
from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.solution import Grant, Placement, Solution
from dralloc.solvers.first_fit.ledger import Ledger
from dralloc.solvers.first_fit.search import Search

__all__ = ["first_fit"]


def first_fit(problem: Problem) -> Solution:
    """Place the demands one after the other; what one gets is in use for the next.

    A fatal error ends the attempt for that demand. After an error of one node the next node is tried, and the last such
    error is kept if no node fits (upstream's scheduler plugin).
    """
    started = perf_counter()
    run = _Run(problem)
    for number in range(len(problem.demands)):
        run.place(number)
    timings = {"first fit": perf_counter() - started}
    return Solution(tuple(run.placements), errors=run.errors, timings=timings, steps=run.steps)


class _Run:
    """One pass over the demands."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ledger = Ledger(problem)
        self._allocated: dict[ClaimKey, tuple[int, tuple[Grant, ...]]] = {}
        self.placements: list[Placement] = []
        self.errors: dict[int, AllocationError] = {}
        self.steps = 0

    def place(self, number: int) -> None:
        """Place a demand on the first node that can hold it, or note why that ended with an error."""
        demand = self._problem.demands[number]
        for node in self._problem.candidate_nodes(demand):
            try:
                placement = self._try(number, demand, node)
            except FatalError as error:
                self.errors[number] = error
                return
            except NodeError as error:
                self.errors[number] = error
                continue
            if placement is not None:
                self.placements.append(placement)
                self.errors.pop(number, None)
                return

    def _try(self, number: int, demand: Demand, node: int) -> Placement | None:
        shared = [self._allocated[claim.key] for claim in demand.claims if claim.key in self._allocated]
        if not all(self._problem.usable_from(grant.device, home, node) for home, grants in shared for grant in grants):
            return None
        open_claims = [claim for claim in demand.claims if claim.key not in self._allocated]
        search = Search(self._problem, self._ledger, open_claims, node)
        try:
            found = search.run()
        finally:
            self.steps = search.steps
        if found is None:
            return None
        self._ledger.settle()
        granted = dict(zip((claim.key for claim in open_claims), found, strict=True))
        self._allocated.update((key, (node, grants)) for key, grants in granted.items())
        return Placement(number, node, tuple(granted.get(claim.key, ()) for claim in demand.claims))
