"""One order for all rules between pods that ask who was there before.

Affinity and spread are looked at when a pod comes (see `dralloc.problem.inter_pod`). Where several such rules are about
the same pods, they look at the same order: that there is one for each rule is not enough. Of pods that are spread over
zones and over nodes, say, the next one may have to go to one zone for the first rule, and to a node of another zone for
the second; then nobody comes any more, although all of them together would be even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from networkx.utils import UnionFind

from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import Affinity, DomainLedger, InterPodRule, Role, Spread

if TYPE_CHECKING:
    from dralloc.problem.requests import Demand

__all__ = ["can_come_in_turn", "spreads_in_turn"]

Arrival = tuple["Demand", str]
"""A demand and the name of the node that it comes to."""


def spreads_in_turn(demands: Iterable[Demand]) -> frozenset[Spread]:
    """The rules of spread that share their order with other rules, because some demand has roles in both."""
    forest: UnionFind[InterPodRule] = UnionFind()
    for demand in demands:
        forest.union(*(role.rule for role in _of_order(demand)))
    by_order = grouped((forest[rule], rule) for rule in forest)
    together = (rule for rules in by_order.values() if len(rules) > 1 for rule in rules)
    return frozenset(rule for rule in together if isinstance(rule, Spread))


def can_come_in_turn(arrivals: Iterable[Arrival]) -> bool:
    """Whether some demands all find their nodes if they come in the most likely order.

    Who runs was there. Then whoever may come comes, always to the domain with the fewest pods that count, and there
    first who carries a constraint. For one rule of spread alone this finds an order if there is any; for several rules
    there may still be another one if this fails.
    """
    waiting = Counter(_EqualArrivals.of(demand, node) for demand, node in arrivals)
    ledger = DomainLedger()
    while waiting:
        ready = [group for group in waiting if ledger.allows(group.roles, group.node)]
        if not ready:
            return False
        coming = min(
            ready,
            key=lambda group: (
                not group.runs,
                group.most_there(ledger),
                not group.carries,
            ),
        )
        ledger.enter(coming.roles, coming.node)
        waiting[coming] -= 1
        waiting = +waiting
    return True


class _EqualArrivals(NamedTuple):
    """Demands with the same roles that come to the same node."""

    roles: tuple[Role, ...]
    node: str

    @classmethod
    def of(cls, demand: Demand, node: str) -> _EqualArrivals:
        """The group of a demand that comes to a node."""
        return cls(tuple(_of_order(demand)), node)

    @property
    def runs(self) -> bool:
        """Whether they stand for pods that run."""
        return any(role.runs for role in self.roles)

    @property
    def carries(self) -> bool:
        """Whether they carry any rule."""
        return any(role.carries for role in self.roles)

    def most_there(self, ledger: DomainLedger) -> int:
        """How many are where these come to, by the rule of spread for which they are most."""
        return max(
            (ledger.number(role.rule, self.node) for role in self.roles if role.counts),
            default=0,
        )


def _of_order(demand: Demand) -> Iterator[Role]:
    """The roles of a demand in rules for which it matters who comes first."""
    return (role for role in demand.roles if isinstance(role.rule, Affinity | Spread))
