"""What the components of a node could give to each alternative, looked at alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Charge, Claim, Device, Problem
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    NodeCandidates,
    Place,
    places,
)
from dralloc.solve.first_fit.ledger import SearchLedger
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.node_components import NodeComponent

__all__ = ["ComponentOffers", "Integers"]

Integers = NDArray[np.int64]


class ComponentOffers:
    """Answers from the ledger; what was found for a component in one state holds for all components in it."""

    def __init__(
        self,
        problem: Problem,
        ledger: SearchLedger,
        states: ComponentStates,
        index: CandidateIndex,
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._states = states
        self._index = index
        self._counts: dict[Hashable, dict[int, int]] = defaultdict(dict)
        self._fits: dict[int, Callable[[Device], Integers]] = {}

    def column(self, alternative: Alternative) -> Hashable:
        """Equal for alternatives that are offered the same."""
        return self._problem.eligibility.request_key(
            alternative.index
        ), alternative.admin

    def count(
        self, alternative: Alternative, state: int, component: NodeComponent
    ) -> int:
        """How many devices of a component, which is in that state now, the alternative could have."""
        counts = self._counts[self.column(alternative)]
        found = counts.get(state)
        if found is None:
            found = counts[state] = self._count(alternative, component)
        return found

    def _count(self, alternative: Alternative, component: NodeComponent) -> int:
        return sum([self._is_free(alternative, device) for device in component.devices])

    def counts(
        self, alternatives: Sequence[Alternative], component: NodeComponent
    ) -> Integers:
        """How many devices of a component each of the alternatives, always the same ones, could have now."""
        device = self._problem.devices[component.devices[0]]
        dedicated = (
            len(component.devices) > 1 or component.counters or not device.shareable
        )
        if dedicated or not self._ledger.is_free(device):
            return np.array(
                [self._count(one, component) for one in alternatives], dtype=np.int64
            )
        if component.key not in self._fits:
            self._fits[component.key] = self._fit(alternatives, component.devices[0])
        return self._fits[component.key](device)

    def _fit(
        self, alternatives: Sequence[Alternative], number: int
    ) -> Callable[[Device], Integers]:
        """Tells of devices that equal this one, which is shared and consumes no counters, who could have them now."""
        served = np.array([self._accepts(one, number) for one in alternatives])
        charges = [
            self._problem.eligibility.charge(one.index, number) or Charge()
            for one in alternatives
        ]
        fits: list[tuple[str, int, NDArray[np.int64]]] = []
        for name in self._problem.devices[number].capacity:
            amounts = [dict(charge.capacity).get(name, 0) for charge in charges]
            step = gcd(*amounts) or 1
            # What does not fit 64 bits, numpy keeps as exact integers of Python.
            fits.append((name, step, np.array([amount // step for amount in amounts])))

        def now(device: Device) -> Integers:
            found = served
            for name, step, amounts in fits:
                found = found & (
                    amounts <= self._ledger.capacity_left(device, name) // step
                )
            return found.astype(np.int64)

        return now

    def could_serve(self, claims: Sequence[Claim], node: int) -> bool:
        """Whether a node could serve each request by itself: if not, it cannot serve the claims."""
        components = self._states.ordered(node)
        return all(
            any(
                sum(
                    [
                        self.count(one, state, component)
                        for state, component in components
                    ]
                )
                >= (one.count or 1)
                for one in request.alternatives
            )
            for claim in claims
            for request in claim.requests
        )

    def candidates(self, claims: Sequence[Claim], node: int) -> NodeCandidates:
        """The node as the claims see it, without devices on which a selector fails: those with the least left first."""
        devices = [
            device
            for _, component in self._states.ordered(node)
            for device in component.devices
        ]
        lists: dict[Place, CandidateList] = {}
        for place, alternative in places(claims):
            if alternative.count is not None:
                lists[place] = CandidateList(
                    [one for one in devices if self._accepts(alternative, one)],
                    frozenset(),
                )
        return NodeCandidates(node, lists)

    def _accepts(self, alternative: Alternative, device: int) -> bool:
        return self._index.serves(alternative, device) is True

    def _is_free(self, alternative: Alternative, number: int) -> bool:
        if not self._accepts(alternative, number):
            return False
        device, charge = (
            self._problem.devices[number],
            self._problem.eligibility.charge(alternative.index, number),
        )
        return charge is not None and self._ledger.fits(
            device, charge, admin=alternative.admin
        )
