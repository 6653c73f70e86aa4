"""Necessary conditions: if one of them fails, the rest of a search has no solution.

Each looks at one thing only and takes the best case for all others. None of them looks at order, so whatever fails
here fails in every order, and leaving it out of the search cannot change which solution is found first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar, assert_never

from dralloc.problem import Constraint, ConstraintKind, Problem, Scalar
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.constraints import ClaimConstraints, Propagator
from dralloc.solve.first_fit.counter_bounds import counters_suffice
from dralloc.solve.first_fit.residual_requests import Residual, ResidualRequest, fitting

__all__ = ["infeasible"]

T = TypeVar("T", bound=Hashable)

_NO_VALUE: Scalar = ("", "")
"""Stands for what cannot be compared: of the devices of a `distinctAttribute` at most one has no value."""


def infeasible(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    constraints: Sequence[ClaimConstraints],
) -> bool:
    """Whether it is certain that not all residual requests can be served together.

    Parameters
    ----------
    residual
        What is still to be found. Everything on offer can be had by itself.
    constraints
        Those of each claim, with what the devices taken so far mean for them.
    """
    if any(len(request.offers) < request.need for request in residual):
        return True
    shared = [request for request in residual if not request.admin and request.need]
    shares = dict(_multiplicities(problem, ledger, shared))
    if not _can_serve(
        [request.need for request in shared],
        [list(request.offers) for request in shared],
        shares,
    ):
        return True
    for claim in {request.claim for request in residual}:
        mine = [
            request for request in residual if request.claim == claim and request.need
        ]
        if not all(
            _can_hold(problem, mine, shares, *state)
            for state in constraints[claim].states
        ):
            return True
    return not (
        counters_suffice(problem, ledger, shared)
        and _capacities_suffice(problem, ledger, shared)
    )


def _can_hold(
    problem: Problem,
    residual: Residual,
    shares: dict[int, int],
    constraint: Constraint,
    state: Propagator,
) -> bool:
    covered = [request for request in residual if request.covered_by(constraint)]
    if state.taken + sum(request.need for request in covered) < 2:
        return True
    values = [_values(problem, constraint, request) for request in covered]
    match constraint.kind:
        case ConstraintKind.DISTINCT:
            # Each device brings a value that no other has.
            offers = [
                list(frozenset[Scalar]().union(*of_request.values()))
                for of_request in values
            ]
            return _can_serve([request.need for request in covered], offers, {})
        case ConstraintKind.MATCH:
            if not covered:
                return True
            common = state.common
            if common is None:
                fewest = min(values, key=len)
                common = frozenset[Scalar]().union(*fewest.values()) - {_NO_VALUE}
            return any(_can_share(value, covered, values, shares) for value in common)
        case _:
            assert_never(constraint.kind)


def _values(
    problem: Problem, constraint: Constraint, request: ResidualRequest
) -> dict[int, frozenset[Scalar]]:
    """By device on offer to a request, the values that count there, whichever alternative serves it."""
    names = {
        constraint.compared(alternative.name) for alternative in request.alternatives
    }
    known = ((device, problem.devices[device].attributes) for device in request.offers)
    return {
        device: frozenset().union(*(of.get(name) or (_NO_VALUE,) for name in names))
        for device, of in known
    }


def _can_share(
    value: Scalar,
    residual: Residual,
    values: Sequence[dict[int, frozenset[Scalar]]],
    shares: dict[int, int],
) -> bool:
    """`matchAttribute`: the devices that have this value are enough."""
    offers = [
        [device for device, own in each.items() if value in own] for each in values
    ]
    if any(
        len(offer) < request.need
        for offer, request in zip(offers, residual, strict=True)
    ):
        return False
    together = [
        (request.need, offer)
        for offer, request in zip(offers, residual, strict=True)
        if not request.admin
    ]
    return _can_serve(
        [need for need, _ in together], [offer for _, offer in together], shares
    )


def _capacities_suffice(problem: Problem, ledger: Ledger, residual: Residual) -> bool:
    """Where only shareable devices are on offer: their capacities of one name cover the least amounts."""
    offered = {device for request in residual for device in request.offers}
    if not offered or not all(problem.devices[device].shareable for device in offered):
        return True
    names = set.intersection(
        *(set(problem.devices[device].capacity) for device in offered)
    )
    return all(
        sum(
            request.need
            * min(request.capacity_of(device, name) for device in request.offers)
            for request in residual
        )
        <= sum(
            ledger.capacity_left(problem.devices[device], name) for device in offered
        )
        for name in names
    )


def _multiplicities(
    problem: Problem, ledger: Ledger, residual: Residual
) -> Iterator[tuple[int, int]]:
    """For each shareable device how many of the requests its capacities could serve together, at the very most."""
    users: dict[int, list[ResidualRequest]] = {}
    for request in residual:
        for device in request.offers:
            if problem.devices[device].shareable:
                users.setdefault(device, []).append(request)
    for number, mine in users.items():
        known = problem.devices[number]
        for_each = (
            fitting(
                [request.capacity_of(number, name) for request in mine],
                ledger.capacity_left(known, name),
            )
            for name in known.capacity
        )
        yield number, min(for_each, default=len(mine))


def _can_serve(
    needs: Sequence[int], offers: Sequence[Sequence[T]], multiplicity: Mapping[T, int]
) -> bool:
    """Whether every party gets as many different things of its offer as it needs: a bipartite matching.

    Parameters
    ----------
    needs
        How many things each party needs.
    offers
        The things that each party can use.
    multiplicity
        How many parties can have a thing together; one if it is not listed.
    """
    users: dict[T, set[int]] = {}

    def find(party: int, seen: set[T]) -> bool:
        """Give the party one more thing, if need be by having others change theirs."""
        for thing in offers[party]:
            mine = users.setdefault(thing, set())
            if party not in mine and len(mine) < multiplicity.get(thing, 1):
                mine.add(party)
                return True
        for thing in offers[party]:
            mine = users[thing]
            if thing in seen or party in mine:
                continue
            seen.add(thing)
            for other in tuple(mine):
                if find(other, seen):
                    mine.discard(other)
                    mine.add(party)
                    return True
        return False

    return all(
        find(party, set()) for party, need in enumerate(needs) for _ in range(need)
    )
