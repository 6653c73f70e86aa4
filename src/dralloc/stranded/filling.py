"""How much of a measure the claims of a mix can take, however many of each come: by solving."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import gcd
from typing import NamedTuple

from dralloc.check import check
from dralloc.explain.scene import Lift, Part
from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.solution import Solution, Status
from dralloc.solvers.cpsat import Options, solve
from dralloc.solvers.first_fit import first_fit
from dralloc.stranded.cause import Cause
from dralloc.stranded.domains import Domain
from dralloc.stranded.essential import Choice
from dralloc.stranded.ground import Ground
from dralloc.stranded.measures import Measure
from dralloc.stranded.wishes import Way, Wishes, ways

__all__ = ["Filled", "Filling"]


class Filled(NamedTuple):
    """The most that can be taken, in nanos, and whether that is proven; if not, it may be more."""

    amount: int
    proven: bool


class Filling:
    """Fills domains. Equal ones are solved once."""

    def __init__(self, ground: Ground, options: Options) -> None:
        self._ground = ground
        self._options = options
        self._known: dict[Hashable, Filled] = {}
        self._wishes: dict[tuple[Measure, frozenset[Cause]], Wishes] = {}

    def most(self, domain: Domain, measure: Measure, lifted: frozenset[Cause]) -> Filled:
        """How much of a measure the claims can take in a domain.

        Where claims connect devices that counters do not, each piece is filled on its own first: with claims for one
        device, and with claims torn to pieces. If that makes no difference, no more can be had.
        """
        essential = self._ground.essential
        if len(domain.pieces) > 1:
            least = [self._fill(piece, measure, lifted, essential.singles) for piece in domain.pieces]
            most = [self._fill(piece, measure, lifted, essential.pieces) for piece in domain.pieces]
            if least == most and all(each.proven for each in most):
                return Filled(sum(each.amount for each in least), proven=True)
        return self._fill(domain, measure, lifted, essential.choices)

    def _fill(self, domain: Domain, measure: Measure, lifted: frozenset[Cause], choices: Sequence[Choice]) -> Filled:
        key = domain.state(measure), lifted, choices
        if key not in self._known:
            self._known[key] = self._work_out(domain, measure, lifted, choices)
        return self._known[key]

    def _work_out(
        self, domain: Domain, measure: Measure, lifted: frozenset[Cause], choices: Sequence[Choice]
    ) -> Filled:
        free, wishes = domain.free(measure), self._wishes_for(measure, lifted)
        every = Cause.NODE in lifted
        nodes = {node: got for node, got in domain.nodes.items() if every or node in self._ground.schedulable}
        found = [
            way
            for choice in choices
            for way in ways(choice, nodes, wishes, aligned=Cause.ALIGNMENT not in lifted)
            if way.amount <= free
        ]
        if not found:
            return Filled(0, proven=True)
        scene = replace(self._ground.scene, offers=wishes)
        part = scene.cut(nodes, [way.demand for way in found], self._lift(domain, measure, lifted))
        return self._solve(part, found, free)

    def _wishes_for(self, measure: Measure, lifted: frozenset[Cause]) -> Wishes:
        key = measure, lifted
        if key not in self._wishes:
            ground = self._ground
            self._wishes[key] = Wishes(ground.table, ground.problem, ground.measures, measure, lifted)
        return self._wishes[key]

    def _lift(self, domain: Domain, measure: Measure, lifted: frozenset[Cause]) -> Lift:
        """The counters and capacities that do not count, none of which is measured."""
        measures, problem = self._ground.measures, self._ground.problem
        others = domain.counters - measures.counters(measure)
        if Cause.COUNTER not in lifted:
            others &= measures.positional if Cause.GEOMETRY in lifted else frozenset()
        counters = {(problem.counters[number].id.driver, problem.counters[number].id.counter) for number in others}
        kept = {problem.counters[number].id.counter for number in measures.counters(measure)}
        return Lift(counters=frozenset(one for one in counters if one[1] not in kept))

    def _solve(self, part: Part, found: list[Way], free: int) -> Filled:
        """Offer as many copies of each way as there could be room for, and place the most weight."""
        unit = gcd(*(way.amount for way in found))
        by_size = sorted(found, key=lambda way: -way.amount)
        copies = [way for way in by_size for _ in range(free // way.amount)]
        demands = tuple(_copy(way, number, way.amount // unit) for number, way in enumerate(copies))
        problem = replace(part.problem, demands=demands)
        solution = first_fit(problem)
        if _weight(problem, solution) * unit < free:
            solution = solve(problem, self._options, hint=solution)
        check(problem, solution)
        amount = _weight(problem, solution) * unit
        return Filled(amount, proven=amount == free or solution.status is Status.OPTIMAL)


def _weight(problem: Problem, solution: Solution) -> int:
    return sum(problem.demands[placement.demand].weight for placement in solution.placements)


def _copy(way: Way, number: int, weight: int) -> Demand:
    """A demand of its own: claims with one key would be one claim of several pods."""
    [claim] = way.demand.claims
    key = ClaimKey(claim.key.namespace, f"{claim.key.name} {number}")
    return replace(way.demand, key=key, claims=(replace(claim, key=key),), weight=weight)
