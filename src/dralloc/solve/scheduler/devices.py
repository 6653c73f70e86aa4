"""The devices of the nodes while pods are scheduled: pods are bound, taken back, and supposed to leave."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.pods import PodInfo
from dralloc.objects.api import ResourceClaim
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Claim,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    SlotIndex,
)
from dralloc.problem.indices import grouped
from dralloc.problem.ledger import Holding, Ledger
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.scheduler.claim_search import (
    AnswersByNode,
    ClaimSearch,
    NodeAnswers,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.pod_claims import GrantsByClaim, OpenClaims

__all__ = ["Devices", "Nomination"]

_RECENT: Final = 1000
"""For so many pods it is kept what was known before they were bound. Groups are tried out and taken back."""


@dataclass(frozen=True)
class Nomination:
    """A pod that is to come to a node once others have left (``status.nominatedNodeName``), and what is kept for it.

    Source: KEP-5690, "Claim nomination".

    Parameters
    ----------
    pod
        With what its devices take of the node.
    victims
        Who has to leave.
    released
        The claims that are free then.
    promised
        What its own claims hold then.
    """

    pod: PodInfo
    node: NodeInfo
    victims: Sequence[PodInfo]
    released: Sequence[ClaimKey]
    promised: Sequence[Holding]


class _Bound(NamedTuple):
    """The record of a pod that was bound: what was entered, what was told of it, and what was untold of its claims."""

    users: Sequence[tuple[ClaimKey, tuple[str, str]]]
    placement: Placement | None = None
    told: Sequence[Placement] = ()
    untold: Mapping[ClaimKey, tuple[Grant, ...]] = MappingProxyType({})


class Devices(ClaimSearch):
    """First fit's ledger, in which pods are bound one after the other.

    Parameters
    ----------
    leaks_counters
        See `dralloc.solve.scheduler.release.Release`.
    """

    def __init__(
        self, compiled: CompiledCluster, *, leaks_counters: bool = True
    ) -> None:
        super().__init__(compiled, leaks_counters=leaks_counters)
        self._compiled = compiled
        self._untold: dict[ClaimKey, tuple[Grant, ...]] = {}
        self._bound: dict[ClaimKey, _Bound] = {}
        self._recent: dict[ClaimKey, tuple[AnswersByNode, AnswersByNode]] = {}
        # Claims that are free by supposition.
        self._supposed: set[ClaimKey] = set()
        # Claims from before whose users have been evicted.
        self._given_up: set[ClaimKey] = set()

    def bind(
        self,
        pod: PodInfo,
        node: NodeInfo,
        nominations: Sequence[Nomination] = (),
        planned: GrantsByClaim | None = None,
    ) -> tuple[PodInfo, Set[NodeIndex]]:
        """Give the pod's open claims what `find` finds; they fit. It is placed if all that it asks for are devices.

        What is kept for pods that are nominated for the node is not given to it. Returns the pod with what its devices
        take of the node, and the indices of the nodes that can see these.

        Parameters
        ----------
        planned
            What the claims get instead, which is free (see `are_free`): the allocator is not asked.
        """
        using = [
            (key, self._cluster.consumer(pod.key, key))
            for key in self._cluster.claims_of_pods[pod.key]
        ]
        new = [
            (key, user) for key, user in using if user not in self._users[key]
        ]
        for key, user in new:
            self._users[key].add(user)
        demand = self._demands.get(pod.key)
        # Nothing is to be allocated for the pod: it only becomes a user of its claims.
        if demand is None:
            self._bound[pod.key] = _Bound(new)
            return self.footprints.entered(pod, self.granted({})), set()
        open_claims = self.wanted(pod)(node)
        if planned is None:
            planned = self._found(open_claims, node, nominations)
        claims = open_claims.whole
        grants_by_claim = {claim.key: planned[claim.key] for claim in claims}
        pod = self.footprints.entered(pod, self.granted(grants_by_claim))
        grants = tuple(grants_by_claim.values())
        self._take(claims, grants)
        self._settle(demand, node.number, claims, grants)
        # `_settle` entered a placement of all that the pod got. It is entered anew, unless a device plugin serves some
        # of it.
        placement = self.placements.pop()
        keys = [claim.key for claim in self._problem.demands[demand].claims]
        # Noted before `_told` changes it, for `release` to put it back.
        untold = {key: self._untold.get(key, ()) for key in keys}
        told = tuple(self._told(placement))
        self.placements += told
        seeing = self._seeing(placement)
        self._bound[pod.key] = _Bound(new, placement, told, untold)
        self._outdate(pod.key, seeing)
        return pod, seeing

    def _found(
        self,
        open_claims: OpenClaims,
        node: NodeInfo,
        nominations: Sequence[Nomination],
    ) -> GrantsByClaim:
        """Return what `find` finds beside what is kept for nominated pods; the claims fit."""
        if not open_claims.claims:
            return {}
        with self.beside(nominations):
            grants = self.find(open_claims, node)
        assert grants is not None
        return open_claims.granting(grants)

    def are_free(
        self, pod: PodInfo, node: NodeInfo, planned: GrantsByClaim
    ) -> bool:
        """Whether the pod's open claims could get these devices on the node, and no other claim gets any."""
        claims, _, whole = self.wanted(pod)(node)
        # A plan serves all requests of a claim, also those that are none here beside a device plugin.
        if claims != whole:
            return False
        keys = {claim.key for claim in claims}
        if keys - planned.keys() or any(
            grants for key, grants in planned.items() if key not in keys
        ):
            return False
        answer = tuple([planned[claim.key] for claim in claims])
        return self._is_free(claims, answer)

    def placement_of(self, key: ClaimKey) -> Placement | None:
        """Return what a pod that was bound got; None if it asks for no device."""
        return self._bound[key].placement

    def _outdate(self, key: ClaimKey, seeing: Iterable[int]) -> None:
        """A pod has taken something on some nodes; what was known of them before is kept for some time."""
        before: AnswersByNode = {}
        after: AnswersByNode = {}
        for node in seeing:
            before[node] = self._answers[node]
            after[node] = before[node].with_more_in_use()
        self._answers.update(after)
        self._recent[key] = before, after
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]

    def release(self, pod: PodInfo) -> Set[NodeIndex]:
        """Take back what a pod that was bound got; returns the nodes that `bind` did."""
        bound = self._bound.pop(pod.key)
        for key, user in bound.users:
            self._users[key].discard(user)
        if bound.placement is None:
            return set()
        for placement in bound.told:
            del self.placements[_last(self.placements, placement)]
        for key, grants in bound.untold.items():
            if grants:
                self._untold[key] = grants
            else:
                self._untold.pop(key, None)
        self._release(bound.placement)
        seeing = self._seeing(bound.placement)
        before, after = self._recent.pop(pod.key, ({}, {}))
        for node in seeing:
            # Who was bound last leaves the node as it was.
            is_last = self._answers[node] is after.get(node)
            self._reopen(node, before[node] if is_last else NodeAnswers())
        return seeing

    def _seeing(self, placement: Placement) -> Set[NodeIndex]:
        """The nodes that can see the devices of a placement."""
        nodes: set[NodeIndex] = set()
        for grants in placement.grants:
            for grant in grants:
                nodes |= self._nodes_of(grant.device)
        return nodes

    def _told(self, placement: Placement) -> Iterator[Placement]:
        """The placement, unless a device plugin serves some of it: then who shares its claims next tells of them."""
        claims = self._problem.demands[placement.demand].claims
        is_whole = all(map(_is_whole, claims, placement.grants))
        if is_whole and all(placement.grants):
            yield placement
            return
        keys = [claim.key for claim in claims]
        granted = dict(zip(keys, placement.grants, strict=True))
        if is_whole and self._allocated.keys() >= granted.keys():
            grants = tuple(
                grants or self._untold.pop(key, ())
                for key, grants in granted.items()
            )
            yield replace(placement, grants=grants)
        else:
            self._untold.update(
                (key, grants) for key, grants in granted.items() if grants
            )

    # Preemption: what pods hold that could leave, and what is kept for those that wait
    # for that. Source: KEP-5690, "Proposal" and "Claim nomination".

    @property
    def frees_victims(self) -> bool:
        """Whether preemption supposes that the devices of whoever is evicted are free."""
        return self._problem.features.Preemption

    def released(
        self, victims: Iterable[PodInfo], newcomer: PodInfo
    ) -> list[ClaimKey]:
        """Return the claims that are free for a newcomer without some pods.

        Nobody else uses them, and all of their devices belong to a node by its name: neither to nodes by a selector nor
        to all of them. Pods of PodGroups free nothing, and for them nothing is freed (these go through workload-aware
        preemption). The newcomer's own claims stay what they are.
        """
        if not self.frees_victims or self._is_grouped(newcomer.key):
            return []
        leaving = [pod.key for pod in victims if not self._is_grouped(pod.key)]
        claims_of_pods = self._cluster.claims_of_pods
        candidates = dict.fromkeys(
            key for pod in leaving for key in claims_of_pods[pod]
        )
        users = {(pod.namespace, ("pods", pod.name)) for pod in leaving}
        return [
            key
            for key in candidates
            if key not in claims_of_pods[newcomer.key]
            and self._is_released(key, users)
        ]

    def _is_grouped(self, key: ClaimKey) -> bool:
        """Whether a pod is in a group of which the scheduler knows."""
        if not self._problem.features.GenericWorkload:
            return False
        return self._cluster.pods_by_key[key].pod_group is not None

    def _is_released(
        self, key: ClaimKey, leaving: Set[tuple[str, tuple[str, str]]]
    ) -> bool:
        """Whether nobody uses an allocated claim of a node once some users of claims have left."""
        claim = self._cluster.claim(key)
        if claim is None or not self.is_allocated(claim):
            return False
        # What it held is free already.
        if key in self._given_up:
            return False
        running = self._running_users.get(key, set())
        users = self._users_of(claim) | running - self._gone(key.namespace)
        if any((key.namespace, user) not in leaving for user in users):
            return False
        return all(map(self._is_of_node, self._devices_of(claim)))

    @cached_property
    def _running_users(self) -> Mapping[ClaimKey, set[tuple[str, str]]]:
        """Who uses each claim of the pods that had a node before, whether the claim says so or not."""
        users: dict[ClaimKey, set[tuple[str, str]]] = defaultdict(set)
        for pod in self._cluster.pods:
            for key in self._cluster.claims_of_pods[pod.key]:
                if pod.spec.node_name:
                    users[key].add(self._cluster.consumer(pod.key, key))
        return users

    def _devices_of(self, claim: ResourceClaim) -> list[DeviceIndex | None]:
        """The devices of an allocated claim; None for one that is not published any more."""
        if claim.status.allocation is None:
            _, grants = self._allocated[claim.key]
            return [grant.device for grant in grants]
        newest = self._compiled.inventory.newest
        return [newest(result.device_id) for result in claim.results]

    def _is_of_node(self, device: DeviceIndex | None) -> bool:
        """Whether a device names the one node that it belongs to."""
        if device is None:
            return False
        source = self._compiled.inventory.sources[device]
        return bool(source.slice.spec.node_name or source.device.node_name)

    @contextmanager
    def supposing(self, released: Iterable[ClaimKey]) -> Iterator[None]:
        """What some claims hold is free as long as this lasts."""
        claims = self._not_supposed(released)
        if not claims:
            yield
            return
        self._supposed.update(claims)
        self._suppositions += 1
        self._revoke(claims)
        try:
            yield
        finally:
            for holding in self._holdings(claims):
                self._enter(holding)
            self._suppositions -= 1
            self._supposed.difference_update(claims)

    def _not_supposed(self, released: Iterable[ClaimKey]) -> list[ClaimKey]:
        """Return the claims of which nobody supposes yet that they are released."""
        return [key for key in released if key not in self._supposed]

    def give_up(
        self, claims: Iterable[ClaimKey], victims: Iterable[PodInfo]
    ) -> Sequence[ClaimKey]:
        """What claims from before hold is free from now on: whoever used them is evicted. Returns these claims.

        Victims from before use no other claim any more, either; those that were bound since are taken off by `release`.
        """
        pods = self._cluster.pods_by_key
        self._evicted.update(
            pod.key for pod in victims if pods[pod.key].spec.node_name
        )
        from_before = [key for key in claims if key not in self._allocated]
        self._revoke(from_before)
        self._given_up.update(from_before)
        self._ask_again_about(from_before)
        return from_before

    def take_up(
        self, claims: Sequence[ClaimKey], victims: Iterable[PodInfo]
    ) -> None:
        """What claims hold that were given up is in use again: nobody is evicted after all."""
        self._evicted.difference_update(pod.key for pod in victims)
        for holding in self._holdings(claims):
            self._enter(holding)
        self._given_up.difference_update(claims)
        self._ask_again_about(claims)

    def beside_given_up(self, problem: Problem) -> Problem:
        """Return a problem with these devices as it would be if claims that were given up had never held anything."""
        if not self._given_up:
            return problem
        ledger = Ledger(problem)
        self._revoke_from(ledger, self._given_up)
        return ledger.applied()

    def _ask_again_about(self, claims: Iterable[ClaimKey]) -> None:
        """Forget what is known of the nodes that see devices of claims."""
        for node in self.seeing(claims):
            self._reopen(node, NodeAnswers())

    def seeing(self, claims: Iterable[ClaimKey]) -> Set[NodeIndex]:
        """Return the nodes that see the pools of devices that allocated claims have, and so share their counters."""
        nodes: set[NodeIndex] = set()
        for key in claims:
            claim = self._cluster.claim(key)
            assert claim is not None
            for device in self._devices_of(claim):
                if device is not None:
                    nodes |= self._nodes_of(device)
        return nodes

    def promise(
        self, pod: PodInfo, node: NodeInfo
    ) -> tuple[PodInfo, Sequence[Holding]]:
        """Return the pod with what it takes of a node that is feasible for it, and what it would hold there."""
        open_claims = self.wanted(pod)(node)
        grants_by_claim = self._found(open_claims, node, ())
        holdings: list[Holding] = []
        for claim in open_claims.whole:
            holdings += self._holdings_for(claim, grants_by_claim[claim.key])
        return self.footprints.entered(
            pod, self.granted(grants_by_claim)
        ), holdings

    @contextmanager
    def beside(self, nominations: Sequence[Nomination]) -> Iterator[None]:
        """What is kept for nominated pods is in use as long as this lasts, as what their victims still have is.

        Of a capacity or counter the larger amount counts: what victims hold of it, or what is kept. Upstream asks for
        these two states one after the other, and gives what it finds in the second of them.
        """
        if not any(nomination.promised for nomination in nominations):
            yield
            return
        # Several pods can wait for the same victim, whose claims are given back once.
        released = dict.fromkeys(
            chain.from_iterable(
                nomination.released for nomination in nominations
            )
        )
        leaving = self._not_supposed(released)
        promised = tuple(
            chain.from_iterable(
                nomination.promised for nomination in nominations
            )
        )
        # Noted before anything changes: `tighten` compares with it, and `restore` goes back to it.
        before = self._ledger.note([*self._holdings(leaving), *promised])
        # First the state once the victims have left: what they hold is free, and what is promised is in use.
        self._revoke(leaving)
        for holding in promised:
            self._enter(holding)
        # What is in use as long as they are there counts as well.
        self._ledger.tighten(before)
        self._suppositions += 1
        try:
            yield
        finally:
            self._ledger.restore(before)
            self._suppositions -= 1

    def _revoke(self, claims: Iterable[ClaimKey]) -> None:
        self._revoke_from(self._ledger, claims)

    def _revoke_from(self, ledger: Ledger, claims: Iterable[ClaimKey]) -> None:
        for holding in self._holdings(claims):
            device = self._device_at(holding.slot)
            if self._dedicated[holding.slot] > 1 and not holding.share:
                # Two claims hold one dedicated device: it stays in use.
                ledger.consume(device, holding.charge, -1)
            else:
                ledger.revoke(device, holding.charge, share=holding.share)

    def _enter(self, holding: Holding) -> None:
        device = self._device_at(holding.slot)
        if self._dedicated[holding.slot] > 1 and not holding.share:
            self._ledger.consume(device, holding.charge, 1)
        else:
            self._ledger.enter(device, holding.charge, share=holding.share)

    def _device_at(self, slot: SlotIndex) -> Device:
        return self._problem.devices[self._problem.versions[slot][0]]

    def _holdings(self, claims: Iterable[ClaimKey]) -> Iterator[Holding]:
        """Yield what claims hold, from before or from this run."""
        for key in claims:
            if key in self._allocated:
                _, grants = self._allocated[key]
                yield from self._holdings_for(self._pending[key], grants)
            else:
                yield from self._held_before.get(key, ())

    def _holdings_for(
        self, claim: Claim, grants: Iterable[Grant]
    ) -> Iterator[Holding]:
        """Yield what grants of this run hold; with admin access that is nothing."""
        for grant in grants:
            request = claim.requests[grant.request]
            alternative = request.alternatives[grant.alternative]
            device = self._problem.devices[grant.device]
            charge = self._charge(alternative, grant.device)
            if not alternative.admin:
                yield Holding(claim.key, device.slot, device.shareable, charge)

    @cached_property
    def _held_before(self) -> Mapping[ClaimKey, Sequence[Holding]]:
        """The holdings of each claim that was allocated before the run."""
        return grouped(
            (holding.claim, holding) for holding in self._compiled.holdings
        )

    @cached_property
    def _dedicated(self) -> Mapping[int, int]:
        """The number of claims that have each device for themselves, from before the run."""
        return Counter(
            holding.slot
            for holding in self._compiled.holdings
            if not holding.share
        )

    @cached_property
    def _pending(self) -> Mapping[ClaimKey, Claim]:
        """The claims that were to be allocated when the run began."""
        return {
            claim.key: claim
            for demand in self._problem.demands
            for claim in demand.claims
        }


def _is_whole(claim: Claim, grants: Sequence[Grant]) -> bool:
    """Whether a claim gets devices for all of its requests, or none: a device plugin may serve some of them."""
    served = {grant.request for grant in grants}
    return not served or len(served) == len(claim.requests)


def _last(placements: Sequence[Placement], placement: Placement) -> int:
    """Return where a placement is: who was bound last is mostly taken back first."""
    for index in reversed(range(len(placements))):
        if placements[index] is placement:
            return index
    raise ValueError(placement)
