"""Demand classes: the equivalence classes of demands up to their names, and the requirements that serve them.

Two demands are in one class if they have the same weight and candidate nodes, and if their claims are equal request by
request: alternatives of the same request class (`dralloc.problem.Eligibility.kind`: the same answers for every device),
rank and count, and constraints of the same kind over the same attributes and positions. Exchanging two such demands in
any answer gives an answer of the same worth, so only how many of a class are placed has to be decided.

Demands of a gang are in one class only with those of equal gangs: gangs that have as many demands of each class, and
need as many. Of equal gangs, too, only the number of admitted ones has to be decided. Gangs that must be in one domain
of a topology (KEP-5732) are equal only to those that choose among the same domains.

Demands that share claims are one *joint demand*, and classes are those of equal joint demands; see
`dralloc.solvers.cpsat.classes.joint_demands`. Most joint demands are a demand alone.

A serving mode places some of a joint demand and picks one alternative per request. What it asks of the inventory is a
`Requirement`; modes of several classes can have the same one.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from math import prod
from typing import Final, NamedTuple

from dralloc.problem import MAX_RESULTS, Alternative, Claim, ConstraintKind, Demand, Problem, Scope
from dralloc.problem.equivalence import claim_key
from dralloc.problem.inter_pod import Domains
from dralloc.solvers.cpsat.classes.joint_demands import JointDemands, granted_with, subsets
from dralloc.solvers.cpsat.classes.topologies import Topologies
from dralloc.solvers.cpsat.stopping import Stop
from dralloc.solvers.cpsat.weight_tiers import WeightTier

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
"""A joint demand with more serving modes is left to the per-device model."""


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
    """One alternative for each request of all claims: the requirement (an index), the picks, the sum of their ranks.

    ``places``: which of the joint demand are placed. ``shared``: the item groups for claims that they share.
    """

    requirement: int
    picks: tuple[int, ...]
    rank: int
    places: tuple[int, ...] = (0,)
    shared: tuple[int, ...] = ()


class GangShare(NamedTuple):
    """The class of equal gangs (an index) that joint demands of a class belong to, and how many of them each gang has.

    ``quorum``: how many demands, of all classes, each gang needs; None for all.
    """

    gangs: int
    number: int
    quorum: int | None = None


@dataclass(frozen=True, slots=True)
class DemandClass:
    """An equivalence class of joint demands, in order; those of a gang follow each other.

    ``weights``: of the demands of each joint demand. ``namespace``: theirs, if it has a budget. ``topology``: of which
    each of their gangs is in one domain (an index), 0 for none.
    """

    weights: tuple[int, ...]
    modes: tuple[ServingMode, ...]
    joint_demands: list[tuple[int, ...]] = field(default_factory=list)
    gang: GangShare | None = None
    namespace: str = ""
    topology: int = 0

    @property
    def size(self) -> int:
        """How many joint demands they are."""
        return len(self.joint_demands)

    @property
    def members(self) -> list[int]:
        """All demands of the class."""
        return [member for each in self.joint_demands for member in each]

    def missed_weight(self, tier: WeightTier, mode: ServingMode | None = None) -> int:
        """The weight of what a mode does not place of a joint demand; of all of it without mode."""
        placed = mode.places if mode else ()
        return sum(tier.of(weight) for place, weight in enumerate(self.weights) if place not in placed)

    @property
    def least_rank(self) -> int:
        """The rank of the best mode that places all of a joint demand; 0 if there is none."""
        ranks = [mode.rank for mode in self.modes if len(mode.places) == len(self.weights)]
        return min(ranks, default=0)


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
    topologies
        The domains of nodes that gangs choose among; first those of gangs that do not.
    with_budgets
        The namespaces that have a budget.
    unclassified
        Demands that the classes cannot express: admin access, allocation mode ``All``, demands for no device, rules
        between pods but for gangs in one domain, constraints over claims of several pods or beside what is allocated,
        and gangs and joint demands with such members, or that fail their conditions.
    """

    classes: list[DemandClass] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    types: list[ItemType] = field(default_factory=list)
    node_sets: list[frozenset[int] | None] = field(default_factory=lambda: [None])
    topologies: list[Domains] = field(default_factory=lambda: [{}])
    with_budgets: frozenset[str] = frozenset()
    unclassified: list[int] = field(default_factory=list)


