"""What could be different: what is asked, who holds what, which nodes are allowed; and how such changes rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum

from dralloc.ask.context.offers import Offers, Variation
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import BudgetKey
from dralloc.problem import Alternative, Claim, Demand, Request
from dralloc.problem.named_limits import Limit

__all__ = ["Change", "Cost", "Place", "Suggestion", "constraint_places"]

Place = tuple[int, int, int]
"""An alternative of a demand: index of the claim, of the request in it, of the alternative in that."""


@dataclass(frozen=True)
class Change:
    """A change of a demand and of what stands in its way.

    Parameters
    ----------
    claims, requests, constraints
        What is left out, by index: claims, requests of claims, constraints of claims.
    variations, counts
        Alternatives that ask for something else, or for fewer devices.
    limits
        Limits that do not count.
    released
        Claims that give back what they hold.
    rules
        Rules about nodes that do not count.
    caps
        Caps that do not count.
    raised
        What caps allow in place of what they did, in nanos.
    """

    claims: frozenset[int] = frozenset()
    requests: frozenset[tuple[int, int]] = frozenset()
    constraints: frozenset[tuple[int, int]] = frozenset()
    variations: Mapping[Place, Variation] = field(default_factory=dict)
    counts: Mapping[Place, int] = field(default_factory=dict)
    limits: frozenset[Limit] = frozenset()
    released: frozenset[ClaimKey] = frozenset()
    rules: frozenset[str] = frozenset()
    caps: frozenset[BudgetKey] = frozenset()
    raised: Mapping[BudgetKey, int] = field(default_factory=dict)

    def of(self, demand: Demand, offers: Offers) -> Demand:
        """The changed demand, free to go to any node and without its gang."""
        claims = tuple(
            self._claim(claim_index, claim, offers)
            for claim_index, claim in enumerate(demand.claims)
            if claim_index not in self.claims
        )
        return demand.by_itself(claims=claims, nodes=None)

    def _claim(self, claim_index: int, claim: Claim, offers: Offers) -> Claim:
        return replace(
            claim,
            requests=tuple(
                self._request((claim_index, request_index), request, offers)
                for request_index, request in enumerate(claim.requests)
                if (claim_index, request_index) not in self.requests
            ),
            constraints=tuple(
                constraint
                for constraint_index, constraint in enumerate(claim.constraints)
                if (claim_index, constraint_index) not in self.constraints
            ),
        )

    def _request(
        self, position: tuple[int, int], request: Request, offers: Offers
    ) -> Request:
        return replace(
            request,
            alternatives=tuple(
                self._alternative((*position, choice), alternative, offers)
                for choice, alternative in enumerate(request.alternatives)
            ),
        )

    def _alternative(
        self, position: Place, alternative: Alternative, offers: Offers
    ) -> Alternative:
        index = offers.vary(
            alternative.index, self.variations.get(position, Variation())
        )
        return replace(
            alternative,
            index=index,
            count=self.counts.get(position, alternative.count),
        )

    def __or__(self, change: Change) -> Change:
        """Both changes together; variations of one alternative are put together."""
        joined = {
            part.name: getattr(self, part.name) | getattr(change, part.name)
            for part in fields(self)
        }
        in_both = self.variations.keys() & change.variations.keys()
        varied = {
            position: self.variations[position] | change.variations[position]
            for position in in_both
        }
        return replace(
            self, **{**joined, "variations": joined["variations"] | varied}
        )


class Cost(IntEnum):
    """How changes are ranked: what the claim's author can do comes before what others have to give up or buy."""

    TOLERATE = 1
    CONSTRAINT = 2
    SELECTOR = 3
    LESS = 4
    OTHER = 5
    NODES = 6
    CAP = 7
    MOVE = 8
    RELEASE = 9
    NODE = 11


@dataclass(frozen=True)
class Suggestion:
    """A change that admits the demand.

    Parameters
    ----------
    text
        What to change.
    outcome
        What then happens, as it was found by trying.
    cost
        Its kind.
    amount
        How much of it, to rank changes of one kind.
    change
        What was tried.
    """

    text: str
    outcome: str
    cost: Cost
    amount: int = 0
    change: Change = field(default_factory=Change, repr=False, compare=False)


def constraint_places(claims: Sequence[Claim]) -> list[list[tuple[int, int]]]:
    """Each constraint by claim and place there; one over several claims is in several places."""
    places_of: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for claim_index, claim in enumerate(claims):
        for index, constraint in enumerate(claim.constraints):
            places_of[constraint.scope or (claim_index, index)].append(
                (claim_index, index)
            )
    return list(places_of.values())
