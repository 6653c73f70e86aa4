"""What the components of a node could give to each alternative, looked at alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Claim, Problem
from dralloc.solvers.first_fit.candidates import CandidateIndex, CandidateList, NodeCandidates, Place, places
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.policies.capacity_fit import CapacityFit
from dralloc.solvers.policies.component_states import ComponentStates
from dralloc.solvers.policies.node_components import NodeComponent

__all__ = ["ComponentOffers"]


class ComponentOffers:
    """Answers from the ledger; what was found for a component in one state holds for all components in it."""

    def __init__(self, problem: Problem, ledger: SearchLedger, states: ComponentStates, index: CandidateIndex) -> None:
        self._problem = problem
        self._ledger = ledger
        self._states = states
        self._index = index
        self._counts: dict[Hashable, dict[int, int]] = {}
        self._fits: dict[int, CapacityFit] = {}

    def column(self, alternative: Alternative) -> Hashable:
        """Equal for alternatives that are offered the same."""
        return self._problem.eligibility.request_key(alternative.index), alternative.admin

    def count(self, alternative: Alternative, state: int, component: NodeComponent) -> int:
        """How many devices of a component, which is in that state now, the alternative could have."""
        counts = self._counts.setdefault(self.column(alternative), {})
        found = counts.get(state)
        if found is None:
            found = counts[state] = self._count(alternative, component)
        return found

    def _count(self, alternative: Alternative, component: NodeComponent) -> int:
        return sum([self._is_free(alternative, device) for device in component.devices])

    def counts(self, alternatives: Sequence[Alternative], component: NodeComponent) -> NDArray[np.int64]:
        """How many devices of a component each of the alternatives, always the same ones, could have now."""
        device = self._problem.devices[component.devices[0]]
        if (
            len(component.devices) > 1
            or component.counters
            or not device.shareable
            or self._ledger.is_in_use_before(device)
        ):
            return np.array([self._count(one, component) for one in alternatives], dtype=np.int64)
        if component.key not in self._fits:
            served = [self._accepts(one, component.devices[0]) for one in alternatives]
            self._fits[component.key] = CapacityFit.of(self._problem, component, alternatives, served)
        return self._fits[component.key].now(self._problem, self._ledger, component)

    def could_serve(self, claims: Sequence[Claim], node: int) -> bool:
        """Whether a node could serve each request by itself: if not, it cannot serve the claims."""
        components = self._states.ordered(node)
        return all(
            any(
                sum([self.count(one, state, component) for state, component in components]) >= (one.count or 1)
                for one in request.alternatives
            )
            for claim in claims
            for request in claim.requests
        )

    def candidates(self, claims: Sequence[Claim], node: int) -> NodeCandidates:
        """The node as the claims see it, without devices on which a selector fails: those with the least left first."""
        devices = [device for _, component in self._states.ordered(node) for device in component.devices]
        lists: dict[Place, CandidateList] = {}
        for place, alternative in places(claims):
            if alternative.count is not None:
                lists[place] = CandidateList([one for one in devices if self._accepts(alternative, one)], frozenset())
        return NodeCandidates(node, lists)

    def _accepts(self, alternative: Alternative, device: int) -> bool:
        return self._index.serves(alternative, device) is True

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
