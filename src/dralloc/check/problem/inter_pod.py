"""Rules between pods by topology domain (see `dralloc.problem.inter_pod`): whether pods can have come like this.

First each rule alone, and affinity all together; then one order of pods for affinity and spread together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, TypeVar

from dralloc.check.problem.placed import PlacedRole, View
from dralloc.problem.indices import DemandIndex
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)

__all__ = [
    "affinity_has_an_order",
    "groups_are_in_one_domain",
    "nobody_is_too_near",
    "rules_have_one_order",
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
        for domain, neighbours in by_domain.items():
            counting = [member for member in neighbours if member.role.counts]
            for member in neighbours:
                role = member.role
                # Two that run may stay beside each other.
                excluded = [
                    neighbour.demand
                    for neighbour in counting
                    if neighbour.demand != member.demand
                    and not (role.runs and neighbour.role.runs)
                ]
                key = view.problem.demands[member.demand].key
                if role.carries and (
                    excluded or (domain in rule.counted and not role.runs)
                ):
                    keys = (
                        view.problem.demands[demand].key for demand in excluded
                    )
                    names = ", ".join(map(str, keys)) or "pods on nodes"
                    yield f"demand {key}: its anti-affinity keeps {names} out of domain {domain}"
                if role.counts and domain in rule.carried and not role.runs:
                    yield f"demand {key}: anti-affinity of pods on nodes keeps it out of domain {domain}"


def spread_is_even(view: View) -> Iterator[str]:
    """Demands with a spread constraint are not too many above the fewest that count in any domain."""
    for rule, members in view.roles.items():
        if not isinstance(rule, Spread):
            continue
        outside = [
            member.demand
            for member in members
            if member.role.carries and member.node not in rule.domains
        ]
        for demand in outside:
            yield f"demand {view.problem.demands[demand].key}: is in no domain of its topology spread constraint"
        inside = [
            (member.role, rule.domains[member.node])
            for member in members
            if member.node in rule.domains
        ]
        before = Counter(dict(rule.counted))
        counts = before + Counter(
            domain for role, domain in inside if role.counts
        )
        fewest = (
            0
            if rule.has_few_domains
            else min((counts[domain] for domain in rule.every), default=0)
        )
        # Who counts without being bound by the rule can come last, where there are most.
        early = [
            domain
            for role, domain in inside
            if role.counts and (role.carries or role.runs)
        ]
        before += Counter(early)
        for domain in dict.fromkeys(
            domain for role, domain in inside if role.carries
        ):
            if before[domain] - fewest > rule.max_skew:
                yield (
                    f"topology spread: {before[domain]} in domain {domain}, {fewest} in the one with the "
                    f"fewest, which is more than a skew of {rule.max_skew}"
                )


def groups_are_in_one_domain(view: View) -> Iterator[str]:
    """A demand that needs to be in one domain with others is in a domain, and they are, too."""
    for rule, concerned in view.roles.items():
        if not isinstance(rule, OneDomain):
            continue
        members = [member for member in concerned if member.role.carries]
        homes = {rule.domains.get(member.node) for member in members}
        is_old = all(member.role.runs for member in members)
        if not is_old and (len(homes) > 1 or None in homes):
            gang = view.problem.demands[members[0].demand].gang
            names = ", ".join(sorted(home or "none" for home in homes))
            yield f"gang {gang}: its topology constraint asks for one domain, but its demands are in {names}"


def affinity_has_an_order(view: View) -> Iterator[str]:
    """Check that demands with affinity can have come one after the other, each to a pod that it means."""
    rules = {
        rule: members
        for rule, members in view.roles.items()
        if isinstance(rule, Affinity)
    }
    for together in _joined(rules):
        queue = _Queue({rule: rules[rule] for rule in together})
        for demand in queue.stuck(()):
            yield f"demand {view.problem.demands[demand].key}: nobody whom its affinity means can have come before it"


def _joined(rules: Mapping[R, Sequence[PlacedRole]]) -> list[list[R]]:
    """Rules that have members in common, directly or not."""
    groups: list[tuple[set[DemandIndex], list[R]]] = []
    for rule, members in rules.items():
        demands = {member.demand for member in members}
        together = [rule]
        apart = []
        for group in groups:
            if group[0].isdisjoint(demands):
                apart.append(group)
            else:
                demands |= group[0]
                together += group[1]
        groups = [*apart, (demands, together)]
    return [group for _, group in groups]


def _seen(
    rule: Affinity, members: Iterable[PlacedRole]
) -> Iterator[DemandIndex]:
    """The demands that the rule means, if some term can tell: on a node without any of the labels nobody sees them."""
    for member in members:
        if member.role.counts and any(
            member.node in domains for domains in rule.domains
        ):
            yield member.demand


class _Queue:
    """Demands with roles in some rules of affinity, as they may have come."""

    def __init__(self, rules: Mapping[Affinity, Sequence[PlacedRole]]) -> None:
        self._node: dict[DemandIndex, str] = {}
        self._running: set[DemandIndex] = set()
        self._counting: dict[Affinity, set[DemandIndex]] = {}
        self._carried: dict[DemandIndex, list[Affinity]] = defaultdict(list)
        for rule, members in rules.items():
            self._counting[rule] = set(_seen(rule, members))
            for member in members:
                self._node[member.demand] = member.node
                if member.role.runs:
                    self._running.add(member.demand)
                if member.role.carries:
                    self._carried[member.demand].append(rule)

    def stuck(self, beginning: tuple[DemandIndex, ...]) -> list[DemandIndex]:
        """Return the demands that cannot have come if these came first, whatever others came first, too; the fewest."""
        waiting = self._after(beginning)
        begun = {rule for demand in beginning for rule in self._carried[demand]}
        best = waiting
        tried: set[object] = set()
        for demand in waiting:
            for rule in self._carried[demand]:
                if rule in begun or self._somebody_was_there(rule):
                    continue
                candidates = [
                    candidate
                    for candidate in waiting
                    if rule in self._carried[candidate]
                    and candidate in self._counting[rule]
                ]
                for candidate in candidates:
                    node = self._node[candidate]
                    candidate_domains = tuple(
                        domains.get(node) for domains in rule.domains
                    )
                    # Who begins in the same domains makes the same difference.
                    if (
                        None not in candidate_domains
                        and (rule, candidate_domains) not in tried
                        and self._may_begin((*beginning, candidate))
                    ):
                        tried.add((rule, candidate_domains))
                        stuck = self.stuck((*beginning, candidate))
                        best = min(best, stuck, key=len)
                        if not best:
                            return best
        return best

    def _somebody_was_there(self, rule: Affinity) -> bool:
        """Whether running pods are meant, so that no demand can be the first."""
        return any(rule.counted) or not self._running.isdisjoint(
            self._counting[rule]
        )

    def _may_begin(self, beginning: Sequence[DemandIndex]) -> bool:
        """Whether there is an order in which each of them comes before all demands that its rules mean."""
        waiting = set(beginning)
        while waiting:
            free = [
                demand
                for demand in waiting
                if not self._is_meant(demand, waiting)
            ]
            if not free:
                return False
            waiting.difference_update(free)
        return True

    def _is_meant(self, demand: DemandIndex, waiting: Set[DemandIndex]) -> bool:
        """Whether a rule of another demand that waits means a demand, so that the other has to begin before it."""
        for beginner in waiting - {demand}:
            for rule in self._carried[beginner]:
                if demand in self._counting[rule]:
                    return True
        return False

    def _after(self, beginning: Iterable[DemandIndex]) -> list[DemandIndex]:
        come = {*beginning, *self._running}
        waiting = [demand for demand in self._node if demand not in come]
        while True:
            # All that may come now come at once: whoever is there only helps the others.
            coming = [
                demand for demand in waiting if self._may_come(demand, come)
            ]
            if not coming:
                return waiting
            come.update(coming)
            waiting = [demand for demand in waiting if demand not in come]

    def _may_come(self, demand: DemandIndex, come: Set[DemandIndex]) -> bool:
        return all(
            self._is_met(rule, demand, come) for rule in self._carried[demand]
        )

    def _is_met(
        self, rule: Affinity, demand: DemandIndex, come: Set[DemandIndex]
    ) -> bool:
        node = self._node[demand]
        nodes = [
            self._node[companion] for companion in self._counting[rule] & come
        ]
        for domains, before in zip(rule.domains, rule.counted, strict=True):
            if node not in domains:
                return False
            domain = domains[node]
            occupied = (domains.get(companion_node) for companion_node in nodes)
            if domain not in before and domain not in occupied:
                return False
        return True


# ----------------------------------------------------------------------------
# One order of pods for affinity and spread together (see
# `dralloc.problem.inter_pod`).
#
# Each rule alone is looked at in `dralloc.check.problem.inter_pod`, and affinity all
# together. Where the same demands have roles in rules of spread and in others, an
# order is looked for by trying, most likely ones first.

_MOST_TRIED: Final = 20_000
"""After so many sets of demands that can have come first, an order is taken for not to be found."""

_OrderRule = Affinity | Spread


def rules_have_one_order(view: View) -> Iterator[str]:
    """Demands with roles in several rules can have come one after the other, and each kept all of them then."""
    rules = {
        rule: members
        for rule, members in view.roles.items()
        if isinstance(rule, _OrderRule)
    }
    for together in _joined(rules):
        if len(together) > 1 and any(
            isinstance(rule, Spread) for rule in together
        ):
            groups = _groups({rule: rules[rule] for rule in together})
            for demand in _Arrivals(groups).stuck():
                key = view.problem.demands[demand].key
                yield f"demand {key}: no order of pods is found in which it, and the others, keep affinity and spread"


@dataclass(eq=False, slots=True)
class _EqualPlacements:
    """Demands with the same roles on the same node, and how many of them have come."""

    roles: tuple[Role, ...]
    node: str
    demands: list[DemandIndex] = field(default_factory=list)
    come: int = 0

    @property
    def waits(self) -> bool:
        """Whether some demand has not come."""
        return self.come < len(self.demands)

    @property
    def carries(self) -> bool:
        """Whether they carry some rule."""
        return any(role.carries for role in self.roles)


def _groups(
    rules: Mapping[_OrderRule, Sequence[PlacedRole]],
) -> list[_EqualPlacements]:
    roles: dict[DemandIndex, list[Role]] = defaultdict(list)
    node_of: dict[DemandIndex, str] = {}
    for members in rules.values():
        for member in members:
            roles[member.demand].append(member.role)
            node_of[member.demand] = member.node
    groups: dict[tuple[tuple[Role, ...], str], _EqualPlacements] = {}
    for demand in sorted(roles):
        key = tuple(roles[demand]), node_of[demand]
        groups.setdefault(key, _EqualPlacements(*key)).demands.append(demand)
    return list(groups.values())


class _Arrivals:
    """Tries orders of arrival: lets one demand after the other come, and goes back where none can come any more."""

    def __init__(self, groups: Sequence[_EqualPlacements]) -> None:
        self._groups = groups
        # By rule and index of the term in it: how many have come that count, in each domain.
        self._counts: dict[tuple[InterPodRule, int], Counter[str]] = (
            defaultdict(Counter)
        )
        for group in groups:
            # Who runs was there before.
            for _ in (
                group.demands if any(role.runs for role in group.roles) else ()
            ):
                self._move(group, 1)

    def stuck(self) -> Sequence[DemandIndex]:
        """The demands that have not come where as few as possible are left; nobody if there is an order."""
        fewest = self._waiting()
        tried: set[tuple[int, ...]] = set()
        came: list[_EqualPlacements] = []
        # Depth first, without recursion: behind each that came, who may come next.
        choices = [iter(self._next())]
        while choices and fewest and len(tried) < _MOST_TRIED:
            group = next(choices[-1], None)
            if group is None:
                choices.pop()
                if came:
                    self._move(came.pop(), -1)
                continue
            self._move(group, 1)
            # Demands of a group make the same difference, so it is enough to know how many of each came.
            state = tuple(waiting.come for waiting in self._groups)
            if state in tried:
                self._move(group, -1)
                continue
            tried.add(state)
            came.append(group)
            fewest = min(fewest, self._waiting(), key=len)
            choices.append(iter(self._next()))
        return fewest

    def _waiting(self) -> list[DemandIndex]:
        return [
            demand
            for group in self._groups
            for demand in group.demands[group.come :]
        ]

    def _next(self) -> list[_EqualPlacements]:
        """Return the demands that may come now: first where the fewest are, and there those that carry a rule."""
        ready = [
            group
            for group in self._groups
            if group.waits and self._may_come(group)
        ]
        return sorted(
            ready,
            key=lambda group: (self._most_there(group), not group.carries),
        )

    def _most_there(self, group: _EqualPlacements) -> int:
        spreads = [
            role.rule
            for role in group.roles
            if role.counts and isinstance(role.rule, Spread)
        ]
        counts = (
            self._number(rule, rule.domains[group.node])
            for rule in spreads
            if group.node in rule.domains
        )
        return max(counts, default=0)

    def _move(self, group: _EqualPlacements, step: int) -> None:
        """Let one demand of a group come (1), or take that back (-1)."""
        group.come += step
        for role in group.roles:
            for term_index, domains in enumerate(_topologies(role.rule)):
                if role.counts and group.node in domains:
                    self._counts[role.rule, term_index][
                        domains[group.node]
                    ] += step

    def _may_come(self, group: _EqualPlacements) -> bool:
        for role in group.roles:
            rule = role.rule
            if (
                role.carries
                and isinstance(rule, Affinity)
                and not self._is_near(rule, role, group.node)
            ):
                return False
            if (
                role.carries
                and isinstance(rule, Spread)
                and not self._is_even(rule, role, group.node)
            ):
                return False
        return True

    def _is_near(self, rule: Affinity, role: Role, node: str) -> bool:
        if any(node not in domains for domains in rule.domains):
            return False
        occupied = [
            set(+self._counts[rule, term_index]) | counted
            for term_index, counted in enumerate(rule.counted)
        ]
        begins = role.counts and not any(occupied)
        return begins or all(
            domains[node] in of_term
            for domains, of_term in zip(rule.domains, occupied, strict=True)
        )

    def _is_even(self, rule: Spread, role: Role, node: str) -> bool:
        if node not in rule.domains:
            return False
        fewest = (
            0
            if rule.has_few_domains
            else min(self._number(rule, domain) for domain in rule.every)
        )
        return (
            self._number(rule, rule.domains[node]) + role.counts - fewest
            <= rule.max_skew
        )

    def _number(self, rule: Spread, domain: str) -> int:
        return rule.counted.get(domain, 0) + self._counts[rule, 0][domain]


def _topologies(rule: InterPodRule) -> Sequence[Domains]:
    if isinstance(rule, Affinity):
        return rule.domains
    return (rule.domains,) if isinstance(rule, Spread) else ()
