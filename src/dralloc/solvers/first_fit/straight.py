"""The straight way for simple demands: one claim that asks once for some devices, without constraints."""

from __future__ import annotations

from dralloc.errors import AllocationError
from dralloc.problem import Alternative, Problem
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.first_fit.sites import Shelf

__all__ = ["Undecided", "take_straight"]


class Undecided(Exception):  # noqa: N818 - not an error: the answer takes a search
    """Whether the demand fits depends on which of the devices are taken together."""


def take_straight(
    problem: Problem, ledger: SearchLedger, alternative: Alternative, shelf: Shelf
) -> tuple[int, ...] | None:
    """Take the first devices that can be had: the first solution of the search, if its first descent succeeds.

    Returns
    -------
    tuple or None
        The devices; None, with nothing taken, if there are too few.

    Raises
    ------
    AllocationError
        A selector fails on a device that the search reaches.
    Undecided
        The descent failed, and counters were in the way of devices behind others: other choices could succeed.
    """
    taken: list[int] = []
    first, crowded = shelf.start, False
    for position in range(shelf.start, len(shelf.devices)):
        number = shelf.devices[position]
        device = problem.devices[number]
        if ledger.in_use(device, alternative, 0):
            continue
        if number in shelf.failing:
            ledger.revert()
            verdict = problem.eligibility.selects(alternative.index, number)
            assert isinstance(verdict, AllocationError)
            raise verdict
        charge = problem.eligibility.charge(alternative.index, number)
        assert charge is not None
        if not ledger.has_capacity(device, charge):
            continue
        if not ledger.covers(device, alternative, charge):
            crowded = crowded or bool(taken)
            continue
        ledger.take(number, alternative, 0, charge)
        if not taken:
            first = position
        taken.append(number)
        if len(taken) == alternative.count:
            shelf.start = first
            return tuple(taken)
    ledger.revert()
    if crowded:
        raise Undecided
    return None
