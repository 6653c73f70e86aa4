"""Groups of groups: CompositePodGroups above PodGroups (KEP-6012, Kubernetes 1.37).

A group is settled if enough of what is in it runs already, or if nothing in it asks for devices: others place that.
Who is below a group that is not there, in a circle or too deep is not placed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dralloc.api import CompositePodGroup, Pod
from dralloc.cluster import Cluster
from dralloc.compiler.topology import Topology
from dralloc.errors import Finding
from dralloc.names import ClaimKey
from dralloc.problem.parent_groups import ParentGroup

__all__ = ["GroupTrees", "Leaf"]

_DEEPEST: Final = 4
"""Levels of a tree, PodGroups included (``WorkloadMaxTreeDepth`` of scheduling.k8s.io)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A PodGroup in a tree: its name, its parent, its pods, and whether enough of them run."""

    name: str
    parent: ClaimKey
    pods: Sequence[Pod]
    enough: bool


@dataclass
class GroupTrees:
    """The trees above some PodGroups. ``findings``: what is wrong with trees."""

    cluster: Cluster
    topology: Topology
    leaves: Sequence[Leaf]
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def parents(self) -> Mapping[str, ParentGroup]:
        """The parent of each PodGroup, by name, where the tree is in order."""
        found = {leaf.name: self._group(leaf.parent) for leaf in self.leaves if leaf.name not in self.halted}
        return {name: group for name, group in found.items() if group is not None}

    @cached_property
    def halted(self) -> frozenset[str]:
        """The PodGroups of which no pod is placed, because their tree is not in order."""
        return frozenset(leaf.name for leaf in self.leaves if self._defect(leaf))

    def outside(self, leaf: str) -> frozenset[str]:
        """The nodes that are in no domain for a PodGroup's pods, because of the groups above it."""
        if leaf in self.halted:
            return frozenset()
        [own] = [one for one in self.leaves if one.name == leaf]
        nodes = (self.topology.outside(self._label(key), self._home(key)) for key in self._above(own.parent))
        return frozenset().union(*nodes)

    def _defect(self, leaf: Leaf) -> str:
        above = list(self._above(leaf.parent))
        missing = next((key for key in above if key not in self.cluster.composite_pod_groups), None)
        defect = ""
        if missing is not None:
            defect = f"the CompositePodGroup {missing} was not found"
        elif len(above) >= _DEEPEST:
            defect = f"the groups above {leaf.name} are in a circle, or more than {_DEEPEST - 1}"
        if defect:
            about = self.cluster.pod_groups[ClaimKey.parse(leaf.name)]
            rule = f"{defect}: none of its pods is placed"
            self.findings.append(self.cluster.remark(about, "spec.parentCompositePodGroupName", rule))
        return defect

    def _above(self, key: ClaimKey | None) -> Iterator[ClaimKey]:
        """The groups from one up, no more than are too many."""
        for _ in range(_DEEPEST):
            if key is None:
                return
            yield key
            group = self.cluster.composite_pod_groups.get(key)
            name = group.spec.parent_composite_pod_group_name if group else None
            key = ClaimKey(key.namespace, name) if name else None

    def _group(self, key: ClaimKey) -> ParentGroup | None:
        if key not in self._made:
            own = self.cluster.composite_pod_groups[key]
            above = own.spec.parent_composite_pod_group_name
            settled = frozenset(name for name, done in self._children[key].items() if done)
            self._made[key] = ParentGroup(
                name=f"{own.kind} {key}",
                quorum=max(0, _needed(own) - len(settled)),
                settled=settled,
                parent=self._group(ClaimKey(key.namespace, above)) if above else None,
                rule=self.topology.rule(self._label(key)) if self._home(key) is None else None,
            )
        return self._made[key]

    @cached_property
    def _made(self) -> dict[ClaimKey, ParentGroup]:
        return {}

    @cached_property
    def _children(self) -> Mapping[ClaimKey, Mapping[str, bool]]:
        """The children of each group by name, and whether each is settled."""
        found: dict[ClaimKey, dict[str, bool]] = defaultdict(dict)
        for leaf in self.leaves:
            idle = not any(self.cluster.pod_claims(pod) for pod in leaf.pods)
            found[leaf.parent][leaf.name] = leaf.enough or idle
        groups = self.cluster.composite_pod_groups
        for _ in range(_DEEPEST):
            for key, group in groups.items():
                if group.spec.parent_composite_pod_group_name:
                    parent = ClaimKey(key.namespace, group.spec.parent_composite_pod_group_name)
                    enough = sum(found[key].values()) >= _needed(group)
                    found[parent][f"{group.kind} {key}"] = enough
        return found

    def _label(self, key: ClaimKey) -> str:
        constraints = self.cluster.composite_pod_groups[key].spec.scheduling_constraints.topology
        return constraints[0].key if constraints else ""

    def _home(self, key: ClaimKey) -> str | None:
        pods = [pod for leaf in self.leaves if key in self._above(leaf.parent) for pod in leaf.pods]
        return self.topology.domain(self._label(key), pods)


def _needed(group: CompositePodGroup) -> int:
    """How many children must be admitted; one if they are independent."""
    gang = group.spec.scheduling_policy.gang
    return gang.min_group_count if gang else 1
