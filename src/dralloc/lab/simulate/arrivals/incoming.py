"""The cluster with everybody who will arrive, as pods that wait: what is compiled once for a whole simulation.

An arrival is a copy of its template. It has claims of its own, also where the template names a claim: nobody shares
anything with those who come before or after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.lab.simulate.arrivals.trace import Arrival
from dralloc.objects.api import (
    ObjectMeta,
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimSpec,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.workloads import (
    GangPolicy,
    PodGroupSpec,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    SchedulingPolicy,
)
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.indices import DemandIndex, grouped, numbered

__all__ = ["Incoming", "incoming"]


@dataclass(frozen=True, eq=False)
class Incoming:
    """A compiled cluster in which nothing is pending but the arrivals of a trace.

    Parameters
    ----------
    arrivals
        In order of their times.
    pods
        The pod of each arrival.
    demands
        The number of the demand of each arrival; None if it asks for no device.
    jobs
        Arrivals that are placed together or not at all, by their numbers: the most important ones first, then as they
        come. In the order of the first of each.
    """

    compiled: CompiledCluster
    arrivals: tuple[Arrival, ...]
    pods: tuple[ClaimKey, ...]
    demands: tuple[DemandIndex | None, ...]
    jobs: tuple[tuple[int, ...], ...]

    @cached_property
    def problem(self) -> Problem:
        """With all that binds pods to nodes and to each other."""
        return self.compiled.whole

    @cached_property
    def arrival_of(self) -> Mapping[DemandIndex, int]:
        """The arrival of each demand."""
        return {
            demand: arrival
            for arrival, demand in enumerate(self.demands)
            if demand is not None
        }

    def demand(self, arrival: int) -> Demand | None:
        """Return what an arrival asks for of devices; None if that is nothing."""
        demand_index = self.demands[arrival]
        return (
            None if demand_index is None else self.problem.demands[demand_index]
        )

    def asked_devices(self, arrival: int) -> int:
        """Return how many devices an arrival asks for at least."""
        demand_index = self.demands[arrival]
        return (
            0
            if demand_index is None
            else self.compiled.problem.demands[demand_index].asked_devices
        )

    def may_preempt(self, arrival: int) -> bool:
        """Whether an arrival's pod may take the place of less important ones."""
        spec = self.compiled.cluster.pods_by_key[self.pods[arrival]].spec
        return spec.preemption_policy != "Never"

    def priority(self, arrival: int) -> int:
        """Return the priority of an arrival's pod."""
        return (
            self.compiled.cluster.pods_by_key[self.pods[arrival]].spec.priority
            or 0
        )


def incoming(
    cluster: Cluster, arrivals: Sequence[Arrival], choices: Choices
) -> Incoming:
    """Compile a cluster with the pods of a trace; what is pending otherwise is left out, and so are quotas.

    Raises
    ------
    DrallocError
        A template is not there, or cannot be copied; and what compiling a cluster raises.
    """
    writer = _PodWriter(cluster)
    in_order = tuple(sorted(arrivals, key=lambda arrival: arrival.time))
    copies = [
        writer.copied(arrival_index, arrival)
        for arrival_index, arrival in enumerate(in_order)
    ]
    jobs = tuple(_jobs(in_order, [writer.pods[key][0] for key in copies]))
    scenario = (
        Scenario(cluster)
        .without_pending()
        .with_pods(writer.pods.values(), writer.claims.values())
    )
    # `Scenario.without_pending` drops the groups of the cluster: those of the trace are the only ones.
    groups = {group.key: group for group in writer.groups(in_order, copies)}
    compiled = compile_cluster(
        replace(scenario.cluster, pod_groups=groups), choices
    )
    demand_indices = {
        demand.key: demand_index
        for demand_index, demand in numbered(compiled.problem.demands)
    }
    demands = tuple(demand_indices.get(key) for key in copies)
    return Incoming(compiled, in_order, tuple(copies), demands, jobs)


def _jobs(
    arrivals: Sequence[Arrival], pods: Sequence[Pod]
) -> Iterator[tuple[int, ...]]:
    """Yield those who are placed together."""
    together = grouped(
        (
            (pods[arrival_index].key.namespace, arrival.group)
            if arrival.group
            else arrival_index,
            arrival_index,
        )
        for arrival_index, arrival in enumerate(arrivals)
    )

    def importance(arrival_index: int) -> tuple[int, int]:
        return -(pods[arrival_index].spec.priority or 0), arrival_index

    jobs = (
        tuple(sorted(members, key=importance)) for members in together.values()
    )
    yield from sorted(jobs, key=lambda members: members[0])


