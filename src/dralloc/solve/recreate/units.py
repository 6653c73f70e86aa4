"""What can come and go by itself: single demands; gangs, and demands with claims in common, as a whole.

Rules between pods tie demands to each other as well. Whoever has a role in one may still come and go, as long as the
rule is looked at afterwards (see `dralloc.solve.recreate.rules`).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dralloc.problem import Claim, Demand, NodeIndex, Problem, quorum_of
from dralloc.problem.all_devices import passed_over
from dralloc.problem.indices import DemandIndex, numbered
from dralloc.problem.inter_pod import InterPodRule, OneDomain
from dralloc.problem.requests import demands_kept_together
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.recreate.device_search import DeviceSearch

__all__ = [
    "MovableUnit",
    "movable_units",
    "serving_nodes",
]


@dataclass(frozen=True, slots=True, eq=False)
class MovableUnit:
    """Demands that come and go together: one, those of a gang, or those with claims in common.

    Parameters
    ----------
    members
        The demands, in order.
    quorum
        How many of them must be placed for any to be.
    domain_rule
        That all are in one domain; None if they may stand anywhere.
    rules
        All other rules between pods in which any of them has a role, and which others may have a role in.
    """

    members: tuple[DemandIndex, ...]
    quorum: int = 1
    domain_rule: OneDomain | None = None
    rules: frozenset[InterPodRule] = frozenset()

    @property
    def is_single(self) -> bool:
        """Whether it is one demand, which needs nobody else to be placed with it."""
        is_one = len(self.members) == self.quorum == 1
        return is_one and self.domain_rule is None


def movable_units(
    problem: Problem, placements: Iterable[Placement]
) -> list[MovableUnit]:
    """Return what comes and goes by itself: demands of a gang, or with claims in common, together.

    None of them is in a group above a gang. That a gang is in one domain is a rule for it alone. Of other rules between
    pods, only those that pods which run have no role in, as what runs was there first.

    Nor do those come and go that fill a device in these placements which a claim for all devices passed over: without
    them the claim would lack it. Claims for all devices stay themselves, as first fit's search for them may fail.
    """
    fillers = _fillers(problem, placements)
    roles = [role for demand in problem.demands for role in demand.roles]
    rule_users = Tally(role.rule for role in roles)
    rules_of_running = {role.rule for role in roles if role.runs}
    units: list[MovableUnit] = []
    for members in demands_kept_together(numbered(problem.demands)):
        demands = [problem.demands[member] for member in members]
        rules = {role.rule for demand in demands for role in demand.roles}
        own_domains = [rule for rule in rules if isinstance(rule, OneDomain)]
        if (
            all(map(_is_free, demands))
            and _are_of_one_gang(demands)
            and _share_claims_alone(problem, demands)
            and fillers.isdisjoint(members)
            and rules_of_running.isdisjoint(rules)
            and _are_for_them_alone(own_domains, demands, rule_users)
        ):
            # Whoever has claims in common, and no gang, can be placed without the others.
            quorum = quorum_of(demands) if demands[0].gang else 1
            units.append(
                MovableUnit(
                    tuple(members),
                    max(1, quorum),
                    next(iter(own_domains), None),
                    frozenset(rules.difference(own_domains)),
                )
            )
    return units


def _is_free(demand: Demand) -> bool:
    """Whether nothing but a gang, claims in common and rules between pods ties a demand to others."""
    return not (demand.group_scopes or demand.parent or demand.is_defective)


def _are_of_one_gang(demands: Iterable[Demand]) -> bool:
    """Whether demands are all of the same gang, or none is of any."""
    return len({demand.gang for demand in demands}) == 1


def _share_claims_alone(problem: Problem, demands: Sequence[Demand]) -> bool:
    """Whether what is allocated with one demand says nothing of what others get.

    It does if a constraint is about several claims of one demand. Where devices take something of nodes (KEP-5517),
    those who share a claim take it once, and which of them does matters.
    """
    keys = [claim.key for demand in demands for claim in demand.claims]
    if len(keys) == len(set(keys)):
        return True
    scopes = [
        constraint.scope
        for demand in demands
        for claim in demand.claims
        for constraint in claim.constraints
    ]
    return not (any(scopes) or problem.footprint_counters)


def _fillers(
    problem: Problem, placements: Iterable[Placement]
) -> set[DemandIndex]:
    """Return the demands with a share of a device that a claim for all devices passed over."""
    placements = tuple(placements)
    full = {
        problem.devices[device].slot
        for placement in placements
        for device, _ in passed_over(problem, placement)
    }
    return {
        placement.demand
        for placement in placements
        for claim_grants in placement.grants
        for grant in claim_grants
        if problem.devices[grant.device].slot in full
    }


def _are_for_them_alone(
    own_domains: Sequence[OneDomain],
    demands: Collection[Demand],
    rule_users: Mapping[InterPodRule, int],
) -> bool:
    """Whether there is one rule at most by which demands are in one domain, which all of them carry and nobody else."""
    if not own_domains:
        return True
    if len(own_domains) > 1:
        return False
    [rule] = own_domains
    carriers = [
        demand
        for demand in demands
        if any(role.rule is rule and role.carries for role in demand.roles)
    ]
    return len(carriers) == len(demands) == rule_users[rule]


def serving_nodes(
    problem: Problem, units: Iterable[MovableUnit]
) -> set[NodeIndex]:
    """Return the nodes that could serve any demand of the units if nobody else was there."""
    search = DeviceSearch(problem)
    # Some demands take nothing of nodes, and have a claim less.
    samples: dict[tuple[ClaimClass, int], Sequence[Claim]] = {}
    for unit in units:
        for member in unit.members:
            claims = problem.demands[member].claims
            claim_class = search.class_of(claims)
            if claim_class is not None:
                samples.setdefault((claim_class, len(claims)), claims)
    serving: set[NodeIndex] = set()
    for (claim_class, _), sample in samples.items():
        hopeful = search.hopeful_nodes(claim_class, sample)
        serving.update(node for node in problem.all_nodes if hopeful[node])
    return serving
