"""The fast path for simple demands: one claim that asks once for some devices, without constraints."""

from __future__ import annotations

from dralloc.errors import AllocationError
from dralloc.problem import Alternative, Problem
from dralloc.solvers.first_fit.candidates import CandidateList
from dralloc.solvers.first_fit.ledger import SearchLedger

__all__ = ["Undecided", "take_first"]


class Undecided(Exception):  # noqa: N818 - not an error: the answer takes a search
    """Whether the demand fits depends on which of the devices are taken together."""


def take_first(
    problem: Problem, ledger: SearchLedger, alternative: Alternative, listed: CandidateList
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
    first, blocked = listed.start, False
    for position in range(listed.start, len(listed.devices)):
        number = listed.devices[position]
        device = problem.devices[number]
        if ledger.in_use(device, alternative, 0):
            continue
        if number in listed.failing:
            ledger.revert()
            verdict = problem.eligibility.selects(alternative.index, number)
            assert isinstance(verdict, AllocationError)
            raise verdict
        charge = problem.eligibility.charge(alternative.index, number)
        assert charge is not None
        if not ledger.has_capacity(device, charge):
            continue
        if not ledger.covers(device, alternative, charge):
            blocked = blocked or bool(taken)
            continue
        ledger.take(number, alternative, 0, charge)
        if not taken:
            first = position
        taken.append(number)
        if len(taken) == alternative.count:
            listed.start = first
            return tuple(taken)
    ledger.revert()
    if blocked:
        raise Undecided
    return None
