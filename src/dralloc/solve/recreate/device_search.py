"""First fit's search for devices, in a ledger that says who is where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dralloc.objects.errors import AllocationError
from dralloc.problem import Claim, DeviceIndex, NodeIndex, Problem
from dralloc.problem.indices import DemandIndex
from dralloc.problem.requests import Alternative
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import ClaimClass, places
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.quick_run import QuickRun

__all__ = ["DeviceSearch"]


class DeviceSearch(QuickRun):
    """Finds devices as first fit does, beside those who were admitted."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._admitted: dict[int, Placement] = {}

    @property
    def charges_nodes(self) -> bool:
        """Whether devices take something of nodes (KEP-5517)."""
        return self._has_footprints

    def class_of(self, claims: Sequence[Claim]) -> ClaimClass | None:
        """Return the class of a demand's claims; None if a search for them may end with an error."""
        claim_class = self._class_to_place(claims)
        if claim_class is None or claim_class.may_ask_too_much:
            return None
        return claim_class

    def hopeful_nodes(
        self, claim_class: ClaimClass, claims: Sequence[Claim]
    ) -> list[bool]:
        """Return by node whether a class may be served there as long as nobody else is."""
        hopeful = self._failures.hopeful(claim_class, claims)
        return [bool(is_hopeful) for is_hopeful in hopeful]

    def node_device(self, node: NodeIndex) -> DeviceIndex | None:
        """Return the device that stands for what a node has; None if there is none, or if devices take of it, too."""
        if self._has_footprints:
            return None
        return next(iter(self._index.of_node(node)), None)

    def devices_for(
        self, alternative: Alternative, claims: Sequence[Claim], node: NodeIndex
    ) -> Iterator[DeviceIndex]:
        """Give out the devices of a node that may serve an alternative of some claims, in order."""
        candidates = self._index.on(claims, node)
        for location, candidate in places(claims):
            if candidate.index == alternative.index:
                listed = candidates.lists[location]
                yield from (
                    device
                    for device in listed.devices
                    if device not in listed.failing
                )

    def node_of(self, demand: DemandIndex) -> NodeIndex | None:
        """Return where a demand was admitted; None if it was not."""
        placement = self._admitted.get(demand)
        return None if placement is None else placement.node

    def admit(self, placement: Placement) -> None:
        """Let a demand have what it is placed with."""
        self.accept(placement)
        self.placements.pop()
        self._admitted[placement.demand] = placement

    def withdraw(self, demand: DemandIndex) -> None:
        """Give back what a demand has, if it was admitted."""
        placement = self._admitted.pop(demand, None)
        if placement is not None:
            self._release(placement)

    def find(
        self, claim_class: ClaimClass, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        """Return what claims get on a node; None if nothing. Nothing of it is in use afterwards."""
        candidates = self._index.on(claims, node)
        try:
            grants = self._attempt_at(candidates, claims, claim_class)
            if self._has_footprints:
                grants = self._checked(claims, grants)
        except AllocationError:
            # A selector fails on a device: the node is no use to the demand.
            return None
        finally:
            self._ledger.revert()
        return grants
