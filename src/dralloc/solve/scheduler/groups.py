"""Pods that are scheduled together: their groups, groups of groups, and the attempt for one group.

KEP-4671 and KEP-5732 for groups and the nodes among which each may choose, KEP-6012 for trees of groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Protocol

import numpy as np

from dralloc.compile.compiler.gangs import Ancestry, children_needed
from dralloc.objects.api import Pod, PodGroup
from dralloc.objects.api.workloads import PodGroupSpec
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import grouped
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Scores, relative
from dralloc.solve.scheduler.rehearsal import Rehearsal
from dralloc.solve.scheduler.resource_plugins import NODE_RESOURCES_FIT, use_of
from dralloc.solve.scheduler.scheduler import Scheduler
from dralloc.solve.scheduler.snapshot import Snapshot
from dralloc.solve.scheduler.verdicts import Places

__all__ = [
    "Group",
    "GroupCycle",
    "GroupTree",
    "GroupTrial",
    "PlacementError",
    "best_rated",
    "best_trials",
    "find_groups",
    "find_trees",
    "placement_scores",
    "placements_of",
]

# ----------------------------------------------------------------------------
# Groups, and the nodes among which each may choose (KEP-4671, KEP-5732). Source:
# ``framework/plugins/gangscheduling/gangscheduling.go``,
# ``topologyaware/topology_placement.go``.


class PlacementError(Exception):
    """An error: there are no nodes for a group as a whole. Says why, in the scheduler's words."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group of pods.

    Parameters
    ----------
    is_missing
        Whether there is no such PodGroup.
    creation_time
        When it was made; empty if that is not known.
    parent
        The CompositePodGroup above it.
    quorum
        How many of its pods must have a node for any of them to be bound.
    topology
        The label of which their nodes have the same value; empty if that does not matter.
    pods
        All of them, those that run already included.
    """

    key: ClaimKey
    is_missing: bool
    creation_time: str
    parent: ClaimKey | None
    quorum: int
    topology: str
    pods: Sequence[ClaimKey]

    @property
    def is_admissible(self) -> bool:
        """Whether it has enough pods."""
        return len(self.pods) >= self.quorum

    def is_admitted(self, homes: Mapping[ClaimKey, str]) -> bool:
        """Whether enough of its pods have a node, given the nodes of those that have one."""
        return sum(key in homes for key in self.pods) >= self.quorum

    @property
    def held_back(self) -> str:
        """Why its pods do not come into the queue; empty if they do (``PreEnqueue``)."""
        if self.is_missing:
            return f'waiting for pods\'s pod group "{self.key.name}" to appear in scheduling queue'
        if not self.is_admissible:
            return "waiting for minCount pods from a gang to appear in scheduling queue"
        return ""


def find_groups(
    cluster: Cluster, features: Features
) -> Mapping[ClaimKey, Group]:
    """The group of each pod that is in one, as far as the features let the scheduler know of them."""
    if not features.GenericWorkload:
        return {}
    members: dict[ClaimKey, list[Pod]] = defaultdict(list)
    for pod in cluster.pods:
        if pod.pod_group is not None:
            members[pod.pod_group].append(pod)
    group_of: dict[ClaimKey, Group] = {}
    for key, pods in members.items():
        group = _group(key, cluster.pod_groups.get(key), pods, features)
        group_of.update((pod.key, group) for pod in pods)
    return group_of


def _group(
    key: ClaimKey,
    declared: PodGroup | None,
    pods: Sequence[Pod],
    features: Features,
) -> Group:
    spec = declared.spec if declared else PodGroupSpec()
    gang = spec.scheduling_policy.gang
    constraints = spec.scheduling_constraints.topology
    topology = ""
    if constraints and features.TopologyAwareWorkloadScheduling:
        topology = constraints[0].key
    above = (
        spec.parent_composite_pod_group_name
        if features.CompositePodGroup
        else None
    )
    created = declared.metadata.creation_timestamp if declared else None
    return Group(
        key=key,
        is_missing=declared is None,
        creation_time=created or "",
        parent=ClaimKey(key.namespace, above) if above else None,
        quorum=gang.min_count if gang else 1,
        topology=topology,
        pods=[pod.key for pod in pods],
    )


class InDomain(Protocol):
    """Pods that may have to be in one domain: those of a group, or of a group of groups."""

    @property
    def topology(self) -> str:
        """The label of which their nodes have the same value; empty if that does not matter."""

    @property
    def pods(self) -> Sequence[ClaimKey]:
        """All of them, those that run already included."""


def placements_of(
    group: InDomain,
    homes: Mapping[ClaimKey, str],
    snapshot: Snapshot,
    within: Places | None = None,
) -> Mapping[str, Places | None]:
    """The sets of nodes that are tried for a group, by domain; None for all nodes.

    Parameters
    ----------
    homes
        The nodes of pods that have one.
    within
        The positions of the nodes that there are, for a group in a tree; all, if not given.

    Raises
    ------
    PlacementError
        There is no such set; or the pods of the group that have nodes are in no domain, or in several.
    """
    if not group.topology:
        return {"": within}
    occupied = {
        _domain(key, snapshot.by_name[homes[key]].labels, group)
        for key in group.pods
        if key in homes
    }
    if len(occupied) > 1:
        names = ", ".join(sorted(occupied))
        raise PlacementError(
            f"cannot determine domain for already scheduled pods: more than 1 domain found for pod group: {names}"
        )
    nodes: Iterable[NodeInfo] = snapshot.nodes
    if within is not None:
        nodes = (snapshot.nodes[position] for position in within.tolist())
    domains: dict[str, list[int]] = defaultdict(list)
    for node in nodes:
        domain = node.labels.get(group.topology)
        if domain is None:
            continue
        # Who comes later goes where the others of the group are.
        if not occupied or domain in occupied:
            domains[domain].append(node.place)
    if not domains:
        raise PlacementError("no feasible placements found")
    return {
        domain: np.array(positions, np.intp)
        for domain, positions in domains.items()
    }


def _domain(pod: ClaimKey, labels: Mapping[str, str], group: InDomain) -> str:
    if group.topology not in labels:
        raise PlacementError(
            f"cannot determine domain for already scheduled pods: no topology domain found for pod {pod}"
        )
    return labels[group.topology]


# ----------------------------------------------------------------------------
# Groups of groups as kube-scheduler 1.37 takes them: whole trees, with all their pods
# (KEP-6012). Who is in a tree is a question of the groups alone: pods that ask for no
# devices are in it like all others, and count.


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
    sound = [leaf for leaf in leaves if not defects[leaf]]
    builder = _TreeBuilder(cluster, features, ancestry, sound)
    roots: dict[ClaimKey, GroupTree] = {}
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


# ----------------------------------------------------------------------------
# The attempt for a group: one pod after the other, in each set of nodes that may be for
# the group. What is tried leaves nothing behind. The pods get their nodes if enough of
# them have one. Source: ``schedule_one_podgroup.go`` and the plugins that score sets of
# nodes: ``podgrouppodscount``, and ``noderesources`` (which rates full nodes best here,
# whatever its strategy).

_WAITING: Final = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
_OTHERS: Final = "failed to schedule other pod from a pod group"
_COUNT: Final = "PodGroupPodsCount"

Choose = Callable[[Attempt], NodeInfo]

Outcome = tuple[Attempt, NodeInfo | None]
"""How a pod fared, and the node that it goes to, if to any."""


@dataclass(frozen=True)
class GroupTrial:
    """The outcome of a group's pods in one set of nodes.

    Parameters
    ----------
    attempts
        One for each pod that was tried, in order.
    nodes
        The nodes of those that have one, in order.
    """

    within: Places | None
    attempts: Sequence[Attempt]
    nodes: Mapping[ClaimKey, NodeInfo]

    @property
    def error(self) -> str:
        """The error that ended it; empty if none did."""
        return next(
            (attempt.message for attempt in self.attempts if attempt.is_error),
            "",
        )


@dataclass(frozen=True)
class GroupCycle:
    """Tries the pods of groups.

    Parameters
    ----------
    choose
        Takes one of the best nodes.
    only_best
        Whether attempts need to know no other feasible nodes.
    """

    scheduler: Scheduler
    choose: Choose
    random: Random
    only_best: bool = False

    def run(
        self,
        group: Group,
        waiting: Sequence[ClaimKey],
        homes: Mapping[ClaimKey, str],
        within: Places | None = None,
    ) -> Sequence[Outcome]:
        """Return what becomes of a group's pods that wait, in this order. Nothing is bound.

        Parameters
        ----------
        homes
            The nodes of pods that have one.
        within
            The positions of the nodes that there are, for a group in a tree; all, if not given.
        """
        snapshot = self.scheduler.snapshot
        try:
            placements = list(
                placements_of(group, homes, snapshot, within).values()
            )
        except PlacementError as error:
            return [(Attempt(key, message=str(error)), None) for key in waiting]
        self.random.shuffle(placements)
        running = sum(key in homes for key in group.pods)
        trials: list[GroupTrial] = []
        hopeful, rehearsal = None, None
        if len(placements) > 1:
            hopeful = self.scheduler.hopeful(waiting)
            if self.only_best and hopeful is not None:
                rehearsal = self.scheduler.rehearsal(waiting)
        for placement in placements:
            # The first trial tells why, if none helps.
            if (
                trials
                and hopeful is not None
                and placement is not None
                and not hopeful[placement].any()
            ):
                self.scheduler.pass_over(placement)
                continue
            if (
                trials
                and rehearsal is not None
                and placement is not None
                and rehearsal.covers(placement)
            ):
                trials.append(self._rehearsed(rehearsal, waiting, placement))
                continue
            trials.append(self.tried(waiting, placement))
            if trials[-1].error:
                return [(_failed(key, trials[-1]), None) for key in waiting]
        best_ones = best_trials(self.scheduler, group, trials, running)
        if not best_ones:
            outcomes: list[Outcome] = []
            for attempt in trials[0].attempts:
                # Who had a node waits for the others; who had none says why.
                if attempt.feasible:
                    attempt = Attempt(attempt.pod, message=_WAITING)  # noqa: PLW2901
                outcomes.append((attempt, None))
            return outcomes
        best = self.random.choice(best_ones)
        if len(best.attempts) < len(waiting):
            best = self._tried_again(best, waiting)
        return [
            (attempt, best.nodes.get(attempt.pod)) for attempt in best.attempts
        ]

    def _rehearsed(
        self,
        rehearsal: Rehearsal,
        waiting: Sequence[ClaimKey],
        within: Places,
    ) -> GroupTrial:
        """As `tried`, but for the attempts that fail, of which nothing is said."""
        nodes = self.scheduler.rehearsed(
            rehearsal, waiting, within, self.choose
        )
        attempts = [Attempt(key, (node,)) for key, node in nodes.items()]
        return GroupTrial(within, attempts, nodes)

    def _tried_again(
        self, trial: GroupTrial, waiting: Sequence[ClaimKey]
    ) -> GroupTrial:
        """The same trial with the attempts that fail."""
        place_before = self.scheduler.next_place
        cycle = replace(self, choose=lambda attempt: trial.nodes[attempt.pod])
        again = cycle.tried(waiting, trial.within)
        self.scheduler.next_place = place_before
        return again

    def tried(
        self,
        waiting: Sequence[ClaimKey],
        within: Places | None,
        *,
        in_flight: Set[ClaimKey] = frozenset(),
    ) -> GroupTrial:
        """Try pods in a set of nodes, up to the first error."""
        attempts: list[Attempt] = []
        nodes: dict[ClaimKey, NodeInfo] = {}
        for key in waiting:
            attempt = self.scheduler.attempt(
                key,
                within=within,
                in_flight=in_flight,
                only_best=self.only_best,
            )
            attempts.append(attempt)
            if attempt.is_error:
                break
            if attempt.feasible:
                nodes[key] = self.choose(attempt)
                self.scheduler.bind(key, nodes[key])
        for key, node in reversed(nodes.items()):
            self.scheduler.unbind(key, node)
        return GroupTrial(within, attempts, nodes)


def best_trials(
    scheduler: Scheduler,
    group: Group,
    trials: Sequence[GroupTrial],
    running: int,
) -> Sequence[GroupTrial]:
    """The trials that give the group enough nodes, as far as none is better than they are; none if there are none.

    Parameters
    ----------
    running
        How many pods of the group have a node already.
    """
    good = [
        trial
        for trial in trials
        if trial.nodes and running + len(trial.nodes) >= group.quorum
    ]
    return best_rated(scheduler, good, running)


def best_rated(
    scheduler: Scheduler, trials: Sequence[GroupTrial], running: int
) -> Sequence[GroupTrial]:
    """Those of trials in sets of nodes with the best score. ``running``: how many of the pods have a node already."""
    if len(trials) <= 1:
        return trials
    totals: Scores = sum(
        placement_scores(scheduler, trials, running).values(),
        np.zeros(len(trials), np.int64),
    )
    return [
        trial
        for trial, total in zip(trials, totals.tolist(), strict=True)
        if total == totals.max()
    ]


def placement_scores(
    scheduler: Scheduler, trials: Sequence[GroupTrial], running: int
) -> dict[str, Scores]:
    """The weighted scores of sets of nodes, by plugin: how many pods are there then, and how full the nodes are."""
    profile = scheduler.profile_of(trials[0].attempts[0].pod)
    counts = np.array(
        [running + len(trial.nodes) for trial in trials], np.int64
    )
    scores = {_COUNT: profile.weights.get(_COUNT, 1) * relative(counts)}
    if NODE_RESOURCES_FIT.name not in profile.no_scores:
        fullness = []
        for trial in trials:
            nodes: Sequence[NodeInfo] = scheduler.snapshot.nodes
            if trial.within is not None:
                nodes = [nodes[position] for position in trial.within.tolist()]
            pods = [scheduler.pods[key] for key in trial.nodes]
            fullness.append(use_of(profile, nodes, pods))
        weight = NODE_RESOURCES_FIT.weight_in(profile)
        scores[NODE_RESOURCES_FIT.name] = weight * np.array(fullness, np.int64)
    return scores


def _failed(key: ClaimKey, trial: GroupTrial) -> Attempt:
    """Return how a pod fares in a trial that ended with an error: its own, or that of another pod."""
    for attempt in trial.attempts:
        if attempt.pod == key and attempt.is_error:
            return attempt
    return Attempt(key, message=f"{_OTHERS}: {trial.error}", is_error=True)
