"""The groups that pods are in: of a PodGroup (KEP-4671), of a Workload (Kubernetes 1.35), or by a common label."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from dralloc.compile.compiler.extended import DevicePlugins
from dralloc.objects.api import ApiObject, Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import ACROSS

__all__ = ["PodsOfGroup", "groups_of_pods"]


@dataclass(frozen=True)
class PodsOfGroup:
    """The pods of a group, also those that run.

    Parameters
    ----------
    about, path
        The object and field that says how many are needed, if there is one.
    needed
        How many are needed; None for all.
    topology
        The label of which their nodes have the same value; empty if that does not matter.
    has_policy
        Whether something says how many are needed.
    parent
        The group that it is a child of.
    pods_there
        How many of the pods can be placed, or are.
    served
        How many of these wait for no device: they run, or ask for none, or hold all that they ask for.
    """

    name: str
    about: ApiObject | None = None
    path: str = ""
    needed: int | None = None
    topology: str = ""
    has_policy: bool = True
    parent: ClaimKey | None = None
    pods: list[Pod] = field(default_factory=list)
    pods_there: int = 0
    served: int = 0

    @property
    def matters(self) -> bool:
        """Whether its pods depend on each other."""
        spanned = (
            self.about is not None and ACROSS in self.about.metadata.annotations
        )
        return (
            self.has_policy
            or bool(self.topology)
            or spanned
            or self.parent is not None
        )

    @property
    def is_gang(self) -> bool:
        """Whether the rest is placed together or not at all; not if enough pods are served already."""
        return self.needed is None or self.served < self.needed

    @property
    def quorum(self) -> int | None:
        """Return how many of those that wait are needed; None for all."""
        return (
            None if self.needed is None else max(1, self.needed - self.served)
        )

    @property
    def halted(self) -> bool:
        """Whether there are too few pods for any of them to be placed."""
        return self.needed is not None and self.pods_there < self.needed


def groups_of_pods(
    cluster: Cluster,
    features: Features,
    plugins: DevicePlugins,
    label: str,
    *,
    spanned: bool,
) -> Iterator[PodsOfGroup]:
    """The groups of a cluster's pods, as far as their pods depend on each other.

    Parameters
    ----------
    plugins
        What pods ask for by name.
    label
        Pods of a namespace with the same value of this label are a group, whatever their PodGroup says.
    spanned
        Whether there are constraints over the claims of each group, so that every group matters.
    """
    groups: dict[str, PodsOfGroup] = {}
    named = frozenset(
        pod.pod_group
        for pod in cluster.pods
        if pod.pod_group and label not in pod.metadata.labels
    )
    for pod in cluster.pods:
        group = _group_of(pod, cluster, features, label, named)
        if group is not None and (group.matters or spanned):
            groups.setdefault(group.name, group).pods.append(pod)
    for group in groups.values():
        ready = [
            pod
            for pod in group.pods
            if pod.spec.node_name or not pod.spec.scheduling_gates
        ]
        served = sum(
            bool(pod.spec.node_name) or not _waits(pod, cluster, plugins)
            for pod in ready
        )
        yield replace(group, pods_there=len(ready), served=served)


def _waits(pod: Pod, cluster: Cluster, plugins: DevicePlugins) -> bool:
    """Whether a pod asks for devices that it does not hold yet, or that there are nowhere."""
    claims = [cluster.claim(key) for key in cluster.pod_claims(pod)]
    pending = any(claim is None or not claim.is_allocated for claim in claims)
    return pending or (not claims and bool(plugins.missing(pod)))


def _group_of(
    pod: Pod,
    cluster: Cluster,
    features: Features,
    label: str,
    named: Collection[ClaimKey],
) -> PodsOfGroup | None:
    """Return the group of a pod, given the PodGroups of all pods without the label."""
    # A group by label goes before any PodGroup. Nothing says how many of its pods are needed, so all are.
    if label in pod.metadata.labels:
        key = ClaimKey(pod.key.namespace, pod.metadata.labels[label])
        # Groups are told apart by their names, and a PodGroup can be called what the label says: that is another group.
        return PodsOfGroup(f"{key} ({label})" if key in named else str(key))
    if not features.GenericWorkload:
        return None
    if pod.pod_group is None:
        return _group_of_workload(pod, cluster)
    group = cluster.pod_groups.get(pod.pod_group)
    # Of a group that is not there all pods are needed as well.
    if group is None:
        return PodsOfGroup(
            str(pod.pod_group), pod, "spec.schedulingGroup.podGroupName"
        )
    policy, constraints = (
        group.spec.scheduling_policy.gang,
        group.spec.scheduling_constraints,
    )
    topology = ""
    if features.TopologyAwareWorkloadScheduling and constraints.topology:
        topology = constraints.topology[0].key
    above = (
        group.spec.parent_composite_pod_group_name
        if features.CompositePodGroup
        else None
    )
    return PodsOfGroup(
        str(group.key),
        group,
        "spec.schedulingPolicy.gang.minCount",
        needed=policy.min_count if policy else 1,
        topology=topology,
        has_policy=policy is not None,
        parent=ClaimKey(group.key.namespace, above) if above else None,
    )


def _group_of_workload(pod: Pod, cluster: Cluster) -> PodsOfGroup | None:
    reference = pod.spec.workload_ref
    if reference is None:
        return None
    # Each replica of a pod group is a group of its own: its key is part of the name, if it has one.
    name = "/".join(
        filter(None, (pod.key.namespace, *reference.model_dump().values()))
    )
    workload = cluster.workloads.get(
        ClaimKey(pod.key.namespace, reference.name)
    )
    if workload is None:
        return PodsOfGroup(name, pod, "spec.workloadRef.name")
    for group_index, group in enumerate(workload.spec.pod_groups):
        if group.name == reference.pod_group:
            path, gang = (
                f"spec.podGroups[{group_index}].policy.gang.minCount",
                group.policy.gang,
            )
            return PodsOfGroup(
                name,
                workload,
                path,
                gang.min_count if gang else 1,
                has_policy=gang is not None,
            )
    return PodsOfGroup(name, pod, "spec.workloadRef.podGroup")
