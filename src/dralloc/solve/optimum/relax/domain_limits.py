"""Rules between pods, as far as they say how many demands a domain holds at most.

Each limit is about all demands with the same role in a rule:

- anti-affinity: of those who carry the term and are meant by it, one comes to a domain, and none to a domain with a pod
  that carries it or is meant by it; who only carries it keeps away from the latter, who is only meant from the former;
- spread: of those who carry the constraint and count for it, a domain holds no more than the skew above the fewest
  anywhere, which are no more than the mean.

What else rules say is left out: who else counts, in which order pods come, and affinity. That a gang is in one domain
is known where demands pay (`dralloc.solve.optimum.relax.prices`).

Sources: as in `dralloc.problem.inter_pod`, whose rules these limits follow from.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from dralloc.problem import Problem, numbered
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    OneDomain,
    Role,
    Spread,
)

__all__ = ["DomainLimit", "LimitsOfDemands", "domain_limits_of"]

_SPARSE: Final = 3
"""With room for so many times as many as there are in all domains together, hardly any domain is ever full."""


@dataclass(frozen=True, slots=True)
class DomainLimit:
    """How many of some demands are in each domain at most.

    Parameters
    ----------
    domains
        By node name.
    limits
        By domain; there is no limit in one that is not in it.
    closed_outside
        Whether there are nodes without a domain, and none of them may be there.
    size
        How many demands they are.
    """

    domains: Domains
    limits: Mapping[str, int]
    closed_outside: bool
    size: int

    @property
    def is_sparse(self) -> bool:
        """Whether they hardly ever fill a domain, as far as there are limits."""
        room = sum(self.limits.values())
        return not self.limits or room >= _SPARSE * self.size

    @property
    def keeps_out(self) -> bool:
        """Whether there are nodes to which none of them may go."""
        return self.closed_outside or 0 in self.limits.values()


class LimitsOfDemands(NamedTuple):
    """All limits that mean something, and by demand the numbers of those that it counts for."""

    limits: Sequence[DomainLimit]
    of_demand: Mapping[DemandIndex, Sequence[int]]


def domain_limits_of(problem: Problem) -> LimitsOfDemands:
    """Read what the rules of a problem say; who stands for a pod that runs is bound by none."""
    demands_by_role = grouped(
        (role, index)
        for index, demand in numbered(problem.demands)
        for role in demand.roles
        if not role.runs
    )
    # Also those that run: the more may count, the more may be in the domain with the fewest.
    counting = Tally(
        role.rule
        for demand in problem.demands
        for role in demand.roles
        if role.counts
    )
    names = frozenset(node.name for node in problem.nodes)
    limits: list[DomainLimit] = []
    of_demand: dict[DemandIndex, list[int]] = defaultdict(list)
    for role, demands in demands_by_role.items():
        limit = _limit(role, len(demands), counting[role.rule], names)
        # A limit that domains hardly reach is worth nothing, but for the nodes that it closes.
        if limit and (limit.keeps_out or not limit.is_sparse):
            for demand in demands:
                of_demand[demand].append(len(limits))
            limits.append(limit)
    return LimitsOfDemands(limits, of_demand)


def _limit(
    role: Role, size: int, counting: int, names: Set[str]
) -> DomainLimit | None:
    """Return the limit for so many demands with a role in a rule, if there is any.

    Parameters
    ----------
    counting
        How many demands count for the rule.
    names
        Those of all nodes.
    """
    match role.rule:
        case AntiAffinity() as rule:
            limits = _apart(rule, role)
            return DomainLimit(
                rule.domains, limits, closed_outside=False, size=size
            )
        case Spread() as rule if role.carries:
            limits = _even(rule, counting, counts=role.counts)
            closed_outside = not names <= rule.domains.keys()
            return DomainLimit(
                rule.domains, limits, closed_outside=closed_outside, size=size
            )
        case Spread() | Affinity() | OneDomain():
            return None
        case _:
            assert_never(role.rule)


def _apart(rule: AntiAffinity, role: Role) -> dict[str, int]:
    """Return by domain how many demands with this role in a term of anti-affinity there are at most."""
    limits: dict[str, int] = {}
    if role.carries and role.counts:
        limits = dict.fromkeys(rule.domains.values(), 1)
    if role.carries:
        limits |= dict.fromkeys(rule.counted, 0)
    if role.counts:
        limits |= dict.fromkeys(rule.carried, 0)
    return limits


def _even(rule: Spread, counting: int, *, counts: bool) -> dict[str, int]:
    """Return by domain how many there are at most of those who carry a constraint, and count or not."""
    there = sum(rule.counted.get(domain, 0) for domain in rule.every)
    mean = (there + counting) // max(1, len(rule.every))
    fewest = 0 if rule.has_few_domains else mean
    limits: dict[str, int] = {}
    for domain in sorted(rule.every):
        room = rule.max_skew + fewest - rule.counted.get(domain, 0)
        if counts:
            limits[domain] = max(0, room)
        elif room < 0:
            # Who does not count itself may come unless there are too many already.
            limits[domain] = 0
    return limits
