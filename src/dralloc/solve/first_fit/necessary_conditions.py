"""Necessary conditions: if one of them fails, the rest of a search has no solution.

Each looks at one thing only and takes the best case for all others. None of them looks at order, so whatever fails here
fails in every order, and leaving it out of the search cannot change which solution is found first. Each says why no
solution is lost by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar, assert_never

from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DeviceIndex,
    Problem,
    Scalar,
)
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.claim_constraints import (
    ClaimConstraints,
    Propagator,
)
from dralloc.solve.first_fit.counter_bounds import counters_suffice
from dralloc.solve.first_fit.residual_requests import (
    Residual,
    ResidualRequest,
    fitting,
)

__all__ = ["is_infeasible"]

T = TypeVar("T", bound=Hashable)

_NO_VALUE: Scalar = ("", "")
"""Stands for what cannot be compared: of the devices of a `distinctAttribute` at most one has no value."""


def is_infeasible(
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
    shared = [
        request for request in residual if not request.admin and request.need
    ]
    shares = dict(_multiplicities(problem, ledger, shared))
    # All requests together: a shareable device counts as often as its capacities could serve them.
    if not _can_serve(
        [request.need for request in shared],
        [list(request.offers) for request in shared],
        shares,
    ):
        return True
    of_claims: dict[int, list[ResidualRequest]] = defaultdict(list)
    for request in residual:
        if request.need:
            of_claims[request.claim].append(request)
    # Each constraint by itself, for one claim: what other claims need under it could only make it harder.
    for claim in {request.claim for request in residual}:
        for constraint, state in constraints[claim].states:
            if not _can_hold(
                problem, of_claims[claim], shares, constraint, state
            ):
                return True
    if not counters_suffice(problem, ledger, shared):
        return True
    return not _capacities_suffice(problem, ledger, shared)


def _can_hold(
    problem: Problem,
    residual: Residual,
    shares: dict[int, int],
    constraint: Constraint,
    state: Propagator,
) -> bool:
    covered = [
        request for request in residual if request.covered_by(constraint)
    ]
    # A device alone is equal to itself and differs from nobody.
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
                common = frozenset[Scalar]().union(*fewest.values()) - {
                    _NO_VALUE
                }
            return any(
                _can_share(value, covered, values, shares) for value in common
            )
        case _:
            assert_never(constraint.kind)


def _values(
    problem: Problem, constraint: Constraint, request: ResidualRequest
) -> dict[int, frozenset[Scalar]]:
    """By device on offer to a request, the values that count there, whichever alternative serves it."""
    names = {
        constraint.compared(alternative.name)
        for alternative in request.alternatives
    }
    values: dict[int, frozenset[Scalar]] = {}
    for device in request.offers:
        attributes = problem.devices[device].attributes
        by_name = [attributes.get(name) or (_NO_VALUE,) for name in names]
        values[device] = frozenset[Scalar]().union(*by_name)
    return values


def _can_share(
    value: Scalar,
    residual: Residual,
    values: Sequence[dict[int, frozenset[Scalar]]],
    shares: dict[int, int],
) -> bool:
    """`matchAttribute`: the devices that have this value are enough."""
    needs: list[int] = []
    offers: list[list[int]] = []
    for request, values_of in zip(residual, values, strict=True):
        offer = [
            device
            for device, own_values in values_of.items()
            if value in own_values
        ]
        if len(offer) < request.need:
            return False
        if not request.admin:
            needs.append(request.need)
            offers.append(offer)
    return _can_serve(needs, offers, shares)


def _capacities_suffice(
    problem: Problem, ledger: Ledger, residual: Residual
) -> bool:
    """Check, where only shareable devices are on offer, that their capacities of one name cover the least amounts."""
    device_indices = {
        device for request in residual for device in request.offers
    }
    offered = [problem.devices[device_index] for device_index in device_indices]
    if not offered or not all(device.shareable for device in offered):
        return True
    for name in set.intersection(*(set(device.capacity) for device in offered)):
        need = 0
        for request in residual:
            amounts = (
                request.capacity_of(device, name) for device in request.offers
            )
            need += request.need * min(amounts)
        if need > sum(ledger.capacity_left(device, name) for device in offered):
            return False
    return True


def _multiplicities(
    problem: Problem, ledger: Ledger, residual: Residual
) -> Iterator[tuple[int, int]]:
    """For each shareable device how many of the requests its capacities could serve together, at the very most."""
    users: dict[DeviceIndex, list[ResidualRequest]] = {}
    for request in residual:
        for device in request.offers:
            if problem.devices[device].shareable:
                users.setdefault(device, []).append(request)
    for device_index, requests in users.items():
        shared = problem.devices[device_index]
        multiplicity = len(requests)
        for name in shared.capacity:
            amounts = [
                request.capacity_of(device_index, name) for request in requests
            ]
            served = fitting(amounts, ledger.capacity_left(shared, name))
            multiplicity = min(multiplicity, served)
        yield device_index, multiplicity


def _can_serve(
    needs: Sequence[int],
    offers: Sequence[Sequence[T]],
    multiplicity: Mapping[T, int],
) -> bool:
    """Whether every party gets as many different items of its offer as it needs: a bipartite matching.

    Parameters
    ----------
    needs
        How many items each party needs.
    offers
        The items that each party can use.
    multiplicity
        How many parties can have an item together; one if it is not listed.
    """
    users: dict[T, set[int]] = {}

    def augment(party: int, seen: set[T]) -> bool:
        """Give the party one more item, if need be by having its users change theirs (an augmenting path)."""
        for item in offers[party]:
            users_now = users.setdefault(item, set())
            if party not in users_now and len(users_now) < multiplicity.get(
                item, 1
            ):
                users_now.add(party)
                return True
        for item in offers[party]:
            users_now = users[item]
            if item in seen or party in users_now:
                continue
            seen.add(item)
            # No other item has room: a user of this one has to take another one instead.
            for user in tuple(users_now):
                if augment(user, seen):
                    users_now.discard(user)
                    users_now.add(party)
                    return True
        return False

    # Whoever has items keeps as many while others get theirs. So if one more cannot be had now, there is no way in
    # which all have enough.
    for party, need in enumerate(needs):
        for _ in range(need):
            if not augment(party, set()):
                return False
    return True