class _PodWriter:
    """Writes the pods and claims of arrivals."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._specs = {
            template.key: template.spec.spec for template in cluster.templates
        }
        self._taken = {pod.key for pod in cluster.pods}
        self._patterns: dict[
            ClaimKey, tuple[Pod, Sequence[ResourceClaimSpec]]
        ] = {}
        self.pods: dict[ClaimKey, tuple[Pod, Sequence[ClaimKey]]] = {}
        self.claims: dict[ClaimKey, ResourceClaim] = {}

    def copied(self, arrival_index: int, arrival: Arrival) -> ClaimKey:
        """Write the pod of an arrival; returns its key."""
        if arrival.template not in self._patterns:
            self._patterns[arrival.template] = self._pattern(arrival.template)
        pattern, specs = self._patterns[arrival.template]
        namespace = arrival.namespace or arrival.template.namespace
        key = self._free_key(
            namespace, f"{arrival.template.name}-{arrival_index:07}"
        )
        spec = pattern.spec
        if arrival.priority is not None:
            spec = changed(spec, priority=arrival.priority)
        if arrival.group:
            spec = changed(
                spec,
                scheduling_group=PodSchedulingGroup(
                    pod_group_name=arrival.group
                ),
            )
        metadata = changed(pattern.metadata, name=key.name, namespace=namespace)
        # The pod's entries still name what its template uses: the claims of its own stand beside it in `pods`.
        claims = [
            self._claim(key, claim_index, template_spec)
            for claim_index, template_spec in enumerate(specs)
        ]
        self.pods[key] = changed(pattern, metadata=metadata, spec=spec), claims
        return key

    def groups(
        self, arrivals: Sequence[Arrival], pods: Sequence[ClaimKey]
    ) -> Iterator[PodGroup]:
        """Yield the groups of arrivals, of which all members are needed."""
        members = grouped(
            (ClaimKey(pod.namespace, arrival.group), pod)
            for arrival, pod in zip(arrivals, pods, strict=True)
            if arrival.group
        )
        for key, member_pods in members.items():
            policy = SchedulingPolicy(
                gang=GangPolicy(min_count=len(member_pods))
            )
            metadata = ObjectMeta(name=key.name, namespace=key.namespace)
            yield PodGroup(
                metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy)
            )

    def _free_key(self, namespace: str, name: str) -> ClaimKey:
        key = ClaimKey(namespace, name)
        while key in self._taken:
            key = ClaimKey(namespace, f"{key.name}-x")
        self._taken.add(key)
        return key

    def _claim(
        self, pod: ClaimKey, claim_index: int, spec: ResourceClaimSpec
    ) -> ClaimKey:
        key = ClaimKey(pod.namespace, f"{pod.name}-{claim_index}")
        self.claims[key] = ResourceClaim(
            metadata=ObjectMeta(name=key.name, namespace=key.namespace),
            spec=spec,
        )
        return key

    def _pattern(
        self, template: ClaimKey
    ) -> tuple[Pod, Sequence[ResourceClaimSpec]]:
        """Return a pod that waits, and what its claims ask for."""
        pod = self._cluster.pods_by_key.get(template) or self._owned.get(
            template
        )
        if pod is None:
            return self._pod_for(template)
        if pod.key in self._cluster.unresolved:
            raise DrallocError(
                f"Pod {pod.key}: {self._cluster.unresolved[pod.key][0]}"
            )
        claims = filter(
            None, map(self._cluster.claim, self._cluster.pod_claims(pod))
        )
        metadata = ObjectMeta(
            namespace=template.namespace, labels=pod.metadata.labels
        )
        # A copy is bound nowhere, held back by no gate, and in no group but that of its arrival.
        alone = changed(
            pod.spec,
            node_name=None,
            scheduling_gates=(),
            scheduling_group=None,
            workload_ref=None,
        )
        return changed(
            pod, metadata=metadata, spec=alone, status=PodStatus()
        ), [claim.spec for claim in claims]

    @cached_property
    def _owned(self) -> Mapping[ClaimKey, Pod]:
        """A pod of each owner, such as a Job, by the owner's name."""
        owned = (
            (ClaimKey(pod.key.namespace, owner.name), pod)
            for pod in self._cluster.pods
            for owner in pod.metadata.owner_references
        )
        return {key: pods[0] for key, pods in grouped(owned).items()}

    def _pod_for(
        self, template: ClaimKey
    ) -> tuple[Pod, Sequence[ResourceClaimSpec]]:
        """Return a pod that has one claim and asks for nothing else."""
        claim = self._cluster.claim(template)
        spec = self._specs.get(template) or (claim.spec if claim else None)
        if spec is None:
            kinds = (
                "no pod, owner of pods, ResourceClaimTemplate or ResourceClaim"
            )
            raise DrallocError(
                f"arrivals: template {template}: {kinds} has this name"
            )
        entry = PodResourceClaim(
            name="devices", resource_claim_template_name=template.name
        )
        metadata = ObjectMeta(namespace=template.namespace)
        return Pod(metadata=metadata, spec=PodSpec(resource_claims=(entry,))), [
            spec
        ]
