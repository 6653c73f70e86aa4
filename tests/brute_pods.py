"""The referee for what binds pods beside devices: sums over nodes, and every order in which pods can come.

The rules between pods are those of kube-scheduler's filters, asked for one pod after the other. An answer counts if
there is an order in which all pods that are placed pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import permutations

from brute_force import every_solution
from dralloc.objects.quantity import NANOS
from dralloc.problem.indices import DemandIndex
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.problem.solution import Placement, Solution
from pod_strategies import BoundPods

__all__ = ["best_bound", "is_bound_right"]

Coming = tuple[DemandIndex, str]
"""A demand and the name of its node."""


def best_bound(pods: BoundPods) -> tuple[int, int]:
    """The largest total weight of placed demands, and the smallest total rank with which it can be reached."""
    worths = (
        _worth(pods, solution)
        for solution in every_solution(pods.devices)
        if is_bound_right(pods, solution.placements)
    )
    weight, rank = max(worths)
    return weight, -rank


def is_bound_right(pods: BoundPods, placements: Sequence[Placement]) -> bool:
    """Whether nodes have what pods ask for, and there is an order for the rules between pods."""
    return (
        _has_room(pods, placements)
        and _are_groups_complete(pods, placements)
        and any(
            _pass(pods, order)
            for order in permutations(_coming(pods, placements))
            if _may_come(pods, order)
        )
    )


def _worth(pods: BoundPods, solution: Solution) -> tuple[int, int]:
    weight = rank = 0
    for placement in solution.placements:
        demand = pods.devices.demands[placement.demand]
        weight += demand.weight
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            picked = {(grant.request, grant.alternative) for grant in grants}
            rank -= sum(
                claim.requests[request].alternatives[choice].rank
                for request, choice in picked
            )
    return weight, rank


def _has_room(pods: BoundPods, placements: Iterable[Placement]) -> bool:
    taken: Counter[tuple[int, str]] = Counter()
    for placement in placements:
        taken.update(
            {
                (placement.node, name): amount
                for name, amount in pods.asked.get(placement.demand, {}).items()
            }
        )
        of_devices = _of_devices(pods, placement)
        caps = (
            pods.uses[placement.demand].caps
            if placement.demand in pods.uses
            else {}
        )
        if of_devices is None or any(
            of_devices[name] > cap
            for name, cap in caps.items()
            if name in _taken(pods)
        ):
            return False
        taken.update(
            {
                (placement.node, f"node {name}"): amount
                for name, amount in of_devices.items()
                if name not in caps
            }
        )
    return all(
        pods.stocks[node].total[name]
        >= amount
        + sum(
            amounts.get(name, 0) for amounts in pods.stocks[node].used.values()
        )
        for (node, name), amount in taken.items()
        if amount and name in pods.stocks[node].total
    )


def _are_groups_complete(
    pods: BoundPods, placements: Iterable[Placement]
) -> bool:
    """Whether every group of groups below which somebody is placed has enough children with somebody."""
    placed = [
        pods.devices.demands[placement.demand] for placement in placements
    ]
    groups = {
        group
        for demand in placed
        for group in (demand.parent.upwards() if demand.parent else ())
    }
    for group in groups:
        gangs = {demand.gang for demand in placed if demand.parent is group}
        below = {other.name for other in groups if other.parent is group}
        if len((gangs | below) - group.settled) < group.quorum:
            return False
    return True


def _taken(pods: BoundPods) -> set[str]:
    """The resources that any device takes something of."""
    return {
        part.resource
        for device in pods.devices.devices
        for part in device.footprint
    }


def _of_devices(pods: BoundPods, placement: Placement) -> Counter[str] | None:
    """What devices take for a pod that says how it uses them; None if they follow a capacity that nobody consumes."""
    amounts: Counter[str] = Counter()
    demand = pods.devices.demands[placement.demand]
    for claim, grants in (
        zip(demand.claims, placement.grants, strict=True)
        if placement.demand in pods.uses
        else ()
    ):
        for request, choice, device_index in grants:
            device, index = (
                pods.devices.devices[device_index],
                claim.requests[request].alternatives[choice].index,
            )
            charge = pods.devices.eligibility.charge(index, device_index)
            consumed = dict(charge.capacity) if charge else {}
            for part in device.footprint:
                if part.capacity and not device.shareable:
                    return None
                factor = (
                    Fraction(consumed[part.capacity], NANOS)
                    if part.capacity
                    else 1
                )
                containers = pods.uses[placement.demand].containers[claim.key]
                amounts[part.resource] += (
                    int(part.multiplier * factor)
                    + part.per_pod
                    + part.per_container * containers
                )
    return amounts


def _coming(pods: BoundPods, placements: Iterable[Placement]) -> list[Coming]:
    return [
        (placement.demand, pods.devices.nodes[placement.node].name)
        for placement in placements
    ]


def _may_come(pods: BoundPods, order: Sequence[Coming]) -> bool:
    """Whether nobody comes before pods that run."""
    runs = [
        any(role.runs for role in pods.devices.demands[demand].roles)
        for demand, _ in order
    ]
    return runs == sorted(runs, reverse=True)


def _pass(pods: BoundPods, order: Sequence[Coming]) -> bool:
    there: list[Coming] = []
    for demand, node in order:
        for role in pods.devices.demands[demand].roles:
            if not role.runs and not _FILTERS[type(role.rule)](
                pods, role, node, there
            ):
                return False
        there.append((demand, node))
    return True


def _nodes_of(
    pods: BoundPods,
    there: Iterable[Coming],
    rule: InterPodRule,
    wanted: Callable[[Role], bool],
) -> list[str]:
    """The nodes of those who are there and have such a role."""
    return [
        node
        for demand, node in there
        for role in pods.devices.demands[demand].roles
        if role.rule is rule and wanted(role)
    ]


def _apart(
    pods: BoundPods, role: Role, node: str, there: Sequence[Coming]
) -> bool:
    rule = role.rule
    assert isinstance(rule, AntiAffinity)
    domain = rule.domains.get(node)
    if domain is None:
        return True
    meant = {
        rule.domains.get(home)
        for home in _nodes_of(pods, there, rule, lambda other: other.counts)
    } | rule.counted
    having = {
        rule.domains.get(home)
        for home in _nodes_of(pods, there, rule, lambda other: other.carries)
    } | rule.carried
    return not (role.carries and domain in meant) and not (
        role.counts and domain in having
    )


def _near(
    pods: BoundPods, role: Role, node: str, there: Sequence[Coming]
) -> bool:
    rule = role.rule
    assert isinstance(rule, Affinity)
    if not role.carries:
        return True
    meant = _nodes_of(pods, there, rule, lambda other: other.counts)
    domain_sets = [
        {domains[home] for home in meant if home in domains} | known
        for domains, known in zip(rule.domains, rule.counted, strict=True)
    ]
    if any(node not in domains for domains in rule.domains):
        return False
    if not any(domain_sets):
        return role.counts
    return all(
        domains[node] in domain_set
        for domains, domain_set in zip(rule.domains, domain_sets, strict=True)
    )


def _even(
    pods: BoundPods, role: Role, node: str, there: Sequence[Coming]
) -> bool:
    rule = role.rule
    assert isinstance(rule, Spread)
    if not role.carries:
        return True
    if node not in rule.domains:
        return False
    domains = set(rule.domains.values())
    counts = Counter(dict(rule.counted))
    for home in _nodes_of(pods, there, rule, lambda other: other.counts):
        counts.update([rule.domains[home]] if home in rule.domains else [])
    least = (
        min(counts[domain] for domain in domains)
        if len(domains) >= rule.min_domains
        else 0
    )
    return counts[rule.domains[node]] + role.counts - least <= rule.max_skew


def _same(
    pods: BoundPods, role: Role, node: str, there: Sequence[Coming]
) -> bool:
    rule = role.rule
    assert isinstance(rule, OneDomain)
    others = _nodes_of(pods, there, rule, lambda other: other.carries)
    domains = {rule.domains.get(home) for home in others}
    return not role.carries or (
        node in rule.domains and domains <= {rule.domains[node]}
    )


_FILTERS = {
    AntiAffinity: _apart,
    Affinity: _near,
    Spread: _even,
    OneDomain: _same,
}
