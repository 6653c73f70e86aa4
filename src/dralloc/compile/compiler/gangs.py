"""Finds gangs: pods of a PodGroup with a gang policy (KEP-4671), or pods with a common label.

A group is admitted when ``minCount`` of its pods have a node, those that run already counted; the others are welcome.
Of pods with a common label, and of those whose group is not known, all are needed. All pods of a group with a topology
constraint are on nodes with the same value of a label, those that run already included (KEP-5732); where these are in
no domain, or in several, no other pod comes (plugin ``topologyaware`` of kube-scheduler). Groups can be children of
others (KEP-6012).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dralloc.compile.compiler.extended import DevicePlugins
from dralloc.compile.compiler.group_trees import GroupTrees
from dralloc.compile.compiler.pod_groups import PodsOfGroup, groups_of_pods
from dralloc.compile.compiler.topology import Topology
from dralloc.objects.api import Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.problem import ParentGroup
from dralloc.problem.inter_pod import Role

__all__ = ["Gangs", "find_gangs"]


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
        groups_of_pods(cluster, features, plugins, label, spanned=spanned)
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
