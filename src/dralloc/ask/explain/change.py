"""What could be different: what is asked, who holds what, which nodes are allowed; and how such changes rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum

from dralloc.ask.context.offers import Offers, Variation
from dralloc.objects.budget import BudgetKey
from dralloc.objects.names import ClaimKey
from dralloc.problem import Alternative, Claim, Demand, Request
from dralloc.problem.limits import Limit

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
        kept = (
            (place, claim)
            for place, claim in enumerate(demand.claims)
            if place not in self.claims
        )
        claims = tuple(self._claim(place, claim, offers) for place, claim in kept)
        return demand.by_itself(claims=claims, nodes=None)

    def _claim(self, place: int, claim: Claim, offers: Offers) -> Claim:
        return replace(
            claim,
            requests=tuple(
                self._request((place, number), request, offers)
                for number, request in enumerate(claim.requests)
                if (place, number) not in self.requests
            ),
            constraints=tuple(
                constraint
                for number, constraint in enumerate(claim.constraints)
                if (place, number) not in self.constraints
            ),
        )

    def _request(
        self, place: tuple[int, int], request: Request, offers: Offers
    ) -> Request:
        return replace(
            request,
            alternatives=tuple(
                self._alternative((*place, number), each, offers)
                for number, each in enumerate(request.alternatives)
            ),
        )

    def _alternative(
        self, place: Place, alternative: Alternative, offers: Offers
    ) -> Alternative:
        index = offers.vary(alternative.index, self.variations.get(place, Variation()))
        return replace(
            alternative, index=index, count=self.counts.get(place, alternative.count)
        )

    def __or__(self, other: Change) -> Change:
        """Both changes together; variations of one alternative are put together."""
        joined = {
            each.name: getattr(self, each.name) | getattr(other, each.name)
            for each in fields(self)
        }
        both = self.variations.keys() & other.variations.keys()
        varied = {
            place: self.variations[place] | other.variations[place] for place in both
        }
        return replace(self, **{**joined, "variations": joined["variations"] | varied})


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
    found: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for number, claim in enumerate(claims):
        for index, constraint in enumerate(claim.constraints):
            found[constraint.scope or (number, index)].append((number, index))
    return list(found.values())
