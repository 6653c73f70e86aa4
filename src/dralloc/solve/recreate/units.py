"""What can come and go by itself: single demands, and gangs as a whole."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem, quorum_of
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import InterPodRule, OneDomain

__all__ = ["MovableUnit", "movable_units"]


@dataclass(frozen=True, slots=True, eq=False)
class MovableUnit:
    """Demands that come and go together: one, or those of a gang.

    Parameters
    ----------
    members
        The demands, in order.
    quorum
        How many of them must be placed for any to be.
    rule
        That all are in one domain; None if they may stand anywhere.
    """

    members: tuple[int, ...]
    quorum: int = 1
    rule: OneDomain | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is one demand, which may stand anywhere."""
        return len(self.members) == 1 and self.rule is None


def movable_units(problem: Problem) -> list[MovableUnit]:
    """Return the demands and gangs that nobody else depends on, nor they on others.

    They share no claim with others, are in no group above a gang, and in no namespace with a budget; the only rule
    between pods that they may have a role in is that a gang is in one domain. So each of them can come and go by
    itself, and only what nodes have left decides where it may stand.
    """
    claim_users = Tally(
        claim.key for demand in problem.demands for claim in demand.claims
    )
    rule_users = Tally(role.rule for demand in problem.demands for role in demand.roles)
    with_budget = {budget.namespace for budget in problem.budgets}
    together = grouped(
        (demand.placed_with or number, number)
        for number, demand in enumerate(problem.demands)
    )
    units: list[MovableUnit] = []
    for members in together.values():
        demands = [problem.demands[member] for member in members]
        free = all(
            _is_free(demand, claim_users) and demand.key.namespace not in with_budget
            for demand in demands
        )
        rules = {role.rule for demand in demands for role in demand.roles}
        if free and _know_one_domain(demands, rules, rule_users):
            rule = next(
                (rule for rule in rules if isinstance(rule, OneDomain)),
                None,
            )
            quorum = max(1, quorum_of(demands))
            units.append(MovableUnit(tuple(members), quorum, rule))
    return units


def _is_free(demand: Demand, claim_users: Mapping[ClaimKey, int]) -> bool:
    """Return whether nothing but a gang and rules between pods ties a demand to others."""
    shares = any(claim_users[claim.key] > 1 for claim in demand.claims)
    return not (shares or demand.group_scopes or demand.parent or demand.is_defective)


def _know_one_domain(
    demands: Sequence[Demand],
    rules: Collection[InterPodRule],
    rule_users: Mapping[InterPodRule, int],
) -> bool:
    """Return whether demands know no rule between pods, or only that they, and nobody else, are in one domain."""
    if not rules:
        return True
    if len(rules) > 1:
        return False
    [rule] = rules
    roles = [role for demand in demands for role in demand.roles]
    return (
        isinstance(rule, OneDomain)
        and len(roles) == len(demands) == rule_users[rule]
        and all(role.carries and not role.runs for role in roles)
    )
