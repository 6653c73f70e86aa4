"""The cluster if something were different: changed objects, of which everything is asked again.

Whoever asks "what if" builds a `Scenario` of changes that can be put together, takes its cluster and compiles that as
any other. So every rule of the compiler holds after a change as it did before: tolerations, node affinity, CPU, memory,
ports, rules between pods, devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.compile.compiler.extended import (
    classes_by_resource,
    extended_claims,
)
from dralloc.objects.api import (
    CapacityRequestPolicy,
    Container,
    CounterSet,
    Device,
    DeviceCapacity,
    Node,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.selecting import CORDON_TAINT
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity

__all__ = ["Scenario", "without_resources"]


@dataclass(frozen=True)
class Scenario:
    """A cluster in which something is different.

    Each change gives a new scenario and leaves this one as it is. Of an object that is changed everything else stays:
    a pod that is unbound still tolerates, asks for and is labelled what it was.

    Parameters
    ----------
    cluster
        The cluster as it would be.
    """

    cluster: Cluster

    def release(self, claims: Collection[ClaimKey]) -> Scenario:
        """These claims are pending again.

        One that a scheduler made for extended resources (KEP-5004) becomes a claim of its pod as any other, and the
        containers of the pod ask for these resources no more: the same is asked for once, under the same name.
        """
        pods = self.cluster.claims_of_pods
        owned = extended_claims(self.cluster)
        extended = {
            claim.key: owner
            for owner, claim in owned
            if claim.key in claims and owner in pods
        }
        freed = replace(
            self.cluster,
            claims=tuple(
                _released(claim, claims) for claim in self.cluster.claims
            ),
        )
        return Scenario(
            _with_claims_as_any_other(freed, extended) if extended else freed
        )

    def unbind(self, pods: Collection[ClaimKey]) -> Scenario:
        """These pods have no node yet."""
        return self._with_pods(
            lambda pod: _unbound(pod) if pod.key in pods else pod
        )

    def unbind_incumbents(self, pods: Collection[ClaimKey]) -> Scenario:
        """These pods have no node, but they ran: nothing that they asked of other pods binds them any more.

        Others must keep their distance from them still, as from all that run: what a scheduler asks of a pod that comes
        is the anti-affinity of those there (``interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``).
        """
        return self._with_pods(
            lambda pod: _unbound_incumbent(pod) if pod.key in pods else pod
        )

    def without_pods(self, pods: Collection[ClaimKey]) -> Scenario:
        """Drop these pods; the claims that they used stay allocated, and no pod waits for them."""
        return Scenario(
            replace(
                self.cluster,
                pods=tuple(
                    pod for pod in self.cluster.pods if pod.key not in pods
                ),
            )
        )

    def settle(
        self, claims: Iterable[ResourceClaim], nodes: Mapping[ClaimKey, str]
    ) -> Scenario:
        """Return the scenario after placements: claims are allocated as they say, pods are on these nodes."""
        return Scenario(self.cluster.settled(claims, nodes))

    def without_pending(self) -> Scenario:
        """Drop everything that is pending: only running pods, allocated claims and nodes with their devices stay."""
        claims = tuple(
            claim for claim in self.cluster.claims if claim.is_allocated
        )
        return self._with_workload(
            tuple(pod for pod in self.cluster.pods if pod.spec.node_name),
            claims,
        )

    def emptied(self) -> Scenario:
        """No pod and no claim is there."""
        return self._with_workload((), ())

    def _with_workload(
        self, pods: tuple[Pod, ...], claims: tuple[ResourceClaim, ...]
    ) -> Scenario:
        """Just these pods and claims are there, without any groups."""
        present = {claim.key for claim in claims}
        claims_of_pods = {}
        for pod in pods:
            keys = self.cluster.pod_claims(pod)
            claims_of_pods[pod.key] = tuple(
                key for key in keys if key in present
            )
        return Scenario(
            replace(
                self.cluster,
                claims=claims,
                pods=pods,
                claims_of_pods=claims_of_pods,
                unresolved={},
                quotas=(),
                pod_groups={},
                composite_pod_groups={},
                workloads={},
                group_claims={},
                made=frozenset(),
                abandoned=frozenset(),
                suspended=(),
                gone={},
            )
        )

    def with_pods(
        self,
        pods: Iterable[tuple[Pod, Sequence[ClaimKey]]],
        claims: Iterable[ResourceClaim],
    ) -> Scenario:
        """There are more pods, each with the claims that it uses, and more claims."""
        new_pods = tuple(pods)
        used = {pod.key: tuple(keys) for pod, keys in new_pods}
        return Scenario(
            replace(
                self.cluster,
                claims=(*self.cluster.claims, *claims),
                pods=(*self.cluster.pods, *(pod for pod, _ in new_pods)),
                claims_of_pods={**self.cluster.claims_of_pods, **used},
            )
        )

    def without_slices(self) -> Scenario:
        """Nothing is published."""
        return Scenario(replace(self.cluster, slices=()))

    def with_copy_of(self, name: str, copy: str) -> Scenario:
        """There is one more node: empty, not cordoned, with slices of its own in pools of their own."""
        [node] = (
            candidate
            for candidate in self.cluster.nodes
            if candidate.name == name
        )
        slices = [
            _copied_slice(slice_, copy)
            for slice_ in self.cluster.slices
            if slice_.spec.node_name == name
        ]
        nodes = (*self.cluster.nodes, _copied_node(node, copy))
        return Scenario(
            replace(
                self.cluster,
                nodes=nodes,
                slices=(*self.cluster.slices, *slices),
            )
        )

    def without_slices_of(self, nodes: Collection[str]) -> Scenario:
        """Return the scenario without what drivers publish for these nodes alone."""
        slices = tuple(
            slice_
            for slice_ in self.cluster.slices
            if slice_.spec.node_name not in nodes
        )
        return Scenario(replace(self.cluster, slices=slices))

    def without_device_taints(self) -> Scenario:
        """No device is tainted, neither by its driver nor by a DeviceTaintRule (KEP-5055)."""
        untainted = self._with_devices(
            lambda device: replace(device, taints=())
        )
        return Scenario(replace(untainted.cluster, taint_rules=()))

    def with_exact_amounts(self) -> Scenario:
        """Amounts that are asked for are consumed as they are: no request policy rounds or refuses them (KEP-5075).

        What is consumed where nothing is asked for stays what policies say by default.
        """
        exact = self._with_devices(_with_exact_capacity)
        slices = map(_with_exact_counters, exact.cluster.slices)
        return Scenario(replace(exact.cluster, slices=tuple(slices)))

    def _with_devices(self, change: Callable[[Device], Device]) -> Scenario:
        """The devices of all slices are changed; a slice in which none differs stays the object that it is."""
        slices = (
            _with_devices(slice_, change) for slice_ in self.cluster.slices
        )
        return Scenario(replace(self.cluster, slices=tuple(slices)))

    def uncordon(self) -> Scenario:
        """No node is cordoned."""
        return self._with_nodes(_uncordoned)

    def cordon(self, nodes: Collection[str]) -> Scenario:
        """No new pod comes to these nodes, unless it tolerates that."""
        return self._with_nodes(
            lambda node: _cordoned(node) if node.name in nodes else node
        )

    def _with_pods(self, change: Callable[[Pod], Pod]) -> Scenario:
        return Scenario(
            replace(self.cluster, pods=tuple(map(change, self.cluster.pods)))
        )

    def _with_nodes(self, change: Callable[[Node], Node]) -> Scenario:
        return Scenario(
            replace(self.cluster, nodes=tuple(map(change, self.cluster.nodes)))
        )


def _released(
    claim: ResourceClaim, claims: Collection[ClaimKey]
) -> ResourceClaim:
    if claim.key not in claims:
        return claim
    free = changed(
        claim, status=changed(claim.status, allocation=None, reserved_for=())
    )
    return (
        changed(free, metadata=changed(claim.metadata, annotations={}))
        if claim.is_extended
        else free
    )


def _with_claims_as_any_other(
    cluster: Cluster, owners: Mapping[ClaimKey, ClaimKey]
) -> Cluster:
    """The cluster in which pods use these claims as they use those that they name.

    Parameters
    ----------
    owners
        By claim, the pod that has it for what its containers ask for by name.
    """
    claims_of_pods = dict(cluster.claims_of_pods)
    for claim, pod in owners.items():
        claims_of_pods[pod] = tuple(
            dict.fromkeys((*claims_of_pods[pod], claim))
        )
    backed = classes_by_resource(cluster.classes.values()).keys()
    asking = frozenset(owners.values())
    pods = (
        without_resources(pod, backed) if pod.key in asking else pod
        for pod in cluster.pods
    )
    return replace(cluster, pods=tuple(pods), claims_of_pods=claims_of_pods)


def without_resources(pod: Pod, names: Collection[str]) -> Pod:
    """The pod whose containers do not ask for some resources."""

    def without(container: Container) -> Container:
        resources = container.resources
        requests = _without_names(resources.requests, names)
        limits = _without_names(resources.limits, names)
        remaining = changed(resources, requests=requests, limits=limits)
        return changed(container, resources=remaining)

    spec = pod.spec
    return changed(
        pod,
        spec=changed(
            spec,
            containers=tuple(map(without, spec.containers)),
            init_containers=tuple(map(without, spec.init_containers)),
        ),
    )


def _without_names(
    amounts: Mapping[str, Quantity], names: Collection[str]
) -> dict[str, Quantity]:
    return {
        name: amount for name, amount in amounts.items() if name not in names
    }


def _with_devices(
    slice_: ResourceSlice, change: Callable[[Device], Device]
) -> ResourceSlice:
    """The slice with changed devices; the slice itself, with what is known of its like, where they are the same."""
    devices = tuple(map(change, slice_.spec.devices))
    if devices == tuple(slice_.spec.devices):
        return slice_
    return changed(slice_, spec=changed(slice_.spec, devices=devices))


def _with_exact_capacity(device: Device) -> Device:
    """The device whose capacities have no policies but for what they consume by default."""
    capacity: dict[str, DeviceCapacity] = {
        name: replace(
            amount, request_policy=_default_only(amount.request_policy)
        )
        for name, amount in device.capacity.items()
    }
    return replace(device, capacity=capacity)


def _with_exact_counters(slice_: ResourceSlice) -> ResourceSlice:
    """The slice whose counters have no policies but for what they are charged by default (KEP-5941)."""
    counter_sets = tuple(
        map(_with_exact_counter_set, slice_.spec.shared_counters)
    )
    if counter_sets == tuple(slice_.spec.shared_counters):
        return slice_
    return changed(
        slice_, spec=changed(slice_.spec, shared_counters=counter_sets)
    )


def _with_exact_counter_set(counter_set: CounterSet) -> CounterSet:
    counters = {
        name: replace(
            counter, request_policy=_default_only(counter.request_policy)
        )
        for name, counter in counter_set.counters.items()
    }
    return replace(counter_set, counters=counters)


def _default_only(
    policy: CapacityRequestPolicy | None,
) -> CapacityRequestPolicy | None:
    return (
        None
        if policy is None
        else CapacityRequestPolicy(default=policy.default)
    )


def _copied_node(node: Node, name: str) -> Node:
    """A node of another name, which its host name follows, to which pods come."""
    labels = {
        key: name if key == HOSTNAME_LABEL else value
        for key, value in node.metadata.labels.items()
    }
    return changed(
        _uncordoned(node),
        metadata=changed(node.metadata, name=name, labels=labels),
    )


def _uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint != CORDON_TAINT)
    return changed(
        node, spec=changed(node.spec, unschedulable=False, taints=taints)
    )


def _copied_slice(slice_: ResourceSlice, node: str) -> ResourceSlice:
    """A slice for another node."""
    name, pool = (
        f"{slice_.metadata.name} of {node}",
        changed(slice_.spec.pool, name=f"{slice_.spec.pool.name} of {node}"),
    )
    metadata, spec = (
        changed(slice_.metadata, name=name),
        changed(slice_.spec, node_name=node, pool=pool),
    )
    return changed(slice_, metadata=metadata, spec=spec)


def _unbound(pod: Pod) -> Pod:
    return (
        changed(pod, spec=changed(pod.spec, node_name=None))
        if pod.spec.node_name
        else pod
    )


def _unbound_incumbent(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    remaining_affinity = affinity and changed(affinity, pod_affinity=None)
    spec = changed(
        pod.spec,
        node_name=None,
        scheduling_gates=(),
        affinity=remaining_affinity,
        topology_spread_constraints=(),
    )
    return changed(pod, spec=spec)


def _cordoned(node: Node) -> Node:
    return changed(node, spec=changed(node.spec, unschedulable=True))
