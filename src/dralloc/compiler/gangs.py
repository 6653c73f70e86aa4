"""Which pods are placed together: those of a PodGroup with a gang policy (KEP-4671), or those with a common label.

A group is admitted when ``minCount`` of its pods have a node, those that run already counted; the others are welcome.
Of pods with a common label, and of those whose group is not known, all are needed. All pods of a group with a topology
constraint are on nodes with the same value of a label, those that run already included (KEP-5732); where these are in
no domain, or in several, no other pod comes (plugin ``topologyaware`` of kube-scheduler). Groups can be children of
others (see `dralloc.compiler.group_trees`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.across import ACROSS
from dralloc.api import ApiObject, Pod
from dralloc.cluster import Cluster
from dralloc.compiler.device_plugins import DevicePlugins
from dralloc.compiler.group_trees import GroupTrees, Leaf
from dralloc.compiler.topology import Topology
from dralloc.errors import Finding
from dralloc.features import Features
from dralloc.names import ClaimKey
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.parent_groups import ParentGroup

__all__ = ["Gangs", "PodsOfGroup", "find_gangs"]


@dataclass(frozen=True, slots=True)
class PodsOfGroup:
    """The pods of a group, also those that run; and the object that speaks for it, if there is one."""

    about: ApiObject | None
    pods: Sequence[Pod]


@dataclass(frozen=True)
class Gangs:
    """The gang of each pod that is in one.

    Parameters
    ----------
    quorums
        How many more pods a gang needs; all of them if it is not here.
    halted
        Gangs with fewer pods than they need.
    roles
        Of the pods of gangs that have to choose a domain.
    elsewhere
        Names of nodes that are in no domain for a pod.
    groups
        All groups, by name.
    parents
        The groups that gangs are part of.
    """

    of_pods: Mapping[ClaimKey, str] = field(default_factory=dict)
    quorums: Mapping[str, int] = field(default_factory=dict)
    halted: frozenset[str] = frozenset()
    roles: Mapping[str, tuple[Role, ...]] = field(default_factory=dict)
    elsewhere: Mapping[ClaimKey, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, PodsOfGroup] = field(default_factory=dict)
    parents: Mapping[str, ParentGroup] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def of(self, pod: Pod) -> str:
        """The gang of a pod; empty if it has none."""
        return self.of_pods.get(pod.key, "") if self.of_pods else ""


@dataclass(frozen=True)
class _Group:
    """Pods of a group: the object and field that says how many are needed; None for all.

    ``topology``: the label of which their nodes have the same value; empty if that does not matter. ``has_policy``:
    whether something says how many are needed. ``parent``: the group that it is a child of.
    """

    name: str
    about: ApiObject | None = None
    path: str = ""
    needed: int | None = None
    topology: str = ""
    has_policy: bool = True
    parent: ClaimKey | None = None

    @property
    def matters(self) -> bool:
        """Whether its pods depend on each other."""
        spanned = self.about is not None and ACROSS in self.about.metadata.annotations
        return self.has_policy or bool(self.topology) or spanned or self.parent is not None


def find_gangs(
    cluster: Cluster, features: Features, plugins: DevicePlugins, label: str = "", *, spanned: bool = False
) -> Gangs:
    """Find the gangs of a cluster's pods.

    Parameters
    ----------
    plugins
        What pods ask for by name.
    label
        Pods of a namespace with the same value of this label are a gang, whatever their PodGroup says.
    spanned
        Whether there are constraints over the claims of each group: then also those groups matter of which the pods
        are placed one by one.
    """
    members: dict[str, list[Pod]] = defaultdict(list)
    groups: dict[str, _Group] = {}
    for pod in cluster.pods:
        group = _group_of(pod, cluster, features, label)
        if group is not None and (group.matters or spanned):
            groups.setdefault(group.name, group)
            members[group.name].append(pod)
    judged = [(group, _Judgement.of(group, members[name], cluster, plugins)) for name, group in groups.items()]
    gangs = {group.name for group, judgement in judged if judgement.is_gang or group.parent}
    topology = Topology(cluster)
    leaves = [
        Leaf(group.name, group.parent, members[group.name], not judgement.is_gang)
        for group, judgement in judged
        if group.parent
    ]
    trees = GroupTrees(cluster, topology, leaves)
    bound = {group.name: topology.domain(group.topology, members[group.name]) for group in groups.values()}
    elsewhere = {name: topology.outside(group.topology, bound[name]) for name, group in groups.items()}
    for leaf in leaves:
        elsewhere[leaf.name] |= trees.outside(leaf.name)
    rules = {name: topology.rule(groups[name].topology) if bound[name] is None else None for name in gangs}
    return Gangs(
        of_pods={pod.key: name for name in groups if name in gangs for pod in members[name]},
        quorums={group.name: judgement.quorum for group, judgement in judged if judgement.quorum is not None},
        halted=trees.halted.union(group.name for group, judgement in judged if judgement.halted),
        roles={name: tuple(_roles(own, trees.parents.get(name))) for name, own in rules.items()},
        elsewhere={pod.key: nodes for name, nodes in elsewhere.items() if nodes for pod in members[name]},
        groups={name: PodsOfGroup(group.about, members[name]) for name, group in groups.items()},
        parents=trees.parents,
        findings=(*_remarks(cluster, judged), *trees.findings),
    )


def _group_of(pod: Pod, cluster: Cluster, features: Features, label: str) -> _Group | None:
    namespace = pod.key.namespace
    if label in pod.metadata.labels:
        return _Group(f"{namespace}/{pod.metadata.labels[label]}")
    if not features.GenericWorkload:
        return None
    if pod.pod_group is not None:
        group = cluster.pod_groups.get(ClaimKey(namespace, pod.pod_group))
        name = f"{namespace}/{pod.pod_group}"
        if group is None:
            return _Group(name, pod, "spec.schedulingGroup.podGroupName")
        policy, constraints = group.spec.scheduling_policy.gang, group.spec.scheduling_constraints
        near = features.TopologyAwareWorkloadScheduling and constraints.topology
        key = constraints.topology[0].key if near else ""
        needed = policy.min_count if policy else 1
        path = "spec.schedulingPolicy.gang.minCount"
        above = group.spec.parent_composite_pod_group_name if features.CompositePodGroup else None
        parent = ClaimKey(namespace, above) if above else None
        return _Group(name, group, path, needed, key, policy is not None, parent)
    return _group_of_workload(pod, cluster)


def _group_of_workload(pod: Pod, cluster: Cluster) -> _Group | None:
    """The group inside of a Workload (Kubernetes 1.35)."""
    reference = pod.spec.workload_ref
    if reference is None:
        return None
    name = "/".join(filter(None, (pod.key.namespace, *reference.model_dump().values())))
    workload = cluster.workloads.get(ClaimKey(pod.key.namespace, reference.name))
    if workload is None:
        return _Group(name, pod, "spec.workloadRef.name")
    for number, group in enumerate(workload.spec.pod_groups):
        if group.name == reference.pod_group:
            path = f"spec.podGroups[{number}].policy.gang.minCount"
            gang = group.policy.gang
            return _Group(name, workload, path, gang.min_count if gang else 1, has_policy=gang is not None)
    return _Group(name, pod, "spec.workloadRef.podGroup")


@dataclass(frozen=True)
class _Judgement:
    """How many pods of a group there are, and how many are needed.

    ``served``: how many of them wait for no device: they run, or ask for none, or hold all that they ask for.
    """

    pods: int
    served: int
    needed: int | None

    @classmethod
    def of(cls, group: _Group, pods: list[Pod], cluster: Cluster, plugins: DevicePlugins) -> _Judgement:
        there = [pod for pod in pods if pod.spec.node_name or not pod.spec.scheduling_gates]
        waiting = sum(not pod.spec.node_name and _asks(pod, cluster, plugins) for pod in there)
        return cls(len(there), len(there) - waiting, group.needed)

    @property
    def is_gang(self) -> bool:
        """Whether the rest is placed together or not at all; not if enough pods are served already."""
        return self.needed is None or self.served < self.needed

    @property
    def quorum(self) -> int | None:
        """How many of those that wait are needed; None for all."""
        return None if self.needed is None else max(1, self.needed - self.served)

    @property
    def halted(self) -> bool:
        """Whether there are too few pods for any of them to be placed."""
        return self.needed is not None and self.pods < self.needed


def _asks(pod: Pod, cluster: Cluster, plugins: DevicePlugins) -> bool:
    """Whether a pod asks for devices that it does not hold yet, or that there are nowhere."""
    claims = [cluster.claim(key) for key in cluster.pod_claims(pod)]
    pending = any(claim is None or claim.status.allocation is None for claim in claims)
    return pending or (not claims and bool(plugins.missing(pod)))


def _roles(own: OneDomain | None, parent: ParentGroup | None) -> Iterator[Role]:
    """What pods of one gang are to each other, and to those of the gangs beside it."""
    above = parent.upwards() if parent else ()
    for rule in (own, *(group.rule for group in above)):
        if rule is not None:
            yield Role(rule, carries=True, counts=True)


def _remarks(cluster: Cluster, judged: list[tuple[_Group, _Judgement]]) -> Iterator[Finding]:
    for group, judgement in judged:
        if group.about is None:
            continue
        if judgement.needed is None:
            rule = f"the group {group.name} was not found; its {judgement.pods} pods are placed all or none"
        elif judgement.halted:
            rule = f"needs {judgement.needed} pods, but there are {judgement.pods}: none is placed"
        else:
            continue
        yield cluster.remark(group.about, group.path, rule)
