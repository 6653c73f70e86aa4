"""What the units of a node could give to each alternative, looked at alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Claim, Problem
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.first_fit.sites import Place, Shelf, Site, places
from dralloc.solvers.policies.room import Room
from dralloc.solvers.policies.states import States
from dralloc.solvers.policies.units import Unit

__all__ = ["Offers"]


class Offers:
    """Answers from the books; what was found for a unit in one state is kept for all units in that state."""

    def __init__(self, problem: Problem, ledger: SearchLedger, states: States) -> None:
        self._problem = problem
        self._ledger = ledger
        self._states = states
        self._accepted: dict[Hashable, dict[Hashable, bool]] = {}
        self._counts: dict[Hashable, dict[int, int]] = {}
        self._rooms: dict[int, Room] = {}

    def column(self, alternative: Alternative) -> Hashable:
        """Equal for alternatives that are offered the same."""
        return self._problem.eligibility.request_key(alternative.index), alternative.admin

    def count(self, alternative: Alternative, state: int, unit: Unit) -> int:
        """How many devices of a unit, which is in that state now, the alternative could have."""
        counts = self._counts.setdefault(self.column(alternative), {})
        found = counts.get(state)
        if found is None:
            found = counts[state] = self._count(alternative, unit)
        return found

    def _count(self, alternative: Alternative, unit: Unit) -> int:
        return sum([self._is_free(alternative, device) for device in unit.devices])

    def counts(self, alternatives: Sequence[Alternative], unit: Unit) -> NDArray[np.int64]:
        """How many devices of a unit each of the alternatives, always the same ones, could have now."""
        device = self._problem.devices[unit.devices[0]]
        if len(unit.devices) > 1 or unit.counters or not device.shareable or self._ledger.is_in_use_before(device):
            return np.array([self._count(one, unit) for one in alternatives], dtype=np.int64)
        if unit.nature not in self._rooms:
            served = [self._accepts(one, unit.devices[0]) for one in alternatives]
            self._rooms[unit.nature] = Room.of(self._problem, unit, alternatives, served)
        return self._rooms[unit.nature].now(self._problem, self._ledger, unit)

    def could_serve(self, claims: Sequence[Claim], node: int) -> bool:
        """Whether a node could serve each request by itself: if not, it cannot serve the claims."""
        units = self._states.ordered(node)
        return all(
            any(
                sum([self.count(one, state, unit) for state, unit in units]) >= (one.count or 1)
                for one in request.alternatives
            )
            for claim in claims
            for request in claim.requests
        )

    def site(self, claims: Sequence[Claim], node: int) -> Site:
        """The node as the claims see it, without devices on which a selector fails: those with the least left first."""
        devices = [device for _, unit in self._states.ordered(node) for device in unit.devices]
        shelves: dict[Place, Shelf] = {}
        for place, alternative in places(claims):
            if alternative.count is not None:
                shelves[place] = Shelf([one for one in devices if self._accepts(alternative, one)], frozenset())
        return Site(node, shelves)

    def _accepts(self, alternative: Alternative, device: int) -> bool:
        eligibility, index = self._problem.eligibility, alternative.index
        accepted = self._accepted.setdefault(eligibility.request_key(index), {})
        look = eligibility.device_key(device)
        if look not in accepted:
            accepted[look] = (
                eligibility.selects(index, device) is True
                and eligibility.charge(index, device) is not None
                and eligibility.admits(index, device)
            )
        return accepted[look]

    def _is_free(self, alternative: Alternative, number: int) -> bool:
        if not self._accepts(alternative, number):
            return False
        device, charge = self._problem.devices[number], self._problem.eligibility.charge(alternative.index, number)
        return (
            charge is not None
            and (alternative.admin or not self._ledger.is_in_use_before(device))
            and self._ledger.has_capacity(device, charge)
            and self._ledger.covers(device, alternative, charge)
        )
