"""Who places what: the demands of each request profile by whether both answers, one or none place them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dralloc.comparison import Comparison
from dralloc.names import ClaimKey
from dralloc.plot.request_profiles import RequestProfile, RequestProfiles
from dralloc.problem import Demand, Request

__all__ = ["Gain", "gains"]


@dataclass(frozen=True, slots=True)
class Gain:
    """The demands that want the same.

    Parameters
    ----------
    wants
        What they want, in words.
    profile
        The request profile of their first request.
    both, only_optimum, only_first_fit, neither
        How many of them are placed by whom.
    """

    wants: str
    profile: RequestProfile
    both: int
    only_optimum: int
    only_first_fit: int
    neither: int

    @property
    def total(self) -> int:
        """How many there are."""
        return self.both + self.only_optimum + self.only_first_fit + self.neither


def gains(comparison: Comparison) -> list[Gain]:
    """The demands by what they want, in the order in which each request profile shows first."""
    profiles = RequestProfiles(comparison.optimal.compiled.cluster)
    first = {one.key for one in comparison.first_fit.unplaced}
    best = {one.key for one in comparison.optimal.unplaced}
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    colour: dict[str, RequestProfile] = {}
    for demand in comparison.optimal.demands:
        wants, profile = _wants(demand, profiles)
        colour.setdefault(wants, profile)
        counts.setdefault(wants, Counter())[demand.key in first, demand.key in best] += 1
    return [
        Gain(wants, colour[wants], found[False, False], found[True, False], found[False, True], found[True, True])
        for wants, found in counts.items()
    ]


def _wants(demand: Demand, profiles: RequestProfiles) -> tuple[str, RequestProfile]:
    """What a demand wants in words, and the request profile that stands for it."""
    wanted = Counter(_words(claim.key, request, profiles) for claim in demand.claims for request in claim.requests)
    words = " + ".join(
        f"{count}\N{MULTIPLICATION SIGN} {text}" if count > 1 else text for text, count in wanted.items()
    )
    found = (_profiles(claim.key, request, profiles) for claim in demand.claims for request in claim.requests)
    return words or "nothing", next((one for some in found for one in some), RequestProfile(""))


def _profiles(claim: ClaimKey, request: Request, profiles: RequestProfiles) -> list[RequestProfile]:
    return [profiles.of(claim, str(alternative.name)) for alternative in request.alternatives]


def _words(claim: ClaimKey, request: Request, profiles: RequestProfiles) -> str:
    texts = []
    for alternative, profile in zip(request.alternatives, _profiles(claim, request, profiles), strict=True):
        count = "all " if alternative.count is None else f"{alternative.count}\N{MULTIPLICATION SIGN} "
        texts.append(profile.short if alternative.count == 1 else count + profile.short)
    return " or ".join(texts)
