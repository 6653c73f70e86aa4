"""Recorded cycles in which kube-scheduler tried a group of pods, replayed.

Of an attempt inside of a cycle, ``cycle`` is its number, ``group`` the PodGroup and ``placement`` the domain whose
nodes were tried; empty for all nodes. The outcome of a pod stands at its attempt in the domain that was taken, or in
the first. A pod that was feasible while its group was not is "unschedulable", with its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import groupby
from typing import Any

from dralloc.compile.compiler import CompiledCluster
from dralloc.lint.conformance.attempts import (
    answer_of,
    difference_of,
    node_of,
    scores_by_node,
)
from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.differences import first_difference
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Attempt, Scheduler
from dralloc.solve.scheduler.group_cycle import (
    GroupTrial,
    best_trials,
    placement_scores,
)
from dralloc.solve.scheduler.groups import (
    PlacementError,
    find_groups,
    placements_of,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.verdicts import Places

__all__ = ["RecordedCycle"]

Replayed = tuple[Json, dict[str, Any], str]
"""A recorded attempt, the answer, and in what they differ."""


class RecordedCycle:
    """One cycle of a group."""

    def __init__(
        self,
        scheduler: Scheduler,
        compiled: CompiledCluster,
        trials: Sequence[Json],
    ) -> None:
        self._scheduler = scheduler
        self._trials = trials
        groups = find_groups(compiled.cluster, compiled.problem.features)
        self._group = groups[ClaimKey.parse(trials[0]["pod"])]

    @cached_property
    def _homes(self) -> Mapping[ClaimKey, str]:
        return {
            pod.key: node.name
            for node in self._scheduler.snapshot.nodes
            for pod in node.pods
        }

    def replayed(
        self, in_flight: Callable[[Json], Set[ClaimKey]], scores: Sequence[Json]
    ) -> Iterator[Replayed]:
        """Yield every attempt; the last one also tells in what the cycle as a whole differs.

        Parameters
        ----------
        scores
            The recorded scores by domain and plugin, if there are any.
        """
        parts = self._parts()
        domain_trials: dict[str, GroupTrial] = {}
        replayed: list[Replayed] = []
        for placement, trials in groupby(
            self._trials, key=lambda attempt: str(attempt["placement"])
        ):
            attempts, nodes = self._tried(
                list(trials), parts.get(placement), in_flight, replayed
            )
            domain_trials[placement] = GroupTrial(
                parts.get(placement), attempts, nodes
            )
        recorded, answer, difference = replayed.pop()
        yield from replayed
        yield (
            recorded,
            answer,
            difference or self._difference(set(parts), domain_trials, scores),
        )

    def bound(self) -> Iterator[tuple[ClaimKey, NodeInfo]]:
        """Yield the pods that were bound, with their nodes."""
        for recorded in self._trials:
            if recorded["outcome"] == "bound":
                yield (
                    ClaimKey.parse(recorded["pod"]),
                    self._scheduler.snapshot.by_name[recorded["node"]],
                )

    def _parts(self) -> Mapping[str, Places | None]:
        try:
            return placements_of(
                self._group, self._homes, self._scheduler.snapshot
            )
        except PlacementError:
            return {}

    def _tried(
        self,
        trials: Sequence[Json],
        within: Places | None,
        in_flight: Callable[[Json], Set[ClaimKey]],
        replayed: list[Replayed],
    ) -> tuple[Sequence[Attempt], Mapping[ClaimKey, NodeInfo]]:
        attempts: list[Attempt] = []
        nodes: dict[ClaimKey, NodeInfo] = {}
        for recorded in trials:
            key = ClaimKey.parse(recorded["pod"])
            attempts.append(
                self._scheduler.attempt(
                    key, in_flight=in_flight(recorded), within=within
                )
            )
            answer = answer_of(recorded, attempts[-1])
            replayed.append(
                (
                    recorded,
                    answer,
                    difference_of(_as_tried(recorded, answer), answer),
                )
            )
            if attempts[-1].feasible:
                nodes[key] = node_of(recorded, attempts[-1])
                self._scheduler.bind(key, nodes[key])
        # A trial leaves nothing behind: every domain is tried on the same cluster.
        for key, node in reversed(nodes.items()):
            self._scheduler.unbind(key, node)
        return attempts, nodes

    def _difference(
        self,
        domains: Set[str],
        domain_trials: Mapping[str, GroupTrial],
        scores: Sequence[Json],
    ) -> str:
        """Return in what the cycle differs beside its attempts: its domains, their scores, and which is the best."""
        if domains != domain_trials.keys():
            return f"placements: expected {sorted(domain_trials)}, got {sorted(domains)}"
        running = sum(key in self._homes for key in self._group.pods)
        names = {id(trial): name for name, trial in domain_trials.items()}
        best = best_trials(
            self._scheduler, self._group, list(domain_trials.values()), running
        )
        best_domains = {names[id(trial)] for trial in best}
        recorded_domains = {
            str(recorded["placement"])
            for recorded in self._trials
            if recorded["outcome"] == "bound"
        }
        # Which of several best domains is taken is chance, but one is if there is any.
        is_among_best = recorded_domains <= best_domains
        if not is_among_best or bool(recorded_domains) != bool(best_domains):
            return f"placement: expected {sorted(recorded_domains)}, got one of {sorted(best_domains)}"
        for recorded_scores in scores:
            rated = placement_scores(
                self._scheduler,
                [domain_trials[name] for name in recorded_scores],
                running,
            )
            return first_difference(
                recorded_scores, scores_by_node(recorded_scores, rated)
            )
        return ""


def _as_tried(recorded: Json, answer: Json) -> Json:
    """Return the recorded attempt in so far as it says how the pod fared, and not its group."""
    if answer["outcome"] == "bound":
        return {**recorded, "outcome": "bound", "message": ""} | (
            {} if recorded["node"] else {"node": answer["best"][0]}
        )
    return (
        recorded
        if "message" in recorded
        else {**recorded, "outcome": "unschedulable"}
    )
