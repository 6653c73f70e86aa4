"""Offers: what the components of a node could give to each alternative, looked at alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    NodeCandidates,
    Place,
    places,
)
from dralloc.solve.first_fit.search_ledger import SearchLedger
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
        request_key = self._problem.eligibility.request_key(alternative.index)
        return request_key, alternative.admin

    def count(
        self, alternative: Alternative, state: int, component: NodeComponent
    ) -> int:
        """Return how many devices of a component, which is in that state now, the alternative could have."""
        counts = self._counts[self.column(alternative)]
        if state not in counts:
            counts[state] = self._count(alternative, component)
        return counts[state]

    def _count(self, alternative: Alternative, component: NodeComponent) -> int:
        return sum(
            [self._is_free(alternative, device) for device in component.devices]
        )

    def counts(
        self, alternatives: Sequence[Alternative], component: NodeComponent
    ) -> Integers:
        """Return how many devices of a component each of the alternatives, always the same ones, could have now."""
        device = self._problem.devices[component.devices[0]]
        dedicated = (
            len(component.devices) > 1
            or component.counters
            or not device.shareable
        )
        if dedicated or not self._ledger.is_free(device):
            counts = [
                self._count(alternative, component)
                for alternative in alternatives
            ]
            return np.array(counts, dtype=np.int64)
        if component.key not in self._fits:
            self._fits[component.key] = self._fit(
                alternatives, component.devices[0]
            )
        return self._fits[component.key](device)

    def _fit(
        self, alternatives: Sequence[Alternative], device_index: DeviceIndex
    ) -> Callable[[Device], Integers]:
        """Tells of devices that equal this one, which is shared and consumes no counters, who could have them now."""
        served = np.array(
            [
                self._accepts(alternative, device_index)
                for alternative in alternatives
            ]
        )
        charges = [
            self._problem.eligibility.charge(alternative.index, device_index)
            or Charge()
            for alternative in alternatives
        ]
        fits: list[tuple[str, int, NDArray[np.int64]]] = []
        for name in self._problem.devices[device_index].capacity:
            amounts = [dict(charge.capacity).get(name, 0) for charge in charges]
            step = gcd(*amounts) or 1
            # What does not fit 64 bits, numpy keeps as exact integers of Python.
            fits.append(
                (name, step, np.array([amount // step for amount in amounts]))
            )

        def counts_now(device: Device) -> Integers:
            fitting = served
            for name, step, amounts in fits:
                free_steps = self._ledger.capacity_left(device, name) // step
                fitting = fitting & (amounts <= free_steps)
            return fitting.astype(np.int64)

        return counts_now

    def could_serve(self, claims: Sequence[Claim], node: NodeIndex) -> bool:
        """Whether a node could serve each request by itself: if not, it cannot serve the claims."""
        components = self._states.ordered(node)

        def is_offered(alternative: Alternative) -> bool:
            counts = [
                self.count(alternative, state, component)
                for state, component in components
            ]
            return sum(counts) >= (alternative.count or 1)

        for claim in claims:
            for request in claim.requests:
                if not any(map(is_offered, request.alternatives)):
                    return False
        return True

    def candidates(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> NodeCandidates:
        """The node as the claims see it, without devices on which a selector fails: those with the least left first."""
        devices: list[DeviceIndex] = []
        for _, component in self._states.ordered(node):
            devices += component.devices
        lists: dict[Place, CandidateList] = {}
        for location, alternative in places(claims):
            if alternative.count is not None:
                accepted = [
                    device
                    for device in devices
                    if self._accepts(alternative, device)
                ]
                lists[location] = CandidateList(accepted, frozenset())
        return NodeCandidates(node, lists)

    def _accepts(self, alternative: Alternative, device: DeviceIndex) -> bool:
        return self._index.serves(alternative, device) is True

    def _is_free(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> bool:
        if not self._accepts(alternative, device_index):
            return False
        charge = self._problem.eligibility.charge(
            alternative.index, device_index
        )
        if charge is None:
            return False
        device = self._problem.devices[device_index]
        return self._ledger.fits(device, charge, admin=alternative.admin)
