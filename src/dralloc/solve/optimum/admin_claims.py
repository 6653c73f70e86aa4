"""Claims for admin access, which are decided beside the model.

Admin access takes nothing, and nobody stands in its way (KEP-5018). So a claim for nothing else only says to which
nodes its demand can go: those with devices that match. Wherever that is in the end, it gets the first of them in search
order. A pod that looks after the devices of its node is then a pod without devices, and does not keep the others from
being solved over classes.

Left to the model are claims with several requests or with constraints, as their devices depend on each other, claims
that several demands use, and those of demands that can go to devices with consumable capacity (KEP-5075): which of
these ``All`` leaves out depends on what others take, and what else their demand takes of them has to fit beside the
claim. Where nothing else is asked for, that says nothing.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, NodeIndex, Problem
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex, indices, numbered
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.selector_failures import summed_up
from dralloc.solve.optimum.stopping import Stop

__all__ = ["AdminClaims", "admin_claims"]

_Grants = Mapping[NodeIndex, tuple[Grant, ...]]
"""What a claim gets, by node; nodes where it gets nothing are no keys."""


class _AdminOffer(NamedTuple):
    """What a claim gets, and the nodes where that depends on more than the claim."""

    grants: _Grants
    open_nodes: frozenset[NodeIndex]


class _AdminOffers(NamedTuple):
    """What a claim gets if its demand asks for nothing else, and if it asks for something beside it."""

    alone: _AdminOffer
    beside_others: _AdminOffer

    def to(self, demand: Demand) -> _AdminOffer:
        """Return what the claim of a demand gets."""
        claims = [claim for claim in demand.claims if not claim.is_synthetic]
        return self.alone if len(claims) == 1 else self.beside_others


@dataclass(frozen=True, slots=True)
class AdminClaims:
    """The claims that are decided here, by demand and in the place of its claims, with None for the others.

    ``problem``: the problem without them. ``failures``: the selectors that failed.
    """

    problem: Problem
    decided: Mapping[DemandIndex, Sequence[_Grants | None]] = field(
        default_factory=dict
    )
    failures: tuple[AllocationError, ...] = ()

    def without(self, placements: Iterable[Placement]) -> tuple[Placement, ...]:
        """Placements in the whole problem without what these claims get."""
        without: list[Placement] = []
        for placement in placements:
            if placement.demand in self.decided:
                decided = self.decided[placement.demand]
                pairs = zip(placement.grants, decided, strict=True)
                grants = [
                    claim_grants
                    for claim_grants, decision in pairs
                    if decision is None
                ]
                placement = replace(placement, grants=tuple(grants))  # noqa: PLW2901
            without.append(placement)
        return tuple(without)

    def granted(self, solution: Solution) -> Solution:
        """The answer to the whole problem."""
        placements: list[Placement] = []
        for placement in solution.placements:
            if placement.demand in self.decided:
                merged = _merged(placement, self.decided[placement.demand])
                placement = replace(placement, grants=tuple(merged))  # noqa: PLW2901
            placements.append(placement)
        warnings = tuple(
            dict.fromkeys((*summed_up(self.failures), *solution.warnings))
        )
        return replace(
            solution, placements=tuple(placements), warnings=warnings
        )


def _merged(
    placement: Placement, decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    """The grants of all claims of a demand, in order: from the model, or as they were decided here."""
    from_model = iter(placement.grants)
    for by_node in decided:
        if by_node is None:
            yield next(from_model)
        else:
            yield by_node[placement.node]


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
        demand_index: demand
        for demand_index, demand in numbered(problem.demands)
        if any(map(_is_for_admin, demand.claims)) and not demand.is_defective
    }
    if not asking:
        return AdminClaims(problem)
    # Also demands count in which a claim is under constraints over several claims, which its pods can differ in.
    users: Tally[ClaimKey] = Tally()
    for demand in problem.demands:
        users.update(claim.key for claim in demand.claims)
    key_of: dict[ClaimKey, Hashable] = {}
    for demand in asking.values():
        for claim in demand.claims:
            if users[claim.key] == 1 and _is_for_admin(claim):
                key_of[claim.key] = claim_key(problem.eligibility, claim)
    # Equal claims are asked about once.
    probes = _probes(problem, asking.values(), key_of)
    probe_problem = replace(problem, demands=tuple(probes.values()))
    probed = survey(probe_problem, strict_cel=strict_cel, stop=stop)
    offers: dict[Hashable, _AdminOffers] = {}
    for probe_index, key in zip(
        indices(probe_problem.demands), probes, strict=True
    ):
        offers[key] = _offers(probed.sites.get(probe_index, ()))
    reach = _NodesInReach(problem)
    decided: dict[DemandIndex, list[_Grants | None]] = {}
    demands = list(problem.demands)
    for demand_index, demand in asking.items():
        decided[demand_index] = []
        for claim in demand.claims:
            grants: _Grants | None = None
            if claim.key in key_of:
                offer = offers[key_of[claim.key]].to(demand)
                if not reach.any_of(demand_index, offer.open_nodes):
                    grants = offer.grants
            decided[demand_index].append(grants)
        demands[demand_index] = _without(problem, demand, decided[demand_index])
    without_claims = replace(problem, demands=tuple(demands))
    return AdminClaims(without_claims, decided, probed.failures)


def _is_for_admin(claim: Claim) -> bool:
    """Whether it is one request for admin access, which has no alternatives, without constraints."""
    if len(claim.requests) != 1 or claim.constraints:
        return False
    alternatives = claim.requests[0].alternatives
    return alternatives[0].admin and len(alternatives) == 1


def _probes(
    problem: Problem,
    asking: Iterable[Demand],
    key_of: Mapping[ClaimKey, Hashable],
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
    probes: dict[Hashable, Demand] = {}
    for key, claim in first.items():
        in_order = tuple(
            node for node in problem.all_nodes if node in nodes[key]
        )
        probes[key] = Demand(claim.key, (claim,), nodes=in_order)
    return probes


def _offers(sites: Sequence[CandidateSite]) -> _AdminOffers:
    """Return what a claim gets on each node."""
    anywhere: dict[NodeIndex, tuple[Grant, ...]] = {}
    without_capacity: dict[NodeIndex, tuple[Grant, ...]] = {}
    of_capacity: set[NodeIndex] = set()
    for site in sites:
        choice = site.requests[0][0]
        first = choice.candidates[: choice.count]
        grants = tuple(Grant(0, 0, candidate.device) for candidate in first)
        matching = (*choice.candidates, *choice.blocked)
        if any(candidate.charge.capacity for candidate in matching):
            of_capacity.add(site.node)
        else:
            without_capacity[site.node] = grants
        # Which devices ``All`` leaves out depends on what others take of their capacities.
        if choice.spec.count or site.node not in of_capacity:
            anywhere[site.node] = grants
    return _AdminOffers(
        _AdminOffer(anywhere, frozenset(of_capacity - anywhere.keys())),
        _AdminOffer(without_capacity, frozenset(of_capacity)),
    )


class _NodesInReach:
    """Tells where demands could go. Nodes are looked at only if somebody asks, as there may be many."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def _capabilities(self) -> NodeCapabilities:
        return NodeCapabilities(self._problem)

    def any_of(self, demand: DemandIndex, nodes: Set[NodeIndex]) -> bool:
        """Whether any of the nodes has devices enough for a demand."""
        if not nodes:
            return False
        capabilities = self._capabilities
        # Of nodes that are alike, one says enough.
        samples = {capabilities.node_types[node]: node for node in nodes}
        return any(
            capabilities.could_serve(node, demand) for node in samples.values()
        )


def _without(
    problem: Problem, demand: Demand, decided: Sequence[_Grants | None]
) -> Demand:
    """The demand without the claims of which it is known what they get, where they get it."""
    before = problem.candidate_nodes(demand)
    nodes = tuple(before)
    claims = []
    for claim, by_node in zip(demand.claims, decided, strict=True):
        if by_node is None:
            claims.append(claim)
        else:
            nodes = tuple(node for node in nodes if node in by_node)
    if len(nodes) == len(before):
        return replace(demand, claims=tuple(claims))
    return replace(demand, claims=tuple(claims), nodes=nodes)
