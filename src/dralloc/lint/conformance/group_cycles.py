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
from dralloc.lint.conformance.attempts import answer_of, difference_of, taken
from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.difference import first_difference
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Attempt, Scheduler
from dralloc.solve.scheduler.group_cycle import (
    GroupTrial,
    best_trials,
    placement_scores,
)
from dralloc.solve.scheduler.groups import PlacementError, find_groups, placements_of
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.verdicts import Places

__all__ = ["RecordedCycle"]

Replayed = tuple[Json, dict[str, Any], str]
"""A recorded attempt, the answer, and in what they differ."""


class RecordedCycle:
    """One cycle of a group."""

    def __init__(
        self, scheduler: Scheduler, compiled: CompiledCluster, trials: Sequence[Json]
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
        """Every attempt; the last one also tells in what the cycle as a whole differs.

        Parameters
        ----------
        scores
            The recorded scores by domain and plugin, if there are any.
        """
        parts = self._parts()
        found: dict[str, GroupTrial] = {}
        replayed: list[Replayed] = []
        for placement, trials in groupby(
            self._trials, key=lambda one: str(one["placement"])
        ):
            attempts, nodes = self._tried(
                list(trials), parts.get(placement), in_flight, replayed
            )
            found[placement] = GroupTrial(parts.get(placement), attempts, nodes)
        recorded, answer, difference = replayed.pop()
        yield from replayed
        yield (
            recorded,
            answer,
            difference or self._difference(set(parts), found, scores),
        )

    def bound(self) -> Iterator[tuple[ClaimKey, NodeInfo]]:
        """The pods that were bound, with their nodes."""
        for recorded in self._trials:
            if recorded["outcome"] == "bound":
                yield (
                    ClaimKey.parse(recorded["pod"]),
                    self._scheduler.snapshot.by_name[recorded["node"]],
                )

    def _parts(self) -> Mapping[str, Places | None]:
        try:
            return placements_of(self._group, self._homes, self._scheduler.snapshot)
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
                (recorded, answer, difference_of(_as_tried(recorded, answer), answer))
            )
            if attempts[-1].feasible:
                nodes[key] = taken(recorded, attempts[-1])
                self._scheduler.bind(key, nodes[key])
        for key, node in reversed(nodes.items()):
            self._scheduler.unbind(key, node)
        return attempts, nodes

    def _difference(
        self, domains: Set[str], found: Mapping[str, GroupTrial], scores: Sequence[Json]
    ) -> str:
        """In what the cycle differs beside its attempts: the domains, their scores, and which of them may be taken."""
        if domains != found.keys():
            return f"placements: expected {sorted(found)}, got {sorted(domains)}"
        running = sum(key in self._homes for key in self._group.pods)
        names = {id(trial): name for name, trial in found.items()}
        best = {
            names[id(one)]
            for one in best_trials(
                self._scheduler, self._group, list(found.values()), running
            )
        }
        taken = {
            str(one["placement"]) for one in self._trials if one["outcome"] == "bound"
        }
        if not taken <= best or bool(taken) != bool(best):
            return f"placement: expected {sorted(taken)}, got one of {sorted(best)}"
        for recorded in scores:
            rated = placement_scores(
                self._scheduler, [found[name] for name in recorded], running
            )
            got = {
                name: {plugin: int(column[number]) for plugin, column in rated.items()}
                for number, name in enumerate(recorded)
            }
            return first_difference(recorded, got)
        return ""


def _as_tried(recorded: Json, answer: Json) -> Json:
    """The recorded attempt in so far as it says how the pod fared, and not its group."""
    if answer["outcome"] == "bound":
        return {**recorded, "outcome": "bound", "message": ""} | (
            {} if recorded["node"] else {"node": answer["best"][0]}
        )
    return (
        recorded if "message" in recorded else {**recorded, "outcome": "unschedulable"}
    )
