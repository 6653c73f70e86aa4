"""One pass over the demands, each to the node with the lowest score.

A score belongs to a class of demands and a state of nodes, so it is worked out once for all of them. What happens on a
node changes the state of that node alone: for the next demand only the states that have come up since the last one of
its claim_class are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from dralloc.objects.errors import AllocationError
from dralloc.problem import Claim, Problem
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.first_fit.claim_classes import ClaimClass
from dralloc.solve.first_fit.plain import Found
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import Census, ComponentStates
from dralloc.solve.policies.scores import Scoring, ScoringContext

__all__ = ["ScoredRun"]


@dataclass(slots=True)
class ScoreQueue:
    """The states of nodes for one class of demands, best first.

    Parameters
    ----------
    seen
        How many arrivals have been looked at.
    known
        States that are in the queue, or that do not fit.
    scores
        A heap of the scores that there are.
    states
        By score.
    """

    seen: int = 0
    known: set[int] = field(default_factory=set)
    scores: list[int] = field(default_factory=list)
    states: dict[int, set[int]] = field(default_factory=dict)

    def enter(self, state: int, score: int) -> None:
        """Add a state."""
        if score not in self.states:
            heappush(self.scores, score)
        self.states.setdefault(score, set()).add(state)

    def best(self, first: Callable[[int], int | None]) -> tuple[int, int] | None:
        """The first node, and its state, of all with the best score; states without nodes are dropped."""
        while self.scores:
            states = self.states[self.scores[0]]
            found = {
                state: node for state in states if (node := first(state)) is not None
            }
            self.known -= states - found.keys()
            if found:
                self.states[self.scores[0]] = set(found)
                state = min(found, key=lambda one: found[one])
                return found[state], state
            del self.states[heappop(self.scores)]
        return None

    def drop(self, state: int) -> None:
        """A state with the best score does not fit."""
        self.states[self.scores[0]].discard(state)


class ScoredRun(QuickRun):
    """A run with a score. What first fit does about gangs, shared claims and defects stays as it is."""

    def __init__(self, problem: Problem, scoring: Scoring) -> None:
        super().__init__(problem)
        self._scoring = scoring
        self._begin()

    def _begin(self) -> None:
        """Read the ledger as it is."""
        problem, ledger = self._problem, self._ledger
        states = ComponentStates(problem, ledger)
        self._census = Census(problem, states)
        self._offers = ComponentOffers(problem, ledger, states, self._index)
        self._score = self._scoring(
            ScoringContext(problem, ledger, states, self._offers, self._try)
        )
        self._queues: dict[Hashable, ScoreQueue] = {}

    def place(self, number: int) -> None:
        """Place a demand on the best node that can hold it, or note the last error met."""
        demand = self._demand(number)
        claims = self._open_claims(demand)
        claim_class = self._claim_classes.of(claims)
        if claim_class is None:
            super().place(number)
            return
        nodes = self._nodes(demand)
        anywhere = nodes is self._problem.all_nodes
        own = (
            ScoreQueue()
            if len(claims) < len(demand.claims) or demand.roles
            else self._queues.setdefault((claim_class, demand.nodes), ScoreQueue())
        )
        self._place_by(
            own, number, claims, claim_class, None if anywhere else frozenset(nodes)
        )

    def _place_by(
        self,
        queue: ScoreQueue,
        number: int,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        allowed: Container[int] | None,
    ) -> None:
        self._update(queue, claims, allowed)
        failing: list[tuple[int, int]] = []
        while (
            best := queue.best(lambda state: self._census.first(state, allowed))
        ) is not None:
            node, state = best
            try:
                found = self._attempt_at(
                    self._offers.candidates(claims, node), claims, claim_class
                )
            except AllocationError as error:
                # The message is about these claims: the next ones get their own.
                self.errors[number] = error
                failing.append((state, queue.scores[0]))
                found = None
            if found is not None:
                self._settle(number, node, claims, found)
                break
            queue.drop(state)
        for state, score in failing:
            queue.enter(state, score)

    def _update(
        self, queue: ScoreQueue, claims: Sequence[Claim], allowed: Container[int] | None
    ) -> None:
        """Rate the states that have come up."""
        for state in self._census.arrivals[queue.seen :]:
            if (
                state not in queue.known
                and (node := self._census.first(state, allowed)) is not None
            ):
                queue.known.add(state)
                score = self._score(claims, node)
                if score is not None:
                    queue.enter(state, score)
        queue.seen = len(self._census.arrivals)

    def _try(self, claims: Sequence[Claim], node: int) -> Found | None:
        claim_class = self._claim_classes.of(claims)
        assert claim_class is not None
        try:
            return self._attempt_at(
                self._offers.candidates(claims, node), claims, claim_class
            )
        except AllocationError:
            return None

    def _settle(
        self, number: int, node: int, claims: Sequence[Claim], found: Found
    ) -> None:
        super()._settle(number, node, claims, found)
        self._census.changed(_devices(found))

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._census.changed(_devices(placement.grants))


def _devices(grants: Sequence[Sequence[Grant]]) -> list[int]:
    return [grant.device for each in grants for grant in each]
