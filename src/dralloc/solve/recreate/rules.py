"""Rules between pods in an answer that changes thousands of times a second.

Whoever comes goes only where the rules let them. But who leaves can break a rule for others, too: those who came
because somebody was there (affinity), or because elsewhere there were as many (spread). While a change is being made
that is nothing unusual, as most of those who leave come back. So a change is looked at once more when it is complete:
there has to be an order in which all could have come (see `dralloc.problem.inter_pod`). Anti-affinity asks for no more
than that whoever comes is let in.

That gangs are in one domain is seen to elsewhere.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from networkx.utils import UnionFind

from dralloc.problem import Demand, DemandIndex, NodeIndex, Problem
from dralloc.problem.indices import grouped
from dralloc.problem.inter_pod import (
    Affinity,
    Arrival,
    DomainLedger,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
    can_come_in_turn,
)

__all__ = ["RulesBetweenPods", "roles_beside_others"]


class RulesBetweenPods:
    """Who is where, as far as rules between pods are concerned.

    Parameters
    ----------
    bystanders
        Demands that the problem does not ask for and that have a role in rules of those that it does, with the names of
        the nodes that they are on.
    """

    def __init__(
        self, problem: Problem, bystanders: Sequence[Arrival] = ()
    ) -> None:
        self._demands = problem.demands
        self._node_names = [node.name for node in problem.nodes]
        self._roles = [
            tuple(roles_beside_others(demand)) for demand in problem.demands
        ]
        self._ledger = DomainLedger()
        everybody = [
            *problem.demands,
            *(demand for demand, _ in bystanders),
        ]
        self._order_of = _orders(everybody)
        # Who came to a node (1), or left one (-1), and was not there, or was, when moves were last settled.
        self._moves: Tally[tuple[DemandIndex, NodeIndex]] = Tally()
        for key, (demand, node_name) in enumerate(bystanders):
            roles = tuple(roles_beside_others(demand))
            self._ledger.enter(roles, node_name)
            for order in self._orders_of(roles):
                order.enter(("bystander", key), demand, node_name)

    def allow(self, demand: DemandIndex, node: NodeIndex) -> bool:
        """Whether a demand may come to a node now."""
        return self._ledger.allows(self._roles[demand], self._node_names[node])

    def enter(self, demand: DemandIndex, node: NodeIndex) -> None:
        """Note that a demand came to a node."""
        roles, node_name = self._roles[demand], self._node_names[node]
        self._ledger.enter(roles, node_name)
        for order in self._orders_of(roles):
            order.enter(demand, self._demands[demand], node_name)
        self._note_move(demand, node, 1)

    def leave(self, demand: DemandIndex, node: NodeIndex) -> None:
        """Note that a demand left a node."""
        roles, node_name = self._roles[demand], self._node_names[node]
        self._ledger.enter(roles, node_name, -1)
        for order in self._orders_of(roles):
            order.leave(demand, self._demands[demand], node_name)
        self._note_move(demand, node, -1)

    def _note_move(
        self, demand: DemandIndex, node: NodeIndex, sign: int
    ) -> None:
        self._moves[demand, node] += sign
        if not self._moves[demand, node]:
            del self._moves[demand, node]

    def settle(self) -> None:
        """Whoever moves from now on moves away from here."""
        self._moves.clear()

    def hold(self) -> bool:
        """Whether all could have come in some order, if they could when moves were last settled.

        Rules are looked at in which those have a role who moved since then. Others hold as they did.
        """
        orders = dict.fromkeys(
            order
            for demand, _ in self._moves
            for order in self._orders_of(self._roles[demand])
        )
        return all(order.is_possible() for order in orders)

    def _orders_of(self, roles: Iterable[Role]) -> list[_Order]:
        """Return the orders in which those with some roles have to come."""
        return list(
            dict.fromkeys(
                [
                    self._order_of[role.rule]
                    for role in roles
                    if role.rule in self._order_of
                ]
            )
        )


def roles_beside_others(demand: Demand) -> list[Role]:
    """Return the roles of a demand in rules that are not about the demand's gang alone."""
    return [
        role for role in demand.roles if not isinstance(role.rule, OneDomain)
    ]


# ----------------------------------------------------------------------------
# Orders of arrival.


class _Order(Protocol):
    """Those who have to come in one order, because rules say who has to be there before whom."""

    def enter(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody came to a node."""

    def leave(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody left a node."""

    def is_possible(self) -> bool:
        """Whether all who are there could have come one after the other."""


def _orders(demands: Iterable[Demand]) -> dict[InterPodRule, _Order]:
    """Return by rule that says who has to be there before whom, the order that it has a say in.

    Rules have a say in the same order if a demand has roles in both.
    """
    forest: UnionFind[InterPodRule] = UnionFind()
    for demand in demands:
        forest.union(
            *(
                role.rule
                for role in demand.roles
                if isinstance(role.rule, Affinity | Spread)
            )
        )
    orders: dict[InterPodRule, _Order] = {}
    for rules in grouped((forest[rule], rule) for rule in forest).values():
        order: _Order = _AnyOrder()
        if len(rules) == 1 and isinstance(rules[0], Spread):
            order = _EvenOrder(rules[0])
        orders.update(dict.fromkeys(rules, order))
    return orders


class _AnyOrder:
    """An order in which any rules have a say."""

    def __init__(self) -> None:
        self._present: dict[Hashable, Arrival] = {}

    def enter(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody came to a node."""
        self._present[key] = demand, node

    def leave(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody left a node."""
        del demand, node
        del self._present[key]

    def is_possible(self) -> bool:
        """Whether all who are there could have come one after the other."""
        return can_come_in_turn(self._present.values())


class _EvenOrder:
    """An order in which one rule of spread has a say: possible where no domain has too many in the end."""

    def __init__(self, rule: Spread) -> None:
        self._rule = rule
        self._every = rule.every
        self._counting = Tally(rule.counted)
        # Of those who carry the rule: all, and those who count for it, too.
        self._carrying: Tally[str] = Tally()
        self._carrying_and_counting: Tally[str] = Tally()

    def enter(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody came to a node."""
        del key
        self._count(demand, node, 1)

    def leave(self, key: Hashable, demand: Demand, node: str) -> None:
        """Note that somebody left a node."""
        del key
        self._count(demand, node, -1)

    def _count(self, demand: Demand, node: str, sign: int) -> None:
        domain = self._rule.domains.get(node)
        if domain is None:
            return
        for role in demand.roles:
            if role.rule is self._rule:
                self._counting[domain] += sign * role.counts
                self._carrying[domain] += sign * role.carries
                self._carrying_and_counting[domain] += sign * (
                    role.carries and role.counts
                )

    def is_possible(self) -> bool:
        """Whether all who are there could have come one after the other."""
        rule = self._rule
        fewest = (
            0
            if rule.has_few_domains
            else min([self._counting[domain] for domain in self._every])
        )
        # Those who do not carry the rule come last, where there are most.
        return all(
            rule.counted.get(domain, 0) + self._carrying_and_counting[domain]
            <= fewest + rule.max_skew
            for domain, carriers in self._carrying.items()
            if carriers
        )
