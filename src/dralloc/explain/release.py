"""Suggestions to release or move claims: who would have to give back what they hold for the demand to fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, combinations, islice, takewhile
from math import comb
from typing import NamedTuple

from dralloc.explain.blockers import Blockers
from dralloc.explain.change import Change, Cost, Suggestion
from dralloc.explain.move import Mover
from dralloc.explain.oracle import FeasibilityOracle
from dralloc.names import ClaimKey
from dralloc.report import listed

__all__ = ["releases"]

_NODES_TRIED = 8
_NAMED = 6
_COMBINATIONS = 64
_MOST_MOVES = 2


class _Candidate(NamedTuple):
    """Claims of which none can stay if the demand is to fit on a node, and the highest priority of their pods."""

    node: int
    claims: tuple[ClaimKey, ...]
    priority: int

    @property
    def change(self) -> Change:
        return Change(released=frozenset(self.claims))

    def __str__(self) -> str:
        named = listed([*map(str, self.claims)], _NAMED)
        return f"claim {named}" if len(self.claims) == 1 else f"{len(self.claims)} claims: {named}"


def releases(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """The cheapest move, the release of the fewest claims, and the release that costs the least priority."""
    candidates = list(_candidates(oracle))
    if not candidates:
        return
    yield from _moved(oracle, sorted(candidates, key=lambda one: len(one.claims)))
    fewest = min(candidates, key=lambda one: (len(one.claims), one.priority))
    lowest = min(candidates, key=lambda one: (one.priority, len(one.claims)))
    for rank, one in enumerate([fewest] if lowest.priority == fewest.priority else [fewest, lowest]):
        highest = "highest " if len(one.claims) > 1 else ""
        text = f"release {one} ({highest}priority {one.priority})"
        yield Suggestion(text, oracle.fits_on(one.node), Cost.RELEASE, len(one.claims) + rank, one.change)


def _candidates(oracle: FeasibilityOracle) -> Iterator[_Candidate]:
    """For the nodes where the least seems to be in the way, claims of which none can stay."""
    blockers = Blockers(oracle)
    for node, cheapest in islice(blockers.cheapest.items(), _NODES_TRIED):
        tries = chain([cheapest], (claims_of(node) for claims_of in (blockers.every, blockers.users)))
        tried = next((claims for claims in tries if claims and _admits(oracle, node, claims)), None)
        if tried is None:
            continue
        kept = _needed(oracle, node, sorted(tried, key=lambda claim: (-blockers.priority(claim), claim)))
        kept = _fewer(oracle, node, blockers.every(node), kept) or kept
        # First fit may stop at an error on another node, or find a place on an earlier one.
        certificate = oracle.admit(Change(released=frozenset(kept)))
        if certificate is not None:
            yield _Candidate(certificate.node, tuple(kept), max(map(blockers.priority, kept)))


def _admits(oracle: FeasibilityOracle, node: int, claims: Collection[ClaimKey]) -> bool:
    return oracle.admit(Change(released=frozenset(claims)), nodes=[node]) is not None


def _needed(oracle: FeasibilityOracle, node: int, claims: list[ClaimKey]) -> list[ClaimKey]:
    """Let each claim stay if the others are enough, in this order."""
    needed = set(claims)
    for claim in claims:
        if len(needed) > 1 and _admits(oracle, node, needed - {claim}):
            needed.discard(claim)
    return sorted(needed)


def _fewer(oracle: FeasibilityOracle, node: int, claims: set[ClaimKey], than: list[ClaimKey]) -> list[ClaimKey] | None:
    """One or two claims that are enough, if that is fewer, and there are not too many to try."""
    sizes = takewhile(lambda size: comb(len(claims), size) <= _COMBINATIONS, range(1, min(len(than), 3)))
    tries = (some for size in sizes for some in combinations(sorted(claims), size))
    return next((list(some) for some in tries if _admits(oracle, node, some)), None)


def _moved(oracle: FeasibilityOracle, candidates: list[_Candidate]) -> Iterator[Suggestion]:
    """The first candidate whose claims all find a place elsewhere."""
    for one in candidates:
        homes = Mover(oracle).homes(one.node, one.claims) if len(one.claims) <= _MOST_MOVES else None
        if homes is not None:
            names = oracle.snapshot.problem.nodes
            goes = ", ".join(f"{claim} goes to {names[node].name}" for claim, node in homes.items())
            outcome = f"{oracle.fits_on(one.node)}; {goes}"
            yield Suggestion(f"move {one}", outcome, Cost.MOVE, len(one.claims), one.change)
            return
