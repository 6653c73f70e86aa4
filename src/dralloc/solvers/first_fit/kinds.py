"""Demands that ask for the same, so that what was found for one holds for the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dralloc.problem import MAX_RESULTS, Alternative, Claim, Problem

__all__ = ["Kind", "Kinds"]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What equal demands have in common.

    Parameters
    ----------
    simple
        Whether it is one claim with one request, without constraints and without a choice of alternatives.
    every
        Whether something asks for all devices of the node.
    every_constrained
        Whether a constraint covers what asks for all devices; a device that violates it is a fatal error.
    most
        The most devices that a claim can come to, not counting those that ``All`` stands for.
    """

    simple: bool
    every: bool
    every_constrained: bool
    most: int


class Kinds:
    """Tells which demands are of one kind: equal claims, up to their names."""

    def __init__(self, problem: Problem) -> None:
        self._eligibility = problem.eligibility
        self._known: dict[Hashable, Kind] = {}

    def of(self, claims: Sequence[Claim]) -> Kind | None:
        """The kind of these claims together; None if one of them has a defect, which is its own."""
        if any(claim.defect for claim in claims):
            return None
        key = tuple([self._key(claim) for claim in claims])
        if None in key:
            return None
        kind = self._known.get(key)
        if kind is None:
            kind = self._known[key] = _describe(claims)
        return kind

    def _key(self, claim: Claim) -> Hashable:
        """Everything of a claim that matters but its name; None if one of its alternatives has a defect."""
        requests: list[Hashable] = []
        for request in claim.requests:
            for one in request.alternatives:
                if one.defect:
                    return None
                requests.append((self._eligibility.kind(one.index), one.count, one.admin, one.rank, bool(one.name.sub)))
        if not claim.constraints:
            return tuple(requests)
        names = tuple([one.name for one in _alternatives(claim)])
        return tuple(requests), names, claim.constraints


def _alternatives(claim: Claim) -> Iterator[Alternative]:
    for request in claim.requests:
        yield from request.alternatives


def _describe(claims: Sequence[Claim]) -> Kind:
    alternatives = [one for claim in claims for one in _alternatives(claim)]
    alone = len(claims) == len(alternatives) == 1
    return Kind(
        simple=alone and not claims[0].constraints and 0 < (alternatives[0].count or 0) <= MAX_RESULTS,
        every=any(one.count is None for one in alternatives),
        every_constrained=any(
            one.count is None and constraint.covers(one.name)
            for claim in claims
            for one in _alternatives(claim)
            for constraint in claim.constraints
        ),
        most=max((_most(claim) for claim in claims), default=0),
    )


def _most(claim: Claim) -> int:
    return sum(_largest(request.alternatives) for request in claim.requests)


def _largest(alternatives: Iterable[Alternative]) -> int:
    return max((one.count or 0 for one in alternatives), default=0)
