"""Groups of groups: CompositePodGroups above PodGroups (KEP-6012, Kubernetes 1.37).

A group is settled if enough of what is in it runs already or asks for no devices: others place that. Who is below a
group that is not there, in a circle or too deep is not placed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Final

from dralloc.compile.compiler.pod_groups import PodsOfGroup
from dralloc.compile.compiler.topology import Topology
from dralloc.objects.api import CompositePodGroup, Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey
from dralloc.problem import ParentGroup
from dralloc.problem.inter_pod import OneDomain

__all__ = ["Ancestry", "GroupTrees", "children_needed"]

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
        # Going up ends after as many levels as a tree may have, also where groups are in a circle.
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
        # Groups are compared by identity, so there is one object for each.
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
