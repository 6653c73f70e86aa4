"""The run of a policy: one pass over the demands, each to the node with the lowest score.

A score belongs to a class of demands and a state of nodes, so it is worked out once for all of them. What happens on a
node changes the state of that node alone: for the next demand only the states that have come up since the last one of
its class are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from dralloc.objects.errors import AllocationError
from dralloc.problem import Claim, DemandIndex, NodeIndex, Problem
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import Census, ComponentStates
from dralloc.solve.policies.scores import Scoring, ScoringContext, devices_of

__all__ = ["ScoredRun"]


@dataclass(slots=True)
class ScoreQueue:
    """The states of nodes for one class of demands, best first.

    Parameters
    ----------
    seen
        How many arrivals have been looked at.
    rated
        States that are in the queue, or that do not fit.
    scores
        A heap of the scores that there are.
    states
        By score.
    """

    seen: int = 0
    rated: set[int] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)
    states: dict[float, set[int]] = field(default_factory=dict)

    def enter(self, state: int, score: float) -> None:
        """Add a state."""
        if score not in self.states:
            heappush(self.scores, score)
        self.states.setdefault(score, set()).add(state)

    def best(
        self, first: Callable[[int], NodeIndex | None]
    ) -> tuple[NodeIndex, int] | None:
        """The first node, and its state, of all with the best score; states without nodes are dropped."""
        while self.scores:
            states = self.states[self.scores[0]]
            first_nodes: dict[int, NodeIndex] = {}
            for state in states:
                node = first(state)
                if node is not None:
                    first_nodes[state] = node
            # A state that no node is in may come up again, and is rated then.
            self.rated -= states - first_nodes.keys()
            if first_nodes:
                self.states[self.scores[0]] = set(first_nodes)
                best_state = min(first_nodes, key=first_nodes.__getitem__)
                return first_nodes[best_state], best_state
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
        context = ScoringContext(
            problem, ledger, states, self._offers, self._try
        )
        self._score = self._scoring(context)
        self._queues: dict[Hashable, ScoreQueue] = {}

    def place(self, demand_index: DemandIndex) -> None:
        """Place a demand on the best node that can hold it, or note the last error met."""
        demand = self._demand(demand_index)
        claims = self._open_claims(demand)
        claim_class = self._claim_classes.of(claims)
        if claim_class is None:
            super().place(demand_index)
            return
        nodes = self._nodes(demand)
        if self._has_footprints:
            self._place_by_score(demand_index, claims, claim_class, nodes)
            return
        allowed = None if nodes is self._problem.all_nodes else frozenset(nodes)
        queue = ScoreQueue()
        # Who may go where others of the class may not needs a queue of its own.
        if len(claims) == len(demand.claims) and not demand.roles:
            queue = self._queues.setdefault((claim_class, demand.nodes), queue)
        self._place_by(queue, demand_index, claims, claim_class, allowed)

    def _place_by_score(
        self,
        demand: DemandIndex,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        nodes: Iterable[NodeIndex],
    ) -> None:
        """Try one node after the other, the best first, where devices take something of nodes (KEP-5517).

        How much they take, and of what, is no part of the state of a node.
        """
        scored_nodes: list[tuple[float, NodeIndex]] = []
        for node in nodes:
            score = self._rated(claims, claim_class, node)
            if score is not None:
                scored_nodes.append((score, node))
        for _, node in sorted(scored_nodes):
            candidates = self._offers.candidates(claims, node)
            try:
                attempt = self._attempt_at(candidates, claims, claim_class)
                grants = self._checked(claims, attempt)
            except AllocationError as error:
                self.errors[demand] = error
                continue
            if grants is not None:
                self._settle(demand, node, claims, grants)
                return

    def _place_by(
        self,
        queue: ScoreQueue,
        demand: DemandIndex,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        allowed: Container[int] | None,
    ) -> None:

        def first_in(state: int) -> NodeIndex | None:
            return self._census.first(state, allowed)

        self._update(queue, claims, claim_class, allowed)
        failing: list[tuple[int, float]] = []
        while (best := queue.best(first_in)) is not None:
            node, state = best
            candidates = self._offers.candidates(claims, node)
            try:
                grants = self._attempt_at(candidates, claims, claim_class)
            except AllocationError as error:
                # The message is about these claims: the next ones get their own.
                self.errors[demand] = error
                failing.append((state, queue.scores[0]))
                grants = None
            if grants is not None:
                self._settle(demand, node, claims, grants)
                break
            queue.drop(state)
        for state, score in failing:
            queue.enter(state, score)

    def _update(
        self,
        queue: ScoreQueue,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        allowed: Container[int] | None,
    ) -> None:
        """Rate the states that have come up."""
        for state in self._census.arrivals[queue.seen :]:
            if state in queue.rated:
                continue
            node = self._census.first(state, allowed)
            if node is None:
                continue
            queue.rated.add(state)
            score = self._rated(claims, claim_class, node)
            if score is not None:
                queue.enter(state, score)
        queue.seen = len(self._census.arrivals)

    def _rated(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> float | None:
        """Return the score of a node; None if the claims do not fit there, and nothing else is to be said of it.

        Where a search may end with an error it is made, after all others: the error is kept for who fits nowhere.
        """
        score = self._score(claims, node)
        if score is not None:
            return score
        may_fail = claim_class.may_ask_too_much or node in self._invalid
        return inf if may_fail else None

    def _try(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        claim_class = self._claim_classes.of(claims)
        assert claim_class is not None
        candidates = self._offers.candidates(claims, node)
        try:
            return self._attempt_at(candidates, claims, claim_class)
        except AllocationError:
            return None

    def _settle(
        self,
        demand_index: DemandIndex,
        node: NodeIndex,
        claims: Sequence[Claim],
        grants: GrantsOfClaims,
    ) -> None:
        super()._settle(demand_index, node, claims, grants)
        self._census.changed(devices_of(grants))

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._census.changed(devices_of(placement.grants))
