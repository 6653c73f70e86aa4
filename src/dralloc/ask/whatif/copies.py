"""Many of one demand, and whether there is an end to how many fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Final

from dralloc.objects.names import ClaimKey
from dralloc.problem import Charge, Demand, Problem, Request
from dralloc.problem.eligibility import Overlay
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.optimum import solve

__all__ = [
    "MOST_COPIES",
    "by_demand",
    "copies",
    "is_for_nothing",
    "replicated",
    "takes_nothing",
]

MOST_COPIES: Final = 1_000_000
"""More of a demand are not looked for."""


def copies(demand: Demand, number: int) -> Iterator[Demand]:
    """So many demands that equal it but for the names, of equal weight, and content with any alternative."""

    def unranked(request: Request) -> Request:
        return replace(
            request,
            alternatives=tuple(replace(each, rank=0) for each in request.alternatives),
        )

    claims = tuple(
        replace(claim, requests=tuple(map(unranked, claim.requests)))
        for claim in demand.claims
    )
    pattern = demand.by_itself(weight=1, priority=0, claims=claims)
    for place in range(number):
        claims = tuple(
            replace(claim, key=_numbered(claim.key, place)) for claim in pattern.claims
        )
        yield replace(pattern, key=_numbered(demand.key, place), claims=claims)


def replicated(
    problem: Problem, demands: Sequence[Demand], numbers: Sequence[int]
) -> Problem:
    """The problem with so many copies of each demand, one demand after the other."""
    groups = map(copies, demands, numbers)
    return replace(problem, demands=tuple(chain.from_iterable(groups)))


def by_demand(
    placements: Sequence[Placement], numbers: Sequence[int]
) -> tuple[tuple[Placement, ...], ...]:
    """Placements in a problem with so many copies of each demand, by what they are copies of."""
    spans = [range(*span) for span in pairwise(accumulate(numbers, initial=0))]
    return tuple(
        tuple(one for one in placements if one.demand in span) for span in spans
    )


def _numbered(key: ClaimKey, place: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name} {place}")


def takes_nothing(problem: Problem, demand: Demand) -> bool:
    """Whether the demand can be had for nothing, and so without end.

    Admin access takes nothing (KEP-5018), nor does a share of a device that consumes no capacity: what the device
    itself draws on counters is drawn once (KEP-4815, KEP-5075).
    """
    admin = frozenset(one.index for one in demand.alternatives() if one.admin)
    for_nothing = _ForNothing(problem.eligibility, problem, admin)
    return bool(
        solve(replace(problem, demands=(demand,), eligibility=for_nothing)).placements
    )


def is_for_nothing(problem: Problem, placement: Placement) -> bool:
    """Whether another copy could always be placed beside this one, in the same way: what it has costs nothing."""
    return all(
        _is_free(problem, device, charge)
        for _, device, charge in charged_grants(problem, [placement])
    )


def _is_free(problem: Problem, device: int, charge: Charge | None) -> bool:
    shareable = problem.devices[device].shareable
    return (
        shareable
        and charge is not None
        and not any(each for _, each in (*charge.capacity, *charge.counters))
    )


@dataclass(eq=False)
class _ForNothing(Overlay):
    """The eligibility of a problem, where only what takes nothing is let in."""

    problem: Problem
    admin: frozenset[int]

    def admits(self, alternative: int, device: int) -> bool:
        return super().admits(alternative, device) and (
            alternative in self.admin
            or _is_free(self.problem, device, self.charge(alternative, device))
        )

    def request_key(self, alternative: int) -> Hashable:
        return alternative

    def device_key(self, device: int) -> Hashable:
        return device
