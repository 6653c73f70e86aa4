"""The claims of pods while these are scheduled: who uses them, which are open, and what tells pods apart by them."""

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
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.demands import MAX_CONSUMERS
from dralloc.compile.compiler.extended import (
    classes_by_resource,
    is_extended,
    request_names,
)
from dralloc.compile.pods import PodInfo
from dralloc.objects.api import ResourceClaim
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim
from dralloc.problem.indices import numbered
from dralloc.problem.solution import Grant
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.scheduler.footprints import Granted, PodFootprints
from dralloc.solve.scheduler.node_info import NodeInfo

__all__ = ["MOST_ALTERNATIVES", "GrantsByClaim", "OpenClaims", "PodClaims"]

MOST_ALTERNATIVES: Final = 8
"""Most entries of ``firstAvailable`` (``FirstAvailableDeviceRequestMaxSize`` of resource.k8s.io)."""

GrantsByClaim = Mapping[ClaimKey, tuple[Grant, ...]]
"""What each open claim of a pod gets on a node."""


class OpenClaims(NamedTuple):
    """Claims that are to be allocated together on a node, and their class, if they have one.

    On each node a claim for extended resources asks for those alone that no device plugin serves there.

    Parameters
    ----------
    whole
        The same claims with all of their requests.
    """

    claims: Sequence[Claim]
    claim_class: ClaimClass | None
    whole: Sequence[Claim]

    def granting(self, grants_of: GrantsOfClaims) -> GrantsByClaim:
        """Return what was found, by claim, with the indices that requests have in the whole claims."""
        triples = zip(self.claims, self.whole, grants_of, strict=True)
        return {
            claim.key: _as_of_whole(claim, whole, grants)
            for claim, whole, grants in triples
        }


def _as_of_whole(
    claim: Claim, whole: Claim, grants: tuple[Grant, ...]
) -> tuple[Grant, ...]:
    """Return grants of a claim that lacks some requests, as those of the whole claim."""
    if claim is whole:
        return grants
    indices = {
        request.name: index for index, request in enumerate(whole.requests)
    }
    return tuple(
        grant._replace(request=indices[claim.requests[grant.request].name])
        for grant in grants
    )


class PodClaims(QuickRun):
    """First fit's ledger, asked about the claims of pods."""

    def __init__(self, compiled: CompiledCluster) -> None:
        super().__init__(compiled.problem)
        self._cluster = compiled.cluster
        # A claim that no pod uses may have the name of a pod.
        demands = numbered(compiled.problem.demands)
        self._demands = {
            demand.key: demand_index
            for demand_index, demand in demands
            if not compiled.is_claim(demand)
        }
        self._class_of_demand: dict[int, ClaimClass | None] = {}
        self._kind_of_pod: dict[ClaimKey, Hashable] = {}
        self._claims_of_pod: dict[ClaimKey, Sequence[ResourceClaim]] = {}
        self._users: dict[ClaimKey, set[tuple[str, str]]] = defaultdict(set)
        # Pods from before that have been evicted: they use no claim any more, whatever its status says.
        self._evicted: set[ClaimKey] = set()
        self.footprints = PodFootprints(compiled)
        uses = Counter(
            key
            for keys in self._cluster.claims_of_pods.values()
            for key in keys
        )
        self._shared = frozenset(
            key for key, count in uses.items() if count > 1
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

    def held(self, claims: Iterable[ResourceClaim]) -> GrantsByClaim:
        """Return what each of the claims has got in the run so far, of those that have."""
        return {
            claim.key: self._allocated[claim.key][1]
            for claim in claims
            if claim.key in self._allocated
        }

    def _grants_of(self, key: ClaimKey) -> tuple[Grant, ...]:
        """Return what a claim has got in the run so far."""
        return self._allocated[key][1] if key in self._allocated else ()

    def granted(self, grants: GrantsByClaim) -> Granted:
        """Return what claims have got in the run so far, or would get."""
        return lambda key: grants.get(key) or self._grants_of(key)

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
        return users - self._gone(claim.key.namespace)

    def _gone(self, namespace: str) -> Set[tuple[str, str]]:
        """The evicted pods of a namespace, as users of claims."""
        return {
            ("pods", pod.name)
            for pod in self._evicted
            if pod.namespace == namespace
        }

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

    def wanted(self, pod: PodInfo) -> Callable[[NodeInfo], OpenClaims]:
        """Tells which claims of a pod are still to be allocated if it goes to a node.

        A claim that is not in the cluster stands for resources that nobody offers, which NodeResourcesFit looks at. One
        for extended resources asks for those alone that no device plugin of the node serves, and is not needed where
        these serve all of them. Source: ``filterExtendedResources`` of ``extendeddynamicresources.go``.
        """
        claims = self._to_allocate(pod)
        everywhere = OpenClaims(claims, self._class_of(pod, claims), claims)
        extended: Set[ClaimKey] = frozenset()
        if self._extended:
            extended = self._extended & {claim.key for claim in claims}
        # Only a claim for extended resources depends on the node.
        if not extended:
            return lambda _: everywhere
        resources = [
            name
            for name, amount in pod.kind.requests.items()
            if amount and self.is_backed(name)
        ]
        beside_plugins = {frozenset[str](): everywhere}

        def wanted_on(node: NodeInfo) -> OpenClaims:
            of_plugins = frozenset(
                [name for name in resources if not self.serves(name, node)]
            )
            if of_plugins not in beside_plugins:
                beside_plugins[of_plugins] = self._beside_plugins(
                    pod, claims, extended, of_plugins
                )
            return beside_plugins[of_plugins]

        return wanted_on

    def _beside_plugins(
        self,
        pod: PodInfo,
        claims: Sequence[Claim],
        extended: Set[ClaimKey],
        of_plugins: Set[str],
    ) -> OpenClaims:
        """Return the claims of a pod without requests for resources that device plugins serve."""
        pod_object = self._cluster.pods_by_key[pod.key]
        served = frozenset[str]().union(
            *(request_names(pod_object, resource) for resource in of_plugins)
        )
        open_claims: list[Claim] = []
        whole_claims: list[Claim] = []
        for whole in claims:
            claim = whole
            if whole.key in extended:
                requests = tuple(
                    request
                    for request in whole.requests
                    if request.name not in served
                )
                claim = replace(whole, requests=requests)
            if claim is whole or claim.requests:
                open_claims.append(claim)
                whole_claims.append(whole)
        return OpenClaims(
            open_claims, self._claim_classes.of(open_claims), whole_claims
        )

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

    def has_choice(self, pod: PodInfo) -> bool:
        """Whether a claim of the pod has a request with alternatives."""
        return self.most_worth(pod) > 0

    def most_worth(self, pod: PodInfo) -> int:
        """Return the worth of the first alternative of each request of a pod whose claims all are still open."""
        requests_with_choice = [
            request
            for claim in self.claims_of(pod)
            for request in claim.spec.devices.requests
            if request.first_available
        ]
        return MOST_ALTERNATIVES * len(requests_with_choice)

    def worth(self, pod: PodInfo, grants: GrantsByClaim) -> int:
        """Return how good the alternatives are by which claims of a pod are served: the first of a list is best."""
        ranks = self.alternatives(pod, grants)
        return sum(MOST_ALTERNATIVES - rank for rank in ranks)

    def alternatives(
        self, pod: PodInfo, grants: GrantsByClaim
    ) -> Iterator[int]:
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
