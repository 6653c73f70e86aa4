"""The devices of a node that may serve each alternative, found once for equal alternatives and devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from dralloc.errors import AllocationError
from dralloc.problem import Alternative, Claim, Problem

__all__ = ["CandidateIndex", "CandidateList", "NodeCandidates", "Place", "failure", "places"]

Place = tuple[int, int, int]
"""Indices of a claim of the demand, of its request, and of the alternative."""


@dataclass(slots=True)
class CandidateList:
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
class NodeCandidates:
    """The candidates of a node for one class of demands. What asks for all devices has no list."""

    node: int
    lists: dict[Place, CandidateList] = field(default_factory=dict)


_Positions = tuple[Sequence[int], Sequence[int]]


class _PoolView(NamedTuple):
    """The devices of a pool on a node; ``partly``: some of them may be for some of its nodes only.

    Pools with equal numbers have devices with equal keys, one after the other.
    """

    devices: tuple[int, ...]
    number: int
    partly: bool


class CandidateIndex:
    """Finds candidates. Answers are kept by the canonical keys of alternatives and devices."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._answers: dict[Hashable, dict[Hashable, bool | None]] = defaultdict(dict)
        self._settled: dict[int, bool] = {}
        self._several = problem.several_versions
        numbers: dict[Hashable, int] = {}
        self._on = cache(lambda node: tuple(problem.nodes[node].devices()))
        self._pools = cache(lambda node: [_view(problem, numbers, pool.devices) for pool in problem.nodes[node].pools])
        self._positions: dict[tuple[Hashable, int], _Positions] = {}

    def on(self, claims: Sequence[Claim], node: int) -> NodeCandidates:
        """The candidates of the node for these claims; equal alternatives share a list."""
        candidates = NodeCandidates(node)
        lists: dict[Hashable, CandidateList] = {}
        for place, alternative in places(claims):
            if alternative.count is not None:
                key = self._problem.eligibility.request_key(alternative.index)
                if key not in lists:
                    lists[key] = self._list(alternative, node)
                candidates.lists[place] = lists[key]
        return candidates

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

    def serves(self, alternative: Alternative, device: int) -> bool | None:
        """Whether the device may serve the alternative, whatever is in use; None if a selector fails on it."""
        eligibility = self._problem.eligibility
        answers, key = self._answers[eligibility.request_key(alternative.index)], eligibility.device_key(device)
        if key not in answers:
            answers[key] = self._ask(alternative, device)
        return answers[key]

    def _list(self, alternative: Alternative, node: int) -> CandidateList:
        found: list[int] = []
        failing: list[int] = []
        for pool in self._pools(node):
            serving, failed = self._positions_in(pool, alternative)
            failing += [pool.devices[position] for position in failed]
            here = [pool.devices[position] for position in serving]
            if pool.partly:
                here = [device for device in here if device in failing or self._problem.on_node(device, node)]
            found += here
        return CandidateList(found, frozenset(failing))

    def _positions_in(self, pool: _PoolView, alternative: Alternative) -> _Positions:
        """The devices of a pool, by position, that may serve the alternative or fail, and those that fail."""
        key = self._problem.eligibility.request_key(alternative.index), pool.number
        known = self._positions.get(key)
        if known is None:
            answers = [self.serves(alternative, device) for device in pool.devices]
            serving = [position for position, answer in enumerate(answers) if answer is not False]
            known = serving, [position for position in serving if answers[position] is None]
            self._positions[key] = known
        return known

    def _ask(self, alternative: Alternative, device: int) -> bool | None:
        eligibility, index = self._problem.eligibility, alternative.index
        verdict = eligibility.selects(index, device)
        if isinstance(verdict, AllocationError):
            return None
        return verdict and eligibility.charge(index, device) is not None and eligibility.admits(index, device)


def _view(problem: Problem, numbers: dict[Hashable, int], devices: tuple[int, ...]) -> _PoolView:
    keys = tuple([problem.eligibility.device_key(device) for device in devices])
    partly = any(problem.devices[device].nodes is not None for device in devices)
    return _PoolView(devices, numbers.setdefault(keys, len(numbers)), partly)


def failure(problem: Problem, alternative: Alternative, device: int) -> AllocationError:
    """Why a selector fails on a device."""
    verdict = problem.eligibility.selects(alternative.index, device)
    assert isinstance(verdict, AllocationError)
    return verdict


def places(claims: Sequence[Claim]) -> Iterator[tuple[Place, Alternative]]:
    """Every alternative with its place, in order."""
    for number, claim in enumerate(claims):
        for position, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (number, position, choice), alternative
