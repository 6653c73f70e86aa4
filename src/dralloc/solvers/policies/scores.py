"""Which node to take: the one with the lowest score, and the first of those in search order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dralloc.problem import Claim
from dralloc.solvers.policies.expected_fragmentation import ExpectedFragmentation, typical
from dralloc.solvers.policies.scoring_context import ScoringContext

__all__ = ["LeastFragmentation", "LeastLeft", "Score", "Scoring"]


class Score(Protocol):
    """Rates nodes for claims."""

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """How little the node suits: the same for nodes in the same state. None if the claims do not fit there."""


Scoring = Callable[[ScoringContext], Score]
"""Sets up a score for a run."""


class LeastLeft:
    """Best fit: the node with the least left, as the sum over its components (see `ComponentStates`).

    What the claims take is not subtracted: it is the same wherever they go.
    """

    def __init__(self, context: ScoringContext) -> None:
        self._context = context

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """What is left of the node."""
        if not self._context.offers.could_serve(claims, node):
            return None
        states = self._context.states
        return sum(states.left[state] for state, _ in states.ordered(node))


class LeastFragmentation:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How it is measured here: `ExpectedFragmentation`.
    """

    def __init__(self, context: ScoringContext) -> None:
        self._context = context
        self._fragmentation = ExpectedFragmentation(context.offers, context.states, typical(context.problem))

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """How much fragmentation is added, which can be less than nothing."""
        context = self._context
        if not context.offers.could_serve(claims, node):
            return None
        before = self._fragmentation.of(node)
        with context.trying(claims, node) as taken:
            return None if taken is None else self._fragmentation.of(node, taken) - before
