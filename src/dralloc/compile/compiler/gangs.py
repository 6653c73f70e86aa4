"""Finds gangs: pods of a PodGroup with a gang policy (KEP-4671), or pods with a common label.

A group is admitted when ``minCount`` of its pods have a node, those that run already counted; the others are welcome.
Of pods with a common label, and of those whose group is not known, all are needed. All pods of a group with a topology
constraint are on nodes with the same value of a label, those that run already included (KEP-5732); where these are in
no domain, or in several, no other pod comes (plugin ``topologyaware`` of kube-scheduler). Groups can be children of
others (KEP-6012).

From the bottom: domains of nodes, the groups that pods are in, groups of groups, gangs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Final

from dralloc.compile.compiler.extended import DevicePlugins
from dralloc.objects.api import ApiObject, CompositePodGroup, Node, Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import ACROSS
from dralloc.problem import ParentGroup
from dralloc.problem.inter_pod import Domains, OneDomain, Role

__all__ = ["Ancestry", "Gangs", "Topology", "children_needed", "find_gangs"]

# ----------------------------------------------------------------------------
# The domains of nodes, by the label that makes them.


class Topology:
    """The domains of some nodes. ``domains``: the same object for the same label."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.name: node.metadata.labels for node in nodes}
        self.domains = cache(self._read)

    def _read(self, label: str) -> Domains:
        return {
            name: labels[label]
            for name, labels in self._nodes.items()
            if label in labels
        }

    def one_domain(
        self, label: str, pods: Iterable[Pod]
    ) -> tuple[frozenset[str], OneDomain | None]:
        """The nodes that are in no domain for pods of one group, and what these carry if they have to choose one.

        Where some of them run is their domain; if these are in none, or in several, there is none for the others.
        """
        if not label:
            return frozenset(), None
        domains = self.domains(label)
        homes = {
            domains.get(pod.spec.node_name, "")
            for pod in pods
            if pod.spec.node_name
        }
        inside = (
            name
            for name, domain in domains.items()
            if not homes or (domain and homes == {domain})
        )
        outside = frozenset(self._nodes).difference(inside)
        # Where some run already, there is nothing to choose any more.
        return outside, None if homes else OneDomain(domains)


# ----------------------------------------------------------------------------
# The groups that pods are in: of a PodGroup (KEP-4671), of a Workload (Kubernetes
# 1.35), or by a common label.


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


def _pod_groups(
    cluster: Cluster,
    features: Features,
    plugins: DevicePlugins,
    label: str,
    *,
    spanned: bool,
) -> Iterator[PodsOfGroup]:
    """The groups of a cluster's pods, as far as their pods depend on each other. Parameters as in `find_gangs`."""
    groups: dict[str, PodsOfGroup] = {}
    for pod in cluster.pods:
        group = _group_of(pod, cluster, features, label)
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
    pod: Pod, cluster: Cluster, features: Features, label: str
) -> PodsOfGroup | None:
    if label in pod.metadata.labels:
        return PodsOfGroup(f"{pod.key.namespace}/{pod.metadata.labels[label]}")
    if not features.GenericWorkload:
        return None
    if pod.pod_group is None:
        return _group_of_workload(pod, cluster)
    group = cluster.pod_groups.get(pod.pod_group)
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


# ----------------------------------------------------------------------------
# Groups of groups: CompositePodGroups above PodGroups (KEP-6012, Kubernetes 1.37).
#
# A group is settled if enough of what is in it runs already or asks for no devices:
# others place that. Who is below a group that is not there, in a circle or too deep
# is not placed.

_DEEPEST: Final = 4
"""Levels of a tree, PodGroups included (``WorkloadMaxTreeDepth`` of scheduling.k8s.io)."""


