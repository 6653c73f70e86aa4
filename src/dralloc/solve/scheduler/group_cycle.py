"""One attempt to schedule a group of pods: one after the other, in each set of nodes that may be for the group.

What is tried leaves nothing behind. The pods get their nodes if enough of them have one.

Source: ``schedule_one_podgroup.go`` and the plugins that score sets of nodes: ``podgrouppodscount``, and
``noderesources`` (which rates full nodes best here, whatever its strategy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.groups import Group, PlacementError, placements_of
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import Scores, relative
from dralloc.solve.scheduler.plugins.node_resources import NODE_RESOURCES_FIT, use_of
from dralloc.solve.scheduler.scheduler import Scheduler
from dralloc.solve.scheduler.verdicts import Places

__all__ = ["GroupCycle", "GroupTrial", "best_rated", "best_trials", "placement_scores"]

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
    """How the pods of a group fared in one set of nodes.

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
            (attempt.message for attempt in self.attempts if attempt.is_error), ""
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
        """What becomes of a group's pods that wait, in this order. Nothing is bound.

        Parameters
        ----------
        homes
            The nodes of pods that have one.
        within
            The places of the nodes that there are, for a group in a tree; all, if not given.
        """
        try:
            placements = list(
                placements_of(group, homes, self.scheduler.snapshot, within).values()
            )
        except PlacementError as error:
            return [(Attempt(key, message=str(error)), None) for key in waiting]
        self.random.shuffle(placements)
        running = sum(key in homes for key in group.pods)
        trials: list[GroupTrial] = []
        hopeful = self.scheduler.hopeful(waiting) if len(placements) > 1 else None
        for places in placements:
            # The first trial tells why, if none helps.
            if (
                trials
                and hopeful is not None
                and places is not None
                and not hopeful[places].any()
            ):
                self.scheduler.pass_over(places)
                continue
            trials.append(self.tried(waiting, places))
            if trials[-1].error:
                return [(_failed(key, trials[-1]), None) for key in waiting]
        found = best_trials(self.scheduler, group, trials, running)
        if not found:
            refused = (
                Attempt(one.pod, message=_WAITING) if one.feasible else one
                for one in trials[0].attempts
            )
            return [(attempt, None) for attempt in refused]
        best = self.random.choice(found)
        return [(attempt, best.nodes.get(attempt.pod)) for attempt in best.attempts]

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
                key, within=within, in_flight=in_flight, only_best=self.only_best
            )
            attempts.append(attempt)
            if attempts[-1].is_error:
                break
            if attempts[-1].feasible:
                nodes[key] = self.choose(attempts[-1])
                self.scheduler.bind(key, nodes[key])
        for key, node in reversed(nodes.items()):
            self.scheduler.unbind(key, node)
        return GroupTrial(within, attempts, nodes)


def best_trials(
    scheduler: Scheduler, group: Group, trials: Sequence[GroupTrial], running: int
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
    counts = np.array([running + len(trial.nodes) for trial in trials], np.int64)
    found = {_COUNT: profile.weights.get(_COUNT, 1) * relative(counts)}
    if NODE_RESOURCES_FIT.name not in profile.no_scores:
        fullness = []
        for trial in trials:
            places = (
                range(len(scheduler.snapshot.nodes))
                if trial.within is None
                else trial.within.tolist()
            )
            pods = [scheduler.pods[key] for key in trial.nodes]
            fullness.append(
                use_of(
                    profile, [scheduler.snapshot.nodes[place] for place in places], pods
                )
            )
        found[NODE_RESOURCES_FIT.name] = NODE_RESOURCES_FIT.weight_in(
            profile
        ) * np.array(fullness, np.int64)
    return found


def _failed(key: ClaimKey, trial: GroupTrial) -> Attempt:
    own = next(
        (
            attempt
            for attempt in trial.attempts
            if attempt.pod == key and attempt.is_error
        ),
        None,
    )
    return own or Attempt(key, message=f"{_OTHERS}: {trial.error}", is_error=True)
