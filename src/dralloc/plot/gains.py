"""Who places what: the demands of each request class by whether both answers, one or none place them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dralloc.comparison import Comparison
from dralloc.names import ClaimKey
from dralloc.plot.request_classes import RequestClass, RequestClasses
from dralloc.problem import Demand, Request

__all__ = ["Gain", "gains"]


@dataclass(frozen=True, slots=True)
class Gain:
    """The demands that want the same.

    Parameters
    ----------
    wants
        What they want, in words.
    request_class
        The request class of their first request.
    both, only_optimum, only_first_fit, neither
        How many of them are placed by whom.
    """

    wants: str
    request_class: RequestClass
    both: int
    only_optimum: int
    only_first_fit: int
    neither: int

    @property
    def total(self) -> int:
        """How many there are."""
        return self.both + self.only_optimum + self.only_first_fit + self.neither


def gains(comparison: Comparison) -> list[Gain]:
    """The demands by what they want, in the order in which each request class shows first."""
    classes = RequestClasses(comparison.optimal.compiled.cluster)
    first = {one.key for one in comparison.first_fit.unplaced}
    best = {one.key for one in comparison.optimal.unplaced}
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    colour: dict[str, RequestClass] = {}
    for demand in comparison.optimal.demands:
        wants, request_class = _wants(demand, classes)
        colour.setdefault(wants, request_class)
        counts.setdefault(wants, Counter())[demand.key in first, demand.key in best] += 1
    return [
        Gain(wants, colour[wants], found[False, False], found[True, False], found[False, True], found[True, True])
        for wants, found in counts.items()
    ]


def _wants(demand: Demand, classes: RequestClasses) -> tuple[str, RequestClass]:
    """What a demand wants in words, and the request class that stands for it."""
    wanted = Counter(_words(claim.key, request, classes) for claim in demand.claims for request in claim.requests)
    words = " + ".join(
        f"{count}\N{MULTIPLICATION SIGN} {text}" if count > 1 else text for text, count in wanted.items()
    )
    found = (_classes(claim.key, request, classes) for claim in demand.claims for request in claim.requests)
    return words or "nothing", next((one for some in found for one in some), RequestClass(""))


def _classes(claim: ClaimKey, request: Request, classes: RequestClasses) -> list[RequestClass]:
    return [classes.of(claim, str(alternative.name)) for alternative in request.alternatives]


def _words(claim: ClaimKey, request: Request, classes: RequestClasses) -> str:
    texts = []
    for alternative, request_class in zip(request.alternatives, _classes(claim, request, classes), strict=True):
        count = "all " if alternative.count is None else f"{alternative.count}\N{MULTIPLICATION SIGN} "
        texts.append(request_class.short if alternative.count == 1 else count + request_class.short)
    return " or ".join(texts)
