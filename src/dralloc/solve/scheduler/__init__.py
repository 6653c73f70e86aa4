"""What kube-scheduler does with pods, one after the other.

Here are all pods of a cluster: the queue, ties, and what is tried again. The rest is in the modules:

- `dralloc.solve.scheduler.scheduler`: the state between attempts, and one attempt after the other;
- `dralloc.solve.scheduler.release`: in what versions differ;
- `dralloc.solve.scheduler.groups`, `dralloc.solve.scheduler.group_trees`: pods that come together, in a PodGroup and in
  groups of groups; `dralloc.solve.scheduler.group_cycle`: the attempt for them; `dralloc.solve.scheduler.rehearsal`:
  what they meet in each domain, without binding them;
- `dralloc.solve.scheduler.filters`, `dralloc.solve.scheduler.nominated`, `dralloc.solve.scheduler.scores`: how an
  attempt filters and scores nodes; `dralloc.solve.scheduler.best_nodes`: how it looks at the best ones first;
  `dralloc.solve.scheduler.memory`: what it remembers for equal pods;
- `dralloc.solve.scheduler.preemption`: whom it would evict;
- `dralloc.solve.scheduler.plugins`: the plugins of the default profile, in their order, and profiles of a
  KubeSchedulerConfiguration;
- `dralloc.solve.scheduler.snapshot`, `dralloc.solve.scheduler.devices`: what is on nodes, and their devices.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import Pod
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.problem.indices import numbered
from dralloc.problem.solution import Solution
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.devices import Nomination
from dralloc.solve.scheduler.group_cycle import (
    GroupCycle,
    GroupTrial,
    best_rated,
)
from dralloc.solve.scheduler.group_trees import GroupTree, find_trees
from dralloc.solve.scheduler.groups import (
    Group,
    PlacementError,
    find_groups,
    placements_of,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugins import profiles_of, read_profiles
from dralloc.solve.scheduler.pod_claims import GrantsByClaim
from dralloc.solve.scheduler.profile import Profile
from dralloc.solve.scheduler.release import USUAL, Release
from dralloc.solve.scheduler.scheduler import Scheduler
from dralloc.solve.scheduler.verdicts import Places
from dralloc.solve.work import phase

__all__ = [
    "Attempt",
    "Planned",
    "Profile",
    "Release",
    "Scheduler",
    "SchedulingRun",
    "profiles_of",
    "read_profiles",
    "schedule",
]

_NO_POD = "no pod uses it: kube-scheduler allocates claims for pods"
_BOUND = "the pod has a node already: kube-scheduler does not look at it"


@without_garbage_collection()
def schedule(
    compiled: CompiledCluster,
    profiles: Sequence[Profile] = (Profile(),),
    seed: int = 0,
    release: Release = USUAL,
) -> Solution:
    """Return what kube-scheduler does with the pods that wait.

    Pods come by priority, then by when they came into the queue (``queuesort/priority_sort.go``), which no object
    tells. A scheduler that starts hears of nodes and pods in no order: they come at random. One that runs hears of pods
    as they are made, those of one second in no order; that it runs is seen by pods that it has tried (their condition
    ``PodScheduled``). A pod without a feasible node is tried again after all others if the pods bound since then may
    help it (upstream's queueing hints).

    With the feature ``Preemption`` a pod that is in no group is nominated for the node where the eviction of others
    makes room (KEP-5690). The others are there to the end: this is the moment before they leave. What the nominated pod
    is to get is kept from pods that are not more important. Without the feature nobody is nominated.

    Parameters
    ----------
    profiles
        One for each scheduler name.
    release
        In what the version differs from 1.36, beside its feature gates.
    seed
        Decides in which order the scheduler hears of nodes and pods, and which of equally good nodes is taken, as many
        nodes are looked at at a time.

    Returns
    -------
    Solution
        ``errors`` holds the scheduler's message for each demand without a node. Pods without claims are scheduled, too;
        what happened to them is in ``warnings``.
    """
    timings: dict[str, float] = {}
    with phase(timings, "scheduler"):
        run = SchedulingRun(
            compiled,
            profiles,
            Random(seed),
            release,
            nominates=compiled.problem.features.Preemption,
        )
        run.schedule_all()
        placements = run.scheduler.solution.placements
        placed = {placement.demand for placement in placements}
        errors: dict[int, AllocationError] = {}
        for demand_index, demand in numbered(compiled.problem.demands):
            if demand_index in placed:
                continue
            # A claim that no pod uses may have the name of a pod: what became of the pod says nothing about it.
            reason = _NO_POD
            if not compiled.is_claim(demand):
                reason = run.reason(demand.key)
            errors[demand_index] = AllocationError(reason)
        return Solution(
            placements,
            errors=errors,
            warnings=tuple(run.warnings()),
            timings=timings,
            bindings=run.bindings,
        )


class Planned(NamedTuple):
    """A node for a pod, and the devices that its claims get there."""

    node: str
    grants: GrantsByClaim


class SchedulingRun:
    """Pods that come, are tried one after the other, and go.

    Attributes
    ----------
    scheduler
        What is on the nodes.

    Parameters
    ----------
    nominates
        Whether pods are nominated for nodes on which others would have to be evicted for them.
    """

    def __init__(
        self,
        compiled: CompiledCluster,
        profiles: Sequence[Profile],
        random: Random,
        release: Release,
        *,
        nominates: bool = False,
    ) -> None:
        self._nominates = nominates
        self._nominations: dict[ClaimKey, Nomination] = {}
        # Those who were nominated for a node, until a more important pod was.
        self._displaced: set[ClaimKey] = set()
        self._cluster = compiled.cluster
        self._demand_of = {
            demand.key: demand
            for demand in compiled.problem.demands
            if not compiled.is_claim(demand)
        }
        self._random = random
        self._in_order = release.hears_in_order
        node_indices, nodes = compiled.problem.all_nodes, compiled.problem.nodes
        if release.hears_in_order:
            heard_of = sorted(node_indices, key=lambda index: nodes[index].name)
        else:
            heard_of = random.sample(node_indices, len(node_indices))
        self.scheduler = scheduler = Scheduler(
            compiled, profiles, heard_of, release=release
        )
        self._queued: set[ClaimKey] = set()
        self._pods = {pod.key: pod for pod in compiled.cluster.pods}
        self._groups = find_groups(compiled.cluster, compiled.problem.features)
        self._cycle = GroupCycle(
            scheduler, self._chosen, random, only_best=True
        )
        self._nodes: dict[ClaimKey, str] = {}
        running: dict[ClaimKey, str] = {}
        for key, pod in self._pods.items():
            node = pod.spec.node_name
            if node and node in scheduler.snapshot.by_name:
                running[key] = node
        # Pods that run already, and those that were bound since, which come and go.
        self._homes = ChainMap(self._nodes, running)
        self._failed: dict[ClaimKey, Attempt] = {}
        self._trees = find_trees(
            compiled.cluster, compiled.problem.features, self._groups
        )

    def schedule_all(self) -> None:
        """Try every pod that waits."""
        self.schedule([pod.key for pod in self._queue()])

    def schedule(self, waiting: Sequence[ClaimKey]) -> None:
        """Every pod in turn, and again those that others may have helped; with one of a group come the others of it."""
        self._queued.update(waiting)
        while waiting:
            before = len(self._nodes)
            tried: set[ClaimKey] = set()
            for key in waiting:
                if key not in tried:
                    tried.update(self._schedule(key))
            # Only a pod that was bound since can have changed anything for those who have not lost a nomination.
            helps = len(self._nodes) > before
            displaced, self._displaced = self._displaced, set()
            waiting = [
                key
                for key in self._failed
                if key in displaced or (helps and self.may_be_helped(key))
            ]

    def try_once(self, waiting: Sequence[ClaimKey]) -> bool:
        """Try pods that come together, and say whether all of them were bound."""
        if any(self._held_back(self._pods[key]) is not None for key in waiting):
            return False
        self._queued.update(waiting)
        self._schedule(waiting[0])
        return self._nodes.keys() >= set(waiting)

    def may_be_helped(self, key: ClaimKey) -> bool:
        """Whether a pod whose attempt has failed could be bound once more pods are."""
        return key in self._failed and self._failed[key].may_be_helped

    def node_of(self, key: ClaimKey) -> str | None:
        """The node that a pod was bound to, as long as it is there."""
        return self._nodes.get(key)

    def depart(self, key: ClaimKey) -> None:
        """Take a pod that was bound off its node; it does not come back."""
        node = self.scheduler.snapshot.by_name[self._nodes.pop(key)]
        self.scheduler.unbind(key, node)
        self._queued.discard(key)

    def exchange(
        self, leaving: Sequence[ClaimKey], entering: Mapping[ClaimKey, Planned]
    ) -> bool:
        """Take bound pods off their nodes and bind pods as planned, these among them; or leave all as it is.

        It stays if a filter is against it: they know of pods without devices, and of rules that a plan does not. The
        allocator is not asked, as the claims of a pod that moves have their devices before it is scheduled.
        """
        bound_before = dict(self._nodes)
        by_name = self.scheduler.snapshot.by_name
        before = {key: self._planned(key) for key in leaving}
        for key in leaving:
            self.depart(key)
        entered: list[ClaimKey] = []
        for key, planned in entering.items():
            node = by_name[planned.node]
            if not self.scheduler.admits(key, node, planned.grants):
                break
            self._bind_planned(key, planned)
            entered.append(key)
        if len(entered) == len(entering):
            return True
        for key in entered:
            self.depart(key)
        for key, planned in before.items():
            self._bind_planned(key, planned)
        # Who came first is known by the order.
        self._nodes.clear()
        self._nodes.update(bound_before)
        self._queued.update(entering)
        return False

    def _planned(self, key: ClaimKey) -> Planned:
        """Return what a pod that was bound has, as if it were planned."""
        placement = self.scheduler.placement_of(key)
        grants: GrantsByClaim = {}
        if placement is not None:
            claims = self._demand_of[key].claims
            pairs = zip(claims, placement.grants, strict=True)
            grants = {claim.key: granted for claim, granted in pairs}
        return Planned(self._nodes[key], grants)

    def _bind_planned(self, key: ClaimKey, planned: Planned) -> None:
        node = self.scheduler.snapshot.by_name[planned.node]
        self._failed.pop(key, None)
        self._queued.add(key)
        self.scheduler.bind(key, node, planned.grants)
        self._nodes[key] = node.name

    def preempt(self, key: ClaimKey) -> tuple[ClaimKey, ...] | None:
        """Bind a pod in the stead of those that upstream's preemption evicts for it; None if that does not help.

        The evicted pods give back their devices, and the pod is tried again on the node that it nominated. Those that
        ran before anybody was scheduled are gone from their node, but what their claims hold stays in use, unless
        upstream supposes it to be free (KEP-5690).
        """
        attempt = self.scheduler.attempt(key)
        if attempt.feasible:
            return None
        order = {bound: rank for rank, bound in enumerate(self._nodes)}
        chosen = self.scheduler.preempt(attempt, order)
        if chosen is None:
            return None
        node, evicted = chosen
        victims = tuple(pod.key for pod in evicted)
        bound_before = dict(self._nodes)
        planned = {
            key: self._planned(key) for key in victims if key in self._nodes
        }
        for pod in evicted:
            if pod.key in planned:
                # Whom `preempt` took away comes back, to leave with its devices.
                self.scheduler.snapshot.add(pod, node)
                self.depart(pod.key)
        attempt = self.scheduler.attempt(key, [node.name])
        if not attempt.feasible:
            # It fitted where the victims were gone but for their devices. These are given back now, and with them the
            # search can end otherwise: it comes to a device on which a selector fails.
            remaining = [pod for pod in evicted if pod.key not in planned]
            self.scheduler.call_back(remaining, node)
            for victim, plan in planned.items():
                self._bind_planned(victim, plan)
            # Who came first is known by the order.
            self._nodes.clear()
            self._nodes.update(bound_before)
            return None
        self._queued.add(key)
        self._enter(attempt, attempt.chosen)
        return victims

    def _queue(self) -> list[Pod]:
        """The pods that wait, by priority, those of one priority as the scheduler hears of them."""
        pods = [
            pod for pod in self._pods.values() if self._held_back(pod) is None
        ]
        runs = any(pod.tried_before for pod in pods)
        if self._in_order and not runs:
            pods.sort(key=lambda pod: pod.key)
        else:
            self._random.shuffle(pods)
        if runs:
            # When a pod was made, as far as that is known.
            pods.sort(key=_age)
        return sorted(pods, key=lambda pod: -(pod.spec.priority or 0))

    def _held_back(self, pod: Pod) -> str | None:
        """Why a pod is not in the queue."""
        if pod.spec.node_name:
            return _BOUND
        if pod.spec.scheduling_gates:
            return f"scheduling gates: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"
        if pod.spec.scheduler_name not in self.scheduler.profiles:
            name = pod.spec.scheduler_name
            return f'no profile is for spec.schedulerName "{name}": --scheduler-config names a file that has one'
        if pod.key in self._cluster.unresolved:
            return "; ".join(self._cluster.unresolved[pod.key])
        group = self._groups.get(pod.key)
        if group is not None and group.held_back:
            return group.held_back
        if pod.key in self._trees.held_back:
            return self._trees.held_back[pod.key]
        for key in self._cluster.pod_claims(pod):
            claim = self._cluster.claim(key)
            if (
                claim is not None
                and claim.metadata.deletion_timestamp is not None
            ):
                return f'resourceclaim "{claim.name}" is being deleted'
        return None

    def _schedule(self, key: ClaimKey) -> Sequence[ClaimKey]:
        """Try a pod, and the others of its group, or of its tree of groups; returns who was tried."""
        root = self._trees.roots.get(key)
        if root is None:
            return self._schedule_together(key)
        return self._schedule_tree(root)

    def _schedule_tree(
        self, tree: GroupTree, within: Places | None = None
    ) -> Sequence[ClaimKey]:
        """Try the pods below a group of groups in each domain that there is for it; returns who was tried.

        Source: KEP-6012, "CompositePodGroup Scheduling Algorithm".

        Parameters
        ----------
        within
            The positions of the nodes that there are, if it is below another group; all, if not given.
        """
        waiting = self._waiting(tree.pods)
        if not waiting:
            return waiting
        snapshot = self.scheduler.snapshot
        try:
            domains = placements_of(tree, self._homes, snapshot, within)
        except PlacementError as error:
            self._failed |= {
                key: Attempt(key, message=str(error)) for key in waiting
            }
            return waiting
        placements = list(domains.values())
        self._random.shuffle(placements)
        running = sum(key in self._homes for key in tree.pods)
        trials = [
            self._tried(tree, waiting, placement) for placement in placements
        ]
        with_nodes = [trial for trial in trials if trial.nodes]
        admitted = best_rated(self.scheduler, with_nodes, running)
        # The first trial tells why, if none helps.
        chosen = self._random.choice(admitted) if admitted else trials[0]
        for attempt in chosen.attempts:
            self._enter(attempt, chosen.nodes.get(attempt.pod))
        return waiting

    def _tried(
        self,
        tree: GroupTree,
        waiting: Sequence[ClaimKey],
        within: Places | None,
    ) -> GroupTrial:
        """Return how pods below a group of groups fare in a set of nodes, its children one after the other.

        Nobody has a node in the end, but what those before get counts for those after. Where too few children are
        admitted, nobody is to get a node.
        """
        # Pods are noted in the order of binding: those behind the first so many were bound by this trial.
        before = len(self._nodes)
        for child in tree.children:
            if isinstance(child, GroupTree):
                self._schedule_tree(child, within)
            elif members := self._waiting(child.pods):
                self._schedule_together(members[0], within)
        is_admitted = tree.is_admitted(self._homes)
        by_name = self.scheduler.snapshot.by_name
        nodes = {
            key: by_name[self._nodes[key]] for key in list(self._nodes)[before:]
        }
        # Whoever came last leaves first: then what was known of nodes and devices before holds again.
        for key, node in reversed(nodes.items()):
            self.scheduler.unbind(key, node)
            del self._nodes[key]
        message = ""
        if not is_admitted:
            message = f"too few of the groups of {tree.name} fit together"
        attempts = [Attempt(key, message=message) for key in nodes]
        attempts += (self._failed[key] for key in waiting if key not in nodes)
        return GroupTrial(within, attempts, nodes if is_admitted else {})

    def _waiting(self, pods: Iterable[ClaimKey]) -> list[ClaimKey]:
        """Those of some pods that are in the queue and have no node yet."""
        return [
            key
            for key in pods
            if key in self._queued and key not in self._nodes
        ]

    def _schedule_together(
        self, key: ClaimKey, within: Places | None = None
    ) -> Sequence[ClaimKey]:
        """Try a pod, and the others of its group; returns who was tried. ``within``: as in `_schedule_tree`."""
        group = self._groups.get(key)
        if group is None:
            attempt = self.scheduler.attempt(key, only_best=True)
            self._enter(
                attempt, self._chosen(attempt) if attempt.feasible else None
            )
            return (key,)
        together = self._together(key, group)
        for attempt, node in self._cycle.run(
            group, together, self._homes, within
        ):
            self._enter(attempt, node)
        return together

    def _enter(self, attempt: Attempt, node: NodeInfo | None) -> None:
        """Bind a pod to its node, or note how its attempt failed."""
        self._failed.pop(attempt.pod, None)
        if node is None:
            self._failed[attempt.pod] = attempt
            self._nominate(attempt)
            return
        nomination = self._nominations.pop(attempt.pod, None)
        if nomination is not None:
            self.scheduler.withdraw(nomination)
        self.scheduler.bind(attempt.pod, node)
        self._nodes[attempt.pod] = node.name

    def _nominate(self, attempt: Attempt) -> None:
        """Nominate a pod after an attempt that failed, if evicting others helps it.

        As long as its victims are there, a nominated pod evicts nobody else (``PodEligibleToPreemptOthers``).
        """
        key = attempt.pod
        if not self._nominates or not attempt.has_victims:
            return
        if key in self._nominations or key in self._groups:
            return
        nomination = self.scheduler.nominate(attempt)
        if nomination is not None:
            self._displace(nomination)
            self._nominations[key] = nomination

    def _displace(self, by: Nomination) -> None:
        """Less important pods lose their nomination for a node, and are tried again.

        They may have no room there any more (``getLowerPriorityNominatedPods``).
        """
        for key, nomination in tuple(self._nominations.items()):
            if (
                nomination.node is by.node
                and nomination.pod.kind.priority < by.pod.kind.priority
            ):
                del self._nominations[key]
                self.scheduler.withdraw(nomination)
                self._displaced.add(key)

    def _together(self, first: ClaimKey, group: Group) -> list[ClaimKey]:
        """The pods of a group that wait: by priority, then the one that is up, then the others in no order."""
        mates = [key for key in self._waiting(group.pods) if key != first]
        self._random.shuffle(mates)
        return sorted(
            (first, *mates),
            key=lambda key: -(self._pods[key].spec.priority or 0),
        )

    def _chosen(self, attempt: Attempt) -> NodeInfo:
        """One of the best nodes: any of them, where it is left to chance in which order they were found."""
        at_once = self.scheduler.profile_of(attempt.pod).looks_at_once
        if at_once:
            return attempt.drawn(self._random)
        return attempt.chosen

    @property
    def nominations(self) -> Sequence[Nomination]:
        """The pods that wait until others are evicted for them, in order."""
        return tuple(self._nominations.values())

    @property
    def bindings(self) -> tuple[tuple[ClaimKey, str], ...]:
        """The pods that were bound, in order, with their nodes."""
        return tuple(self._nodes.items())

    def reason(self, key: ClaimKey) -> str:
        """Why a demand was not placed."""
        if key in self._nominations:
            return (
                f"{self._failed[key].message} {_said(self._nominations[key])}"
            )
        if key in self._failed:
            return self._failed[key].message
        if key in self._nodes:
            return (
                f"bound to {self._nodes[key]}, where a device plugin serves it"
            )
        if key not in self._pods:
            return _NO_POD
        return self._held_back(self._pods[key]) or _NO_POD

    def warnings(self) -> Iterator[str]:
        """Yield what happened to pods without claims, and whom preemption could have helped."""
        without_devices = [
            key for key in self._nodes if key not in self._demand_of
        ]
        if without_devices:
            count = len(without_devices)
            yield f"{count} pods that ask for no device were scheduled, too"
        failed = [
            attempt
            for key, attempt in self._failed.items()
            if key not in self._demand_of
        ]
        yield from _line("pods that ask for no device have no node", failed)
        if self.nominations:
            first = self.nominations[0]
            count = len(self.nominations)
            yield f"{count} pods wait until others are evicted for them: {first.pod.key}: {_said(first)}"
        helped = [
            attempt
            for key, attempt in self._failed.items()
            if attempt.has_victims and key not in self._nominations
        ]
        yield from _line(
            "pods could be helped by preemption, which is off", helped
        )


def _age(pod: Pod) -> tuple[bool, str]:
    """Return when a pod was made; pods of which nobody knows come last."""
    created = pod.metadata.creation_timestamp
    return created is None, created or ""


def _said(nomination: Nomination) -> str:
    """Say for which node a pod is nominated, and in place of whom."""
    victims = ", ".join(str(victim.key) for victim in nomination.victims)
    return (
        f"nominated for {nomination.node.name}, from where it evicts {victims}"
    )


def _line(title: str, attempts: Sequence[Attempt]) -> Iterator[str]:
    """A line about some pods with the first of them, if there are any."""
    if attempts:
        first = attempts[0]
        yield f"{len(attempts)} {title}: {first.pod}: {first.message}"
