"""Groups of groups as kube-scheduler 1.37 takes them: whole trees, with all their pods (KEP-6012).

Who is in a tree is a question of the groups alone: pods that ask for no devices are in it like all others, and count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.compile.compiler.group_trees import Ancestry, children_needed
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import grouped
from dralloc.solve.scheduler.groups import Group

__all__ = ["GroupTree", "find_trees"]


@dataclass(frozen=True, eq=False)
class GroupTree:
    """A CompositePodGroup with everything below it.

    Parameters
    ----------
    creation_time
        When it was made; empty if that is not known.
    quorum
        How many of its children must be admitted for any pod below it to be bound.
    topology
        The label of which the nodes of all its pods have the same value; empty if that does not matter.
    children
        In the order in which they are tried: that of their creation.
    """

    name: str
    creation_time: str
    quorum: int
    topology: str
    children: Sequence[GroupTree | Group]

    @property
    def pods(self) -> Sequence[ClaimKey]:
        """All pods below it."""
        return [key for child in self.children for key in child.pods]

    @property
    def is_admissible(self) -> bool:
        """Whether there are enough children with enough pods (``PreEnqueue``)."""
        return (
            sum(child.is_admissible for child in self.children) >= self.quorum
        )

    def is_admitted(self, homes: Mapping[ClaimKey, str]) -> bool:
        """Whether enough children are admitted, given the nodes of pods that have one."""
        return (
            sum(child.is_admitted(homes) for child in self.children)
            >= self.quorum
        )


@dataclass(frozen=True)
class GroupForest:
    """The trees of some pods.

    Parameters
    ----------
    roots
        By pod, the tree that it is in; pods whose PodGroup has no parent are in none.
    held_back
        By pod, why it does not come into the queue because of its tree.
    """

    roots: Mapping[ClaimKey, GroupTree] = field(default_factory=dict)
    held_back: Mapping[ClaimKey, str] = field(default_factory=dict)


def find_trees(
    cluster: Cluster, features: Features, groups: Mapping[ClaimKey, Group]
) -> GroupForest:
    """The trees above the PodGroups of pods."""
    leaves = [
        group
        for group in dict.fromkeys(groups.values())
        if group.parent is not None
    ]
    ancestry = Ancestry(cluster.composite_pod_groups)
    lineages = {leaf: list(ancestry.upwards(leaf.parent)) for leaf in leaves}
    defects = {
        leaf: ancestry.defect(str(leaf.key), above)
        for leaf, above in lineages.items()
    }
    held_back: dict[ClaimKey, str] = {}
    for leaf, defect in defects.items():
        if defect:
            held_back.update(dict.fromkeys(leaf.pods, defect))
    # A PodGroup above which something is wrong is in no tree: it does not count for the groups above it.
    sound = [leaf for leaf in leaves if not defects[leaf]]
    builder = _TreeBuilder(cluster, features, ancestry, sound)
    roots: dict[ClaimKey, GroupTree] = {}
    # Where nothing is wrong, the last one above a PodGroup is the root.
    for key in dict.fromkeys(lineages[leaf][-1] for leaf in sound):
        root = builder.tree(key)
        roots.update(dict.fromkeys(root.pods, root))
        if not root.is_admissible:
            waiting = f"waiting for enough groups of {root.name} with enough pods to appear in scheduling queue"
            held_back.update(dict.fromkeys(root.pods, waiting))
    return GroupForest(roots, held_back)


class _TreeBuilder:
    """Builds trees from their leaves: the PodGroups of which the groups above are in order."""

    def __init__(
        self,
        cluster: Cluster,
        features: Features,
        ancestry: Ancestry,
        leaves: Sequence[Group],
    ) -> None:
        self._near = features.TopologyAwareWorkloadScheduling
        self._composites = cluster.composite_pod_groups
        composites: dict[ClaimKey, None] = {}
        for leaf in leaves:
            composites.update(dict.fromkeys(ancestry.upwards(leaf.parent)))
        self._composites_below = grouped(
            (ancestry.parent(key), key) for key in composites
        )
        self._leaves_below = grouped((leaf.parent, leaf) for leaf in leaves)
        self._numbers = {
            pod.key: index for index, pod in enumerate(cluster.pods)
        }

    def tree(self, key: ClaimKey) -> GroupTree:
        """A group with what is below it."""
        composite = self._composites[key]
        children: list[GroupTree | Group] = [*self._leaves_below[key]]
        children += [self.tree(child) for child in self._composites_below[key]]
        children.sort(key=self._turn)
        constraints = composite.spec.scheduling_constraints.topology
        topology = ""
        if constraints and self._near:
            topology = constraints[0].key
        return GroupTree(
            name=f"{composite.kind} {key}",
            creation_time=composite.metadata.creation_timestamp or "",
            quorum=children_needed(composite),
            topology=topology,
            children=tuple(children),
        )

    def _turn(self, group: GroupTree | Group) -> tuple[bool, str, int]:
        """Return the turn of a group: as groups were made; where that is not known last, by their first pods."""
        return (
            not group.creation_time,
            group.creation_time,
            min(self._numbers[key] for key in group.pods),
        )
