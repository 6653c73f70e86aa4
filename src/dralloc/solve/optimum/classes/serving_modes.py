"""The serving modes of joint demands: which of them are placed, with which alternative and number of devices each."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby, product
from math import prod
from typing import Final, NamedTuple

from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Claim,
    ConstraintKind,
    Demand,
    Problem,
    Request,
)
from dralloc.problem.equivalence import claim_key
from dralloc.solve.optimum.classes.demand_classes import (
    AttributeRule,
    DemandClasses,
    ItemGroup,
    ItemType,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.every_device import EveryDevice
from dralloc.solve.optimum.classes.joint_demands import (
    JointDemands,
    granted_with,
    subsets,
)

__all__ = ["ServingModes"]

_MOST_MODES: Final = 64
"""A joint demand with more serving modes is left to the per-device model."""


class _Option(NamedTuple):
    """An alternative of a request (its place), of devices with these attributes, and how many of them where."""

    pick: int
    spec: Alternative
    attributes: frozenset[str]
    number: int
    nodes: int = 0


class _GrantedRequest(NamedTuple):
    """A request of a claim, which has a number among those that are granted together."""

    number: int
    claim: Claim
    request: Request


class ServingModes:
    """Finds serving modes, and enters the requirements, item types and node sets of which they consist."""

    def __init__(
        self,
        problem: Problem,
        joint_demands: JointDemands,
        demand_classes: DemandClasses,
    ) -> None:
        self.problem = problem
        self.users = joint_demands.users
        self.demand_classes = demand_classes
        self._every = EveryDevice(problem)
        self._known_tuples: dict[tuple[int, ...], int] = {}
        self._demand_keys: dict[Hashable, int] = {}

    def number(self, demand: Demand) -> int:
        """A number for all that a demand asks for, and is worth."""
        claims = tuple(
            [claim_key(self.problem.eligibility, claim) for claim in demand.claims]
        )
        shared = tuple([claim.key in self.users for claim in demand.claims])
        budgeted = (
            demand.key.namespace
            if demand.key.namespace in self.demand_classes.with_budgets
            else ""
        )
        key = demand.weight, self._nodes(demand), claims, shared, budgeted
        return self._demand_keys.setdefault(key, len(self._demand_keys))

    def of(
        self, joint: Sequence[Demand], *, whole: bool
    ) -> tuple[ServingMode, ...] | None:
        """The serving modes of a joint demand, the best ranks first; of those alike, the best.

        None if they are too many, or one of them cannot be expressed. ``whole``: whether only all can be placed.
        """
        best: dict[Hashable, ServingMode] = {}
        tried = 0
        for places in subsets(self._runs(joint, whole=whole)):
            placed = [joint[place] for place in places]
            requests = list(_granted_requests(placed))
            options = [
                found for each in requests if (found := self._options(each)) is not None
            ]
            tried += prod(map(len, options))
            if tried > _MOST_MODES or len(options) < len(requests):
                return None
            for chosen in product(*options):
                if mode := self._mode(places, placed, requests, chosen):
                    key = mode.requirement, places
                    if key not in best or mode.rank < best[key].rank:
                        best[key] = mode
        return tuple(sorted(best.values(), key=lambda mode: (mode.rank, mode.picks)))

    def _runs(self, joint: Sequence[Demand], *, whole: bool) -> list[tuple[int, bool]]:
        """How many demands are equal, and whether they always come along (see `subsets`)."""
        everywhere = len({self._nodes(demand) for demand in joint}) == 1
        runs = []
        for _, equal in groupby(joint, self.number):
            first, *others = equal
            asks = any(
                claim.requests and claim.key not in self.users for claim in first.claims
            )
            along = not asks and (everywhere or not self._nodes(first))
            runs.append((1 + len(others), whole or (along and len(joint) > 1)))
        return runs

    def _options(self, granted: _GrantedRequest) -> list[_Option] | None:
        """The options of a request; None if they cannot be expressed."""
        options: list[_Option] = []
        for pick, spec in enumerate(granted.request.alternatives):
            if spec.admin:
                return None
            constraints = (
                one for one in granted.claim.constraints if one.covers(spec.name)
            )
            attributes = frozenset(one.compared(spec.name) for one in constraints)
            if spec.count:
                options.append(_Option(pick, spec, attributes, spec.count))
                continue
            numbers = self._every.of(spec, attributes)
            if numbers is None:
                return None
            number_of = self.demand_classes.node_sets.number
            options += [
                _Option(pick, spec, attributes, number, number_of(nodes))
                for number, nodes in numbers.items()
            ]
        return options

    def _mode(
        self,
        places: tuple[int, ...],
        placed: Sequence[Demand],
        requests: Sequence[_GrantedRequest],
        chosen: Sequence[_Option],
    ) -> ServingMode | None:
        """The mode with one option for each request; None if a claim would get too many devices."""
        results: Tally[int] = Tally()
        for each, option in zip(requests, chosen, strict=True):
            results[each.number] += option.number
        if max(results.values()) > MAX_RESULTS:
            return None
        nodes = self._common(
            (*map(self._nodes, placed), *(option.nodes for option in chosen))
        )
        return ServingMode(
            self._requirement(requests, chosen, nodes),
            tuple(option.pick for option in chosen),
            sum(option.spec.rank for option in chosen),
            places,
            tuple(
                place
                for place, each in enumerate(requests)
                if each.claim.key in self.users
            ),
        )

    def _requirement(
        self, requests: Sequence[_GrantedRequest], chosen: Sequence[_Option], nodes: int
    ) -> int:
        covered: dict[Hashable, tuple[ConstraintKind, list[tuple[int, str]]]] = {}
        for place, (each, option) in enumerate(zip(requests, chosen, strict=True)):
            for rule, constraint in enumerate(each.claim.constraints):
                if constraint.covers(option.spec.name):
                    key = constraint.scope or (each.number, rule)
                    attribute = constraint.compared(option.spec.name)
                    covered.setdefault(key, (constraint.kind, []))[1].append(
                        (place, attribute)
                    )
        item_groups = tuple(
            ItemGroup(each.number, self._type(option), option.number)
            for each, option in zip(requests, chosen, strict=True)
        )
        rules = tuple(
            AttributeRule(kind, tuple(attributes))
            for kind, attributes in covered.values()
            if sum(item_groups[place].number for place, _ in attributes) > 1
        )
        return self.demand_classes.requirements.number(
            Requirement(item_groups, rules, nodes)
        )

    def _type(self, option: _Option) -> int:
        key = self.problem.eligibility.request_key(option.spec.index), option.attributes
        return self.demand_classes.types.number(
            ItemType(option.spec.index, option.attributes), key
        )

    def _nodes(self, demand: Demand) -> int:
        if demand.nodes is None:
            return 0
        if demand.nodes not in self._known_tuples:
            self._known_tuples[demand.nodes] = self.demand_classes.node_sets.number(
                frozenset(demand.nodes)
            )
        return self._known_tuples[demand.nodes]

    def _common(self, node_sets: Iterable[int]) -> int:
        """The set of nodes that are in all of these sets."""
        sets = set(node_sets) - {0}
        if len(sets) <= 1:
            return sets.pop() if sets else 0
        known = (self.demand_classes.node_sets[number] for number in sets)
        common = frozenset.intersection(
            *(nodes for nodes in known if nodes is not None)
        )
        return self.demand_classes.node_sets.number(common)


def _granted_requests(demands: Sequence[Demand]) -> Iterator[_GrantedRequest]:
    """The requests of demands on one node, those of shared claims once."""
    number = 0
    for demand, granted in zip(demands, granted_with(demands), strict=True):
        for claim, here in zip(demand.claims, granted, strict=True):
            if here:
                yield from (
                    _GrantedRequest(number, claim, request)
                    for request in claim.requests
                )
                number += 1
