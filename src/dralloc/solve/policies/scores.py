"""Which node to take: the one with the lowest score, and the first of those in search order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dralloc.problem import Claim, Problem
from dralloc.problem.solution import served_by
from dralloc.solve.first_fit.ledger import SearchLedger
from dralloc.solve.first_fit.plain import Found
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.expected_fragmentation import ExpectedFragmentation, typical

__all__ = ["Score", "Scoring", "ScoringContext", "least_fragmentation", "least_left"]

Score = Callable[[Sequence[Claim], int], int | None]
"""How little a node suits claims: the same for nodes in the same state. None if the claims do not fit there."""


@dataclass(frozen=True)
class ScoringContext:
    """A run as scores see it. ``attempt`` takes what claims need on a node, if it can."""

    problem: Problem
    ledger: SearchLedger
    states: ComponentStates
    offers: ComponentOffers
    attempt: Callable[[Sequence[Claim], int], Found | None]

    @contextmanager
    def trying(
        self, claims: Sequence[Claim], node: int
    ) -> Iterator[frozenset[int] | None]:
        """Take what the claims need on a node, and give it back: the devices; None if they do not fit."""
        found = self.attempt(claims, node)
        if found is None:
            yield None
            return
        self.ledger.settle()
        yield frozenset(grant.device for grants in found for grant in grants)
        for _, alternative, grant in served_by(claims, found):
            self.ledger.release(grant.device, alternative)


Scoring = Callable[[ScoringContext], Score]
"""Sets up a score for a run."""


def least_left(context: ScoringContext) -> Score:
    """Best fit: the node with the least left, as the sum over its components (see `ComponentStates`).

    What the claims take is not subtracted: it is the same wherever they go.
    """
    states = context.states

    def left(claims: Sequence[Claim], node: int) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        return sum(states.left[state] for state, _ in states.ordered(node))

    return left


def least_fragmentation(context: ScoringContext) -> Score:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How it is measured here: `ExpectedFragmentation`.
    """
    fragmentation = ExpectedFragmentation(
        context.offers, context.states, typical(context.problem)
    )

    def added(claims: Sequence[Claim], node: int) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        before = fragmentation.of(node)
        with context.trying(claims, node) as taken:
            return None if taken is None else fragmentation.of(node, taken) - before

    return added
