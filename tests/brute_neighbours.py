"""The referee for rules between pods, asked about every order of arrival: what the API says of one that comes.

Sources: ``interpodaffinity/filtering.go`` and ``podtopologyspread/filtering.go`` of ``kubernetes/pkg/scheduler``, and
KEP-5732 for groups in one domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    OneDomain,
    Role,
    Spread,
)
from role_strategies import Neighbour

__all__ = ["can_have_come", "may_come"]


def can_have_come(neighbours: Sequence[Neighbour]) -> bool:
    """Whether some order of arrival keeps all rules; who runs was there before."""
    running = [neighbour for neighbour in neighbours if neighbour.runs]
    newcomers = [neighbour for neighbour in neighbours if not neighbour.runs]
    return are_groups_whole(neighbours) and any(
        all(
            may_come(newcomer, [*running, *order[:index]])
            for index, newcomer in enumerate(order)
        )
        for order in permutations(newcomers)
    )


def are_groups_whole(neighbours: Sequence[Neighbour]) -> bool:
    """Whether those who need one domain are in one; a group of which nobody is new is as it is."""
    homes: dict[OneDomain, set[str | None]] = {}
    with_newcomers = set()
    for neighbour in neighbours:
        for role in neighbour.roles:
            if isinstance(role.rule, OneDomain) and role.carries:
                home = role.rule.domains.get(neighbour.node)
                homes.setdefault(role.rule, set()).add(home)
                if not role.runs:
                    with_newcomers.add(role.rule)
    return all(
        len(homes[rule]) == 1 and None not in homes[rule]
        for rule in with_newcomers
    )


def may_come(newcomer: Neighbour, there: Sequence[Neighbour]) -> bool:
    """Whether a pod keeps all rules when it comes to where others are."""
    return all(_keeps(role, newcomer.node, there) for role in newcomer.roles)


def _keeps(role: Role, node: str, there: Sequence[Neighbour]) -> bool:
    present = [
        (other, neighbour.node)
        for neighbour in there
        for other in neighbour.roles
        if other.rule is role.rule
    ]
    match role.rule:
        case AntiAffinity() as rule:
            domain = rule.domains.get(node)
            beside = [
                other
                for other, home in present
                if domain is not None and rule.domains.get(home) == domain
            ]
            minds = role.carries and (
                domain in rule.counted or any(other.counts for other in beside)
            )
            is_minded = role.counts and (
                domain in rule.carried or any(other.carries for other in beside)
            )
            return not minds and not is_minded
        case Affinity() as rule:
            return not role.carries or _is_near(
                rule,
                role,
                node,
                [home for other, home in present if other.counts],
            )
        case Spread() as rule:
            return not role.carries or _is_even(
                rule,
                role,
                node,
                [home for other, home in present if other.counts],
            )
        case OneDomain() as rule:
            homes = {
                rule.domains.get(home)
                for other, home in present
                if other.carries
            }
            domain = rule.domains.get(node)
            return not role.carries or (
                domain is not None and homes <= {domain}
            )


def _is_near(
    rule: Affinity, role: Role, node: str, meant_nodes: Sequence[str]
) -> bool:
    occupied = [
        {*before, *(domains[home] for home in meant_nodes if home in domains)}
        for domains, before in zip(rule.domains, rule.counted, strict=True)
    ]
    if any(node not in domains for domains in rule.domains):
        return False
    is_first = role.counts and not any(occupied)
    return is_first or all(
        domains[node] in of_term
        for domains, of_term in zip(rule.domains, occupied, strict=True)
    )


def _is_even(
    rule: Spread, role: Role, node: str, counted_nodes: Sequence[str]
) -> bool:
    if node not in rule.domains:
        return False
    counts = Counter(rule.counted)
    counts.update(
        rule.domains[home] for home in counted_nodes if home in rule.domains
    )
    domains = set(rule.domains.values())
    fewest = (
        0
        if len(domains) < rule.min_domains
        else min(counts[domain] for domain in domains)
    )
    return counts[rule.domains[node]] + role.counts - fewest <= rule.max_skew
