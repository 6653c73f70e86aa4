"""Demand classes: demands that nothing tells apart but their names, and what each of them can be content with.

Two demands are in one class if they have the same weight and candidate nodes, and if their claims are equal request by
request: alternatives of the same kind (`dralloc.problem.Eligibility.kind`: the same answers for every device), rank and
count, and constraints of the same kind over the same attributes and positions. Exchanging two such demands in any
answer gives an answer of the same worth, so only how many of a class are placed has to be decided.

A way to serve a demand picks one alternative per request. What that asks of the inventory is a `Need`; ways of several
classes can come down to the same need.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, NamedTuple

from dralloc.problem import MAX_RESULTS, Alternative, ConstraintKind, Demand, Problem, Request
from dralloc.problem.equivalence import claim_key

__all__ = ["Ask", "AskType", "DemandClass", "Mode", "Need", "Rule", "Wants", "read_wants"]

_MOST_MODES: Final = 64
"""A demand with more ways to be served is left to the per-device model."""


class AskType(NamedTuple):
    """What a device must be like: an alternative that stands for its kind, and attributes that constraints need."""

    alternative: int
    attributes: frozenset[str]


class Ask(NamedTuple):
    """So many devices of a type (an index) for one request of a claim."""

    claim: int
    type: int
    number: int


class Rule(NamedTuple):
    """A constraint that at least two devices meet under, with the asks (by position) that it covers."""

    kind: ConstraintKind
    attribute: str
    asks: tuple[int, ...]


class Need(NamedTuple):
    """What is to be found on one node; ``nodes`` is the index of the set of nodes that will do, 0 for all."""

    asks: tuple[Ask, ...]
    rules: tuple[Rule, ...]
    nodes: int

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return sum(ask.number for ask in self.asks)


class Mode(NamedTuple):
    """A way to serve a demand: the need (an index), the alternative of each request of all claims, their ranks."""

    need: int
    picks: tuple[int, ...]
    rank: int


@dataclass(frozen=True, slots=True)
class DemandClass:
    """Equal demands, in order."""

    weight: int
    modes: tuple[Mode, ...]
    members: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Wants:
    """All that is wanted, in classes.

    Parameters
    ----------
    classes
        The demand classes.
    needs, types
        What the indices in modes and asks stand for.
    node_sets
        The sets of nodes that needs refer to; None for all nodes.
    others
        Demands that the classes cannot express: gangs, claims of several demands, admin access, allocation mode
        ``All``, and what needs no device.
    """

    classes: list[DemandClass] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    types: list[AskType] = field(default_factory=list)
    node_sets: list[frozenset[int] | None] = field(default_factory=lambda: [None])
    others: list[int] = field(default_factory=list)


def read_wants(problem: Problem) -> Wants:
    """Sort the demands into classes. Demands that can never be placed are left out."""
    return _Reader(problem).wants


class _Reader:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.wants = Wants()
        self.classes: dict[Hashable, DemandClass | None] = {}
        self.needs: dict[Need, int] = {}
        self.types: dict[Hashable, int] = {}
        self.kinds: dict[Hashable, int] = {}
        self.node_sets: dict[frozenset[int], int] = {}
        self.known_tuples: dict[tuple[int, ...], int] = {}
        listed = Tally(claim.key for demand in problem.demands for claim in demand.claims if claim.requests)
        self.shared = {key for key, times in listed.items() if times > 1}
        for index, demand in enumerate(problem.demands):
            self._enter(index, demand)

    def _enter(self, index: int, demand: Demand) -> None:
        if demand.is_defective and not demand.gang:
            return
        if not self._is_plain(demand):
            self.wants.others.append(index)
            return
        signature = self._signature(demand)
        if signature not in self.classes:
            modes = self._modes(demand)
            known = DemandClass(demand.weight, modes) if modes else None
            self.classes[signature] = known
            if known:
                self.wants.classes.append(known)
        found = self.classes[signature]
        if found:
            found.members.append(index)

    def _is_plain(self, demand: Demand) -> bool:
        requests = [request for claim in demand.claims for request in claim.requests]
        return (
            bool(requests)
            and not demand.gang
            and not any(claim.key in self.shared for claim in demand.claims)
            and prod(len(request.alternatives) for request in requests) <= _MOST_MODES
            and all(spec.count and not spec.admin for request in requests for spec in request.alternatives)
        )

    def _signature(self, demand: Demand) -> Hashable:
        claims = tuple([claim_key(self.problem.eligibility, claim) for claim in demand.claims])
        return demand.weight, self._nodes(demand), claims

    def _kind(self, spec: Alternative) -> int:
        return self.kinds.setdefault(self.problem.eligibility.kind(spec.index), len(self.kinds))

    def _nodes(self, demand: Demand) -> int:
        if demand.nodes is None:
            return 0
        if demand.nodes not in self.known_tuples:
            nodes = frozenset(demand.nodes)
            if nodes not in self.node_sets:
                self.node_sets[nodes] = len(self.wants.node_sets)
                self.wants.node_sets.append(nodes)
            self.known_tuples[demand.nodes] = self.node_sets[nodes]
        return self.known_tuples[demand.nodes]

    def _modes(self, demand: Demand) -> tuple[Mode, ...]:
        """Every way to serve the demand, the best ranks first; of ways that need the same, the best one."""
        requests = [(number, request) for number, claim in enumerate(demand.claims) for request in claim.requests]
        picks = list(product(*(range(len(request.alternatives)) for _, request in requests)))
        best: dict[int, Mode] = {}
        for pick in picks:
            chosen = [request.alternatives[each] for (_, request), each in zip(requests, pick, strict=True)]
            results = Tally[int]()
            for (number, _), spec in zip(requests, chosen, strict=True):
                results[number] += spec.count or 0
            if max(results.values()) <= MAX_RESULTS:
                need = self._need(demand, requests, chosen)
                rank = sum(spec.rank for spec in chosen)
                if need not in best or rank < best[need].rank:
                    best[need] = Mode(need, pick, rank)
        return tuple(sorted(best.values(), key=lambda mode: (mode.rank, mode.picks)))

    def _need(self, demand: Demand, requests: Sequence[tuple[int, Request]], chosen: Sequence[Alternative]) -> int:
        asks: list[Ask] = []
        covered: dict[tuple[int, int], list[int]] = {}
        for position, ((number, _), spec) in enumerate(zip(requests, chosen, strict=True)):
            attributes = set()
            for rule, constraint in enumerate(demand.claims[number].constraints):
                if constraint.covers(spec.name):
                    attributes.add(constraint.attribute)
                    covered.setdefault((number, rule), []).append(position)
            asks.append(Ask(number, self._type(spec, frozenset(attributes)), spec.count or 0))
        rules = tuple(self._rules(demand, covered, asks))
        need = Need(tuple(asks), rules, self._nodes(demand))
        if need not in self.needs:
            self.needs[need] = len(self.wants.needs)
            self.wants.needs.append(need)
        return self.needs[need]

    @staticmethod
    def _rules(demand: Demand, covered: dict[tuple[int, int], list[int]], asks: Sequence[Ask]) -> Iterator[Rule]:
        for (number, rule), positions in covered.items():
            if sum(asks[position].number for position in positions) > 1:
                constraint = demand.claims[number].constraints[rule]
                yield Rule(constraint.kind, constraint.attribute, tuple(positions))

    def _type(self, spec: Alternative, attributes: frozenset[str]) -> int:
        key = self._kind(spec), attributes
        if key not in self.types:
            self.types[key] = len(self.wants.types)
            self.wants.types.append(AskType(spec.index, attributes))
        return self.types[key]
