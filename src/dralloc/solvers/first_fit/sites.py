"""What a node offers to each alternative, worked out once for all equal alternatives and devices that look alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from dralloc.errors import AllocationError
from dralloc.problem import Alternative, Claim, PoolState, Problem

__all__ = ["Place", "Shelf", "Site", "Sites", "places"]

Place = tuple[int, int, int]
"""Indices of a claim of the demand, of its request, and of the alternative."""


@dataclass(slots=True)
class Shelf:
    """The devices of a node that an alternative can have as far as usage, constraints and other requests allow.

    Parameters
    ----------
    devices
        In search order. Those on which a selector fails are among them, as the search has to end when it gets there.
    failing
        Those on which a selector fails.
    start
        How many of the first devices are known to be out of reach for good.
    """

    devices: Sequence[int]
    failing: frozenset[int]
    start: int = 0


@dataclass(slots=True)
class Site:
    """A node with the shelves for one kind of demand. Nothing is on the shelf of what asks for all devices."""

    node: int
    shelves: dict[Place, Shelf] = field(default_factory=dict)


class Sites:
    """Sets up sites. Answers about looks are kept, those about single devices are not."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._answers: dict[Hashable, dict[Hashable, bool | None]] = {}
        self._devices: dict[int, tuple[int, ...]] = {}
        self._looks: dict[int, list[Hashable]] = {}
        self._settled: dict[int, bool] = {}
        self._several = problem.several_versions

    def site(self, claims: Sequence[Claim], node: int) -> Site:
        """The node as these claims see it; equal alternatives share a shelf."""
        site = Site(node)
        shelves: dict[Hashable, Shelf] = {}
        for place, alternative in places(claims):
            if alternative.count is not None:
                kind = self._problem.eligibility.request_key(alternative.index)
                if kind not in shelves:
                    shelves[kind] = self._shelf(kind, alternative, node)
                site.shelves[place] = shelves[kind]
        return site

    def is_invalid(self, node: int) -> bool:
        """Whether a pool of the node is invalid, so that nobody knows what would fit otherwise."""
        return any(self._problem.nodes[node].pools_in(PoolState.INVALID))

    def shrinks(self, node: int) -> bool:
        """Whether more usage never lets anything fit on the node that did not fit before.

        A shareable device that one generation of a pool opens is open in the others, too, without their counters being
        asked. Then more usage can help.
        """
        if node not in self._settled:
            devices = self._problem.devices
            self._settled[node] = not any(
                devices[device].shareable and devices[device].slot in self._several for device in self._on(node)
            )
        return self._settled[node]

    def has_shareable(self, node: int) -> bool:
        """Whether the node has a device that several allocations can share."""
        return any(self._problem.devices[device].shareable for device in self._on(node))

    def size(self, node: int) -> int:
        """How many devices the node has."""
        return len(self._on(node))

    def _on(self, node: int) -> tuple[int, ...]:
        if node not in self._devices:
            self._devices[node] = tuple(self._problem.nodes[node].devices())
        return self._devices[node]

    def _looks_on(self, node: int) -> list[Hashable]:
        if node not in self._looks:
            self._looks[node] = [self._problem.eligibility.device_key(device) for device in self._on(node)]
        return self._looks[node]

    def _shelf(self, kind: Hashable, alternative: Alternative, node: int) -> Shelf:
        answers = self._answers.setdefault(kind, {})
        devices, looks = self._on(node), self._looks_on(node)
        for device, look in zip(devices, looks, strict=True):
            if look not in answers:
                answers[look] = self._answer(alternative, device)
        found = [device for device, look in zip(devices, looks, strict=True) if answers[look] is not False]
        failing = [device for device, look in zip(devices, looks, strict=True) if answers[look] is None]
        problem = self._problem
        if any(problem.devices[device].nodes is not None for device in found):
            found = [device for device in found if device in failing or problem.on_node(device, node)]
        return Shelf(found, frozenset(failing))

    def _answer(self, alternative: Alternative, device: int) -> bool | None:
        """Whether devices of this look can serve alternatives of this kind; None if a selector fails on them."""
        eligibility, index = self._problem.eligibility, alternative.index
        verdict = eligibility.selects(index, device)
        if isinstance(verdict, AllocationError):
            return None
        return verdict and eligibility.charge(index, device) is not None and eligibility.admits(index, device)


def places(claims: Sequence[Claim]) -> Iterator[tuple[Place, Alternative]]:
    """Every alternative with its place, in order."""
    for number, claim in enumerate(claims):
        for position, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (number, position, choice), alternative
