"""Claims for admin access, decided beside the model.

Admin access takes nothing, and nobody stands in its way (KEP-5018). So a claim for nothing else only says to which
nodes its demand can go: those with devices that match. Wherever that is in the end, it gets the first of them in search
order. A pod that looks after the devices of its node is then a pod without devices, and does not keep the others from
being solved over classes.

Left to the model are claims with several requests or with constraints, as their devices depend on each other, claims
that several demands use, and those for devices with consumable capacity: which of these ``All`` leaves out depends on
what others take (KEP-5075).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, Problem
from dralloc.problem.equivalence import claim_key
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.failures import summed_up
from dralloc.solve.optimum.stopping import Stop

__all__ = ["AdminClaims", "admin_claims"]

_Grants = Mapping[int, tuple[Grant, ...]]
"""What a claim gets, by node; nodes where it gets nothing are no keys."""


@dataclass(frozen=True, slots=True)
class AdminClaims:
    """The claims that are decided here, by demand and in the place of its claims, with None for the others.

    ``problem``: the problem without them. ``failures``: the selectors that failed.
    """

    problem: Problem
    decided: Mapping[int, Sequence[_Grants | None]] = field(default_factory=dict)
    failures: tuple[AllocationError, ...] = ()

    def without(self, placements: Iterable[Placement]) -> tuple[Placement, ...]:
        """Placements in the whole problem without what these claims get."""
        return tuple(
            replace(one, grants=tuple(_left(one.grants, self.decided[one.demand])))
            if one.demand in self.decided
            else one
            for one in placements
        )

    def granted(self, solution: Solution) -> Solution:
        """The answer to the whole problem."""
        placements = (
            replace(one, grants=tuple(_merged(one, self.decided[one.demand])))
            if one.demand in self.decided
            else one
            for one in solution.placements
        )
        warnings = tuple(dict.fromkeys((*summed_up(self.failures), *solution.warnings)))
        return replace(solution, placements=tuple(placements), warnings=warnings)


def _left(
    grants: Sequence[tuple[Grant, ...]], decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    return (each for each, known in zip(grants, decided, strict=True) if known is None)


def _merged(
    placement: Placement, decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    others = iter(placement.grants)
    return (
        next(others) if known is None else known[placement.node] for known in decided
    )


def admin_claims(
    problem: Problem, stop: Stop, *, strict_cel: bool = False
) -> AdminClaims:
    """Decide the claims for admin access.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    Stopped
        It is time to stop.
    """
    asking = {
        number: demand
        for number, demand in enumerate(problem.demands)
        if any(map(_is_for_admin, demand.claims)) and not demand.is_defective
    }
    if not asking:
        return AdminClaims(problem)
    # Also demands count in which a claim is under constraints over several claims, which its pods can differ in.
    users = Tally(claim.key for demand in problem.demands for claim in demand.claims)
    key_of = {
        claim.key: claim_key(problem.eligibility, claim)
        for demand in asking.values()
        for claim in demand.claims
        if users[claim.key] == 1 and _is_for_admin(claim)
    }
    probes = _probes(problem, asking.values(), key_of)
    found = survey(
        replace(problem, demands=tuple(probes.values())),
        strict_cel=strict_cel,
        stop=stop,
    )
    grants = {
        key: _grants(found.sites.get(number, ())) for number, key in enumerate(probes)
    }
    decided = {
        number: [
            grants[key_of[claim.key]] if claim.key in key_of else None
            for claim in demand.claims
        ]
        for number, demand in asking.items()
    }
    demands = [
        _without(problem, demand, decided[number]) if number in decided else demand
        for number, demand in enumerate(problem.demands)
    ]
    return AdminClaims(
        replace(problem, demands=tuple(demands)), decided, found.failures
    )


def _is_for_admin(claim: Claim) -> bool:
    """Whether it is one request for admin access, which has no alternatives, without constraints."""
    if len(claim.requests) != 1 or claim.constraints:
        return False
    alternatives = claim.requests[0].alternatives
    return alternatives[0].admin and len(alternatives) == 1


def _probes(
    problem: Problem, asking: Iterable[Demand], key_of: Mapping[ClaimKey, Hashable]
) -> Mapping[Hashable, Demand]:
    """By key, a demand for the first of equal claims alone, which may go where any demand with such a claim may."""
    first: dict[Hashable, Claim] = {}
    nodes: dict[Hashable, set[int]] = defaultdict(set)
    for demand in asking:
        for claim in demand.claims:
            if claim.key in key_of:
                key = key_of[claim.key]
                first.setdefault(key, claim)
                if len(nodes[key]) < len(problem.nodes):
                    nodes[key].update(problem.candidate_nodes(demand))
    return {
        key: Demand(
            claim.key,
            (claim,),
            nodes=tuple(node for node in problem.all_nodes if node in nodes[key]),
        )
        for key, claim in first.items()
    }


def _grants(sites: Sequence[CandidateSite]) -> _Grants | None:
    """What a claim gets on each node; None if that depends on what others take."""
    choices = {site.node: site.requests[0][0] for site in sites}
    mentioned = (
        each
        for choice in choices.values()
        for each in (*choice.candidates, *choice.blocked)
    )
    if any(each.charge.capacity for each in mentioned):
        return None
    return {
        node: tuple(
            Grant(0, 0, each.device) for each in choice.candidates[: choice.count]
        )
        for node, choice in choices.items()
    }


def _without(
    problem: Problem, demand: Demand, decided: Sequence[_Grants | None]
) -> Demand:
    """The demand without the claims of which it is known what they get, where they get it."""
    known = [each for each in decided if each is not None]
    before = problem.candidate_nodes(demand)
    nodes = tuple(node for node in before if all(node in each for each in known))
    claims = tuple(
        claim
        for claim, each in zip(demand.claims, decided, strict=True)
        if each is None
    )
    return replace(
        demand,
        claims=claims,
        nodes=demand.nodes if len(nodes) == len(before) else nodes,
    )
