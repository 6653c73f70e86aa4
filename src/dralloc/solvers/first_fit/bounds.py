"""Necessary conditions: if one of them fails, the rest of a search has no solution.

Each looks at one thing only and takes the best case for all others. None of them looks at order, so whatever fails
here fails in every order, and leaving it out of the search cannot change which solution is found first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dralloc.problem import ConstraintKind, Problem, Scalar
from dralloc.problem.ledger import Ledger
from dralloc.solvers.first_fit.constraints import State
from dralloc.solvers.first_fit.matching import can_serve
from dralloc.solvers.first_fit.tolls import counters_suffice
from dralloc.solvers.first_fit.wants import Want, room_for

__all__ = ["hopeless"]

_NO_VALUE: Scalar = ("", "")
"""Stands for what cannot be compared: of the devices of a `distinctAttribute` at most one has no value."""


def hopeless(problem: Problem, ledger: Ledger, wants: Sequence[Want], states: Callable[[int], Iterator[State]]) -> bool:
    """Whether it is certain that not all wants can be served together.

    Parameters
    ----------
    wants
        What is still to be found. Everything on offer can be had by itself.
    states
        The constraints of a claim, with what the devices taken so far mean for them.
    """
    if any(len(want.offers) < want.need for want in wants):
        return True
    shared = [want for want in wants if not want.admin and want.need]
    room = dict(room_for(problem, ledger, shared))
    if not can_serve([want.need for want in shared], [list(want.offers) for want in shared], room):
        return True
    for claim in {want.claim for want in wants}:
        mine = [want for want in wants if want.claim == claim and want.need]
        if not all(_can_hold(problem, mine, room, state) for state in states(claim)):
            return True
    return not (counters_suffice(problem, ledger, shared) and _capacities_suffice(problem, ledger, shared))


def _can_hold(problem: Problem, wants: Sequence[Want], room: dict[int, int], state: State) -> bool:
    covered = [want for want in wants if want.covered_by(state.constraint)]
    if state.taken + sum(want.need for want in covered) < 2:
        return True
    attribute = state.constraint.attribute
    values = {
        device: problem.devices[device].attributes.get(attribute, frozenset())
        for want in covered
        for device in want.offers
    }
    if state.constraint.kind is ConstraintKind.DISTINCT:
        return _are_enough_values(covered, values)
    if not covered:
        return True
    scarcest = min(covered, key=lambda want: len(want.offers))
    common = state.common
    if common is None:
        common = frozenset[Scalar]().union(*(values[device] for device in scarcest.offers))
    return any(_can_share(value, covered, values, room) for value in common)


def _are_enough_values(wants: Sequence[Want], values: dict[int, frozenset[Scalar]]) -> bool:
    """`distinctAttribute`: each device brings a value that no other has."""
    offers = [list({value for device in want.offers for value in values[device] or (_NO_VALUE,)}) for want in wants]
    return can_serve([want.need for want in wants], offers, {})


def _can_share(
    value: Scalar, wants: Sequence[Want], values: dict[int, frozenset[Scalar]], room: dict[int, int]
) -> bool:
    """`matchAttribute`: the devices that have this value are enough."""
    offers = [[device for device in want.offers if value in values[device]] for want in wants]
    if any(len(offer) < want.need for offer, want in zip(offers, wants, strict=True)):
        return False
    together = [(want.need, offer) for offer, want in zip(offers, wants, strict=True) if not want.admin]
    return can_serve([need for need, _ in together], [offer for _, offer in together], room)


def _capacities_suffice(problem: Problem, ledger: Ledger, wants: Sequence[Want]) -> bool:
    """Where only shareable devices are on offer: their capacities of one name cover the least amounts."""
    offered = {device for want in wants for device in want.offers}
    if not offered or not all(problem.devices[device].shareable for device in offered):
        return True
    names = set.intersection(*(set(problem.devices[device].capacity) for device in offered))
    return all(
        sum(want.need * min(want.capacity_of(device, name) for device in want.offers) for want in wants)
        <= sum(ledger.capacity_left(problem.devices[device], name) for device in offered)
        for name in names
    )
