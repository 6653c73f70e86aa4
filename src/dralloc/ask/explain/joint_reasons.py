"""Why requests do not fit on a node together although each of them does alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never

from dralloc.ask.context.context import Context, Lift
from dralloc.ask.explain.changes import Change, constraint_places
from dralloc.ask.explain.reasons import Code, FilterReason
from dralloc.ask.explain.wording import constraint_text, request_text
from dralloc.problem import (
    MAX_RESULTS,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    DeviceIndex,
    NodeIndex,
    Problem,
    Request,
)
from dralloc.problem.ledger import Scarcity
from dralloc.problem.named_limits import Limit, limits_of
from dralloc.problem.subproblem import ONLY_NODE, Subproblem
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
    node: NodeIndex
    demand: Demand
    part: Subproblem

    def reason(self) -> FilterReason:
        """Return the rule to blame, for the first requests that do not fit together."""
        claims = next(
            claims for claims in self._narrowed() if not self._fits(claims)
        )
        about = ", ".join(
            request_text(claim, request)
            for claim in claims
            for request in claim.requests
        )
        return replace(self._rule(claims), subject=about)

    def _narrowed(self) -> Iterator[tuple[Claim, ...]]:
        """Each request alone, then the first ones, one more each time."""
        positions = [
            (claim_index, request_index)
            for claim_index, claim in enumerate(self.demand.claims)
            for request_index in range(len(claim.requests))
        ]
        parts = [[position] for position in positions]
        parts += [positions[:count] for count in range(2, len(positions))]
        for part in parts:
            left_out = frozenset(positions).difference(part)
            claims = self._without(
                self.demand.claims, Change(requests=left_out)
            )
            yield tuple(claim for claim in claims if claim.requests)
        yield self.demand.claims

    def _without(
        self, claims: tuple[Claim, ...], change: Change
    ) -> tuple[Claim, ...]:
        return change.of(
            replace(self.demand, claims=claims), self.context.offers
        ).claims

    def _fits(
        self, claims: tuple[Claim, ...], problem: Problem | None = None
    ) -> bool:
        demand = self.demand.by_itself(claims=claims, nodes=None)
        return bool(
            first_fit(
                replace(problem or self.part.problem, demands=(demand,))
            ).placements
        )

    def _rule(self, claims: tuple[Claim, ...]) -> FilterReason:
        # Without constraints, they fit or not: constraints are to blame, or amounts are. If
        # no limit makes the difference either, there are just too few devices.
        loose = tuple(replace(claim, constraints=()) for claim in claims)
        if self._fits(loose):
            return self._constraint(claims)
        return (
            self._limits(loose)
            or self._too_many(claims)
            or self._devices(claims)
        )

    def _constraint(self, claims: tuple[Claim, ...]) -> FilterReason:
        # One constraint without which they would fit, or else all of them together.
        all_places = constraint_places(claims)
        # A constraint over several claims is left out in all of them at once, and named in the first.
        blamed = [positions[0] for positions in all_places]
        for positions in all_places:
            without = Change(constraints=frozenset(positions))
            if self._fits(self._without(claims, without)):
                blamed = [positions[0]]
                break
        texts = [
            self._words(
                claims[claim_index].constraints[constraint_index],
                constraint_index,
            )
            for claim_index, constraint_index in blamed
        ]
        details = [
            value_text
            for claim_index, constraint_index in blamed
            for value_text in self._values(
                claims[claim_index], constraint_index
            )
        ]
        return FilterReason(
            Code.CONSTRAINT, "; ".join(texts), details=tuple(details)
        )

    def _words(self, constraint: Constraint, constraint_index: int) -> str:
        match constraint.kind:
            case ConstraintKind.MATCH:
                missing = "no common value"
            case ConstraintKind.DISTINCT:
                missing = "not enough distinct values"
            case _:
                assert_never(constraint.kind)
        return f"{constraint_text(constraint, constraint_index)}: {missing}"

    def _values(self, claim: Claim, constraint_index: int) -> Iterator[str]:
        """Yield how often each value occurs on the devices that selectors accept; what is derived, by request."""
        constraint, eligibility = (
            claim.constraints[constraint_index],
            self.part.problem.eligibility,
        )
        devices = list(self.part.problem.nodes[ONLY_NODE].devices())
        text = f"values of {constraint.attribute} on the"
        if not constraint.derived:
            yield f"{text} selected devices: {self._counts(devices, constraint.attribute)}"
        for alternative in claim.alternatives() if constraint.derived else ():
            if constraint.covers(alternative.name):
                selected = [
                    device
                    for device in devices
                    if eligibility.selects(alternative.index, device) is True
                ]
                counts = self._counts(
                    selected, constraint.compared(alternative.name)
                )
                yield f"{text} devices selected for {alternative.name}: {counts or 'none'}"

    def _counts(self, devices: Iterable[DeviceIndex], attribute: str) -> str:
        counts: Counter[str] = Counter()
        for device in devices:
            values = self.part.problem.devices[device].attributes.get(attribute)
            text = (
                ", ".join(sorted(str(value) for _, value in values or ()))
                or "not comparable"
            )
            counts["none" if values is None else text] += 1
        return "; ".join(f"{text} ({count})" for text, count in counts.items())

    def _limits(self, loose: tuple[Claim, ...]) -> FilterReason | None:
        """Return the resources that are short: those of which an unlimited amount would let the demand fit."""
        for scarcity, code in _CODES.items():
            limits = [
                limit
                for limit in limits_of(self.part.problem)
                if limit.scarcity is scarcity
            ]
            if limits and self._fits_without(loose, limits):
                # Only the names that matter by themselves, if there are any.
                single = [
                    limit
                    for limit in limits
                    if limit.name and self._fits_without(loose, [limit])
                ]
                names = ", ".join(
                    f"{scarcity.value} {limit.name}"
                    for limit in single or limits
                )
                exclude = f"together they need devices whose {scarcity.value} exclude each other"
                return FilterReason(
                    code,
                    exclude
                    if code is Code.GROUPS
                    else f"together more than is free of {names}",
                )
        return None

    def _fits_without(
        self, loose: tuple[Claim, ...], limits: Iterable[Limit]
    ) -> bool:
        return self._fits(
            loose,
            self.context.part(
                [self.node], [self.demand], Lift(frozenset(limits))
            ).problem,
        )

    def _too_many(self, claims: tuple[Claim, ...]) -> FilterReason | None:
        for claim in claims:
            if sum(map(_most_devices, claim.requests)) > MAX_RESULTS:
                return FilterReason(
                    Code.TOO_MANY,
                    f"more than {MAX_RESULTS} results for one claim",
                )
        return None

    def _devices(self, claims: tuple[Claim, ...]) -> FilterReason:
        requests = [request for claim in claims for request in claim.requests]
        requested = sum(map(_fewest_devices, requests))
        accepted = sum(1 for _ in self.part.problem.nodes[ONLY_NODE].devices())
        text = "together they need more devices than can be had"
        return FilterReason(
            Code.TOGETHER,
            text,
            details=(
                f"{requested} asked, selectors accept {accepted}, some of them in use",
            ),
        )


def _most_devices(request: Request) -> int:
    """The most devices that an alternative of a request asks for, ``All`` counting as one."""
    return max(alternative.count or 1 for alternative in request.alternatives)


def _fewest_devices(request: Request) -> int:
    """The fewest devices that an alternative of a request asks for, ``All`` counting as one."""
    return min(alternative.count or 1 for alternative in request.alternatives)
