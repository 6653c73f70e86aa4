"""The search for one demand on one node: depth first, the first full solution wins.

It is upstream's ``Allocate`` and ``allocateOne``, without its known defects. Claims, requests, alternatives and devices
are taken as listed; inside one request the next device is looked for behind the previous one, so that combinations are
tried and never permutations.

One defect is there on demand, for what a scheduler up to 1.36 answers: a candidate that is refused for its taints or by
a constraint leaves its counters reserved until the search of the node ends, and so does a device for several
allocations that is given back, so that partitions which would fit may not be found (kubernetes/kubernetes#140436).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Final

from dralloc.objects.errors import AllocationError, FatalError, NodeError
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    AlternativeIndex,
    Claim,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolState,
    Problem,
    Scope,
)
from dralloc.problem.solution import Grant
from dralloc.solve.first_fit.candidates import NodeCandidates
from dralloc.solve.first_fit.claim_constraints import (
    ClaimConstraints,
    Propagator,
)
from dralloc.solve.first_fit.search_ledger import SearchLedger

__all__ = ["INVALID_POOLS", "DepthFirstSearch", "nothing_on"]

INVALID_POOLS: Final = "invalid resource pools were encountered"
"""What upstream says of nodes on which it found nothing, and which have such pools."""


class _Outcome(Enum):
    FOUND = auto()
    FAILED = auto()
    TOO_MANY = auto()
    """The claim would get more than `MAX_RESULTS` devices: other devices cannot help."""


class DepthFirstSearch:
    """An attempt to allocate claims together on a node. Unless it finds a solution, the ledger stays as it was.

    ``steps`` counts what upstream counts as invocations of ``allocateOne``.

    Parameters
    ----------
    leaks
        Whether what is refused, or shared and given back, keeps its counters until the search ends.
    candidates
        The devices of the node to go through for each alternative, if others are known to be nothing for it.
    """

    def __init__(  # noqa: PLR0913 - what to search for, and where
        self,
        problem: Problem,
        ledger: SearchLedger,
        claims: Sequence[Claim],
        node: NodeIndex,
        *,
        leaks: bool = False,
        candidates: NodeCandidates | None = None,
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._claims = claims
        self._number = node
        self._node = problem.nodes[node]
        spanning: dict[Scope, Propagator] = {}
        self._constraints = [
            ClaimConstraints(claim, spanning) for claim in claims
        ]
        self._grants: list[list[Grant]] = [[] for _ in claims]
        self._all: dict[AlternativeIndex, tuple[DeviceIndex, ...]] = {}
        self._leaks = leaks
        self._listed = candidates.lists if candidates else {}
        self._leaked: list[Device] = []
        self.steps = 0

    def run(self) -> tuple[tuple[Grant, ...], ...] | None:
        """Search.

        Returns
        -------
        tuple or None
            For each claim what it gets; None if the demand does not fit on the node.

        Raises
        ------
        FatalError
            The attempt has to end for every node.
        NodeError
            It does not fit, and a pool of the node is invalid: it might have.
        """
        for claim in self._claims:
            self._prepare(claim)
        try:
            outcome = self._from_request(0, 0)
        except AllocationError:
            self._ledger.revert()
            raise
        finally:
            for device in self._leaked:
                self._ledger.reserve(device, -1)
        if outcome is _Outcome.FOUND:
            return tuple(tuple(grants) for grants in self._grants)
        nothing_on(self._node)
        return None

    @cached_property
    def _devices(self) -> tuple[DeviceIndex, ...]:
        return tuple(self._node.devices())

    # Before the search: what can be said about a claim as a whole.

    def _prepare(self, claim: Claim) -> None:
        """Find the devices that ``All`` stands for, and refuse what no node can serve, in upstream's order."""
        fewest = 0
        for request in claim.requests:
            for alternative in request.alternatives:
                if alternative.defect:
                    raise FatalError(alternative.defect)
                if alternative.count is None:
                    devices = tuple(self._all_devices(claim, alternative))
                    self._all[alternative.index] = devices
            fewest += min(map(self._count, request.alternatives))
        if fewest > MAX_RESULTS:
            raise FatalError(
                f"claim {claim.key}: number of requested devices {fewest} exceeds the claim limit of {MAX_RESULTS}"
            )
        if claim.defect:
            raise FatalError(claim.defect)

    def _all_devices(
        self, claim: Claim, alternative: Alternative
    ) -> Iterator[DeviceIndex]:
        """The devices that allocation mode ``All`` means: it must know them all, so every pool must be usable."""
        for pool in self._node.pools:
            if pool.state is not PoolState.USABLE:
                incomplete = pool.state is PoolState.INCOMPLETE
                state = "being updated" if incomplete else "invalid"
                raise FatalError(
                    f"claim {claim.key}, request {_own_name(alternative)}: "
                    f"asks for all devices, but resource pool {pool.id} is currently {state}"
                )
            for device in pool.devices:
                if not self._selectable(alternative, device):
                    continue
                if self._chargeable(alternative, device):
                    yield device

    def _count(self, alternative: Alternative) -> int:
        if alternative.count is None:
            return len(self._all[alternative.index])
        return alternative.count

    # The search itself.

    def _from_request(self, claim: int, request: int) -> _Outcome:
        """Serve this request of this claim and everything behind it."""
        self.steps += 1
        if claim == len(self._claims):
            return _Outcome.FOUND
        requests = self._claims[claim].requests
        if request == len(requests):
            outcome = self._from_request(claim + 1, 0)
            # Too many devices there says nothing about this claim: it may find other devices for others' sake.
            if outcome is _Outcome.TOO_MANY:
                return _Outcome.FAILED
            return outcome
        alternatives = requests[request].alternatives
        # Only a request with ``firstAvailable`` is one more invocation per alternative.
        if not alternatives[0].name.sub:
            return self._more_devices(claim, request, 0, taken=0, start=0)
        outcomes = set()
        for choice in range(len(alternatives)):
            self.steps += 1
            outcome = self._more_devices(
                claim, request, choice, taken=0, start=0
            )
            if outcome is _Outcome.FOUND:
                return outcome
            outcomes.add(outcome)
        if outcomes == {_Outcome.TOO_MANY}:
            return _Outcome.TOO_MANY
        return _Outcome.FAILED

    def _more_devices(
        self, claim: int, request: int, choice: int, *, taken: int, start: int
    ) -> _Outcome:
        """Serve the rest of an alternative, of which ``taken`` devices are there, and everything behind it."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        count = self._count(alternative)
        # Of no devices there is no "all": the alternative is not served.
        if alternative.count is None and not count:
            return _Outcome.FAILED
        if taken == count:
            return self._from_request(claim, request + 1)
        # Whichever devices were taken, they would be too many: none is tried.
        if len(self._grants[claim]) + count - taken > MAX_RESULTS:
            return _Outcome.TOO_MANY
        candidates = self._candidates(
            claim, request, choice, taken=taken, start=start
        )
        for position, device in candidates:
            if not self._take(claim, request, choice, device):
                continue
            self.steps += 1
            outcome = self._more_devices(
                claim, request, choice, taken=taken + 1, start=position + 1
            )
            if outcome is _Outcome.FOUND:
                return outcome
            self._give_back(claim)
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.FAILED

    def _candidates(
        self, claim: int, request: int, choice: int, *, taken: int, start: int
    ) -> Iterator[tuple[int, DeviceIndex]]:
        """Devices to try next, with the positions behind which to go on."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        if alternative.count is None:
            # The order of "all" does not matter: if one of them cannot be had, there is no solution.
            yield taken, self._all[alternative.index][taken]
            return
        listed = self._listed.get((claim, request, choice))
        devices = self._devices if listed is None else listed.devices
        for position in range(start, len(devices)):
            device = devices[position]
            # Usage first: a selector is never evaluated for a device that is in use.
            if self._ledger.in_use(
                self._problem.devices[device], alternative, claim
            ):
                continue
            if not self._selectable(alternative, device):
                continue
            if self._chargeable(alternative, device):
                yield position, device

    def _selectable(
        self, alternative: Alternative, device: DeviceIndex
    ) -> bool:
        verdict = self._problem.eligibility.selects(alternative.index, device)
        if isinstance(verdict, AllocationError):
            raise verdict
        return verdict and self._problem.on_node(device, self._number)

    def _chargeable(
        self, alternative: Alternative, device: DeviceIndex
    ) -> bool:
        charge = self._problem.eligibility.charge(alternative.index, device)
        if charge is None:
            return False
        return self._ledger.has_capacity(self._problem.devices[device], charge)

    def _take(
        self, claim: int, request: int, choice: int, device_index: DeviceIndex
    ) -> bool:
        """Take a selectable device for a claim, if nothing forbids it."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        device = self._problem.devices[device_index]
        charge = self._problem.eligibility.charge(
            alternative.index, device_index
        )
        if charge is None or self._ledger.in_use(device, alternative, claim):
            return False
        if not self._ledger.covers(device, alternative, charge):
            return False
        if not self._problem.eligibility.admits(
            alternative.index, device_index
        ):
            self._refused(device)
            return False
        if not self._constraints[claim].add(alternative.name, device):
            # A behaviour of upstream that is kept: with ``All`` this is an error.
            if alternative.count is None:
                where = f"claim {self._claims[claim].key}, request {_own_name(alternative)}"
                raise FatalError(
                    f"{where}: cannot add device {device.id} because a claim constraint would not be satisfied"
                )
            self._refused(device)
            return False
        if not self._ledger.has_capacity(device, charge):
            self._constraints[claim].remove(alternative.name)
            return False
        self._ledger.take(device_index, alternative, claim, charge)
        self._grants[claim].append(Grant(request, choice, device_index))
        return True

    def _refused(self, device: Device) -> None:
        """A device for which there are counters is not taken after all, because of taints or constraints."""
        if self._leaks and not self._ledger.is_open(device):
            self._leak(device)

    def _leak(self, device: Device) -> None:
        self._ledger.reserve(device)
        self._leaked.append(device)

    def _give_back(self, claim: int) -> None:
        grant = self._grants[claim].pop()
        self._ledger.give_back()
        request = self._claims[claim].requests[grant.request]
        alternative = request.alternatives[grant.alternative]
        self._constraints[claim].remove(alternative.name)
        device = self._problem.devices[grant.device]
        # The last share goes. Of a device for one allocation the counters are free again.
        if (
            self._leaks
            and device.shareable
            and not (alternative.admin or self._ledger.is_open(device))
        ):
            self._leak(device)


def nothing_on(node: Node) -> None:
    """Raise upstream's error for a node on which claims do not fit, if one of its pools is invalid."""
    if any(node.pools_in(PoolState.INVALID)):
        raise NodeError(INVALID_POOLS)


def _own_name(alternative: Alternative) -> str:
    """The name as upstream's messages have it: a subrequest without its request."""
    return alternative.name.sub or alternative.name.request
