"""Rules between pods by topology domain: affinity and anti-affinity, hard topology spread, groups in one domain.

A rule knows the domain of each node by the node's name, and what pods that have a node already mean for it. Which
demands a rule is about, they know themselves (`dralloc.problem.Demand.roles`): some *carry* it, so that they may only
go where it holds, and some *count* for it, because it means them. So rules stay true for any part of a problem.

Rules are about pods as they come. An answer counts if there is some order of its pods in which each of them keeps every
rule when it comes. Demands can stand for pods that run and could leave, too: whoever of these stays was there before
everybody else, and rules do not say any more whether it may (*IgnoredDuringExecution*). The order:

- anti-affinity: whoever comes first, in a domain with somebody who carries the term is nobody else whom it means;
- affinity: whoever carries the terms has somebody in the domain whom they mean, and who was there before; only where
  they mean nobody at all yet, one whom they mean itself may begin;
- spread: in a domain with somebody who carries the constraint, those who do are, with the pods that were there, no more
  than the skew above the fewest that are counted in any domain in the end. (Then there is an order for this rule alone:
  always one for the domain with the fewest, and those who do not carry the constraint last where there are most, unless
  they were there. Where other rules ask for an order of the same pods, see `spreads_in_turn`.)

- one domain: those who carry the rule are in one and the same.

Sources: KEP-5732 for groups in one domain; KEP-895 and KEP-3022 for spread; ``framework/plugins/interpodaffinity`` and
``podtopologyspread`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from networkx.utils import UnionFind

from dralloc.problem.indices import grouped

if TYPE_CHECKING:
    from dralloc.problem.requests import Demand

__all__ = [
    "Affinity",
    "AntiAffinity",
    "Arrival",
    "DomainLedger",
    "Domains",
    "InterPodRule",
    "OneDomain",
    "Role",
    "Spread",
    "can_come_in_turn",
    "settled_rule",
    "shared_orders",
    "spreads_in_turn",
]

Domains = Mapping[str, str]
"""The domain of each node by the node's name; a node that is not in it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class AntiAffinity:
    """A term of anti-affinity.

    Parameters
    ----------
    domains
        By the term's topology key.
    carried, counted
        The domains of pods with a node that carry the term, and of those that it means.
    """

    domains: Domains
    carried: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """Terms of affinity that must hold together.

    Parameters
    ----------
    domains
        For each term, by its topology key.
    counted
        For each term, the domains of pods with a node that all of the terms mean.
    """

    domains: tuple[Domains, ...]
    counted: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A constraint on how evenly pods are spread.

    Parameters
    ----------
    domains
        By the constraint's topology key, of nodes on which pods count.
    counted
        How many pods with a node count, by domain.
    max_skew
        How many more there may be in a domain than in the one with the fewest.
    min_domains
        With fewer domains than this, the fewest are taken for none.
    """

    domains: Domains
    counted: Mapping[str, int]
    max_skew: int
    min_domains: int = 1

    @property
    def every(self) -> frozenset[str]:
        """All domains."""
        return frozenset(self.domains.values())

    @property
    def has_few_domains(self) -> bool:
        """Whether there are so few domains that the fewest pods are taken for none."""
        return len(self.every) < self.min_domains


@dataclass(frozen=True, slots=True, eq=False)
class OneDomain:
    """A rule that all demands which carry it are in one domain (KEP-5732).

    Parameters
    ----------
    domains
        By the topology key of the group.
    """

    domains: Domains


InterPodRule = AntiAffinity | Affinity | Spread | OneDomain


class Role(NamedTuple):
    """The role of a demand in a rule: whether it carries the rule, and whether it counts for it.

    ``runs``: whether it stands for a pod that runs, and so was there before all for which that does not hold.
    """

    rule: InterPodRule
    carries: bool
    counts: bool
    runs: bool = False

    @property
    def running(self) -> Role:
        """Return the role of a pod that runs: affinity and spread do not bind it any more."""
        return self._replace(
            carries=self.carries
            and not isinstance(self.rule, Affinity | Spread),
            runs=True,
        )


def settled_rule(
    rule: InterPodRule, present: Iterable[tuple[Role, str]]
) -> InterPodRule:
    """Return the rule as it is for others once some demands that it means are there to stay.

    Parameters
    ----------
    present
        What each of them is to the rule, and the node that it is on. A group that is to be in one domain is there as a
        whole, so that nothing of such a rule is left.
    """
    nodes = list(present)
    counting = [node for role, node in nodes if role.counts]
    match rule:
        case AntiAffinity(domains=domains):
            carrying = frozenset(
                domains[node]
                for role, node in nodes
                if role.carries and node in domains
            )
            counted = frozenset(
                domains[node] for node in counting if node in domains
            )
            return AntiAffinity(
                domains, rule.carried | carrying, rule.counted | counted
            )
        case Affinity():
            counted_by_term = []
            for domains, counted in zip(
                rule.domains, rule.counted, strict=True
            ):
                # A node can be in a domain of one term, and in none of another.
                reached = {
                    domains[node] for node in counting if node in domains
                }
                counted_by_term.append(counted | reached)
            return Affinity(rule.domains, tuple(counted_by_term))
        case Spread(domains=domains):
            tally = Counter(rule.counted)
            tally.update(domains[node] for node in counting if node in domains)
            return Spread(domains, tally, rule.max_skew, rule.min_domains)
        case OneDomain():
            return rule


class DomainLedger:
    """Counts the demands that carry a rule, or count for it, in each domain, and says whether one more may come.

    Demands are entered in the order in which they come, so those of pods that run before all others.
    """

    def __init__(self) -> None:
        # By rule, how many there are that do not stand for pods that run.
        self._newcomers: Counter[InterPodRule] = Counter()
        # By rule that asks for one domain, how many carry it in none: they run.
        self._astray: Counter[InterPodRule] = Counter()
        # By rule and index of the term in it, how many there are in each domain.
        self._carrying: dict[tuple[InterPodRule, int], Counter[str]] = (
            defaultdict(Counter)
        )
        self._counting: dict[tuple[InterPodRule, int], Counter[str]] = (
            defaultdict(Counter)
        )
        # By rule of spread: its domains, and the fewest pods that count in any of them.
        self._every: dict[Spread, frozenset[str]] = {}
        self._fewest: dict[Spread, int] = {}

    def enter(self, roles: Iterable[Role], node: str, sign: int = 1) -> None:
        """Enter (1) or revoke (-1) a demand with these roles on a node."""
        for role in roles:
            rule = role.rule
            if not role.runs:
                self._newcomers[rule] += sign
            if (
                isinstance(rule, OneDomain)
                and role.carries
                and node not in rule.domains
            ):
                self._astray[rule] += sign
            for term_index, domains in enumerate(_domains(rule)):
                domain = domains.get(node)
                if domain is None:
                    continue
                if role.carries:
                    self._carrying[rule, term_index][domain] += sign
                if role.counts:
                    self._counting[rule, term_index][domain] += sign
            # Last, as it looks at the counts with this demand.
            if isinstance(rule, Spread) and role.counts:
                self._learn_fewest(rule, node, sign)

    def _learn_fewest(self, rule: Spread, node: str, sign: int) -> None:
        """Note what it means for the fewest of a rule, if they are known, that somebody came to a node, or left it."""
        fewest = self._fewest.get(rule)
        if fewest is None or node not in rule.domains:
            return
        count = self.number(rule, node)
        if count < fewest:
            self._fewest[rule] = count
        elif count - sign == fewest:
            # There may be more everywhere now: they are worked out anew when they are asked for.
            del self._fewest[rule]

    def number(self, rule: InterPodRule, node: str) -> int:
        """Return how many pods count for a spread rule in a node's domain, running ones included; 0 without rule."""
        if not isinstance(rule, Spread) or node not in rule.domains:
            return 0
        domain = rule.domains[node]
        return rule.counted.get(domain, 0) + self._counting[rule, 0][domain]

    def allows(self, roles: Iterable[Role], node: str) -> bool:
        """Whether a demand with these roles may come on a node."""
        return all(self._holds(role, node) for role in roles)

    def _holds(self, role: Role, node: str) -> bool:
        if role.runs:
            # What is there already stays, whatever the rules say of it now.
            return not self._newcomers[role.rule]
        match role.rule:
            case AntiAffinity() as rule:
                return self._is_apart(rule, role, node)
            case Affinity() as rule:
                return not role.carries or self._is_near(rule, role, node)
            case Spread() as rule:
                return not role.carries or self._is_even(rule, role, node)
            case OneDomain() as rule:
                domain = rule.domains.get(node)
                elsewhere = set(+self._carrying[rule, 0]) - {domain}
                return (
                    domain is not None
                    and not elsewhere
                    and not self._astray[rule]
                )

    def _is_apart(self, rule: AntiAffinity, role: Role, node: str) -> bool:
        domain = rule.domains.get(node)
        if domain is None:
            return True
        carrying, counting = (
            self._carrying[rule, 0][domain],
            self._counting[rule, 0][domain],
        )
        return not (
            (role.carries and (counting or domain in rule.counted))
            or (role.counts and (carrying or domain in rule.carried))
        )

    def _is_near(self, rule: Affinity, role: Role, node: str) -> bool:
        if not all(node in domains for domains in rule.domains):
            return False
        terms = zip(rule.domains, rule.counted, strict=True)
        for term_index, (domains, before) in enumerate(terms):
            domain = domains[node]
            if (
                domain not in before
                and self._counting[rule, term_index][domain] <= 0
            ):
                break
        else:
            return True
        # A pod that all terms mean may be the first one, as long as they mean nobody anywhere.
        if not role.counts or any(rule.counted):
            return False
        tallies = (
            self._counting[rule, term_index]
            for term_index in range(len(rule.domains))
        )
        # Unary plus drops what was entered and revoked.
        return not any(+tally for tally in tallies)

    def _is_even(self, rule: Spread, role: Role, node: str) -> bool:
        if node not in rule.domains:
            return False
        if rule not in self._fewest:
            if rule not in self._every:
                self._every[rule] = rule.every
            counts, counted = self._counting[rule, 0], rule.counted
            totals = [
                counted.get(domain, 0) + counts[domain]
                for domain in self._every[rule]
            ]
            # With fewer domains than ``minDomains``, the fewest are taken for none (KEP-3022).
            self._fewest[rule] = 0 if rule.has_few_domains else min(totals)
        return (
            self.number(rule, node) + role.counts - self._fewest[rule]
            <= rule.max_skew
        )


