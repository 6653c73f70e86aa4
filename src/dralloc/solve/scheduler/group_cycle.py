"""The attempt for a group: one pod after the other, in each set of nodes that may be for the group.

What is tried leaves nothing behind. The pods get their nodes if enough of them have one. Source:
``schedule_one_podgroup.go`` and the plugins that score sets of nodes: ``podgrouppodscount``, and ``noderesources``
(which rates full nodes best here, whatever its strategy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.groups import Group, PlacementError, placements_of
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Scores, relative
from dralloc.solve.scheduler.rehearsal import Rehearsal
from dralloc.solve.scheduler.resource_plugins import NODE_RESOURCES_FIT, use_of
from dralloc.solve.scheduler.scheduler import Scheduler
from dralloc.solve.scheduler.verdicts import Places

__all__ = [
    "GroupCycle",
    "GroupTrial",
    "best_rated",
    "best_trials",
    "placement_scores",
]

_WAITING: Final = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
_OTHERS: Final = "failed to schedule other pod from a pod group"
_DISCORD: Final = "all pods in a single pod group should have the same .spec.schedulerName set"
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
        error = self._discord(waiting)
        if error:
            return [
                (Attempt(key, message=error, is_error=True), None)
                for key in waiting
            ]
        try:
            placements = list(
                placements_of(group, homes, snapshot, within).values()
            )
        except PlacementError as failure:
            message = str(failure)
            return [(Attempt(key, message=message), None) for key in waiting]
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

    def _discord(self, waiting: Sequence[ClaimKey]) -> str:
        """The error if pods of a group are for several schedulers; empty if they are not (``frameworkForPodGroup``)."""
        names = [self.scheduler.profile_of(key).name for key in waiting]
        for name in names:
            if name != names[0]:
                return f'{_DISCORD}, got: "{name}" and "{names[0]}"'
        return ""

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