def classify_demands(problem: Problem, stop: Stop) -> DemandClasses:
    """Sort the demands into classes. Demands that can never be placed are left out."""
    return _DemandClassifier(problem, stop).demand_classes


class _DemandClassifier:
    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.problem = problem
        self.classes: dict[Hashable, DemandClass | None] = {}
        self.modes: dict[Hashable, tuple[ServingMode, ...] | None] = {}
        self.requirements: dict[Requirement, int] = {}
        self.types: dict[Hashable, int] = {}
        self.request_classes: dict[Hashable, int] = {}
        self.node_sets: dict[frozenset[int], int] = {}
        self.known_tuples: dict[tuple[int, ...], int] = {}
        self.demand_classes = DemandClasses(with_budgets=frozenset(budget.namespace for budget in problem.budgets))
        self.topologies = Topologies(problem)
        self.demand_classes.topologies = self.topologies.listed
        self.gang_classes: dict[Hashable, int] = {}
        self.demand_keys: dict[Hashable, int] = {}
        self.joint_demands = JointDemands(problem, stop)
        for block in stop.each(self.joint_demands.blocks()):
            if not self._enter(block):
                self.demand_classes.unclassified += block

    def _enter(self, block: Sequence[int]) -> bool:
        """Put demands that gangs or shared claims bind together into classes, if classes can express them."""
        demands = [self.problem.demands[index] for index in block]
        found = self.joint_demands.of(block)
        topology = self.topologies.of(demands)
        if not found or topology is None or not all(self._is_plain(demand) for demand in demands):
            return False
        if len(found) < len(block) and any(scope for demand in demands for scope in _scopes(demand)):
            return False
        first, whole = demands[0], bool(demands[0].gang)
        joint = [self._in_order(each) for each in found]
        keys = [(tuple([self._number(self.problem.demands[member]) for member in each]), whole) for each in joint]
        for key, each in zip(keys, joint, strict=True):
            if key not in self.modes:
                self.modes[key] = self._modes(each, whole=whole)
            if self.modes[key] is None:
                return False
        gang, shares = None, Tally(keys)
        if whole:
            same = frozenset(shares.items()), first.quorum, topology
            gang = self.gang_classes.setdefault(same, len(self.gang_classes))
        for key, each in zip(keys, joint, strict=True):
            share = None if gang is None else GangShare(gang, shares[key], first.quorum)
            if known := self._class((key, gang), self.modes[key] or (), each, share, topology):
                known.joint_demands.append(each)
        return True

    def _in_order(self, joint: tuple[int, ...]) -> tuple[int, ...]:
        """Equal demands after each other."""
        if len(joint) == 1:
            return joint
        return tuple(sorted(joint, key=lambda member: (self._number(self.problem.demands[member]), member)))

    def _class(
        self,
        key: Hashable,
        modes: tuple[ServingMode, ...],
        joint: Sequence[int],
        gang: GangShare | None,
        topology: int,
    ) -> DemandClass | None:
        """The class of joint demands with a key; None if no mode could ever serve them."""
        if key not in self.classes:
            weights = tuple(self.problem.demands[member].weight for member in joint)
            namespace = self._namespace(self.problem.demands[joint[0]])
            known = DemandClass(weights, modes, [], gang, namespace, topology) if modes or gang else None
            if known:
                self.demand_classes.classes.append(known)
            self.classes[key] = known
        return self.classes[key]

    def _is_plain(self, demand: Demand) -> bool:
        requests = [request for claim in demand.claims for request in claim.requests]
        return (
            bool(requests)
            and not any(scope and (scope.group or scope.held) for scope in _scopes(demand))
            and not demand.is_defective
            and all(spec.count and not spec.admin for request in requests for spec in request.alternatives)
        )

    def _number(self, demand: Demand) -> int:
        """A number for all that a demand asks for, and is worth."""
        claims = tuple([claim_key(self.problem.eligibility, claim) for claim in demand.claims])
        shared = tuple([claim.key in self.joint_demands.users for claim in demand.claims])
        key = demand.weight, self._nodes(demand), claims, shared, self._namespace(demand)
        return self.demand_keys.setdefault(key, len(self.demand_keys))

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
            self.known_tuples[demand.nodes] = self._node_set(frozenset(demand.nodes))
        return self.known_tuples[demand.nodes]

    def _node_set(self, nodes: frozenset[int]) -> int:
        if nodes not in self.node_sets:
            self.node_sets[nodes] = len(self.demand_classes.node_sets)
            self.demand_classes.node_sets.append(nodes)
        return self.node_sets[nodes]

    def _common_nodes(self, demands: Iterable[Demand]) -> int:
        """Where all of them may go."""
        sets = {number for demand in demands if (number := self._nodes(demand))}
        if len(sets) <= 1:
            return sets.pop() if sets else 0
        known = (self.demand_classes.node_sets[number] for number in sets)
        return self._node_set(frozenset.intersection(*(nodes for nodes in known if nodes is not None)))

    def _modes(self, joint: Sequence[int], *, whole: bool) -> tuple[ServingMode, ...] | None:
        """The serving modes of a joint demand, the best ranks first; of those alike, the best. None if too many."""
        demands = [self.problem.demands[member] for member in joint]
        best: dict[Hashable, ServingMode] = {}
        tried = 0
        for places in subsets(self._runs(demands, whole=whole)):
            placed = [demands[place] for place in places]
            claims = [
                claim
                for demand, granted in zip(placed, granted_with(placed), strict=True)
                for claim, here in zip(demand.claims, granted, strict=True)
                if here
            ]
            tried += prod(len(request.alternatives) for claim in claims for request in claim.requests)
            if tried > _MOST_MODES:
                return None
            nodes = self._common_nodes(placed)
            for requirement, picks, rank, shared in self._servings(claims, nodes):
                key = requirement, places
                if key not in best or rank < best[key].rank:
                    best[key] = ServingMode(requirement, picks, rank, places, shared)
        return tuple(sorted(best.values(), key=lambda mode: (mode.rank, mode.picks)))

    def _runs(self, demands: Sequence[Demand], *, whole: bool) -> list[tuple[int, bool]]:
        """How many demands are equal, and whether they always come along (see `subsets`)."""
        everywhere = len({self._nodes(demand) for demand in demands}) == 1
        runs = []
        for _, equal in groupby(demands, self._number):
            first, *others = equal
            asks = any(claim.requests and claim.key not in self.joint_demands.users for claim in first.claims)
            along = not asks and (everywhere or not self._nodes(first))
            runs.append((1 + len(others), whole or (along and len(demands) > 1)))
        return runs

    def _servings(
        self, claims: Sequence[Claim], nodes: int
    ) -> Iterator[tuple[int, tuple[int, ...], int, tuple[int, ...]]]:
        """For each alternative of each request: the requirement, the picks, the rank, and the shared item groups."""
        requests = [(number, request) for number, claim in enumerate(claims) for request in claim.requests]
        users = self.joint_demands.users
        shared = tuple(place for place, (number, _) in enumerate(requests) if claims[number].key in users)
        for picks in product(*(range(len(request.alternatives)) for _, request in requests)):
            chosen = [request.alternatives[each] for (_, request), each in zip(requests, picks, strict=True)]
            results = Tally[int]()
            for (number, _), spec in zip(requests, chosen, strict=True):
                results[number] += spec.count or 0
            if max(results.values()) <= MAX_RESULTS:
                requirement = self._requirement(claims, [number for number, _ in requests], chosen, nodes)
                yield requirement, picks, sum(spec.rank for spec in chosen), shared

    def _requirement(
        self, claims: Sequence[Claim], numbers: Sequence[int], chosen: Sequence[Alternative], nodes: int
    ) -> int:
        item_groups: list[ItemGroup] = []
        covered: dict[Hashable, tuple[ConstraintKind, list[tuple[int, str]]]] = {}
        for position, (number, spec) in enumerate(zip(numbers, chosen, strict=True)):
            attributes = set()
            for rule, constraint in enumerate(claims[number].constraints):
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
        requirement = Requirement(tuple(item_groups), rules, nodes)
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
