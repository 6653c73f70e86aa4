"""One order of pods for affinity and spread together (see `dralloc.problem.inter_pod`).

Each rule alone is looked at in `dralloc.check.problem.inter_pod`, and affinity all together. Where the same demands
have roles in rules of spread and in others, an order is looked for by trying, most likely ones first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dralloc.check.problem.inter_pod import joined
from dralloc.check.problem.view import PlacedRole, View
from dralloc.problem.inter_pod import Affinity, Domains, InterPodRule, Role, Spread

__all__ = ["rules_have_one_order"]

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
    for together in joined(rules):
        if len(together) > 1 and any(isinstance(rule, Spread) for rule in together):
            groups = _groups({rule: rules[rule] for rule in together})
            for demand in _Arrivals(groups).stuck():
                key = view.problem.demands[demand].key
                yield f"demand {key}: no order of pods is found in which it, and the others, keep affinity and spread"


@dataclass(eq=False, slots=True)
class _EqualPlacements:
    """Demands with the same roles on the same node, and how many of them have come."""

    roles: tuple[Role, ...]
    node: str
    demands: list[int] = field(default_factory=list)
    come: int = 0

    @property
    def waits(self) -> bool:
        """Whether somebody has not come."""
        return self.come < len(self.demands)

    @property
    def carries(self) -> bool:
        """Whether they carry some rule."""
        return any(role.carries for role in self.roles)


def _groups(rules: Mapping[_OrderRule, Sequence[PlacedRole]]) -> list[_EqualPlacements]:
    roles: dict[int, list[Role]] = defaultdict(list)
    node_of: dict[int, str] = {}
    for members in rules.values():
        for member in members:
            roles[member.demand].append(member.role)
            node_of[member.demand] = member.node
    found: dict[tuple[tuple[Role, ...], str], _EqualPlacements] = {}
    for demand in sorted(roles):
        key = tuple(roles[demand]), node_of[demand]
        found.setdefault(key, _EqualPlacements(*key)).demands.append(demand)
    return list(found.values())


class _Arrivals:
    """Tries who comes next, and takes it back where nobody can come any more."""

    def __init__(self, groups: Sequence[_EqualPlacements]) -> None:
        self._groups = groups
        # By rule and place of the term in it: how many have come that count, in each domain.
        self._counts: dict[tuple[InterPodRule, int], Counter[str]] = defaultdict(
            Counter
        )
        for group in groups:
            # Who runs was there before.
            for _ in group.demands if any(role.runs for role in group.roles) else ():
                self._move(group, 1)

    def stuck(self) -> Sequence[int]:
        """The demands that have not come where as few as possible are left; nobody if there is an order."""
        fewest = self._waiting()
        tried: set[tuple[int, ...]] = set()
        came: list[_EqualPlacements] = []
        choices = [iter(self._next())]
        while choices and fewest and len(tried) < _MOST_TRIED:
            group = next(choices[-1], None)
            if group is None:
                choices.pop()
                if came:
                    self._move(came.pop(), -1)
                continue
            self._move(group, 1)
            state = tuple(one.come for one in self._groups)
            if state in tried:
                self._move(group, -1)
                continue
            tried.add(state)
            came.append(group)
            fewest = min(fewest, self._waiting(), key=len)
            choices.append(iter(self._next()))
        return fewest

    def _waiting(self) -> list[int]:
        return [
            demand for group in self._groups for demand in group.demands[group.come :]
        ]

    def _next(self) -> list[_EqualPlacements]:
        """Who may come now: first to where the fewest are, and there who carries a rule."""
        ready = [
            group for group in self._groups if group.waits and self._may_come(group)
        ]
        return sorted(
            ready, key=lambda group: (self._most_there(group), not group.carries)
        )

    def _most_there(self, group: _EqualPlacements) -> int:
        spreads = [
            role.rule
            for role in group.roles
            if role.counts and isinstance(role.rule, Spread)
        ]
        numbers = (
            self._number(rule, rule.domains[group.node])
            for rule in spreads
            if group.node in rule.domains
        )
        return max(numbers, default=0)

    def _move(self, group: _EqualPlacements, step: int) -> None:
        """One of a group comes (1), or that is taken back (-1)."""
        group.come += step
        for role in group.roles:
            for place, domains in enumerate(_topologies(role.rule)):
                if role.counts and group.node in domains:
                    self._counts[role.rule, place][domains[group.node]] += step

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
        there = [
            set(+self._counts[rule, place]) | known
            for place, known in enumerate(rule.counted)
        ]
        begins = role.counts and not any(there)
        return begins or all(
            domains[node] in some
            for domains, some in zip(rule.domains, there, strict=True)
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
