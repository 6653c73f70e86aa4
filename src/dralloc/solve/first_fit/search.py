"""The search for one demand on one node: depth first, the first full solution wins.

Source: upstream's ``Allocate`` and ``allocateOne``, without its known defects. Requests are taken as listed,
alternatives as listed, devices in search order; inside one request the next device is looked for behind the previous
one, so that combinations are tried and never permutations.

One defect is there on demand, for what a scheduler up to 1.36 answers: a candidate that is refused for its taints or by
a constraint leaves its counters reserved until the search of the node ends, so that partitions which would fit may not
be found (kubernetes/kubernetes#140436).
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
    Claim,
    Device,
    Node,
    PoolState,
    Problem,
    Scope,
)
from dralloc.problem.solution import Grant
from dralloc.solve.first_fit.candidates import NodeCandidates
from dralloc.solve.first_fit.constraints import ClaimConstraints, Propagator
from dralloc.solve.first_fit.ledger import SearchLedger

__all__ = ["INVALID_POOLS", "DepthFirstSearch", "nothing_on"]

INVALID_POOLS: Final = "invalid resource pools were encountered"
"""What upstream says of nodes on which it found nothing, and which have such pools."""


class _Outcome(Enum):
    FOUND = auto()
    FAILED = auto()
    TOO_MANY = auto()
    """The claim would get more than `MAX_RESULTS` devices: other devices cannot help."""


class DepthFirstSearch:
    """One attempt to allocate claims together on a node. The ledger is left as it was unless a solution is found.

    ``steps`` counts what upstream counts as invocations of ``allocateOne``.

    Parameters
    ----------
    leaks
        Whether what is refused keeps its counters until the search ends.
    candidates
        The devices of the node to go through for each alternative, if others are known to be nothing for it.
    """

    def __init__(  # noqa: PLR0913 - what to search for, and where
        self,
        problem: Problem,
        ledger: SearchLedger,
        claims: Sequence[Claim],
        node: int,
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
        self._constraints = [ClaimConstraints(claim, spanning) for claim in claims]
        self._grants: list[list[Grant]] = [[] for _ in claims]
        self._all: dict[int, tuple[int, ...]] = {}
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
    def _devices(self) -> tuple[int, ...]:
        return tuple(self._node.devices())

    # Before the search: what can be said about a claim as a whole.

    def _prepare(self, claim: Claim) -> None:
        least = 0
        for request in claim.requests:
            for alternative in request.alternatives:
                if alternative.defect:
                    raise FatalError(alternative.defect)
                if alternative.count is None:
                    self._all[alternative.index] = tuple(
                        self._all_devices(claim, alternative)
                    )
            least += min(
                self._count(alternative) for alternative in request.alternatives
            )
        if least > MAX_RESULTS:
            raise FatalError(
                f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )
        if claim.defect:
            raise FatalError(claim.defect)

    def _all_devices(self, claim: Claim, alternative: Alternative) -> Iterator[int]:
        """The devices that allocation mode ``All`` means: it must know them all, so every pool must be usable."""
        for pool in self._node.pools:
            if pool.state is not PoolState.USABLE:
                state = (
                    "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                )
                raise FatalError(
                    f"claim {claim.key}, request {_own_name(alternative)}: "
                    f"asks for all devices, but resource pool {pool.id} is currently {state}"
                )
            for device in pool.devices:
                if self._selectable(alternative, device) and self._chargeable(
                    alternative, device
                ):
                    yield device

    def _count(self, alternative: Alternative) -> int:
        return (
            len(self._all[alternative.index])
            if alternative.count is None
            else alternative.count
        )

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
            return _Outcome.FAILED if outcome is _Outcome.TOO_MANY else outcome
        alternatives = requests[request].alternatives
        if not alternatives[0].name.sub:
            return self._more_devices(claim, request, 0, taken=0, start=0)
        outcomes = set()
        for choice in range(len(alternatives)):
            self.steps += 1
            outcome = self._more_devices(claim, request, choice, taken=0, start=0)
            if outcome is _Outcome.FOUND:
                return outcome
            outcomes.add(outcome)
        return _Outcome.TOO_MANY if outcomes == {_Outcome.TOO_MANY} else _Outcome.FAILED

    def _more_devices(
        self, claim: int, request: int, choice: int, *, taken: int, start: int
    ) -> _Outcome:
        """Serve the rest of an alternative, of which ``taken`` devices are there, and everything behind it."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        count = self._count(alternative)
        if alternative.count is None and not count:
            return _Outcome.FAILED
        if taken == count:
            return self._from_request(claim, request + 1)
        if len(self._grants[claim]) + count - taken > MAX_RESULTS:
            return _Outcome.TOO_MANY
        for position, device in self._candidates(
            claim, request, choice, taken=taken, start=start
        ):
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
    ) -> Iterator[tuple[int, int]]:
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
            if (
                not self._ledger.in_use(
                    self._problem.devices[device], alternative, claim
                )
                and self._selectable(alternative, device)
                and self._chargeable(alternative, device)
            ):
                yield position, device

    def _selectable(self, alternative: Alternative, device: int) -> bool:
        verdict = self._problem.eligibility.selects(alternative.index, device)
        if isinstance(verdict, AllocationError):
            raise verdict
        return verdict and self._problem.on_node(device, self._number)

    def _chargeable(self, alternative: Alternative, device: int) -> bool:
        charge = self._problem.eligibility.charge(alternative.index, device)
        return charge is not None and self._ledger.has_capacity(
            self._problem.devices[device], charge
        )

    def _take(self, claim: int, request: int, choice: int, number: int) -> bool:
        """Take a selectable device for a claim, if nothing forbids it."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        device = self._problem.devices[number]
        charge = self._problem.eligibility.charge(alternative.index, number)
        if (
            charge is None
            or self._ledger.in_use(device, alternative, claim)
            or not self._ledger.covers(device, alternative, charge)
        ):
            return False
        if not self._problem.eligibility.admits(alternative.index, number):
            self._refused(device)
            return False
        if not self._constraints[claim].add(alternative.name, device):
            if alternative.count is None:
                raise FatalError(
                    f"claim {self._claims[claim].key}, request {_own_name(alternative)}: cannot add device {device.id} "
                    "because a claim constraint would not be satisfied"
                )
            self._refused(device)
            return False
        if not self._ledger.has_capacity(device, charge):
            self._constraints[claim].remove(alternative.name)
            return False
        self._ledger.take(number, alternative, claim, charge)
        self._grants[claim].append(Grant(request, choice, number))
        return True

    def _refused(self, device: Device) -> None:
        """A device for which there are counters is not taken after all, because of taints or constraints."""
        if self._leaks and not self._ledger.is_open(device):
            self._ledger.reserve(device)
            self._leaked.append(device)

    def _give_back(self, claim: int) -> None:
        grant = self._grants[claim].pop()
        self._ledger.give_back()
        self._constraints[claim].remove(
            self._claims[claim]
            .requests[grant.request]
            .alternatives[grant.alternative]
            .name
        )


def nothing_on(node: Node) -> None:
    """What it means that claims do not fit on a node: an error if one of its pools is invalid, as they might have."""
    if any(node.pools_in(PoolState.INVALID)):
        raise NodeError(INVALID_POOLS)


def _own_name(alternative: Alternative) -> str:
    """The name as upstream's messages have it: a subrequest without its request."""
    return alternative.name.sub or alternative.name.request
