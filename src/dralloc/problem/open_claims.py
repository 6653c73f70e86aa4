"""The claims of a demand that are still open, when other claims under the same constraints have devices already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from dralloc.objects.names import ClaimKey
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Claim, Constraint, ConstraintKind, Demand, Scope
from dralloc.problem.supply import Scalar

__all__ = ["held_values", "open_claims"]

Granted = Mapping[ClaimKey, tuple[int, Sequence[tuple[int, int, int]]]]
"""The node from which each claim got something, and what: request, alternative and device, all by index."""

_Values = frozenset[Scalar]


def open_claims(
    problem: Problem,
    demand: Demand,
    granted: Granted,
    placed: Mapping[Scope, Mapping[ClaimKey, Demand]],
) -> list[Claim]:
    """The claims that nobody got yet, or can get; what others got counts as held in the scopes of their constraints.

    Where that contradicts a constraint by itself, the answer is one claim with a defect that says so.

    Parameters
    ----------
    placed
        For scopes of groups, the demands that are placed, by key.
    """
    # A defect stays whatever others got: it may be the pod's alone, beside a claim that it shares.
    found = [
        claim for claim in demand.claims if claim.key not in granted or claim.defect
    ]
    if not problem.has_scopes:
        return found
    scopes: dict[Scope, Scope] = {}
    for constraint in (one for claim in demand.claims for one in claim.constraints):
        scope = constraint.scope
        if scope and scope not in scopes:
            mates = (demand, *(placed.get(scope, {}).values() if scope.group else ()))
            got = _granted(
                problem,
                scope,
                {claim.key: claim for mate in mates for claim in mate.claims},
                granted,
            )
            held = held_values(constraint.kind, (*scope.held, *got))
            if held is None:
                what = f"{constraint.kind.value} {constraint.attribute} over several claims"
                defect = f"{demand.key}: {what}: devices that are allocated already violate it"
                return [
                    replace(
                        demand.claims[0], requests=(), constraints=(), defect=defect
                    )
                ]
            scopes[scope] = scope._replace(held=held)

    def moved(one: Constraint) -> Constraint:
        return replace(one, scope=scopes[one.scope]) if one.scope else one

    return [
        replace(claim, constraints=tuple(map(moved, claim.constraints)))
        for claim in found
    ]


def held_values(
    kind: ConstraintKind, devices: Iterable[_Values | None]
) -> tuple[_Values, ...] | None:
    """What devices mean for further ones (see `Scope.held`); None if they contradict each other.

    Parameters
    ----------
    devices
        The values of each; None if it lacks the attribute.
    """
    every = list(devices)
    known = [values for values in every if values is not None]
    if len(known) < len(every):
        return None
    match kind:
        case ConstraintKind.MATCH:
            if not known:
                return ()
            common = frozenset[Scalar].intersection(*known)
            # One device alone agrees with itself, also without comparable value.
            return (common,) if common or len(known) == 1 else None
        case ConstraintKind.DISTINCT:
            # At most one device may be without comparable value; it counts as a value of its own.
            value_count = sum(max(1, len(values)) for values in known)
            distinct_count = len(frozenset[Scalar]().union(*known))
            distinct_count += frozenset() in known
            if value_count > distinct_count:
                return None
            return tuple(sorted(known, key=sorted))
        case _:
            assert_never(kind)


def _granted(
    problem: Problem, scope: Scope, claims: Mapping[ClaimKey, Claim], granted: Granted
) -> Iterator[_Values | None]:
    for key, claim in claims.items():
        for constraint in claim.constraints if key in granted else ():
            if constraint.scope == scope:
                for request, choice, device in granted[key][1]:
                    name = claim.requests[request].alternatives[choice].name
                    if constraint.covers(name):
                        yield problem.devices[device].attributes.get(
                            constraint.compared(name)
                        )
