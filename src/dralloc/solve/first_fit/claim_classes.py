"""Demands that ask for the same, so that what was found for one holds for the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from dralloc.problem import MAX_RESULTS, Claim, Problem, Request
from dralloc.problem.equivalence import claim_key

__all__ = ["ClaimClass", "ClaimClasses", "constrains_all"]


@dataclass(frozen=True, slots=True, eq=False)
class ClaimClass:
    """What equal demands have in common.

    Parameters
    ----------
    simple
        Whether it is one claim with one request, without constraints and without a choice of alternatives, beside what
        it may take of its node.
    every
        Whether something asks for all devices of the node.
    every_constrained
        See `constrains_all`.
    most
        The most devices that a claim can come to, not counting those that ``All`` stands for.
    """

    simple: bool
    every: bool
    every_constrained: bool
    most: int

    @property
    def may_ask_too_much(self) -> bool:
        """Whether the search may end with an error before it looks at any device."""
        return self.every or self.most > MAX_RESULTS


class ClaimClasses:
    """Tells which demands have equal claims, up to their names."""

    def __init__(self, problem: Problem) -> None:
        self._eligibility = problem.eligibility
        self._known: dict[Hashable, ClaimClass] = {}

    def of(self, claims: Sequence[Claim]) -> ClaimClass | None:
        """The class of these claims together; None if one of them has a defect, which is its own."""
        keys = []
        for claim in claims:
            if claim.is_defective:
                return None
            keys.append(claim_key(self._eligibility, claim))
        key = tuple(keys)
        claim_class = self._known.get(key)
        if claim_class is None:
            claim_class = self._known[key] = _describe(claims)
        return claim_class


def _describe(claims: Sequence[Claim]) -> ClaimClass:
    alternatives = [one for claim in claims for one in claim.alternatives()]
    devices = [claim for claim in claims if not claim.is_synthetic]
    alone = len(devices) == 1 and len(claims) == len(alternatives)
    return ClaimClass(
        simple=alone
        and not devices[0].constraints
        and 0 < (alternatives[-1].count or 0) <= MAX_RESULTS,
        every=any(one.count is None for one in alternatives),
        every_constrained=constrains_all(claims),
        most=max((sum(map(_most, claim.requests)) for claim in claims), default=0),
    )


def constrains_all(claims: Iterable[Claim]) -> bool:
    """Whether a constraint covers a request for all devices; a device that violates it is a fatal error."""
    return any(
        one.count is None and constraint.covers(one.name)
        for claim in claims
        for constraint in claim.constraints
        for one in claim.alternatives()
    )


def _most(request: Request) -> int:
    return max((one.count or 0 for one in request.alternatives), default=0)
