"""The scheduler: one pod after the other, each attempt with what the attempts before have left.

First in what releases differ, and what preemption would say (a dry run, in which nobody is evicted). Source:
``schedule_one.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.pods import PodInfo, PodKind, PodKinds
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import NodeIndex, Problem
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.best_nodes import (
    all_feasible,
    best_feasible,
    best_known,
)
from dralloc.solve.scheduler.devices import Devices, Nomination
from dralloc.solve.scheduler.filters import (
    Checks,
    checks_of,
    feasible_nodes_to_find,
    filtered,
    without,
)
from dralloc.solve.scheduler.memory import Memory
from dralloc.solve.scheduler.node_info import NodeInfo, NodesAt
from dralloc.solve.scheduler.nominated import (
    beside_nominated,
    nominated_beside,
    turned_away,
)
from dralloc.solve.scheduler.plugin import Cycle, Plugin, Scores
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.pod_claims import GrantsByClaim
from dralloc.solve.scheduler.preemption import (
    Started,
    after_filters,
    choose_victims,
    supposed_gone,
)
from dralloc.solve.scheduler.profile import Profile
from dralloc.solve.scheduler.rehearsal import Rehearsal
from dralloc.solve.scheduler.release import USUAL, Release
from dralloc.solve.scheduler.resource_plugins import DYNAMIC_RESOURCES
from dralloc.solve.scheduler.scores import best_of, scored
from dralloc.solve.scheduler.snapshot import Snapshot
from dralloc.solve.scheduler.verdicts import (
    Check,
    Places,
    Rejected,
    Rejection,
    fit_error,
    refused,
)

__all__ = ["Scheduler"]

_NAMING: Final = tuple(plugin for plugin in PLUGINS if plugin.named is not None)

_ABSENT: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


class Scheduler:
    """The state of nodes, pods and devices between attempts.

    Parameters
    ----------
    compiled
        The cluster; pods on its nodes count.
    profiles
        One for each scheduler name.
    heard_of
        Indices of the nodes in the order in which the scheduler heard of them; as given if there are none.
    remembers
        Whether what is known about nodes is kept for equal pods. Without, each attempt starts anew.
    """

    def __init__(
        self,
        compiled: CompiledCluster,
        profiles: Sequence[Profile],
        heard_of: Sequence[NodeIndex] = (),
        *,
        release: Release = USUAL,
        remembers: bool = True,
    ) -> None:
        self._cluster = compiled.cluster
        self.profiles = {
            profile.name: _as_of(release, profile) for profile in profiles
        }
        by_name = {node.name: node for node in compiled.cluster.nodes}
        nodes = [by_name[node.name] for node in compiled.problem.nodes]
        self.snapshot = Snapshot(nodes, heard_of or compiled.problem.all_nodes)
        self._places = {node.number: node.place for node in self.snapshot.nodes}
        self._order = np.arange(len(nodes))
        self._devices = Devices(compiled, leaks_counters=release.leaks_counters)
        self.next_place = 0
        # By the position of the node.
        self._nominations: dict[int, list[Nomination]] = {}
        # The claims that the last preemption gave up.
        self._given_up: Sequence[ClaimKey] = ()
        self._remembers = remembers
        self._memories: dict[Hashable, Memory] = {}
        # The states of what a pod touched, before it was bound and after.
        self._states_around: dict[
            ClaimKey, tuple[Mapping[int, int], Mapping[int, int]]
        ] = {}
        self._memory_of_pod: dict[ClaimKey, Memory] = {}
        self._memories_of_claims: dict[Hashable, Memory] = {}
        self._memories_of_kinds: dict[PodKind, Memory] = {}
        kinds = PodKinds(self._cluster.namespaces)
        self.pods = {info.key: info for info in kinds.infos(self._cluster.pods)}
        self._pods_of_kind = Counter(info.kind for info in self.pods.values())
        for pod in self._cluster.pods:
            node = self.snapshot.by_name.get(pod.spec.node_name or "")
            if node is not None:
                self.snapshot.add(self.pods[pod.key], node)

    @property
    def solution(self) -> Solution:
        """The solution of what was bound so far."""
        placements = self._devices.placements
        return Solution(
            tuple(sorted(placements, key=lambda placement: placement.demand))
        )

    @property
    def ledger(self) -> SearchLedger:
        """The ledger of what is in use of devices."""
        return self._devices.ledger

    def beside_evicted(self, problem: Problem) -> Problem:
        """Return a problem with these devices, without what evicted pods from before held of them."""
        return self._devices.beside_given_up(problem)

    def placement_of(self, key: ClaimKey) -> Placement | None:
        """Return what a pod that was bound has of devices; None if that is nothing."""
        return self._devices.placement_of(key)

    def profile_of(self, key: ClaimKey) -> Profile:
        """The profile for a pod."""
        return self.profiles[self.pods[key].kind.spec.scheduler_name]

    def attempt(
        self,
        key: ClaimKey,
        sample: Sequence[str] = (),
        *,
        in_flight: Set[ClaimKey] = frozenset(),
        within: Places | None = None,
        only_best: bool = False,
    ) -> Attempt:
        """Look for a node for a pod. Nothing is bound.

        Parameters
        ----------
        sample
            Names of the only nodes to look at, in order; without, they are found as usual.
        in_flight
            See `Cycle`; by default, the API server knows of each allocation before the next attempt.
        within
            The positions of the nodes that there are, for this attempt; all, if not given.
        only_best
            Whether it is enough to know the best of the feasible nodes, without scores.
        """
        cycle = self._cycle(key, in_flight, in_placement=within is not None)
        nodes = self._order if within is None else within
        positions = [self.snapshot.by_name[name].place for name in sample]
        # A nominated pod does not stand in its own way, but in that of equal pods: they fail for other reasons.
        is_nominated = self._is_nominated(key)
        failed = None
        if not positions and not is_nominated:
            failed = cycle.memory.failed(within)
        if failed is not None:
            return replace(failed, pod=key)
        next_place = self.next_place
        try:
            # In order, the choice among the best depends on all that are feasible.
            best_first = only_best and cycle.profile.looks_at_once
            attempt = self._attempt(
                cycle, nodes, positions, only_best=best_first
            )
            # Only if every node was looked at does the next search start at the same one.
            was_everywhere = attempt.evaluated == len(nodes)
            if was_everywhere and not attempt.feasible and not is_nominated:
                cycle.memory.failure = (
                    len(self.snapshot.changes),
                    within,
                    attempt,
                )
            return attempt
        except FatalError:
            # Equal pods share what names the claims of one of them.
            alone = cycle._replace(memory=Memory(len(self.snapshot.nodes)))
        # The error may be of preemption's dry run, after the nodes were looked at.
        self.next_place = next_place
        try:
            return self._attempt(alone, nodes, positions, tells_errors=True)
        except FatalError as error:
            return Attempt(key, message=str(error), is_error=True)

    def hopeful(self, keys: Iterable[ClaimKey]) -> NDArray[np.bool_] | None:
        """By position, whether a node is feasible now for any of some pods; None if that is not only about the node."""
        passing = np.zeros(len(self._order), np.bool_)
        memories: set[int] = set()
        for key in keys:
            cycle = self._cycle(key, in_placement=True)
            if id(cycle.memory) in memories:
                continue
            memories.add(id(cycle.memory))
            if not cycle.memory.is_kept or self._named(cycle):
                return None
            checks: list[tuple[Plugin, Check]] = []
            for plugin, check in checks_of(cycle):
                if isinstance(check, Rejection):
                    return None
                checks.append((plugin, check))
            feasible = all_feasible(cycle, checks, self._order)
            if feasible is None:
                return None
            passing[feasible] = True
        return passing

    def rehearsal(self, keys: Sequence[ClaimKey]) -> Rehearsal | None:
        """What equal pods meet on nodes now; None if they are not equal, or if other nodes matter, too."""
        cycles = [self._cycle(key, in_placement=True) for key in keys]
        cycle = cycles[0]
        if not cycle.memory.is_kept or self._named(cycle):
            return None
        if any(other.memory is not cycle.memory for other in cycles):
            return None
        checks: list[tuple[Plugin, Check]] = []
        for plugin, check in checks_of(cycle):
            if isinstance(check, Rejection):
                return None
            checks.append((plugin, check))
        feasible = all_feasible(cycle, checks, self._order)
        if feasible is None:
            return None
        return Rehearsal.of(cycle, checks, feasible)

    def rehearsed(
        self,
        rehearsal: Rehearsal,
        keys: Sequence[ClaimKey],
        within: Places,
        choose: Callable[[Attempt], NodeInfo],
    ) -> dict[ClaimKey, NodeInfo]:
        """Return the nodes that pods choose in a set of nodes, and go on as after their attempts there."""
        start = self.next_place % len(within)
        self.pass_over(within)
        window = np.concatenate((within[start:], within[:start]))
        return rehearsal.nodes(keys, window, choose)

    def pass_over(self, within: Places) -> None:
        """Go on as after attempts in a set of nodes that all were looked at."""
        self.next_place %= len(within)

    def preempt(
        self, attempt: Attempt, order: Mapping[ClaimKey, int] | None = None
    ) -> tuple[NodeInfo, Sequence[PodInfo]] | None:
        """Evict the pods that upstream's preemption chooses after an attempt, and say which ones, and on which node.

        Claims from before that upstream's dry run supposes to be free are free from now on (KEP-5690). Who was bound
        since holds on to its devices. None if nobody is chosen. ``order`` tells of pods that were bound since the
        beginning which of them came first.
        """
        bound = order or {}
        cycle = self._cycle(attempt.pod)

        def started(pod: PodInfo) -> Started:
            if pod.key in bound:
                # After all whose status tells when they started.
                return True, f"{bound[pod.key]:012}"
            return self._started(pod)

        chosen = choose_victims(cycle, attempt.rejected, started)
        if chosen is not None:
            node, victims = chosen
            released = self._devices.released(victims, cycle.pod)
            self._given_up = self._devices.give_up(released, victims)
            for pod in victims:
                self.snapshot.remove(pod, node)
            self._touch_seeing(self._given_up, node)
        return chosen

    def call_back(self, victims: Sequence[PodInfo], node: NodeInfo) -> None:
        """Put those whom `preempt` evicted last back on their node, but for those who are bound anew."""
        self._devices.take_up(self._given_up, victims)
        for pod in victims:
            self.snapshot.add(pod, node)
        self._touch_seeing(self._given_up, node)
        self._given_up = ()

    def _touch_seeing(self, claims: Sequence[ClaimKey], node: NodeInfo) -> None:
        """What claims hold on a node was given up or taken up again: other nodes may share its counters."""
        seeing = self._devices.seeing(claims)
        self._touch(self._touched(seeing, node), node)

    def nominate(self, attempt: Attempt) -> Nomination | None:
        """Nominate a pod after an attempt for the node where upstream's preemption makes room; None if it does nowhere.

        Its victims are there as before. What the pod is to get is kept from pods that are not more important.
        """
        cycle = self._cycle(attempt.pod)
        chosen = choose_victims(cycle, attempt.rejected, self._started)
        if chosen is None:
            return None
        node, victims = chosen
        released = self._devices.released(victims, cycle.pod)
        others = nominated_beside(self._nominations, cycle.pod, node.place)
        with (
            supposed_gone(cycle, node, victims),
            self._devices.beside(others),
        ):
            pod, promised = self._devices.promise(cycle.pod, node)
        nomination = Nomination(pod, node, victims, released, promised)
        self._nominations.setdefault(node.place, []).append(nomination)
        self.snapshot.note_change(node.place)
        return nomination

    def withdraw(self, nomination: Nomination) -> None:
        """Forget a nomination: the pod has a node."""
        position = nomination.node.place
        self._nominations[position].remove(nomination)
        if not self._nominations[position]:
            del self._nominations[position]
        self.snapshot.note_change(position)

    def _is_nominated(self, key: ClaimKey) -> bool:
        """Whether a pod is nominated for a node."""
        for nominations in self._nominations.values():
            if any(nomination.pod.key == key for nomination in nominations):
                return True
        return False

    def _started(self, pod: PodInfo) -> Started:
        """When a pod started, so that later ones compare as larger."""
        started = self._cluster.pods_by_key[pod.key].status.start_time
        return started is None, started or ""

    def admits(
        self, key: ClaimKey, node: NodeInfo, planned: GrantsByClaim
    ) -> bool:
        """Whether a pod could go to a node with these devices, by all filters but the one that looks for devices."""
        if not self._devices.are_free(self.pods[key], node, planned):
            return False
        cycle = self._cycle(key)
        profile = cycle.profile
        others = profile.no_filters | {DYNAMIC_RESOURCES.name}
        cycle = cycle._replace(
            profile=replace(profile, no_filters=others),
            memory=Memory(len(self.snapshot.nodes)),
        )
        next_place = self.next_place
        try:
            positions = np.array([node.place], np.intp)
            return bool(self._attempt(cycle, positions, [node.place]).feasible)
        except FatalError:
            return False
        finally:
            # The search for the next pod begins where it would have without this question.
            self.next_place = next_place

    def bind(
        self,
        key: ClaimKey,
        node: NodeInfo,
        planned: GrantsByClaim | None = None,
    ) -> None:
        """Put a pod on a node that an attempt found feasible, with its devices; or with those that were planned."""
        others = nominated_beside(self._nominations, self.pods[key], node.place)
        self.pods[key], seeing = self._devices.bind(
            self.pods[key], node, others, planned
        )
        positions = self._touched(seeing, node)
        before = self.snapshot.states_at(positions)
        self.snapshot.add(self.pods[key], node)
        self._touch(positions, node)
        self._states_around[key] = before, self.snapshot.states_at(positions)

    def unbind(self, key: ClaimKey, node: NodeInfo) -> None:
        """Take a pod that was bound off its node."""
        positions = self._touched(self._devices.release(self.pods[key]), node)
        before, after = self._states_around.pop(key)
        states_now = self.snapshot.states_at(positions)
        # Where nothing has changed since then, the node is as it was before.
        restored = {
            position: before[position]
            for position in positions
            if states_now[position] == after[position]
        }
        self.snapshot.remove(self.pods[key], node)
        if self.pods[key].of_devices:
            self.pods[key] = replace(self.pods[key], of_devices={})
        self._touch(positions, node)
        self.snapshot.restore(restored)

    def _touched(self, seeing: Set[NodeIndex], node: NodeInfo) -> Set[int]:
        """The positions of a node and of others that see devices that come into use there, or are given back."""
        return {
            node.place,
            *[self._places[node_index] for node_index in seeing],
        }

    def _touch(self, positions: Set[int], node: NodeInfo) -> None:
        """Something has changed on other nodes, too, that see the same devices."""
        for position in positions:
            if position != node.place:
                self.snapshot.note_change(position)

    def _cycle(
        self,
        key: ClaimKey,
        in_flight: Set[ClaimKey] = frozenset(),
        *,
        in_placement: bool = False,
    ) -> Cycle:
        pod, profile = self.pods[key], self.profile_of(key)
        memory = self._memory_of(pod, in_flight)
        return Cycle(
            pod,
            profile,
            self.snapshot,
            self._devices,
            self._cluster.classes,
            memory,
            in_flight,
            in_placement,
            nominations=self._nominations,
        )

    def _memory_of(self, pod: PodInfo, in_flight: Set[ClaimKey]) -> Memory:
        """Return what is known for pods like this one; less for one with claims that are more than its own."""
        size = len(self.snapshot.nodes)
        # What is met with claims in flight is true of this attempt alone.
        own_memory = None if in_flight else self._memory_of_pod.get(pod.key)
        if own_memory is not None:
            own_memory.forget(self.snapshot)
            return own_memory
        if not self._remembers:
            return Memory(size)
        claims = None if in_flight else self._devices.kind_of(pod)
        if claims is None:
            # What depends on claims is not kept then, only what the kind of the pod decides by itself.
            return Memory(size, pod.kind.memo)
        memory = self._memories.get((pod.kind, claims))
        if memory is None:
            is_kept = self._pods_of_kind[pod.kind] > 1
            of_claims = of_pods = None
            # What devices say is shared by all pods with such claims, and everything else by all pods of the kind.
            if self._devices.are_apart(pod):
                of_claims = self._memory_of_claims(claims)
                of_pods = self._memory_of_kind(pod.kind) if is_kept else None
            memory = Memory(
                size, pod.kind.memo, of_claims, of_pods, is_kept=is_kept
            )
            if memory.is_kept:
                self._memories[pod.kind, claims] = memory
        if memory.is_kept:
            self._memory_of_pod[pod.key] = memory
        memory.forget(self.snapshot)
        return memory

    def _memory_of_kind(self, kind: PodKind) -> Memory:
        """Return what is known for pods of a kind, whatever claims they have."""
        memory = self._memories_of_kinds.get(kind)
        if memory is None:
            memory = Memory(len(self.snapshot.nodes), kind.memo)
            self._memories_of_kinds[kind] = memory
        return memory

    def _memory_of_claims(self, claims: Hashable) -> Memory:
        """Return what is known for some claims, whatever pod they are for."""
        memory = self._memories_of_claims.get(claims)
        if memory is None:
            memory = self._memories_of_claims[claims] = Memory(
                len(self.snapshot.nodes)
            )
        return memory

    def _attempt(
        self,
        cycle: Cycle,
        order: Places,
        sample: Sequence[int],
        *,
        only_best: bool = False,
        tells_errors: bool = False,
    ) -> Attempt:
        """Look for a node. ``tells_errors``: as in `after_filters`.

        Raises
        ------
        FatalError
            The search for devices ends with an error.
        """
        key, nodes, size = cycle.pod.key, self.snapshot.nodes, len(order)
        if not size:
            return Attempt(key, message="no nodes available to schedule pods")
        checks: list[tuple[Plugin, Check]] = []
        for plugin, check in checks_of(cycle):
            if isinstance(check, Rejection):
                after = after_filters(cycle, Rejected())
                return Attempt(key, message=refused(size, check, after))
            checks.append((plugin, check))
        if sample:
            window = np.array(sample, np.intp)
            enough = len(window)
        else:
            window = self._window(cycle, order)
            enough = feasible_nodes_to_find(
                cycle.profile.percentage, len(window)
            )
        away = turned_away(cycle, checks, window)
        if away is None:
            checks += beside_nominated(cycle, checks)
            away = {}
        if only_best and not sample:
            shorter = self._shorter(cycle, checks, window, enough, away)
            if shorter is not None:
                best_places, evaluated = shorter
                self.next_place = (self.next_place + evaluated) % size
                return Attempt(key, NodesAt(nodes, best_places), evaluated)
        feasible, rejected, verdicts = filtered(
            cycle, checks, window, enough, away
        )
        evaluated = len(feasible) + len(rejected)
        self.next_place = (self.next_place + evaluated) % size
        against = Rejected(nodes, rejected, verdicts)
        if not len(feasible):
            after = after_filters(cycle, against, tells_errors=tells_errors)
            message = fit_error(size, against.tally, _ABSENT, after)
            return Attempt(
                key,
                evaluated=evaluated,
                rejected=against,
                message=message,
                has_victims=not after,
            )
        if only_best and len(feasible) > 1:
            best = best_of(cycle, feasible)
            if best is not None:
                return Attempt(key, NodesAt(nodes, best), evaluated)
        feasible_nodes = NodesAt(nodes, feasible)
        scores: Mapping[str, Scores] = {}
        # Upstream does not score a node that is alone.
        if len(feasible_nodes) > 1:
            scores = scored(cycle, feasible, feasible_nodes)
        return Attempt(key, feasible_nodes, evaluated, scores, against)

    def _shorter(
        self,
        cycle: Cycle,
        checks: Checks,
        window: Places,
        enough: int,
        away: Mapping[int, Rejection],
    ) -> tuple[Places, int] | None:
        """The positions of the best feasible nodes, and how many were looked at; None if no shorter way leads there."""
        if not away:
            known = best_known(cycle, checks, window, enough)
            if known is not None:
                return known
        best = best_feasible(cycle, checks, without(window, away), enough)
        return None if best is None else (best, len(window))

    def _window(self, cycle: Cycle, order: Places) -> Places:
        """The nodes from where the last search ended, but for those that a plugin rules out before it looks at them."""
        positions = order
        for names in self._named(cycle):
            named = [
                position
                for position in positions
                if self.snapshot.nodes[position].name in names
            ]
            positions = np.array(named, np.intp)
        start = self.next_place % len(positions) if len(positions) else 0
        if start:
            return np.concatenate((positions[start:], positions[:start]))
        return positions

    def _named(self, cycle: Cycle) -> Sequence[Set[str]]:
        """The names of the only nodes that can be for the pod, by plugin that knows such."""
        named: list[Set[str]] = []
        for plugin in _NAMING:
            assert plugin.named is not None
            if plugin.name in cycle.profile.no_filters:
                continue
            names = plugin.named(cycle)
            if names is not None:
                named.append(names)
        return named


def _as_of(release: Release, profile: Profile) -> Profile:
    """The profile with what the release has of it."""
    no_scores = profile.no_scores
    if not release.scores_alternatives:
        no_scores = no_scores | {DYNAMIC_RESOURCES.name}
    return replace(
        profile,
        no_scores=no_scores,
        looks_at_once=profile.looks_at_once or release.draws_ties,
    )
