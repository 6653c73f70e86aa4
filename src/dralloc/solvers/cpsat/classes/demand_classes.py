"""Demand classes: the equivalence classes of demands up to their names, and the requirements that serve them.

Two demands are in one class if they have the same weight and candidate nodes, and if their claims are equal request by
request: alternatives of the same request class (`dralloc.problem.Eligibility.kind`: the same answers for every device),
rank and count, and constraints of the same kind over the same attributes and positions. Exchanging two such demands in
any answer gives an answer of the same worth, so only how many of a class are placed has to be decided.

Demands of a gang are in one class only with those of equal gangs: gangs that have as many demands of each class, and
need as many. Of equal gangs, too, only the number of admitted ones has to be decided.

A serving mode picks one alternative per request. What it asks of the inventory is a `Requirement`; modes of several
classes can have the same one.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, NamedTuple

from dralloc.problem import MAX_RESULTS, Alternative, ConstraintKind, Demand, Problem, Request, Scope
from dralloc.problem.equivalence import claim_key
from dralloc.solvers.cpsat.stopping import Stop

__all__ = [
    "AttributeRule",
    "DemandClass",
    "DemandClasses",
    "GangShare",
    "ItemGroup",
    "ItemType",
    "Requirement",
    "ServingMode",
    "classify_demands",
]

_MOST_MODES: Final = 64
"""A demand with more serving modes is left to the per-device model."""


class ItemType(NamedTuple):
    """What a device must match: an alternative that stands for its request class, and the attributes of constraints."""

    alternative: int
    attributes: frozenset[str]


class ItemGroup(NamedTuple):
    """The devices for one request of a claim: so many of a type (an index)."""

    claim: int
    type: int
    number: int


class AttributeRule(NamedTuple):
    """A constraint that at least two devices meet under.

    ``attributes``: by item group (its position) that it covers, the attribute that it compares.
    """

    kind: ConstraintKind
    attributes: tuple[tuple[int, str], ...]


class Requirement(NamedTuple):
    """What is to be found on one node; ``nodes`` is the index of the set of nodes that will do, 0 for all."""

    item_groups: tuple[ItemGroup, ...]
    rules: tuple[AttributeRule, ...]
    nodes: int

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return sum(group.number for group in self.item_groups)


class ServingMode(NamedTuple):
    """One alternative for each request of all claims: the requirement (an index), the picks, the sum of their ranks."""

    requirement: int
    picks: tuple[int, ...]
    rank: int


class GangShare(NamedTuple):
    """The class of equal gangs (an index) that the demands of a class belong to, and how many of them each gang has.

    ``quorum``: how many demands, of all classes, each gang needs; None for all.
    """

    gangs: int
    number: int
    quorum: int | None = None


@dataclass(frozen=True, slots=True)
class DemandClass:
    """An equivalence class of demands, in order; those of a gang follow each other.

    ``namespace``: theirs, if it has a budget.
    """

    weight: int
    modes: tuple[ServingMode, ...]
    members: list[int] = field(default_factory=list)
    gang: GangShare | None = None
    namespace: str = ""


@dataclass(slots=True)
class DemandClasses:
    """All demands, in equivalence classes.

    Parameters
    ----------
    classes
        Each with its members, in the order of their first.
    requirements, types
        What the indices in modes and item groups stand for.
    node_sets
        The sets of nodes that requirements refer to; None for all nodes.
    with_budgets
        The namespaces that have a budget.
    unclassified
        Demands that the classes cannot express: claims of several demands, admin access, allocation mode ``All``,
        demands for no device, rules between pods, constraints over claims of several pods or beside what is allocated,
    and gangs with such members.
    """

    classes: list[DemandClass] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    types: list[ItemType] = field(default_factory=list)
    node_sets: list[frozenset[int] | None] = field(default_factory=lambda: [None])
    with_budgets: frozenset[str] = frozenset()
    unclassified: list[int] = field(default_factory=list)


def classify_demands(problem: Problem, stop: Stop) -> DemandClasses:
    """Sort the demands into classes. Demands that can never be placed are left out."""
    return _DemandClassifier(problem, stop).demand_classes


class _DemandClassifier:
    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.problem = problem
        self.classes: dict[Hashable, DemandClass | None] = {}
        self.requirements: dict[Requirement, int] = {}
        self.types: dict[Hashable, int] = {}
        self.request_classes: dict[Hashable, int] = {}
        self.node_sets: dict[frozenset[int], int] = {}
        self.known_tuples: dict[tuple[int, ...], int] = {}
        self.demand_classes = DemandClasses(with_budgets=frozenset(budget.namespace for budget in problem.budgets))
        listed = Tally(claim.key for demand in problem.demands for claim in demand.claims if claim.requests)
        self.shared = {key for key, times in listed.items() if times > 1}
        gangs: dict[str, list[int]] = defaultdict(list)
        for index, demand in enumerate(stop.each(problem.demands)):
            if demand.gang:
                gangs[demand.gang].append(index)
            elif not demand.is_defective:
                self._enter(index, demand)
        self.gang_classes: dict[Hashable, int] = {}
        for members in gangs.values():
            self._enter_gang(members)

    def _enter(self, index: int, demand: Demand) -> None:
        if not self._is_plain(demand):
            self.demand_classes.unclassified.append(index)
            return
        found = self._class(self._key(demand), demand, None)
        if found:
            found.members.append(index)

    def _enter_gang(self, members: Sequence[int]) -> None:
        demands = [self.problem.demands[index] for index in members]
        if not all(self._is_plain(demand) for demand in demands):
            self.demand_classes.unclassified += members
            return
        keys = [self._key(demand) for demand in demands]
        shares = Tally(keys)
        quorum = demands[0].quorum
        gang = self.gang_classes.setdefault((frozenset(shares.items()), quorum), len(self.gang_classes))
        for index, demand, key in zip(members, demands, keys, strict=True):
            found = self._class((key, gang), demand, GangShare(gang, shares[key], quorum))
            if found:
                found.members.append(index)

    def _class(self, key: Hashable, demand: Demand, gang: GangShare | None) -> DemandClass | None:
        """The class of demands with a key; None if no mode could ever serve them."""
        if key not in self.classes:
            modes = self._modes(demand)
            known = DemandClass(demand.weight, modes, [], gang, self._namespace(demand)) if modes or gang else None
            self.classes[key] = known
            if known:
                self.demand_classes.classes.append(known)
        return self.classes[key]

    def _is_plain(self, demand: Demand) -> bool:
        requests = [request for claim in demand.claims for request in claim.requests]
        return (
            bool(requests)
            and not demand.roles
            and not any(claim.key in self.shared for claim in demand.claims)
            and not any(scope and (scope.group or scope.held) for scope in _scopes(demand))
            and prod(len(request.alternatives) for request in requests) <= _MOST_MODES
            and not demand.is_defective
            and all(spec.count and not spec.admin for request in requests for spec in request.alternatives)
        )

    def _key(self, demand: Demand) -> Hashable:
        claims = tuple([claim_key(self.problem.eligibility, claim) for claim in demand.claims])
        return demand.weight, self._nodes(demand), claims, self._namespace(demand)

    def _namespace(self, demand: Demand) -> str:
        namespace = demand.key.namespace
        return namespace if namespace in self.demand_classes.with_budgets else ""

    def _request_class(self, spec: Alternative) -> int:
        return self.request_classes.setdefault(
            self.problem.eligibility.request_key(spec.index), len(self.request_classes)
        )

    def _nodes(self, demand: Demand) -> int:
        if demand.nodes is None:
            return 0
        if demand.nodes not in self.known_tuples:
            nodes = frozenset(demand.nodes)
            if nodes not in self.node_sets:
                self.node_sets[nodes] = len(self.demand_classes.node_sets)
                self.demand_classes.node_sets.append(nodes)
            self.known_tuples[demand.nodes] = self.node_sets[nodes]
        return self.known_tuples[demand.nodes]

    def _modes(self, demand: Demand) -> tuple[ServingMode, ...]:
        """The serving modes of the demand, the best ranks first; of those with one requirement, the best."""
        requests = [(number, request) for number, claim in enumerate(demand.claims) for request in claim.requests]
        picks = list(product(*(range(len(request.alternatives)) for _, request in requests)))
        best: dict[int, ServingMode] = {}
        for pick in picks:
            chosen = [request.alternatives[each] for (_, request), each in zip(requests, pick, strict=True)]
            results = Tally[int]()
            for (number, _), spec in zip(requests, chosen, strict=True):
                results[number] += spec.count or 0
            if max(results.values()) <= MAX_RESULTS:
                requirement = self._requirement(demand, requests, chosen)
                rank = sum(spec.rank for spec in chosen)
                if requirement not in best or rank < best[requirement].rank:
                    best[requirement] = ServingMode(requirement, pick, rank)
        return tuple(sorted(best.values(), key=lambda mode: (mode.rank, mode.picks)))

    def _requirement(
        self, demand: Demand, requests: Sequence[tuple[int, Request]], chosen: Sequence[Alternative]
    ) -> int:
        item_groups: list[ItemGroup] = []
        covered: dict[Hashable, tuple[ConstraintKind, list[tuple[int, str]]]] = {}
        for position, ((number, _), spec) in enumerate(zip(requests, chosen, strict=True)):
            attributes = set()
            for rule, constraint in enumerate(demand.claims[number].constraints):
                if constraint.covers(spec.name):
                    attribute = constraint.compared(spec.name)
                    attributes.add(attribute)
                    key = constraint.scope or (number, rule)
                    covered.setdefault(key, (constraint.kind, []))[1].append((position, attribute))
            item_groups.append(ItemGroup(number, self._type(spec, frozenset(attributes)), spec.count or 0))
        rules = tuple(
            AttributeRule(kind, tuple(attributes))
            for kind, attributes in covered.values()
            if sum(item_groups[position].number for position, _ in attributes) > 1
        )
        requirement = Requirement(tuple(item_groups), rules, self._nodes(demand))
        if requirement not in self.requirements:
            self.requirements[requirement] = len(self.demand_classes.requirements)
            self.demand_classes.requirements.append(requirement)
        return self.requirements[requirement]

    def _type(self, spec: Alternative, attributes: frozenset[str]) -> int:
        key = self._request_class(spec), attributes
        if key not in self.types:
            self.types[key] = len(self.demand_classes.types)
            self.demand_classes.types.append(ItemType(spec.index, attributes))
        return self.types[key]


def _scopes(demand: Demand) -> Iterator[Scope | None]:
    return (constraint.scope for claim in demand.claims for constraint in claim.constraints)