def _domains(rule: InterPodRule) -> Iterator[Domains]:
    yield from rule.domains if isinstance(rule, Affinity) else (rule.domains,)


# ----------------------------------------------------------------------------
# One order for all rules between pods that ask who was there before.
#
# Affinity and spread are looked at when a pod comes (see
# `dralloc.problem.inter_pod`). Where several such rules are about the same pods, they
# look at the same order: that there is one for each rule is not enough. Of pods that
# are spread over zones and over nodes, say, the next one may have to go to one zone
# for the first rule, and to a node of another zone for the second; then nobody comes
# any more, although all of them together would be even.

Arrival = tuple["Demand", str]
"""A demand and the name of the node that it comes to."""


def spreads_in_turn(demands: Iterable[Demand]) -> frozenset[Spread]:
    """The rules of spread that share their order with other rules, because some demand has roles in both."""
    together = (rule for rules in shared_orders(demands) for rule in rules)
    return frozenset(rule for rule in together if isinstance(rule, Spread))


def shared_orders(
    demands: Iterable[Demand],
) -> list[frozenset[InterPodRule]]:
    """The rules that look at one order of arrival, as demands have roles in several of them: a set for each order."""
    forest: UnionFind[InterPodRule] = UnionFind()
    for demand in demands:
        forest.union(*(role.rule for role in _of_order(demand)))
    by_order = grouped((forest[rule], rule) for rule in forest)
    return [frozenset(rules) for rules in by_order.values() if len(rules) > 1]


def can_come_in_turn(arrivals: Iterable[Arrival]) -> bool:
    """Whether some demands all find their nodes if they come in the most likely order.

    Who runs was there. Then whoever may come comes, always to the domain with the fewest pods that count, and there
    first who carries a constraint. For one rule of spread alone this finds an order if there is any; for several rules
    there may still be another one if this fails.
    """
    # Whoever has the same roles on the same node makes the same difference.
    waiting = Counter(
        _EqualArrivals.of(demand, node) for demand, node in arrivals
    )
    ledger = DomainLedger()
    while waiting:
        ready = [
            group for group in waiting if ledger.allows(group.roles, group.node)
        ]
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
        # Unary plus drops those who have all come.
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
        """Return the largest count in the domains to which these come, over their spread rules."""
        return max(
            (
                ledger.number(role.rule, self.node)
                for role in self.roles
                if role.counts
            ),
            default=0,
        )


def _of_order(demand: Demand) -> Iterator[Role]:
    """The roles of a demand in rules for which the order of arrival matters."""
    return (
        role
        for role in demand.roles
        if isinstance(role.rule, Affinity | Spread)
    )