class Ancestry:
    """The tree of CompositePodGroups, by name."""

    def __init__(self, groups: Mapping[ClaimKey, CompositePodGroup]) -> None:
        self._groups = groups

    def upwards(self, key: ClaimKey | None) -> Iterator[ClaimKey]:
        """The groups from one up, whether they are there or not, no more than are too many."""
        for _ in range(_DEEPEST):
            if key is None:
                return
            yield key
            key = self.parent(key)

    def parent(self, key: ClaimKey) -> ClaimKey | None:
        """The group above a group."""
        group = self._groups.get(key)
        name = group.spec.parent_composite_pod_group_name if group else None
        return ClaimKey(key.namespace, name) if name else None

    def defect(self, leaf: str, above: Sequence[ClaimKey]) -> str:
        """Return the fault in the groups above a PodGroup; empty if they are in order.

        Source: KEP-6012, "Group hierarchy": the scheduler does not look at pods below such groups.
        """
        missing = next((key for key in above if key not in self._groups), None)
        if missing is not None:
            return f"the CompositePodGroup {missing} was not found"
        if len(above) >= _DEEPEST:
            return f"the groups above {leaf} are in a circle, or more than {_DEEPEST - 1}"
        return ""


def children_needed(group: CompositePodGroup) -> int:
    """The number of children that must be admitted; one if they are independent."""
    gang = group.spec.scheduling_policy.gang
    return gang.min_group_count if gang else 1


class GroupTrees:
    """The trees above some PodGroups.

    Parameters
    ----------
    near
        Whether groups of groups can be in one domain (KEP-5732).

    Attributes
    ----------
    defects
        Why no pod of a PodGroup is placed, by its name, where its tree is not in order.
    """

    def __init__(
        self,
        cluster: Cluster,
        topology: Topology,
        leaves: Sequence[PodsOfGroup],
        *,
        near: bool,
    ) -> None:
        self._cluster = cluster
        self._groups = cluster.composite_pod_groups
        self._ancestry = Ancestry(self._groups)
        self._topology = topology
        self._near = near
        self._leaves = leaves
        self._above = {
            leaf.name: list(self._ancestry.upwards(leaf.parent))
            for leaf in leaves
        }
        self._pods: dict[ClaimKey, list[Pod]] = defaultdict(list)
        for leaf in leaves:
            for key in self._above[leaf.name]:
                self._pods[key] += leaf.pods
        defects = {
            name: self._ancestry.defect(name, above)
            for name, above in self._above.items()
        }
        self.defects = {
            name: defect for name, defect in defects.items() if defect
        }
        self._group = cache(self._made)

    @cached_property
    def parents(self) -> Mapping[str, ParentGroup]:
        """The parent of each PodGroup that has one, by name, where the tree is in order."""
        good = {
            name: above
            for name, above in self._above.items()
            if above and name not in self.defects
        }
        return {name: self._group(above[0]) for name, above in good.items()}

    @property
    def findings(self) -> Iterator[Finding]:
        """Yield the faults of trees of groups."""
        for name, defect in self.defects.items():
            about = self._cluster.pod_groups[ClaimKey.parse(name)]
            rule = f"{defect}: none of its pods is placed"
            yield self._cluster.remark(
                about, "spec.parentCompositePodGroupName", rule
            )

    def outside(self, leaf: str) -> frozenset[str]:
        """The nodes that are in no domain for a PodGroup's pods, because of the groups above it."""
        above = () if leaf in self.defects else self._above[leaf]
        return frozenset().union(*(self._domain(key)[0] for key in above))

    def _made(self, key: ClaimKey) -> ParentGroup:
        group = self._groups[key]
        above = self._ancestry.parent(key)
        settled = frozenset(
            name for name, done in self._children[key].items() if done
        )
        return ParentGroup(
            name=f"{group.kind} {key}",
            quorum=max(0, children_needed(group) - len(settled)),
            settled=settled,
            parent=self._group(above) if above else None,
            rule=self._domain(key)[1],
        )

    @cached_property
    def _children(self) -> Mapping[ClaimKey | None, Mapping[str, bool]]:
        """The children of each group by name, and whether each is settled."""
        children: dict[ClaimKey | None, dict[str, bool]] = defaultdict(dict)
        for leaf in self._leaves:
            children[leaf.parent][leaf.name] = not leaf.is_gang
        # Each round settles one level more; the order in which groups are given says nothing about levels.
        for _ in range(_DEEPEST):
            for key, group in self._groups.items():
                enough = sum(children[key].values()) >= children_needed(group)
                children[self._ancestry.parent(key)][f"{group.kind} {key}"] = (
                    enough
                )
        return children

    def _domain(self, key: ClaimKey) -> tuple[frozenset[str], OneDomain | None]:
        constraints = (
            self._groups[key].spec.scheduling_constraints.topology
            if self._near
            else ()
        )
        return self._topology.one_domain(
            constraints[0].key if constraints else "", self._pods[key]
        )


