"""What scores look at: the ledger, the states of nodes, and what would happen if."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dralloc.problem import Claim, Problem
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.first_fit.plain import Found
from dralloc.solvers.policies.component_offers import ComponentOffers
from dralloc.solvers.policies.component_states import ComponentStates

__all__ = ["ScoringContext"]


@dataclass(frozen=True)
class ScoringContext:
    """A run as scores see it. ``attempt`` takes what claims need on a node, if it can."""

    problem: Problem
    ledger: SearchLedger
    states: ComponentStates
    offers: ComponentOffers
    attempt: Callable[[Sequence[Claim], int], Found | None]

    @contextmanager
    def trying(self, claims: Sequence[Claim], node: int) -> Iterator[frozenset[int] | None]:
        """Take what the claims need on a node, and give it back: the devices; None if they do not fit."""
        found = self.attempt(claims, node)
        if found is None:
            yield None
            return
        self.ledger.settle()
        yield frozenset(grant.device for grants in found for grant in grants)
        for claim, grants in zip(claims, found, strict=True):
            for request, choice, device in grants:
                self.ledger.release(device, claim.requests[request].alternatives[choice])
