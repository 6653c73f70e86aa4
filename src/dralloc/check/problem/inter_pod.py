"""Rules between pods by topology domain (see `dralloc.problem.inter_pod`): whether pods can have come like this."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from dralloc.check.problem.view import PlacedRole, View
from dralloc.problem.inter_pod import Affinity, AntiAffinity, OneDomain, Spread

__all__ = [
    "affinity_has_an_order",
    "groups_are_in_one_domain",
    "joined",
    "nobody_is_too_near",
    "spread_is_even",
]

R = TypeVar("R")


def nobody_is_too_near(view: View) -> Iterator[str]:
    """No two demands of which one carries a term of anti-affinity that means the other are in one domain."""
    for rule, members in view.roles.items():
        if not isinstance(rule, AntiAffinity):
            continue
        by_domain: dict[str, list[PlacedRole]] = defaultdict(list)
        for member in members:
            if member.node in rule.domains:
                by_domain[rule.domains[member.node]].append(member)
        for domain, here in by_domain.items():
            counting = [one for one in here if one.role.counts]
            for one in here:
                # Two that run may stay beside each other.
                others = [
                    other.demand
                    for other in counting
                    if other.demand != one.demand
                    and not (one.role.runs and other.role.runs)
                ]
                key = view.problem.demands[one.demand].key
                if one.role.carries and (
                    others or (domain in rule.counted and not one.role.runs)
                ):
                    names = (
                        ", ".join(
                            str(view.problem.demands[other].key) for other in others
                        )
                        or "pods on nodes"
                    )
                    yield f"demand {key}: its anti-affinity keeps {names} out of domain {domain}"
                if one.role.counts and domain in rule.carried and not one.role.runs:
                    yield f"demand {key}: anti-affinity of pods on nodes keeps it out of domain {domain}"


def spread_is_even(view: View) -> Iterator[str]:
    """Where demands carry a spread constraint, they are not too many above the fewest that count in any domain."""
    for rule, members in view.roles.items():
        if not isinstance(rule, Spread):
            continue
        outside = [
            one.demand
            for one in members
            if one.role.carries and one.node not in rule.domains
        ]
        for demand in outside:
            yield f"demand {view.problem.demands[demand].key}: is in no domain of its topology spread constraint"
        inside = [
            (one, rule.domains[one.node]) for one in members if one.node in rule.domains
        ]
        before = Counter(dict(rule.counted))
        counts = before + Counter(domain for one, domain in inside if one.role.counts)
        fewest = (
            0
            if rule.has_few_domains
            else min((counts[domain] for domain in rule.every), default=0)
        )
        early = [
            domain
            for one, domain in inside
            if one.role.counts and (one.role.carries or one.role.runs)
        ]
        before += Counter(early)
        for domain in dict.fromkeys(
            domain for one, domain in inside if one.role.carries
        ):
            if before[domain] - fewest > rule.max_skew:
                yield (
                    f"topology spread: {before[domain]} in domain {domain}, {fewest} in the one with the "
                    f"fewest, which is more than a skew of {rule.max_skew}"
                )


def groups_are_in_one_domain(view: View) -> Iterator[str]:
    """Who needs to be in one domain with others is in a domain, and they are, too."""
    for rule, every in view.roles.items():
        if not isinstance(rule, OneDomain):
            continue
        members = [member for member in every if member.role.carries]
        homes = {rule.domains.get(member.node) for member in members}
        is_old = all(member.role.runs for member in members)
        if not is_old and (len(homes) > 1 or None in homes):
            gang = view.problem.demands[members[0].demand].gang
            names = ", ".join(sorted(home or "none" for home in homes))
            yield f"gang {gang}: its topology constraint asks for one domain, but its demands are in {names}"


def affinity_has_an_order(view: View) -> Iterator[str]:
    """Demands with affinity can have come one after the other, each to somebody whom it means."""
    rules = {
        rule: members
        for rule, members in view.roles.items()
        if isinstance(rule, Affinity)
    }
    for together in joined(rules):
        queue = _Queue({rule: rules[rule] for rule in together})
        for demand in queue.stuck(()):
            yield f"demand {view.problem.demands[demand].key}: nobody whom its affinity means can have come before it"


def joined(rules: Mapping[R, Sequence[PlacedRole]]) -> list[list[R]]:
    """Rules that have members in common, directly or not."""
    groups: list[tuple[set[int], list[R]]] = []
    for rule, members in rules.items():
        mine = {one.demand for one in members}
        met = [group for group in groups if not mine.isdisjoint(group[0])]
        groups = [group for group in groups if mine.isdisjoint(group[0])]
        groups.append(
            (
                mine.union(*(group[0] for group in met)),
                [rule, *(one for group in met for one in group[1])],
            )
        )
    return [group for _, group in groups]


def _seen(rule: Affinity, members: Iterable[PlacedRole]) -> Iterator[int]:
    """The demands that the rule means, if some term can tell: on a node without any of the labels nobody sees them."""
    for member in members:
        if member.role.counts and any(
            member.node in domains for domains in rule.domains
        ):
            yield member.demand


class _Queue:
    """Demands with roles in some rules of affinity, as they may have come."""

    def __init__(self, rules: Mapping[Affinity, Sequence[PlacedRole]]) -> None:
        self._node = {
            one.demand: one.node for members in rules.values() for one in members
        }
        self._running = {
            one.demand for members in rules.values() for one in members if one.role.runs
        }
        self._counting = {rule: set(_seen(rule, each)) for rule, each in rules.items()}
        self._carried: dict[int, list[Affinity]] = {demand: [] for demand in self._node}
        for rule, members in rules.items():
            for one in members:
                if one.role.carries:
                    self._carried[one.demand].append(rule)

    def stuck(self, beginning: tuple[int, ...]) -> list[int]:
        """Who cannot have come, if these came first, and with whoever else may have begun; the fewest."""
        left = self._after(beginning)
        begun = {rule for demand in beginning for rule in self._carried[demand]}
        best = left
        tried: set[object] = set()
        for demand in left:
            for rule in self._carried[demand]:
                candidates = [
                    one
                    for one in left
                    if rule in self._carried[one] and one in self._counting[rule]
                ]
                for one in (
                    ()
                    if rule in begun or self._somebody_was_there(rule)
                    else candidates
                ):
                    place = (
                        rule,
                        tuple(domains.get(self._node[one]) for domains in rule.domains),
                    )
                    if (
                        None not in place[1]
                        and place not in tried
                        and self._may_begin((*beginning, one))
                    ):
                        tried.add(place)
                        best = min(best, self.stuck((*beginning, one)), key=len)
                        if not best:
                            return best
        return best

    def _somebody_was_there(self, rule: Affinity) -> bool:
        """Whether pods that run are meant, so that nobody can begin."""
        return any(rule.counted) or not self._running.isdisjoint(self._counting[rule])

    def _may_begin(self, beginning: Sequence[int]) -> bool:
        """Whether there is an order in which each of them comes before everybody whom its rules mean."""
        left = set(beginning)
        while left:
            free = [
                one
                for one in left
                if not any(
                    one in self._counting[rule]
                    for other in left - {one}
                    for rule in self._carried[other]
                )
            ]
            if not free:
                return False
            left.difference_update(free)
        return True

    def _after(self, beginning: Iterable[int]) -> list[int]:
        come = {*beginning, *self._running}
        waiting = [demand for demand in self._node if demand not in come]
        while True:
            coming = [
                one
                for one in waiting
                if all(self._is_met(rule, one, come) for rule in self._carried[one])
            ]
            if not coming:
                return waiting
            come.update(coming)
            waiting = [one for one in waiting if one not in come]

    def _is_met(self, rule: Affinity, demand: int, come: set[int]) -> bool:
        node = self._node[demand]
        return all(
            node in domains
            and (
                domains[node] in before
                or any(
                    domains.get(self._node[other]) == domains[node]
                    for other in self._counting[rule] & come
                )
            )
            for domains, before in zip(rule.domains, rule.counted, strict=True)
        )