@dataclass(frozen=True, slots=True)
class Gang:
    """The group of a pod, and what follows for the pod's demand.

    Parameters
    ----------
    name
        Empty if pods are placed one by one.
    quorum
        How many more pods it needs for any to be placed, at least one; None for all of them.
    halted
        Whether there are fewer pods than it needs.
    roles
        Of its pods, if they have to choose a domain.
    parent
        The group that it is part of.
    elsewhere
        Names of nodes that are in no domain for its pods.
    """

    name: str = ""
    quorum: int | None = None
    halted: bool = False
    roles: tuple[Role, ...] = ()
    parent: ParentGroup | None = None
    elsewhere: frozenset[str] = frozenset()


_ALONE = Gang()


@dataclass(frozen=True)
class Gangs:
    """The gang of each pod of a group, and all groups by name."""

    of_pods: Mapping[ClaimKey, Gang] = field(default_factory=dict)
    groups: Mapping[str, PodsOfGroup] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def of(self, pod: Pod) -> Gang:
        """The gang that a pod is placed with; one without a name if it has none, or a node already.

        A pod with a node counts as placed, whatever becomes of a claim that it still waits for.
        """
        return (
            _ALONE if pod.spec.node_name else self.of_pods.get(pod.key, _ALONE)
        )

    def companions(self, pod: ClaimKey) -> frozenset[ClaimKey]:
        """The pods of a pod's group, and of all groups of its tree: those that run, and itself, too."""
        parent = self.of_pods.get(pod, _ALONE).parent
        companions: set[ClaimKey] = set()
        for group in self.groups.values():
            members = [member.key for member in group.pods]
            parent_of_group = self.of_pods[members[0]].parent
            is_same_tree = (
                parent is not None
                and parent_of_group is not None
                and parent_of_group.root is parent.root
            )
            if is_same_tree or pod in members:
                companions.update(members)
        return frozenset(companions)


def find_gangs(
    cluster: Cluster,
    features: Features,
    plugins: DevicePlugins,
    label: str = "",
    *,
    spanned: bool = False,
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
    groups = list(
        _pod_groups(cluster, features, plugins, label, spanned=spanned)
    )
    topology = Topology(cluster.nodes)
    trees = GroupTrees(
        cluster, topology, groups, near=features.TopologyAwareWorkloadScheduling
    )
    gangs = [(_gang(group, topology, trees), group.pods) for group in groups]
    return Gangs(
        of_pods={pod.key: gang for gang, pods in gangs for pod in pods},
        groups={group.name: group for group in groups},
        findings=(*_remarks(cluster, groups), *trees.findings),
    )


def _gang(group: PodsOfGroup, topology: Topology, trees: GroupTrees) -> Gang:
    outside, rule = topology.one_domain(group.topology, group.pods)
    elsewhere = outside | trees.outside(group.name)
    if not group.is_gang and group.parent is None and rule is None:
        return Gang(elsewhere=elsewhere)
    # Also where enough pods are there that wait for no device, the others have to agree about a domain.
    parent = trees.parents.get(group.name)
    rules = [rule]
    if parent:
        rules += (ancestor.rule for ancestor in parent.upwards())
    roles = tuple(
        Role(domain_rule, carries=True, counts=True)
        for domain_rule in rules
        if domain_rule is not None
    )
    return Gang(
        group.name,
        group.quorum,
        group.halted or group.name in trees.defects,
        roles,
        parent,
        elsewhere,
    )


def _remarks(
    cluster: Cluster, groups: Iterable[PodsOfGroup]
) -> Iterator[Finding]:
    for group in groups:
        if group.about is None:
            continue
        if group.needed is None:
            rule = f"the group {group.name} was not found; its {group.pods_there} pods are placed all or none"
        elif group.halted:
            rule = f"needs {group.needed} pods, but there are {group.pods_there}: none is placed"
        else:
            continue
        yield cluster.remark(group.about, group.path, rule)
