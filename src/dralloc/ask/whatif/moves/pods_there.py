"""Pods that have a node, as rules between pods count them.

While pods move, who is where changes from step to step. Whoever comes finds some pods there already, and rules that
count these decide, as they do of pods that a cluster has bound (see `dralloc.problem.inter_pod`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dralloc.problem import Demand
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)

__all__ = ["PodThere", "counting", "irregular_rules", "rules_counting", "with_rules"]

PodThere = tuple[Sequence[Role], str]
"""What a pod is to rules, and the name of its node."""

_There = Sequence[tuple[Role, str]]
"""The pods that have a role in one rule, each with the name of its node."""


def counting(
    demands: Iterable[Demand], there: Iterable[PodThere]
) -> tuple[Demand, ...]:
    """The demands, whose rules count these pods as pods that run."""
    known = rules_counting(there)
    return tuple(with_rules(demand, known) for demand in demands)


def rules_counting(there: Iterable[PodThere]) -> Mapping[InterPodRule, InterPodRule]:
    """For each rule that is about some of these pods, the rule that counts them as pods that run."""
    return {rule: _counting(rule, pods) for rule, pods in _by_rule(there).items()}


def with_rules(demand: Demand, known: Mapping[InterPodRule, InterPodRule]) -> Demand:
    """The demand with other rules in the place of some."""
    if known.keys().isdisjoint(role.rule for role in demand.roles):
        return demand
    return replace(
        demand,
        roles=tuple(
            role._replace(rule=known.get(role.rule, role.rule)) for role in demand.roles
        ),
    )


def irregular_rules(there: Iterable[PodThere]) -> frozenset[InterPodRule]:
    """The rules that pods break which are there, so that not all of them could come again to where they are."""
    return frozenset(
        rule for rule, pods in _by_rule(there).items() if _is_broken(rule, pods)
    )


def _by_rule(there: Iterable[PodThere]) -> Mapping[InterPodRule, _There]:
    return grouped((role.rule, (role, node)) for roles, node in there for role in roles)


def _counting(rule: InterPodRule, pods: _There) -> InterPodRule:
    counted = [node for role, node in pods if role.counts]
    carried = [node for role, node in pods if role.carries]
    match rule:
        case AntiAffinity():
            carrying = rule.carried | _domains(rule.domains, carried)
            return replace(
                rule,
                carried=carrying,
                counted=rule.counted | _domains(rule.domains, counted),
            )
        case Affinity():
            terms = zip(rule.domains, rule.counted, strict=True)
            return replace(
                rule,
                counted=tuple(
                    known | _domains(domains, counted) for domains, known in terms
                ),
            )
        case Spread():
            more = Counter(
                rule.domains[node] for node in counted if node in rule.domains
            )
            return replace(rule, counted=Counter(dict(rule.counted)) + more)
        case OneDomain():
            # Where those that run are in no domain, or in several, nobody else comes (KEP-5732).
            homes = {rule.domains.get(node) for node in carried}
            alone = {
                name: domain
                for name, domain in rule.domains.items()
                if homes == {domain}
            }
            return replace(rule, domains=alone) if homes else rule


def _domains(domains: Domains, nodes: Iterable[str]) -> frozenset[str]:
    return frozenset(domains[node] for node in nodes if node in domains)


def _is_broken(rule: InterPodRule, pods: _There) -> bool:
    match rule:
        case AntiAffinity():
            return any(_is_too_near(rule, pods, number) for number in range(len(pods)))
        case OneDomain():
            homes = {rule.domains.get(node) for role, node in pods if role.carries}
            return len(homes) > 1 or None in homes
        case _:
            # Affinity and spread do not bind who is there.
            return False


def _is_too_near(rule: AntiAffinity, pods: _There, number: int) -> bool:
    role, node = pods[number]
    domain = rule.domains.get(node)
    if domain is None:
        return False
    others = (
        other
        for place, other in enumerate(pods)
        if place != number and rule.domains.get(other[1]) == domain
    )
    counted = domain in rule.counted or any(other.counts for other, _ in others)
    return (role.carries and counted) or (role.counts and domain in rule.carried)
