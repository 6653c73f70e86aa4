"""Equal demands, and the devices of a node that may serve each of their alternatives.

Real batches ask for the same again and again. `ClaimClasses` tells which demands ask for the same, and the candidates
of a node are found once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Claim,
    DeviceIndex,
    NodeIndex,
    Problem,
    Request,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import grouped

__all__ = [
    "CandidateIndex",
    "CandidateList",
    "ClaimClass",
    "ClaimClasses",
    "NodeCandidates",
    "NodePool",
    "Place",
    "constrains_all",
    "failure",
    "places",
]

# ----------------------------------------------------------------------------
# Claim classes: what was found for a demand holds for the next of its class.


@dataclass(frozen=True, slots=True, eq=False)
class ClaimClass:
    """A class of claims: what equal demands have in common.

    Parameters
    ----------
    simple
        Whether it is one claim with one request, without constraints and without a choice of alternatives, beside what
        it may take of its node.
    asks_all
        Whether something asks for all devices of the node.
    constrains_all
        See the function of that name.
    most_devices
        The most devices that a claim can come to, not counting those that ``All`` stands for.
    """

    simple: bool
    asks_all: bool
    constrains_all: bool
    most_devices: int

    @property
    def may_ask_too_much(self) -> bool:
        """Whether the search may end with an error before it looks at any device."""
        return self.asks_all or self.most_devices > MAX_RESULTS


class ClaimClasses:
    """Tells which demands have equal claims, up to their names."""

    def __init__(self, problem: Problem) -> None:
        self._eligibility = problem.eligibility
        self._known: dict[Hashable, ClaimClass] = {}

    def of(self, claims: Sequence[Claim]) -> ClaimClass | None:
        """The class of these claims together; None if one of them has a defect, which is its own."""
        keys = []
        for claim in claims:
            if claim.is_defective:
                return None
            keys.append(claim_key(self._eligibility, claim))
        key = tuple(keys)
        claim_class = self._known.get(key)
        if claim_class is None:
            claim_class = self._known[key] = _describe(claims)
        return claim_class


def _describe(claims: Sequence[Claim]) -> ClaimClass:
    alternatives: list[Alternative] = []
    for claim in claims:
        alternatives += claim.alternatives()
    device_claims = [claim for claim in claims if not claim.is_synthetic]
    one_request = len(device_claims) == 1 and len(claims) == len(alternatives)
    most_devices = (sum(map(_most_devices, claim.requests)) for claim in claims)
    return ClaimClass(
        simple=one_request
        and not device_claims[0].constraints
        # A claim for the node comes first, so the last alternative is the request's.
        and 0 < (alternatives[-1].count or 0) <= MAX_RESULTS,
        asks_all=any(alternative.count is None for alternative in alternatives),
        constrains_all=constrains_all(claims),
        most_devices=max(most_devices, default=0),
    )


def constrains_all(claims: Iterable[Claim]) -> bool:
    """Whether a constraint covers a request for all devices; a device that violates it is a fatal error."""
    for claim in claims:
        names = [
            alternative.name
            for alternative in claim.alternatives()
            if alternative.count is None
        ]
        for constraint in claim.constraints:
            if any(map(constraint.covers, names)):
                return True
    return False


def _most_devices(request: Request) -> int:
    counts = (alternative.count or 0 for alternative in request.alternatives)
    return max(counts, default=0)


# ----------------------------------------------------------------------------
# Candidates: the devices of a node that may serve each alternative.

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

    devices: Sequence[DeviceIndex]
    failing: frozenset[DeviceIndex]
    start: int = 0


@dataclass(slots=True)
class NodeCandidates:
    """The candidates of a node for one class of demands. What asks for all devices has no list."""

    node: NodeIndex
    lists: dict[Place, CandidateList] = field(default_factory=dict)


_Positions = tuple[Sequence[int], Sequence[int]]


class PoolKind(NamedTuple):
    """A class of pools, whose devices have equal keys, one after the other.

    Parameters
    ----------
    number
        Its own among all kinds.
    positions
        Where the devices of each key are.
    """

    number: int
    positions: Mapping[Hashable, Sequence[int]]


class NodePool(NamedTuple):
    """The devices of a pool on a node.

    Parameters
    ----------
    partly
        Whether some of them may be for some of its nodes only.
    shared
        Whether some of them are for several demands at once.
    """

    devices: tuple[DeviceIndex, ...]
    kind: PoolKind
    partly: bool
    shared: bool


class CandidateIndex:
    """Finds candidates. Answers are kept by the canonical keys of alternatives and devices.

    Parameters
    ----------
    tainted
        Whether devices count that selectors accept and that are refused for their taints.
    """

    def __init__(self, problem: Problem, *, tainted: bool = False) -> None:
        self._problem = problem
        self._tainted = tainted
        self._answers: dict[Hashable, dict[Hashable, bool | None]] = (
            defaultdict(dict)
        )
        self._settled: dict[int, bool] = {}
        self._several = problem.several_versions
        self._kinds: dict[Hashable, PoolKind] = {}
        self._pool_of_kind: list[NodePool] = []
        self._on = cache(lambda node: tuple(problem.nodes[node].devices()))
        self._pools: dict[NodeIndex, list[NodePool]] = {}
        self._positions: dict[tuple[Hashable, int], _Positions] = {}

    def pools(self, node: NodeIndex) -> list[NodePool]:
        """Return the pools of the node, in order."""
        if node not in self._pools:
            self._pools[node] = [
                self._view(pool.devices)
                for pool in self._problem.nodes[node].pools
            ]
        return self._pools[node]

    def on(self, claims: Sequence[Claim], node: NodeIndex) -> NodeCandidates:
        """The candidates of the node for these claims; equal alternatives share a list."""
        candidates = NodeCandidates(node)
        lists: dict[Hashable, CandidateList] = {}
        for location, alternative in places(claims):
            if claims[location[0]].is_synthetic:
                candidates.lists[location] = CandidateList(
                    self.of_node(node), frozenset()
                )
            elif alternative.count is not None:
                key = self._problem.eligibility.request_key(alternative.index)
                if key not in lists:
                    lists[key] = self._list(alternative, node)
                candidates.lists[location] = lists[key]
        return candidates

    def of_node(self, node: NodeIndex) -> Sequence[DeviceIndex]:
        """The device that stands for the node: the only one that node claims can have, and for them alone."""
        return [
            device
            for pool in self._problem.nodes[node].pools
            if pool.is_of_node
            for device in pool.devices
        ]

    def shrinks(self, node: NodeIndex) -> bool:
        """Whether more usage never lets anything fit on the node that did not fit before.

        A shareable device that one generation of a pool opens is open in the others, too, without their counters being
        asked. Then more usage can help.
        """
        if node not in self._settled:
            devices = self._problem.devices
            self._settled[node] = not any(
                devices[device].shareable
                and devices[device].slot in self._several
                for device in self._on(node)
            )
        return self._settled[node]

    def has_shareable(self, node: NodeIndex) -> bool:
        """Whether the node has a device that several allocations can share."""
        return any(
            self._problem.devices[device].shareable for device in self._on(node)
        )

    def size(self, node: NodeIndex) -> int:
        """Return the number of devices of the node."""
        return len(self._on(node))

    def serves(
        self, alternative: Alternative, device: DeviceIndex
    ) -> bool | None:
        """Whether the device may serve the alternative, whatever is in use; None if a selector fails on it."""
        eligibility = self._problem.eligibility
        answers = self._answers[eligibility.request_key(alternative.index)]
        key = eligibility.device_key(device)
        if key not in answers:
            answers[key] = self._ask(alternative, device)
        return answers[key]

    def _list(self, alternative: Alternative, node: NodeIndex) -> CandidateList:
        candidates: list[DeviceIndex] = []
        failing: list[DeviceIndex] = []
        for pool in self.pools(node):
            serving, failed = self._positions_in(pool, alternative)
            failing += [pool.devices[position] for position in failed]
            devices = [pool.devices[position] for position in serving]
            if pool.partly:
                # A selector fails before the search asks whether the device is for the
                # node.
                devices = [
                    device
                    for device in devices
                    if device in failing or self._problem.on_node(device, node)
                ]
            candidates += devices
        return CandidateList(candidates, frozenset(failing))

    @property
    def kinds(self) -> Sequence[NodePool]:
        """A pool of each kind among those that were looked at, by number."""
        return self._pool_of_kind

    def count(
        self, pool: NodePool, alternative: Alternative
    ) -> tuple[int, int]:
        """Return the number of devices of a pool that may serve the alternative or fail, and the number that fail."""
        serving, failing = self._positions_in(pool, alternative)
        return len(serving), len(failing)

    def _positions_in(
        self, pool: NodePool, alternative: Alternative
    ) -> _Positions:
        """The devices of a pool, by position, that may serve the alternative or fail, and those that fail."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            pool.kind.number,
        )
        if key not in self._positions:
            serving: list[int] = []
            failing: list[int] = []
            for positions in pool.kind.positions.values():
                # The first stands for all devices with its key.
                answer = self.serves(alternative, pool.devices[positions[0]])
                if answer is not False:
                    serving += positions
                if answer is None:
                    failing += positions
            self._positions[key] = sorted(serving), sorted(failing)
        return self._positions[key]

    def _view(self, devices: tuple[DeviceIndex, ...]) -> NodePool:
        keys = tuple(
            [self._problem.eligibility.device_key(device) for device in devices]
        )
        kind = self._kinds.get(keys)
        if kind is None:
            positions = grouped(
                (key, position) for position, key in enumerate(keys)
            )
            kind = self._kinds[keys] = PoolKind(len(self._kinds), positions)
        views = [self._problem.devices[device] for device in devices]
        partly = any(view.nodes is not None for view in views)
        shared = any(view.shareable for view in views)
        pool = NodePool(devices, kind, partly, shared)
        if kind.number == len(self._pool_of_kind):
            self._pool_of_kind.append(pool)
        return pool

    def _ask(
        self, alternative: Alternative, device: DeviceIndex
    ) -> bool | None:
        eligibility, index = self._problem.eligibility, alternative.index
        verdict = eligibility.selects(index, device)
        if isinstance(verdict, AllocationError):
            return None
        if not verdict or eligibility.charge(index, device) is None:
            return False
        return self._tainted or eligibility.admits(index, device)


def failure(
    problem: Problem, alternative: Alternative, device: DeviceIndex
) -> AllocationError:
    """Why a selector fails on a device."""
    verdict = problem.eligibility.selects(alternative.index, device)
    assert isinstance(verdict, AllocationError)
    return verdict


def places(claims: Sequence[Claim]) -> Iterator[tuple[Place, Alternative]]:
    """Every alternative with its place, in order."""
    for claim_index, claim in enumerate(claims):
        for request_index, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (claim_index, request_index, choice), alternative
