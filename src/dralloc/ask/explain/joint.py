"""Why requests do not fit on a node together although each of them does alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, assert_never

from dralloc.ask.context.context import Context
from dralloc.ask.context.lift import Lift
from dralloc.ask.explain.change import Change, constraint_places
from dralloc.ask.explain.reasons import Code, FilterReason
from dralloc.ask.explain.wording import constraint_text, request_text
from dralloc.problem import (
    MAX_RESULTS,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    Problem,
)
from dralloc.problem.ledger import Scarcity
from dralloc.problem.limits import Limit, limits_of
from dralloc.problem.subproblem import Subproblem
from dralloc.solve.first_fit import first_fit

__all__ = ["JointReason"]

_CODES: Final = {
    Scarcity.COUNTER: Code.COUNTER,
    Scarcity.CAPACITY: Code.CAPACITY,
    Scarcity.GROUPS: Code.GROUPS,
}
"""Limits in the order in which they are lifted, with what a request is then rejected for."""


@dataclass(frozen=True)
class JointReason:
    """The first rule without which the fewest of a demand's requests that do not fit together on a node would.

    ``part``: the node with what the demand could get there.
    """

    context: Context
    node: int
    demand: Demand
    part: Subproblem

    def reason(self) -> FilterReason:
        """Requests are left out until what is left fits; then rules are."""
        wanted = next(wanted for wanted in self._narrowed() if not self._fits(wanted))
        about = ", ".join(
            request_text(claim, each) for claim in wanted for each in claim.requests
        )
        return replace(self._rule(wanted), subject=about)

    def _narrowed(self) -> Iterator[tuple[Claim, ...]]:
        """Each request alone, then the first ones, one more each time."""
        places = [
            (number, place)
            for number, one in enumerate(self.demand.claims)
            for place in range(len(one.requests))
        ]
        for some in (
            *([one] for one in places),
            *(places[:number] for number in range(2, len(places))),
        ):
            kept = self._without(
                self.demand.claims, Change(requests=frozenset(places).difference(some))
            )
            yield tuple(claim for claim in kept if claim.requests)
        yield self.demand.claims

    def _without(self, wanted: tuple[Claim, ...], change: Change) -> tuple[Claim, ...]:
        return change.of(
            replace(self.demand, claims=wanted), self.context.offers
        ).claims

    def _fits(self, wanted: tuple[Claim, ...], problem: Problem | None = None) -> bool:
        demand = self.demand.by_itself(claims=wanted, nodes=None)
        return bool(
            first_fit(
                replace(problem or self.part.problem, demands=(demand,))
            ).placements
        )

    def _rule(self, wanted: tuple[Claim, ...]) -> FilterReason:
        loose = tuple(replace(claim, constraints=()) for claim in wanted)
        if self._fits(loose):
            return self._constraint(wanted)
        return self._limits(loose) or self._too_many(wanted) or self._devices(wanted)

    def _constraint(self, wanted: tuple[Claim, ...]) -> FilterReason:
        every = constraint_places(wanted)
        tries = (
            places
            for places in every
            if self._fits(self._without(wanted, Change(constraints=frozenset(places))))
        )
        blamed = [places[0] for places in [*islice(tries, 1)] or every]
        texts = [
            self._words(wanted[place].constraints[number], number)
            for place, number in blamed
        ]
        details = [
            each
            for place, number in blamed
            for each in self._values(wanted[place], number)
        ]
        return FilterReason(Code.CONSTRAINT, "; ".join(texts), details=tuple(details))

    def _words(self, constraint: Constraint, number: int) -> str:
        match constraint.kind:
            case ConstraintKind.MATCH:
                missing = "no common value"
            case ConstraintKind.DISTINCT:
                missing = "not enough distinct values"
            case _:
                assert_never(constraint.kind)
        return f"{constraint_text(constraint, number)}: {missing}"

    def _values(self, claim: Claim, number: int) -> Iterator[str]:
        """How often each value occurs on the devices that selectors accept; what is derived, by request."""
        constraint, eligibility = (
            claim.constraints[number],
            self.part.problem.eligibility,
        )
        here = list(self.part.problem.nodes[0].devices())
        text = f"values of {constraint.attribute} on the"
        if not constraint.derived:
            yield f"{text} selected devices: {self._counts(here, constraint.attribute)}"
        for one in claim.alternatives() if constraint.derived else ():
            if constraint.covers(one.name):
                selected = [
                    device
                    for device in here
                    if eligibility.selects(one.index, device) is True
                ]
                counts = self._counts(selected, constraint.compared(one.name))
                yield f"{text} devices selected for {one.name}: {counts or 'none'}"

    def _counts(self, devices: Iterable[int], attribute: str) -> str:
        counts: Counter[str] = Counter()
        for number in devices:
            values = self.part.problem.devices[number].attributes.get(attribute)
            text = (
                ", ".join(sorted(str(value) for _, value in values or ()))
                or "not comparable"
            )
            counts["none" if values is None else text] += 1
        return "; ".join(f"{text} ({count})" for text, count in counts.items())

    def _limits(self, loose: tuple[Claim, ...]) -> FilterReason | None:
        """What is short, if everything of one kind without limit would do."""
        for scarcity, code in _CODES.items():
            known = [
                limit
                for limit in limits_of(self.part.problem)
                if limit.scarcity is scarcity
            ]
            if known and self._fits_without(loose, known):
                single = [
                    limit
                    for limit in known
                    if limit.name and self._fits_without(loose, [limit])
                ]
                names = ", ".join(
                    f"{scarcity.value} {limit.name}" for limit in single or known
                )
                exclude = f"together they need devices whose {scarcity.value} exclude each other"
                return FilterReason(
                    code,
                    exclude
                    if code is Code.GROUPS
                    else f"together more than is free of {names}",
                )
        return None

    def _fits_without(self, loose: tuple[Claim, ...], limits: Iterable[Limit]) -> bool:
        return self._fits(
            loose,
            self.context.part(
                [self.node], [self.demand], Lift(frozenset(limits))
            ).problem,
        )

    def _too_many(self, wanted: tuple[Claim, ...]) -> FilterReason | None:
        for claim in wanted:
            counts = [
                [one.count or 1 for one in request.alternatives]
                for request in claim.requests
            ]
            if sum(map(max, counts)) > MAX_RESULTS:
                return FilterReason(
                    Code.TOO_MANY, f"more than {MAX_RESULTS} results for one claim"
                )
        return None

    def _devices(self, wanted: tuple[Claim, ...]) -> FilterReason:
        requests = [request for claim in wanted for request in claim.requests]
        asked = sum(
            min(one.count or 1 for one in request.alternatives) for request in requests
        )
        there = sum(1 for _ in self.part.problem.nodes[0].devices())
        text = "together they need more devices than can be had"
        return FilterReason(
            Code.TOGETHER,
            text,
            details=(f"{asked} asked, selectors accept {there}, some of them in use",),
        )
