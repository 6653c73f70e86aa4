"""Scores: a demand goes to the node with the lowest, and to the first of those in search order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dralloc.problem import Claim, DeviceIndex, NodeIndex, Problem
from dralloc.problem.solution import Grant, served_by
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.fragmentation import ExpectedFragmentation, typical

__all__ = [
    "Scoring",
    "ScoringContext",
    "devices_of",
    "least_fragmentation",
    "least_left",
]

Score = Callable[[Sequence[Claim], NodeIndex], int | None]
"""How little a node suits claims: the same for nodes in the same state. None if the claims do not fit there."""


@dataclass(frozen=True)
class ScoringContext:
    """A run as scores see it. ``attempt`` takes what claims need on a node, if it can."""

    problem: Problem
    ledger: SearchLedger
    states: ComponentStates
    offers: ComponentOffers
    attempt: Callable[[Sequence[Claim], NodeIndex], GrantsOfClaims | None]

    @contextmanager
    def trying(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> Iterator[frozenset[DeviceIndex] | None]:
        """Take what the claims need on a node, and give it back: the devices; None if they do not fit."""
        grants = self.attempt(claims, node)
        if grants is None:
            yield None
            return
        self.ledger.settle()
        yield frozenset(devices_of(grants))
        for _, alternative, grant in served_by(claims, grants):
            self.ledger.release(grant.device, alternative)


Scoring = Callable[[ScoringContext], Score]
"""Sets up a score for a run."""


def least_left(context: ScoringContext) -> Score:
    """Best fit: the node with the least left, as the sum over its components (see `ComponentStates`).

    What the claims take is not subtracted: it is the same wherever they go.
    """
    states = context.states

    def free_part(claims: Sequence[Claim], node: NodeIndex) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        return sum(states.left[state] for state, _ in states.ordered(node))

    return free_part


def least_fragmentation(context: ScoringContext) -> Score:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How it is measured here: `ExpectedFragmentation`.
    """
    fragmentation = ExpectedFragmentation(
        context.offers, context.states, typical(context.problem)
    )

    def added(claims: Sequence[Claim], node: NodeIndex) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        before = fragmentation.of(node)
        with context.trying(claims, node) as devices:
            if devices is None:
                return None
            return fragmentation.of(node, devices) - before

    return added


def devices_of(grants: Sequence[Sequence[Grant]]) -> list[DeviceIndex]:
    """The devices of all claims of a demand."""
    return [grant.device for claim_grants in grants for grant in claim_grants]
