"""Changes made to the cluster's objects, to be compiled anew: the long way to what an explanation says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from dralloc.ask.context.exclusions import CORDONED, SHARED
from dralloc.ask.context.offers import Clause, Variation, clauses_of
from dralloc.ask.explain.changes import Change, Place
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.match import Criteria
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import (
    CapacityRequirements,
    CELDeviceSelector,
    Container,
    Device,
    DeviceCapacity,
    DeviceClass,
    DeviceSelector,
    DeviceToleration,
    Node,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.objects.user_rules import Cap
from dralloc.problem import Device as KnownDevice
from dralloc.problem import Problem
from dralloc.problem.ledger import Scarcity
from dralloc.problem.solution import Placement, Solution

M = TypeVar("M", bound=BaseModel)
MUCH = 10**30
NOTHING = ResourceClaim.model_validate(
    {"metadata": {"name": "nothing", "namespace": "default"}}
)
"""Keeps a demand a demand when nothing else is asked of it any more."""


def lifted(change: Change, scarcity: Scarcity) -> frozenset[tuple[str, str]]:
    """The limits of one kind that do not count any more, by driver and name."""
    return frozenset(
        (limit.driver, limit.name)
        for limit in change.limits
        if limit.scarcity is scarcity
    )


def changed(model: M, **update: object) -> M:
    return model.model_copy(update=update)


@dataclass
class Editor:
    """Edits the cluster that a demand meets."""

    compiled: CompiledCluster
    snapshot: DemandSnapshot
    placements: Sequence[Placement]

    def problem(
        self, change: Change, also: Sequence[ClaimKey] = (), node_like: str = ""
    ) -> Problem:
        """The demand alone in the changed cluster; ``also``: claims that are to be placed anew with it."""
        cluster = self.cluster(change, also)
        if node_like:
            cluster = with_node_like(cluster, node_like)
        problem = compile_cluster(
            cluster,
            features=self.compiled.problem.features,
            caps=list(self.caps(change)),
        ).whole
        counters = (
            replace(counter, free=MUCH)
            if (counter.id.driver, counter.id.counter)
            in lifted(change, Scarcity.COUNTER)
            else counter
            for counter in problem.counters
        )
        devices = (
            unlimited(device, lifted(change, Scarcity.CAPACITY))
            if device.shareable
            else device
            for device in problem.devices
        )
        return replace(
            problem, counters=tuple(counters), devices=tuple(devices)
        )

    def problem_of(self, pods: Sequence[ClaimKey], change: Change) -> Problem:
        """These pods, none of which is in a gang, beside all that is placed, with the caps of the change."""
        cluster = self.compiled.cluster
        placed = {
            claim.key: claim
            for claim in allocated_claims(
                self.compiled, Solution(tuple(self.placements))
            )
        }
        wanted = {key for pod in pods for key in cluster.claims_of_pods[pod]}
        claims = (placed.get(claim.key, claim) for claim in cluster.claims)
        kept = replace(
            cluster,
            claims=tuple(
                claim
                for claim in claims
                if claim.status.allocation is not None or claim.key in wanted
            ),
            pods=tuple(pod for pod in cluster.pods if pod.key in pods),
            claims_of_pods={pod: cluster.claims_of_pods[pod] for pod in pods},
        )
        return compile_cluster(
            kept,
            features=self.compiled.problem.features,
            caps=list(self.caps(change)),
        ).problem

    def caps(self, change: Change) -> Iterator[Cap]:
        for budget in self.compiled.problem.budgets:
            if budget.key not in change.caps:
                yield Cap(
                    *budget.key,
                    Quantity(change.raised.get(budget.key, budget.most or 0)),
                )

    def cluster(self, change: Change, also: Sequence[ClaimKey]) -> Cluster:
        cluster = self.compiled.cluster
        self.classes: dict[str, DeviceClass] = dict(cluster.classes)
        own = {
            claim.key: claim_index
            for claim_index, claim in enumerate(self.snapshot.demand.claims)
        }
        placed = {
            claim.key: claim
            for claim in allocated_claims(
                self.compiled, Solution(tuple(self.placements))
            )
        }
        claims = []
        for claim in cluster.claims:
            if claim.key in own and own[claim.key] not in change.claims:
                claims.append(self.claim(claim, own[claim.key], change))
            elif claim.key in also:
                claims.append(changed(claim, status=type(claim.status)()))
            elif claim.key not in change.released and (
                claim.key in placed or claim.status.allocation is not None
            ):
                claims.append(self.held(placed.get(claim.key, claim), change))
        key = self.compiled.problem.demands[self.snapshot.number].key
        pods = [self.pod(pod, change) for pod in cluster.pods if pod.key == key]
        if pods or (key in own and own[key] in change.claims):
            claims.append(NOTHING)
        others = [*self.running(change), *self.again(also)]
        return replace(
            cluster,
            claims=tuple(claims),
            pods=(*pods, *others),
            claims_of_pods={
                **{
                    pod.key: (*cluster.claims_of_pods[pod.key], NOTHING.key)
                    for pod in pods
                },
                **{pod.key: cluster.claims_of_pods[pod.key] for pod in others},
            },
            classes=self.classes,
            nodes=tuple(self.node(node, change) for node in cluster.nodes),
            slices=tuple(
                self.slice(resource_slice, change)
                for resource_slice in cluster.slices
            ),
        )

    def running(self, change: Change) -> Iterator[Pod]:
        """The pods that have a node and keep all of their claims, those that have just been placed among them."""
        problem, cluster = self.compiled.problem, self.compiled.cluster
        homes = {
            problem.demands[placement.demand].key: problem.nodes[
                placement.node
            ].name
            for placement in self.placements
        }
        for pod in cluster.pods:
            home = pod.spec.node_name or homes.get(pod.key)
            if home and change.released.isdisjoint(
                cluster.claims_of_pods[pod.key]
            ):
                yield changed(pod, spec=changed(pod.spec, node_name=home))

    def again(self, claims: Sequence[ClaimKey]) -> Iterator[Pod]:
        """The pods of claims that are to be placed anew."""
        for pod in self.compiled.cluster.pods:
            if not set(claims).isdisjoint(
                self.compiled.cluster.claims_of_pods[pod.key]
            ):
                yield changed(pod, spec=changed(pod.spec, node_name=None))

    def node(self, node: Node, change: Change) -> Node:
        """A node without the rules that do not count."""
        taints = tuple(
            taint
            for taint in node.spec.taints
            if f"node taint {taint.key}{taint.value and '='}{taint.value}:{taint.effect} is not tolerated"
            not in change.rules
        )
        free = changed(node, spec=changed(node.spec, taints=taints))
        if "Too many pods" in change.rules and node.status.allocatable:
            allocatable = {**node.status.allocatable, "pods": Quantity(MUCH)}
            free = changed(
                free, status=changed(node.status, allocatable=allocatable)
            )
        return schedulable(free) if CORDONED in change.rules else free

    def held(self, claim: ResourceClaim, change: Change) -> ResourceClaim:
        """An allocated claim, for all nodes if the change says so."""
        allocation = claim.status.allocation
        named = any(
            rule.startswith(f"claim {claim.key} is allocated for")
            for rule in change.rules
        )
        if allocation is None or not (named or SHARED in change.rules):
            return claim
        return changed(
            claim,
            status=changed(
                claim.status, allocation=changed(allocation, node_selector=None)
            ),
        )

    def pod(self, pod: Pod, change: Change) -> Pod:
        selector = {
            label: value
            for label, value in pod.spec.node_selector.items()
            if f"pod spec.nodeSelector: {label}={value}" not in change.rules
        }
        unbound = any(
            rule.startswith("pod spec.affinity") for rule in change.rules
        )
        affinity = None if unbound else pod.spec.affinity
        containers = tuple(
            container(pod_container, change.rules)
            for pod_container in pod.spec.containers
        )
        spec = changed(
            pod.spec,
            node_selector=selector,
            affinity=affinity,
            containers=containers,
        )
        return changed(pod, spec=spec)

    def slice(
        self, resource_slice: ResourceSlice, change: Change
    ) -> ResourceSlice:
        free, features = (
            (resource_slice.spec.driver, "") in lifted(change, Scarcity.GROUPS),
            self.compiled.problem.features,
        )
        unasked = {
            name
            for variation in change.variations.values()
            for name in variation.unasked
        }
        devices = []
        for device in resource_slice.spec.devices:
            missing = {
                name: DeviceCapacity(Quantity(0))
                for name in unasked - published(device, features)
            }
            uses = tuple(
                replace(use, compatibility_groups=()) if free else use
                for use in device.consumes_counters
            )
            devices.append(
                replace(
                    device,
                    capacity={**device.capacity, **missing},
                    consumes_counters=uses,
                )
            )
        return changed(
            resource_slice,
            spec=changed(resource_slice.spec, devices=tuple(devices)),
        )

    # The demand's own claims.

    def claim(
        self, claim: ResourceClaim, claim_index: int, change: Change
    ) -> ResourceClaim:
        devices = claim.spec.devices
        requests = []
        for request_index, request in enumerate(devices.requests):
            if (claim_index, request_index) in change.requests:
                continue
            if request.exactly is not None:
                exactly = self.details(
                    request.exactly,
                    (claim_index, request_index, 0),
                    change,
                    claim.key,
                )
                requests.append(changed(request, exactly=exactly))
            else:
                subs = tuple(
                    self.details(
                        sub,
                        (claim_index, request_index, rank),
                        change,
                        claim.key,
                    )
                    for rank, sub in enumerate(request.first_available)
                )
                requests.append(changed(request, first_available=subs))
        constraints = tuple(
            constraint
            for constraint_index, constraint in enumerate(devices.constraints)
            if (claim_index, constraint_index) not in change.constraints
        )
        spec = changed(
            devices, requests=tuple(requests), constraints=constraints
        )
        return changed(claim, spec=changed(claim.spec, devices=spec))

    def details(
        self, details: Any, position: Place, change: Change, claim: ClaimKey
    ) -> Any:
        variation = change.variations.get(position, Variation())
        amounts: Mapping[str, Quantity] = (
            details.capacity.requests if details.capacity is not None else {}
        )
        name, selectors = (
            details.device_class_name,
            [cel_selector.cel.expression for cel_selector in details.selectors],
        )
        kept_tolerations = details.tolerations
        if variation.substitute is not None:
            kept_tolerations = variation.substitute.tolerations
            assert variation.substitute.device_class is not None
            name = variation.substitute.device_class.metadata.name
            selectors = list(variation.substitute.selectors)
            amounts = dict(variation.substitute.amounts)
        elif variation.without:
            criteria = Criteria(
                claim, self.classes[name], tuple(selectors), (), ()
            )
            kept = [
                clause
                for clause_index, clause in enumerate(clauses_of(criteria))
                if clause_index not in variation.without
            ]
            selectors = list(rejoined(kept, ""))
            name = self.relaxed_class(name, kept, position)
        asked = {
            **amounts,
            **dict(variation.amounts),
            **{
                capacity_name: Quantity(0)
                for capacity_name in variation.unasked
            },
        }
        set_to = {
            key: value for key, value in asked.items() if value is not None
        }
        tolerations = [
            DeviceToleration(
                key=taint.key,
                operator="Equal",
                value=taint.value,
                effect=taint.effect,
            )
            for taint in variation.tolerated
        ]
        return changed(
            details,
            device_class_name=name,
            selectors=tuple(map(selector, selectors)),
            tolerations=(*kept_tolerations, *tolerations),
            count=change.counts.get(position, details.count),
            capacity=CapacityRequirements(requests=set_to) if set_to else None,
        )

    def relaxed_class(
        self, name: str, kept: Sequence[Clause], position: Place
    ) -> str:
        relaxed = f"relaxed-{'-'.join(map(str, position))}"
        given = self.classes[name]
        spec = changed(
            given.spec, selectors=tuple(map(selector, rejoined(kept, name)))
        )
        self.classes[relaxed] = changed(
            given, metadata=changed(given.metadata, name=relaxed), spec=spec
        )
        return relaxed


def container(pod_container: Container, rules: Collection[str]) -> Container:
    """A container that asks for nothing of what does not count."""
    requests = {
        name: amount
        for name, amount in pod_container.resources.requests.items()
        if f"Insufficient {name}" not in rules
    }
    ports = (
        ()
        if "didn't have free ports for the requested pod ports" in rules
        else pod_container.ports
    )
    return changed(
        pod_container,
        ports=ports,
        resources=changed(pod_container.resources, requests=requests),
    )


def published(device: Device, features: Features) -> set[str]:
    """What can be asked of a device: its capacities, and counters that it draws on by request."""
    uses = device.consumes_counters if features.SharedConsumableCapacity else ()
    consumed = (counter for use in uses for counter in use.counters.values())
    return {
        *device.capacity,
        *(
            counter.value_from.capacity_key
            for counter in consumed
            if counter.value_from is not None
        ),
    }


def selector(expression: str) -> DeviceSelector:
    return DeviceSelector(cel=CELDeviceSelector(expression=expression))


def rejoined(kept: Sequence[Clause], of_class: str) -> Iterator[str]:
    selector_indices = dict.fromkeys(
        clause.selector for clause in kept if clause.of_class == of_class
    )
    for selector_index in selector_indices:
        yield " && ".join(
            f"({clause.text})"
            for clause in kept
            if (clause.of_class, clause.selector) == (of_class, selector_index)
        )


def schedulable(node: Node) -> Node:
    return changed(node, spec=changed(node.spec, unschedulable=False))


def with_node_like(cluster: Cluster, name: str) -> Cluster:
    """The cluster with one more node, empty, with slices of its own in pools of their own."""
    new = f"{name}-more"
    like = next(node for node in cluster.nodes if node.metadata.name == name)
    labels = {**like.metadata.labels, "kubernetes.io/hostname": new}
    node = schedulable(
        changed(like, metadata=changed(like.metadata, name=new, labels=labels))
    )
    slices = [
        changed(
            resource_slice,
            metadata=changed(
                resource_slice.metadata,
                name=f"{resource_slice.metadata.name}-more",
            ),
            spec=changed(
                resource_slice.spec,
                node_name=new,
                pool=changed(
                    resource_slice.spec.pool,
                    name=f"{resource_slice.spec.pool.name}-more",
                ),
            ),
        )
        for resource_slice in cluster.slices
        if resource_slice.spec.node_name == name
    ]
    return replace(
        cluster, nodes=(*cluster.nodes, node), slices=(*cluster.slices, *slices)
    )


def unlimited(
    device: KnownDevice, names: frozenset[tuple[str, str]]
) -> KnownDevice:
    """The device with more of some capacities than anybody can ask for."""
    capacity = {
        name: replace(known, total=MUCH)
        if (device.id.driver, name) in names
        else known
        for name, known in device.capacity.items()
    }
    return replace(device, capacity=capacity)
