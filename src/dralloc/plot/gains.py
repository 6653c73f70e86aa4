"""Who places what: the demands of each kind by whether both answers, one or none place them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dralloc.comparison import Comparison
from dralloc.names import ClaimKey
from dralloc.plot.kinds import Kind, Kinds
from dralloc.problem import Demand, Request

__all__ = ["Gain", "gains"]


@dataclass(frozen=True, slots=True)
class Gain:
    """The demands that want the same.

    Parameters
    ----------
    wants
        What they want, in words.
    kind
        The kind of their first request.
    both, only_optimum, only_first_fit, neither
        How many of them are placed by whom.
    """

    wants: str
    kind: Kind
    both: int
    only_optimum: int
    only_first_fit: int
    neither: int

    @property
    def total(self) -> int:
        """How many there are."""
        return self.both + self.only_optimum + self.only_first_fit + self.neither


def gains(comparison: Comparison) -> list[Gain]:
    """The demands by what they want, in the order in which each kind shows first."""
    kinds = Kinds(comparison.optimal.compiled.cluster)
    first = {one.key for one in comparison.first_fit.unplaced}
    best = {one.key for one in comparison.optimal.unplaced}
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    colour: dict[str, Kind] = {}
    for demand in comparison.optimal.demands:
        wants, kind = _wants(demand, kinds)
        colour.setdefault(wants, kind)
        counts.setdefault(wants, Counter())[demand.key in first, demand.key in best] += 1
    return [
        Gain(wants, colour[wants], found[False, False], found[True, False], found[False, True], found[True, True])
        for wants, found in counts.items()
    ]


def _wants(demand: Demand, kinds: Kinds) -> tuple[str, Kind]:
    """What a demand wants in words, and the kind that stands for it."""
    wanted = Counter(_words(claim.key, request, kinds) for claim in demand.claims for request in claim.requests)
    words = " + ".join(
        f"{count}\N{MULTIPLICATION SIGN} {text}" if count > 1 else text for text, count in wanted.items()
    )
    found = (_kinds(claim.key, request, kinds) for claim in demand.claims for request in claim.requests)
    return words or "nothing", next((one for some in found for one in some), Kind(""))


def _kinds(claim: ClaimKey, request: Request, kinds: Kinds) -> list[Kind]:
    return [kinds.of(claim, str(alternative.name)) for alternative in request.alternatives]


def _words(claim: ClaimKey, request: Request, kinds: Kinds) -> str:
    texts = []
    for alternative, kind in zip(request.alternatives, _kinds(claim, request, kinds), strict=True):
        count = "all " if alternative.count is None else f"{alternative.count}\N{MULTIPLICATION SIGN} "
        texts.append(kind.short if alternative.count == 1 else count + kind.short)
    return " or ".join(texts)
