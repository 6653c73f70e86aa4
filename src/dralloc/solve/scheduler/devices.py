"""The devices of the nodes while pods are scheduled: the structured allocator's search, one node at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.demands import MAX_CONSUMERS
from dralloc.compile.compiler.extended import classes_by_resource, is_extended
from dralloc.compile.pods import PodInfo
from dralloc.objects.api import ResourceClaim
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Device,
    DeviceIndex,
    NodeIndex,
    SlotIndex,
)
from dralloc.problem.indices import grouped, numbered
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.first_fit.batch import QuickRun
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    ClaimClass,
    NodeCandidates,
    failure,
    places,
)
from dralloc.solve.first_fit.plain import Found as Taken
from dralloc.solve.first_fit.search import (
    DepthFirstSearch,
    nothing_on,
)
from dralloc.solve.scheduler.snapshot import Granted, NodeInfo, PodFootprints

__all__ = ["MOST_ALTERNATIVES", "Devices", "Found", "Nomination", "Wanted"]

MOST_ALTERNATIVES: Final = 8
"""Most entries of ``firstAvailable`` (``FirstAvailableDeviceRequestMaxSize`` of resource.k8s.io)."""

_RECENT: Final = 1000
"""For so many pods it is kept what was known before they were bound. Groups are tried out and taken back."""

Found = Mapping[ClaimKey, tuple[Grant, ...]]
"""What each open claim of a pod gets on a node."""


class Wanted(NamedTuple):
    """Claims that are to be allocated together on a node, and their class, if they have one."""

    claims: Sequence[Claim]
    claim_class: ClaimClass | None

    def granting(self, grants_of: Taken) -> Found:
        """Return what was found, by claim."""
        pairs = zip(self.claims, grants_of, strict=True)
        return {claim.key: grants for claim, grants in pairs}


@dataclass(slots=True)
class _NodeAnswers:
    """The outcomes of searches on a node, by class.

    Parameters
    ----------
    current
        With what is in use there now.
    repeated
        With that, and with what the class got before, time after time: what it gets next.
    lasting
        Where more usage never lets anything fit: what was found last, with no more in use than now. What did not fit
        does not fit now; what fitted may be taken.
    """

    current: dict[ClaimClass, Taken | None] = field(default_factory=dict)
    lasting: dict[ClaimClass, Taken | None] = field(default_factory=dict)
    repeated: dict[ClaimClass, list[Taken | None]] = field(default_factory=dict)

    def with_more_in_use(self) -> _NodeAnswers:
        """Return what stays true when something more is in use on the node."""
        return _NodeAnswers({}, self.lasting.copy())

    def rules_out(self, claim_class: ClaimClass) -> bool:
        """Whether a class does not fit, and will not when more is in use."""
        return claim_class in self.lasting and self.lasting[claim_class] is None


_Searched = dict[int, _NodeAnswers]


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


class _Offer(NamedTuple):
    """The offer of a node to a class of claims.

    Parameters
    ----------
    leaks
        Whether a search may come across devices that leak counters.
    shrinks
        Whether more usage never lets anything fit, so that what was found first stays first as long as it can be had.
    """

    candidates: NodeCandidates
    leaks: bool
    shrinks: bool

    def start_again(self) -> None:
        """Something was released: the first devices may be free again."""
        for listed in self.candidates.lists.values():
            listed.start = 0

    @contextmanager
    def from_the_start(self) -> Iterator[None]:
        """As long as this lasts, devices may be free that are not in fact."""
        lists = self.candidates.lists.values()
        starts = [listed.start for listed in lists]
        self.start_again()
        try:
            yield
        finally:
            for listed, start in zip(lists, starts, strict=True):
                listed.start = start


class _Bound(NamedTuple):
    """The record of a pod that was bound: what was entered, what was told of it, and what was untold of its claims."""

    users: Sequence[tuple[ClaimKey, tuple[str, str]]]
    placement: Placement | None = None
    told: Sequence[Placement] = ()
    untold: Mapping[ClaimKey, tuple[Grant, ...]] = MappingProxyType({})


class Devices(QuickRun):
    """First fit's ledger, asked about single nodes.

    Parameters
    ----------
    leaks_counters
        See `dralloc.solve.scheduler.scheduler.Release`.
    """

    def __init__(
        self, compiled: CompiledCluster, *, leaks_counters: bool = True
    ) -> None:
        super().__init__(compiled.problem)
        self._leaks_counters = leaks_counters
        self._cluster = compiled.cluster
        # A claim that no pod uses may have the name of a pod.
        demands = numbered(compiled.problem.demands)
        self._demands = {
            demand.key: demand_index
            for demand_index, demand in demands
            if not compiled.is_claim(demand)
        }
        self._untold: dict[ClaimKey, tuple[Grant, ...]] = {}
        self._bound: dict[ClaimKey, _Bound] = {}
        self._class_of_demand: dict[int, ClaimClass | None] = {}
        self._kind_of_pod: dict[ClaimKey, Hashable] = {}
        self._claims_of_pod: dict[ClaimKey, Sequence[ResourceClaim]] = {}
        self._offers: dict[int, dict[ClaimClass, _Offer]] = defaultdict(dict)
        self._answers: _Searched = defaultdict(_NodeAnswers)
        self._enough: dict[ClaimClass, NDArray[np.bool_]] = {}
        # By node, whether the devices do not do for a class whatever is in use, and whether they will not again.
        self._hopeless: dict[ClaimClass, NDArray[np.bool_]] = {}
        # By node, the classes of which only the latter is true.
        self._hopeless_on: dict[int, set[ClaimClass]] = defaultdict(set)
        self._asks_for_one: dict[ClaimClass, bool] = {}
        self._recent: dict[ClaimKey, tuple[_Searched, _Searched]] = {}
        self._compiled = compiled
        # Claims that are free by supposition, and how many suppositions there are.
        self._supposed: set[ClaimKey] = set()
        self._suppositions = 0
        self._selected = CandidateIndex(self._problem, tainted=True)
        self._users: dict[ClaimKey, set[tuple[str, str]]] = defaultdict(set)
        self.footprints = PodFootprints(compiled)
        uses = Counter(
            key
            for keys in self._cluster.claims_of_pods.values()
            for key in keys
        )
        self._shared = frozenset(
            key for key, count in uses.items() if count > 1
        )
        problem = self._problem
        self._nodes_of = cache(
            lambda device: frozenset(
                problem.seeing(problem.devices[device].id.pool_id)
            )
        )
        self._has_counters = cache(
            lambda node: any(
                problem.devices[device].consumes
                for device in problem.nodes[node].devices()
            )
        )
        self._sees_alone = cache(
            lambda node: all(
                self._nodes_of(device) == {node}
                for device in problem.nodes[node].devices()
            )
        )

    @cached_property
    def _backed(self) -> frozenset[str]:
        """The extended resources that classes of devices stand for."""
        if not self._problem.features.ExtendedResource:
            return frozenset()
        return frozenset(classes_by_resource(self._cluster.classes.values()))

    def serves(self, resource: str, node: NodeInfo) -> bool:
        """Whether devices, and no device plugin, serve an extended resource on the node."""
        return resource in self._backed and not node.allocatable.get(resource)

    def is_backed(self, resource: str) -> bool:
        """Whether devices serve an extended resource where no device plugin does."""
        return resource in self._backed

    def unbacked(self, pod: PodInfo) -> list[str]:
        """The extended resources that only device plugins can serve, of a pod that asks for some of devices, too."""
        extended = {
            name
            for name, amount in pod.kind.requests.items()
            if amount and is_extended(name)
        }
        if self._backed.isdisjoint(extended):
            return []
        return sorted(extended - self._backed)

    def claims_of(self, pod: PodInfo) -> Sequence[ResourceClaim]:
        """The claims of a pod as they were before."""
        if pod.key not in self._claims_of_pod:
            keys = self._cluster.claims_of_pods[pod.key]
            claims = map(self._cluster.claim, keys)
            self._claims_of_pod[pod.key] = tuple(
                claim for claim in claims if claim is not None
            )
        return self._claims_of_pod[pod.key]

    def has_shared_claims(self, pod: PodInfo) -> bool:
        """Whether another pod uses a claim of the pod, too."""
        return not self._shared.isdisjoint(
            self._cluster.claims_of_pods[pod.key]
        )

    def _grants_of(self, key: ClaimKey) -> tuple[Grant, ...]:
        """Return what a claim has got in the run so far."""
        return self._allocated[key][1] if key in self._allocated else ()

    def granted(self, grants: Found) -> Granted:
        """Return what claims have got in the run so far, or would get."""
        return lambda key: grants.get(key) or self._grants_of(key)

    def held(self, claims: Iterable[ResourceClaim]) -> Found:
        """Return what each of the claims has got in the run so far, of those that have."""
        return {
            claim.key: self._allocated[claim.key][1]
            for claim in claims
            if claim.key in self._allocated
        }

    def is_allocated(self, claim: ResourceClaim) -> bool:
        """Whether the claim has its devices, from before or from this run."""
        return (
            claim.status.allocation is not None or claim.key in self._allocated
        )

    def is_taken(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        """Whether another pod uses an allocated claim that only one can use (KEP-5517)."""
        if not self.footprints or not self.is_allocated(claim):
            return False
        user = self._cluster.consumer(pod.key, claim.key)
        if not self._users_of(claim) - {user}:
            return False
        return self.footprints.is_mapped(claim, self.granted({}))

    def is_full(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        """Whether so many pods use an allocated claim that one more cannot."""
        if not self.is_allocated(claim):
            return False
        users = self._users_of(claim)
        if len(users) < MAX_CONSUMERS:
            return False
        return self._cluster.consumer(pod.key, claim.key) not in users

    def _users_of(self, claim: ResourceClaim) -> Set[tuple[str, str]]:
        users = set(self._users[claim.key])
        users.update(
            (user.resource, user.name) for user in claim.status.reserved_for
        )
        return users

    def is_reachable(self, claim: ResourceClaim, node: NodeInfo) -> bool:
        """Whether what is allocated for a claim can be used from the node; also if nothing is."""
        if claim.status.allocation is not None:
            selector = claim.status.allocation.node_selector
            return selector is None or selector_matches(selector, node.node)
        home, grants = self._allocated.get(claim.key, (node.number, ()))
        return all(
            self._problem.usable_from(grant.device, home, node.number)
            for grant in grants
        )

    def wanted(self, pod: PodInfo) -> Callable[[NodeInfo], Wanted]:
        """Tells which claims of a pod are still to be allocated if it goes to a node.

        A claim that is not in the cluster stands for resources that nobody offers, which NodeResourcesFit looks at; one
        for extended resources is not needed where a device plugin serves them.
        """
        claims = self._to_allocate(pod)
        everywhere = Wanted(claims, self._class_of(pod, claims))
        extended: Set[ClaimKey] = frozenset()
        if self._extended:
            extended = self._extended & {claim.key for claim in claims}
        if not extended:
            return lambda _: everywhere
        named_claims = [claim for claim in claims if claim.key not in extended]
        with_plugin = Wanted(named_claims, self._class_of(pod, named_claims))
        resources = [
            name for name, amount in pod.kind.requests.items() if amount
        ]

        def wanted_on(node: NodeInfo) -> Wanted:
            if any(self.serves(name, node) for name in resources):
                return everywhere
            return with_plugin

        return wanted_on

    def _to_allocate(self, pod: PodInfo) -> list[Claim]:
        """The claims of a pod that are in the cluster, and that nobody has allocated yet."""
        demand = self._demands.get(pod.key)
        if demand is None:
            return []
        claims = self._open_claims(self._problem.demands[demand])
        return [
            claim
            for claim in claims
            if self._cluster.claim(claim.key) is not None
        ]

    @cached_property
    def _extended(self) -> frozenset[ClaimKey]:
        """The claims that stand for extended resources."""
        return frozenset(
            claim.key for claim in self._cluster.claims if claim.is_extended
        )

    def find(self, open_claims: Wanted, node: NodeInfo) -> Taken | None:
        """Return what each of the claims would get on the node; None if they do not fit.

        Raises
        ------
        AllocationError
            The attempt ends with an error: for every node, or for this one.
        """
        claims, claim_class = open_claims
        if claim_class is None:
            grants = self._plain_search(claims, node.number, None)
            self._ledger.revert()
            return grants
        if self._suppositions:
            return self._find_supposing(claims, claim_class, node.number)
        answers = self._answers[node.number]
        if claim_class in answers.current:
            return answers.current[claim_class]
        if claim_class in answers.lasting:
            # Nothing fits that did not fit before, and what fitted first is still first
            # as long as it can be had.
            before = answers.lasting[claim_class]
            if before is None or self._is_free(claims, before):
                answers.current[claim_class] = before
                return before
        if not self._has_enough(claims, claim_class)[node.number]:
            nothing_on(self._problem.nodes[node.number])
            return None
        grants = self._search_for(claims, claim_class, node.number)
        self._ledger.revert()
        answers.current[claim_class] = grants
        if self._offers[node.number][claim_class].shrinks:
            answers.lasting[claim_class] = grants
            if grants is None and claim_class in self._hopeless:
                self._hopeless[claim_class][node.number] = True
                self._hopeless_on[node.number].add(claim_class)
        return grants

    def _find_supposing(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> Taken | None:
        """The same where something is supposed: what is known of what is in use in fact is left out, and kept."""
        if not self._has_enough(claims, claim_class)[node]:
            nothing_on(self._problem.nodes[node])
            return None
        with self._offer_of(claims, claim_class, node).from_the_start():
            grants = self._search_for(claims, claim_class, node)
            self._ledger.revert()
            return grants

    def get_again(
        self, open_claims: Wanted, node: NodeInfo, earlier: int
    ) -> Taken | None:
        """Return what the claims of a pod get on a node once so many equal pods have got theirs there.

        No search for them may end with an error, and none of them may be shared.
        """
        claims, claim_class = open_claims
        if not claims:
            return ()
        assert claim_class is not None
        repeated = self._answers[node.number].repeated
        if claim_class not in repeated:
            repeated[claim_class] = [self.find(open_claims, node)]
        outcomes = repeated[claim_class]
        while len(outcomes) <= earlier and outcomes[-1] is not None:
            outcomes.append(
                self._find_beside(claims, claim_class, node, outcomes)
            )
        return outcomes[earlier] if len(outcomes) > earlier else None

    def worth(self, pod: PodInfo, grants: Found) -> int:
        """Return how good the alternatives are by which claims of a pod are served: the first of a list is best."""
        ranks = self.alternatives(pod, grants)
        return sum(MOST_ALTERNATIVES - rank for rank in ranks)

    def most_worth(self, pod: PodInfo) -> int:
        """Return the worth of the first alternative of each request of a pod whose claims all are still open."""
        requests_with_choice = [
            request
            for claim in self.claims_of(pod)
            for request in claim.spec.devices.requests
            if request.first_available
        ]
        return MOST_ALTERNATIVES * len(requests_with_choice)

    def _find_beside(
        self,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        node: NodeInfo,
        grants_of_others: Sequence[Taken | None],
    ) -> Taken | None:
        """Return what claims get on a node beside what others of their class get there."""
        for grants in grants_of_others:
            assert grants is not None
            self._take(claims, grants)
            self._ledger.settle()
        offer = self._offer_of(claims, claim_class, node.number)
        with offer.from_the_start():
            answer = self._search_for(claims, claim_class, node.number)
            self._ledger.revert()
        for grants in grants_of_others:
            assert grants is not None
            self._release_all(claims, grants)
        return answer

    def _release_all(self, claims: Sequence[Claim], grants_of: Taken) -> None:
        for claim, grants in zip(claims, grants_of, strict=True):
            for request, choice, device in grants:
                alternative = claim.requests[request].alternatives[choice]
                self._ledger.release(device, alternative)

    def are_alone(self, node: NodeInfo) -> bool:
        """Whether no other node sees a device of a node, so that what is taken there matters nowhere else."""
        return self._sees_alone(node.number)

    def never_fails(self, pod: PodInfo) -> bool:
        """Whether it is certain that no search for the claims of a pod, of which none is shared, ends with an error.

        An invalid pool may be the reason why they do not fit on its node; that is no error of the attempt.
        """
        claims = self._to_allocate(pod)
        claim_class = self._class_of(pod, claims)
        return claim_class is not None and self._failures.is_safe(
            claim_class, claims
        )

    def has_choice(self, pod: PodInfo) -> bool:
        """Whether a claim of the pod has a request with alternatives."""
        return self.most_worth(pod) > 0

    def hopeless(self, pod: PodInfo) -> NDArray[np.bool_]:
        """By node, whether it is known that its devices do not do for the claims of a pod, of which none is shared."""
        claims = self._to_allocate(pod)
        claim_class = self._class_of(pod, claims)
        if claim_class is None:
            return np.zeros(len(self._problem.nodes), np.bool_)
        if claim_class not in self._hopeless:
            # Of a node with an invalid pool the scheduler says something else.
            enough = self._has_enough(claims, claim_class)
            never_fits = ~(enough | self._has_invalid)
            hopeless = self._hopeless[claim_class] = never_fits.copy()
            for node, answers in self._answers.items():
                if answers.rules_out(claim_class) and not never_fits[node]:
                    hopeless[node] = True
                    self._hopeless_on[node].add(claim_class)
        return self._hopeless[claim_class]

    @cached_property
    def _has_invalid(self) -> NDArray[np.bool_]:
        """By node, whether a pool of it is invalid."""
        has_invalid = np.zeros(len(self._problem.nodes), np.bool_)
        has_invalid[list(self._invalid)] = True
        return has_invalid

    def _has_enough(
        self, claims: Sequence[Claim], claim_class: ClaimClass
    ) -> NDArray[np.bool_]:
        """By node, whether it has as many devices as a class asks for, whatever is in use."""
        if claim_class not in self._enough:
            # Nothing is entered there, so that it stays true when pods are taken back.
            enough = self._failures.hopeful(claim_class, claims)
            self._enough[claim_class] = enough
        return self._enough[claim_class]

    def _is_free(self, claims: Sequence[Claim], answer: Taken) -> bool:
        """Whether what was found before can still be had; then it is still what a search finds first."""
        try:
            granted = zip(claims, answer, strict=True)
            for claim_index, (claim, grants) in enumerate(granted):
                for grant in grants:
                    if not self._take_if_free(claim_index, claim, grant):
                        return False
            return True
        finally:
            self._ledger.revert()

    def _take_if_free(
        self, claim_index: int, claim: Claim, grant: Grant
    ) -> bool:
        alternative = claim.requests[grant.request].alternatives[
            grant.alternative
        ]
        device = self._problem.devices[grant.device]
        charge = self._charge(alternative, grant.device)
        ledger = self._ledger
        if ledger.in_use(device, alternative, claim_index):
            return False
        if not ledger.has_capacity(device, charge):
            return False
        if not ledger.covers(device, alternative, charge):
            return False
        ledger.take(grant.device, alternative, claim_index, charge)
        return True

    def _charge(self, alternative: Alternative, device: DeviceIndex) -> Charge:
        charge = self._problem.eligibility.charge(alternative.index, device)
        assert charge is not None
        return charge

    def kind_of(self, pod: PodInfo) -> Hashable:
        """Equal for pods whose claims get the same answers everywhere; None if those of others matter, too."""
        if pod.key not in self._kind_of_pod:
            self._kind_of_pod[pod.key] = self._work_out_kind(pod)
        return self._kind_of_pod[pod.key]

    def _work_out_kind(self, pod: PodInfo) -> Hashable:
        demand_index = self._demands.get(pod.key)
        demand = (
            None
            if demand_index is None
            else self._problem.demands[demand_index]
        )
        claims = demand.claims if demand else ()
        # Otherwise some claim was allocated before the run.
        if len(self._cluster.claims_of_pods[pod.key]) != len(claims):
            return None
        if self.has_shared_claims(pod):
            return None
        if self._problem.has_scopes and demand and demand.group_scopes:
            return None
        claim_class = self._class_of(pod, claims)
        if claim_class is None or not self.footprints:
            return claim_class
        containers = self.footprints.containers(pod)
        return claim_class, tuple(
            containers.get(claim.key, 0) for claim in claims
        )

    def are_apart(self, pod: PodInfo) -> bool:
        """Whether what devices say about nodes depends on the pod's claims, and on nothing else of it."""
        memo = pod.kind.memo
        if "asks for extended" not in memo:
            memo["asks for extended"] = any(
                amount and is_extended(name)
                for name, amount in pod.kind.requests.items()
            )
        return not (self.footprints or memo["asks for extended"])

    def _class_of(
        self, pod: PodInfo, claims: Sequence[Claim]
    ) -> ClaimClass | None:
        """The class of some of the pod's claims; that of all of them is worked out once."""
        demand = self._demands.get(pod.key)
        # With constraints over several claims, what others have got belongs to a claim.
        if demand is None or self._problem.has_scopes:
            return self._claim_classes.of(claims)
        if len(claims) < len(self._problem.demands[demand].claims):
            return self._claim_classes.of(claims)
        if demand not in self._class_of_demand:
            self._class_of_demand[demand] = self._claim_classes.of(claims)
        return self._class_of_demand[demand]

    def bind(
        self,
        pod: PodInfo,
        node: NodeInfo,
        nominations: Sequence[Nomination] = (),
        planned: Found | None = None,
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
        if demand is None:
            self._bound[pod.key] = _Bound(new)
            return self.footprints.entered(pod, self.granted({})), set()
        open_claims = self.wanted(pod)(node)
        grants: Taken | None = ()
        if open_claims.claims and planned is not None:
            grants = tuple([planned[claim.key] for claim in open_claims.claims])
        elif open_claims.claims and nominations:
            with self.beside(nominations):
                grants = self.find(open_claims, node)
        elif open_claims.claims:
            grants = self.find(open_claims, node)
        assert grants is not None
        granted = self.granted(open_claims.granting(grants))
        pod = self.footprints.entered(pod, granted)
        self._take(open_claims.claims, grants)
        self._settle(demand, node.number, open_claims.claims, grants)
        placement = self.placements.pop()
        keys = [claim.key for claim in self._problem.demands[demand].claims]
        untold = {key: self._untold.get(key, ()) for key in keys}
        told = tuple(self._told(placement))
        self.placements += told
        seeing = self._seeing(placement)
        self._bound[pod.key] = _Bound(new, placement, told, untold)
        self._outdate(pod.key, seeing)
        return pod, seeing

    def are_free(self, pod: PodInfo, node: NodeInfo, planned: Found) -> bool:
        """Whether the pod's open claims could get these devices on the node, and no other claim gets any."""
        claims = self.wanted(pod)(node).claims
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
        before: _Searched = {}
        after: _Searched = {}
        for node in seeing:
            before[node] = self._answers[node]
            after[node] = before[node].with_more_in_use()
        self._answers.update(after)
        self._recent[key] = before, after
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]

    def _take(self, claims: Sequence[Claim], grants_of: Taken) -> None:
        for claim_index, (claim, grants) in enumerate(
            zip(claims, grants_of, strict=True)
        ):
            for request, choice, device in grants:
                alternative = claim.requests[request].alternatives[choice]
                charge = self._charge(alternative, device)
                self._ledger.take(device, alternative, claim_index, charge)

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
            self._reopen(node, before[node] if is_last else _NodeAnswers())
        return seeing

    def _reopen(self, node: NodeIndex, answers: _NodeAnswers) -> None:
        """Something was released on a node: ask again, but for these answers."""
        self._answers[node] = answers
        self._hope_again(node)
        for offer in self._offers[node].values():
            offer.start_again()

    def _hope_again(self, node: NodeIndex) -> None:
        """Something was released: classes may fit that did not before."""
        answers, hopeless_here = self._answers[node], self._hopeless_on[node]
        for claim_class in tuple(hopeless_here):
            if not answers.rules_out(claim_class):
                self._hopeless[claim_class][node] = False
                hopeless_here.remove(claim_class)

    def _seeing(self, placement: Placement) -> Set[NodeIndex]:
        """The nodes that can see the devices of a placement."""
        nodes: set[NodeIndex] = set()
        for grants in placement.grants:
            for grant in grants:
                nodes |= self._nodes_of(grant.device)
        return nodes

    def _told(self, placement: Placement) -> Iterator[Placement]:
        """The placement, unless a device plugin serves some of it: then who shares its claims next tells of them."""
        if all(placement.grants):
            yield placement
            return
        keys = [
            claim.key
            for claim in self._problem.demands[placement.demand].claims
        ]
        granted = dict(zip(keys, placement.grants, strict=True))
        if self._allocated.keys() >= granted.keys():
            grants = tuple(
                grants or self._untold.pop(key, ())
                for key, grants in granted.items()
            )
            yield replace(placement, grants=grants)
        else:
            self._untold.update(
                (key, grants) for key, grants in granted.items() if grants
            )

    def _search_for(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> Taken | None:
        candidates, leaks, _ = self._offer_of(claims, claim_class, node)
        if claim_class not in self._asks_for_one:
            self._asks_for_one[claim_class] = _asks_for_one(claims)
        if self._asks_for_one[claim_class] and (
            leaks or not claim_class.simple
        ):
            first_served = self._first_served(claims[0], candidates, leaks)
            if first_served is not None:
                return (first_served,)
            nothing_on(self._problem.nodes[node])
            return None
        if leaks:
            return self._plain_search(claims, node, candidates)
        return self._attempt_at(candidates, claims, claim_class)

    def _first_served(
        self, claim: Claim, candidates: NodeCandidates, leaks: bool
    ) -> tuple[Grant, ...] | None:
        """Return the first device that a claim for a single one can have, by its first alternative that can be served.

        As the depth-first search does, which finds nothing behind a single device to come back from. Nothing is taken.
        """
        problem, ledger = self._problem, self._ledger
        leaked: list[Device] = []
        try:
            for choice, alternative in enumerate(
                claim.requests[0].alternatives
            ):
                listed = candidates.lists[0, 0, choice]
                for device_index in listed.devices:
                    device = problem.devices[device_index]
                    if ledger.in_use(device, alternative, 0):
                        continue
                    if device_index in listed.failing:
                        raise failure(problem, alternative, device_index)
                    charge = problem.eligibility.charge(
                        alternative.index, device_index
                    )
                    if charge is None or not ledger.has_capacity(
                        device, charge
                    ):
                        continue
                    if not ledger.covers(device, alternative, charge):
                        continue
                    if problem.eligibility.admits(
                        alternative.index, device_index
                    ):
                        return (Grant(0, choice, device_index),)
                    if leaks and not ledger.is_open(device):
                        # What taints refuse keeps its counters until the search ends.
                        ledger.reserve(device)
                        leaked.append(device)
        finally:
            for device in leaked:
                ledger.reserve(device, -1)
        return None

    def _offer_of(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> _Offer:
        offers = self._offers[node]
        if claim_class not in offers:
            offers[claim_class] = self._offer(claims, claim_class, node)
        return offers[claim_class]

    def _plain_search(
        self,
        claims: Sequence[Claim],
        node: NodeIndex,
        candidates: NodeCandidates | None,
    ) -> Taken | None:
        leaks = self._leaks_counters
        search = DepthFirstSearch(
            self._problem,
            self._ledger,
            claims,
            node,
            leaks=leaks,
            candidates=candidates,
        )
        return search.run()

    def _offer(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> _Offer:
        """Return what a node offers to a class, whatever is in use."""
        if self._leaks_counters and self._has_counters(node):
            selected = self._selected.on(claims, node)
            if self._may_leak(claims, selected):
                return _Offer(selected, leaks=True, shrinks=False)
        candidates = self._index.on(claims, node)
        # Where a search may end with an error, it may end otherwise once it does not get there any more.
        failing = any(listed.failing for listed in candidates.lists.values())
        shrinks = self._index.shrinks(node) and not (
            failing or claim_class.may_ask_too_much
        )
        return _Offer(candidates, leaks=False, shrinks=shrinks)

    def _may_leak(
        self, claims: Sequence[Claim], selected: NodeCandidates
    ) -> bool:
        """Whether the search may come across devices with counters that taints or constraints refuse."""
        problem = self._problem
        for position, alternative in places(claims):
            listed = selected.lists.get(position)
            reached: Iterable[DeviceIndex] = problem.nodes[
                selected.node
            ].devices()
            if listed is not None:
                reached = listed.devices
            constrained = claims[position[0]].constraints
            for device in reached:
                if not problem.devices[device].consumes:
                    continue
                if constrained:
                    return True
                if not problem.eligibility.admits(alternative.index, device):
                    return True
        return False

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
        users = self._users_of(claim) | self._running_users.get(key, set())
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

    def give_up(self, claims: Iterable[ClaimKey]) -> None:
        """What claims from before hold is free from now on: whoever used them is evicted."""
        from_before = [key for key in claims if key not in self._allocated]
        self._revoke(from_before)
        for key in from_before:
            claim = self._cluster.claim(key)
            assert claim is not None
            for device in self._devices_of(claim):
                for node in (
                    self._nodes_of(device) if device is not None else ()
                ):
                    self._reopen(node, _NodeAnswers())

    def promise(
        self, pod: PodInfo, node: NodeInfo
    ) -> tuple[PodInfo, Sequence[Holding]]:
        """Return the pod with what it takes of a node that is feasible for it, and what it would hold there."""
        open_claims = self.wanted(pod)(node)
        if not open_claims.claims:
            return self.footprints.entered(pod, self.granted({})), ()
        grants = self.find(open_claims, node)
        assert grants is not None
        grants_by_claim = open_claims.granting(grants)
        holdings: list[Holding] = []
        for claim, claim_grants in zip(open_claims.claims, grants, strict=True):
            holdings += self._holdings_for(claim, claim_grants)
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
        leaving = {
            nomination.pod.key: self._not_supposed(nomination.released)
            for nomination in nominations
        }
        withdrawn = self._holdings(chain.from_iterable(leaving.values()))
        promised = chain.from_iterable(
            nomination.promised for nomination in nominations
        )
        before = self._ledger.note([*withdrawn, *promised])
        for nomination in nominations:
            self._revoke(leaving[nomination.pod.key])
            for holding in nomination.promised:
                self._enter(holding)
        self._ledger.tighten(before)
        self._suppositions += 1
        try:
            yield
        finally:
            self._ledger.restore(before)
            self._suppositions -= 1

    def _revoke(self, claims: Iterable[ClaimKey]) -> None:
        for holding in self._holdings(claims):
            device = self._device_at(holding.slot)
            if self._dedicated[holding.slot] > 1 and not holding.share:
                # Two claims hold one dedicated device: it stays in use.
                self._ledger.consume(device, holding.charge, -1)
            else:
                self._ledger.revoke(device, holding.charge, share=holding.share)

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

    def alternatives(self, pod: PodInfo, grants: Found) -> Iterator[int]:
        """The rank of each alternative that serves a request of the pod with what its claims get, each once."""
        demand = self._demands.get(pod.key)
        pending: dict[ClaimKey, Claim] = {}
        if demand is not None:
            claims = self._problem.demands[demand].claims
            pending = {claim.key: claim for claim in claims}
        for claim in self.claims_of(pod):
            if claim.status.allocation is not None:
                yield from _ranks_allocated(claim)
            elif claim.key in pending:
                yield from _ranks(pending[claim.key], grants.get(claim.key, ()))


def _asks_for_one(claims: Sequence[Claim]) -> bool:
    """Whether all that is asked for is a single device, without constraints."""
    if len(claims) != 1 or claims[0].constraints or claims[0].is_synthetic:
        return False
    if len(claims[0].requests) != 1:
        return False
    return all(
        alternative.count == 1
        for alternative in claims[0].requests[0].alternatives
    )


def _last(placements: Sequence[Placement], placement: Placement) -> int:
    """Return where a placement is: who was bound last is mostly taken back first."""
    for index in reversed(range(len(placements))):
        if placements[index] is placement:
            return index
    raise ValueError(placement)


def _ranks(claim: Claim, grants: Iterable[Grant]) -> Iterator[int]:
    served = dict.fromkeys(
        (grant.request, grant.alternative) for grant in grants
    )
    for request, choice in served:
        alternative = claim.requests[request].alternatives[choice]
        if alternative.name.sub:
            yield alternative.rank


def _ranks_allocated(claim: ResourceClaim) -> Iterator[int]:
    assert claim.status.allocation is not None
    granted = {
        result.request for result in claim.status.allocation.devices.results
    }
    for request in claim.spec.devices.requests:
        for rank, sub in enumerate(request.first_available):
            if f"{request.name}/{sub.name}" in granted:
                yield rank
