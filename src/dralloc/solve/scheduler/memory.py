"""What is remembered of nodes for pods of one kind.

Most verdicts and scores of a node depend on the kind of the pod and on what is on the node alone. They hold until a pod
comes or goes there, or a device that the node reaches is taken; then they are forgotten, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.local_scores import (
    LocalScores,
    independent_totals_of,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import (
    Cycle,
    Plugin,
    Scores,
    Scoring,
    relative,
)
from dralloc.solve.scheduler.resource_plugins import DYNAMIC_RESOURCES
from dralloc.solve.scheduler.verdicts import (
    FEW_NODES,
    Places,
    Rejection,
    Verdicts,
)

if TYPE_CHECKING:
    from dralloc.solve.scheduler.snapshot import Snapshot

__all__ = [
    "CLAIMS_FILTER",
    "Memory",
    "never_fails",
    "read_by",
    "weight_of_choice",
]

CLAIMS_FILTER: Final = DYNAMIC_RESOURCES.name
"""The filter that looks at nothing of a pod but its claims."""

T = TypeVar("T")

_Beside = tuple[int, tuple[ClaimKey, ...], Rejection | None]
"""The state of a node, the pods that are nominated for it, and what is against it beside them."""


@dataclass(eq=False)
class Memory:
    """Verdicts and scores for pods of one kind with equal claims.

    Parameters
    ----------
    size
        How many nodes there are.
    of_kind
        What is known whatever the claims are (see `PodKind.memo`): what plugins with a view of nodes say, which are
        asked once about nodes that look the same. None if they are to be asked again.
    of_claims
        What is known of claims whatever the pods are; None if claims and pods cannot be told apart.
    of_pods
        What is known of pods whatever their claims are; None if it is not kept, or if they cannot be told apart.
    is_kept
        Whether it is for several pods, so that it pays to know each node and to ask again where something changes.

    Notes
    -----
    ``failure``: the last attempt that found no node, after how many changes of the snapshot and among which nodes.
    ``answer_beside``: by position, in which state of the node and beside whom devices were asked about, and the answer.
    ``crowded_until``: after so many changes nodes may be few enough to be rated before anybody looks for devices.
    """

    size: int
    of_kind: dict[Hashable, Any] | None = None
    of_claims: Memory | None = None
    of_pods: Memory | None = None
    is_kept: bool = True
    failure: tuple[int, Places | None, Attempt | None] = (-1, None, None)
    crowded_until: int = 0
    answer_beside: dict[int, _Beside] = field(default_factory=dict)
    _seen: int = 0
    _states: Places | None = None
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: LocalScores | None = None
    _ratings: LocalScores | None = None

    def failed(self, within: Places | None) -> Attempt | None:
        """The last failure, if it was among the same nodes, and nothing has changed since."""
        changes, among, attempt = self.failure
        if changes == self._seen and among is within:
            return attempt
        return None

    def forget(self, snapshot: Snapshot) -> None:
        """Forget what is known about the nodes that are not as they were the last time."""
        for part in (self.of_claims, self.of_pods):
            if part is not None:
                part.forget(snapshot)
        changes, states = snapshot.changes, snapshot.states
        if self._seen == len(changes):
            return
        if not (self._verdicts or self._scores or self._ratings):
            self._seen, self._states = len(changes), states.copy()
            return
        if self._states is None:
            # What is known is from before the first change.
            self._states = np.zeros_like(states)
        recent = changes[self._seen :]
        self._seen = len(changes)
        if len(recent) < FEW_NODES:
            # For few positions, columns take longer than to go through them.
            for position in recent:
                if states[position] != self._states[position]:
                    self._forget_at(position, states)
        else:
            changed = np.array(recent, np.intp)
            differs = states[changed] != self._states[changed]
            self._forget_at(changed[differs], states)

    def _forget_at(self, positions: int | Places, states: Places) -> None:
        """Forget what is known about nodes that have come into these states."""
        assert self._states is not None
        self._states[positions] = states[positions]
        for verdicts in self._verdicts.values():
            verdicts.forget(positions)
        for scores in (self._scores, self._ratings):
            if scores is not None:
                scores.forget(positions)

    def answer(
        self, plugin: Plugin, ask: Callable[[Cycle], T], cycle: Cycle
    ) -> T:
        """Return what the plugin's filter or score says: for equal pods the same, unless it looks around."""
        if plugin.looks_around:
            return ask(cycle)
        view, identity = plugin.view, cast("Hashable", ask)
        answers, is_shared = self._answers, False
        if plugin.reads is not None:
            # Whatever else the pods are.
            answers, is_shared = cycle.snapshot.answers, True
            identity = ask, read_by(plugin, cycle)
        elif view is not None and self.of_kind is not None and self.is_kept:
            # Whatever the claims are.
            answers, is_shared = self.of_kind, True
        if identity not in answers:
            answers[identity] = ask(cycle)
            if view is not None and is_shared:
                # Nodes that look the same are asked about once.
                answers[identity] = _once(answers[identity], view)
        known_answer: T = answers[identity]
        return known_answer

    def once(self, question: str, ask: Callable[[], T]) -> T:
        """Return what is true of all pods that it is about, whatever is on nodes."""
        if question not in self._answers:
            self._answers[question] = ask()
        known_answer: T = self._answers[question]
        return known_answer

    def verdicts(self, filters: tuple[str, ...]) -> Verdicts:
        """The verdicts of some filters together, by name."""
        if self.of_claims is not None and filters == (CLAIMS_FILTER,):
            return self.of_claims.verdicts(filters)
        if self.of_pods is not None and CLAIMS_FILTER not in filters:
            return self.of_pods.verdicts(filters)
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    @property
    def claims_beside(self) -> dict[int, _Beside]:
        """What devices say about positions beside nominated pods, whatever pods with such claims are asked for."""
        assert self.of_claims is not None
        return self.of_claims.answer_beside

    def scores(
        self, cycle: Cycle, plugins: Collection[Plugin], positions: Places
    ) -> dict[str, Scores]:
        """The weighted scores at some positions, all feasible ones, by those of the plugins that do not look around."""
        nodes = cycle.snapshot.nodes
        scores = self._local_scores(cycle, plugins).at(positions, nodes)
        if DYNAMIC_RESOURCES in plugins:
            of_claims = np.zeros(len(positions), np.int64)
            weight = weight_of_choice(cycle)
            if weight:
                of_claims = weight * relative(self.ratings(cycle, positions))
            scores[CLAIMS_FILTER] = of_claims
        return scores

    def independent_totals(
        self, cycle: Cycle, plugins: Iterable[Plugin], positions: Places
    ) -> Scores | None:
        """The sums of these scores, but for what all positions have in common; None if one depends on other positions.

        What alternatives of claims count for is left out: `ratings` tells of them.
        """
        nodes = cycle.snapshot.nodes
        if not self.is_kept:
            scorings = self._scorings(cycle, plugins)
            return independent_totals_of(scorings.values(), positions, nodes)
        scores = self._local_scores(cycle, plugins)
        return scores.independent_totals(positions, nodes)

    def independent_total(
        self, cycle: Cycle, plugins: Iterable[Plugin], node: NodeInfo
    ) -> int:
        """The same sum of one node as it is now, whatever is known of it."""
        return self._local_scores(cycle, plugins).independent_total(node)

    def ratings(self, cycle: Cycle, positions: Places) -> Scores:
        """Return how good the alternatives are that the pod's claims get at some positions, which are feasible.

        Until a node changes, it is asked once for all pods with such claims.
        """
        memory = self.of_claims or self
        if memory._ratings is None:
            assert DYNAMIC_RESOURCES.score is not None
            scoring = DYNAMIC_RESOURCES.score(cycle)
            assert scoring is not None
            memory._ratings = LocalScores(
                {CLAIMS_FILTER: (scoring, 1)}, self.size
            )
        return memory._ratings.raw(positions, cycle.snapshot.nodes)

    def _local_scores(
        self, cycle: Cycle, plugins: Iterable[Plugin]
    ) -> LocalScores:
        """The scores of everything but claims."""
        if self.of_pods is not None:
            return self.of_pods._local_scores(cycle, plugins)
        if self._scores is None:
            scorings = self._scorings(cycle, plugins)
            self._scores = LocalScores(scorings, self.size)
        return self._scores

    def _scorings(
        self, cycle: Cycle, plugins: Iterable[Plugin]
    ) -> dict[str, tuple[Scoring, int]]:
        """Return what plugins that do not look around say of everything but claims, with weights."""
        scorings: dict[str, tuple[Scoring, int]] = {}
        for plugin in plugins:
            if plugin.score is None or plugin.looks_around:
                continue
            if plugin.name == CLAIMS_FILTER:
                continue
            scoring = self.answer(plugin, plugin.score, cycle)
            if scoring is None:
                continue
            if plugin.reads is not None:
                key = plugin.name, "score", read_by(plugin, cycle)
                scoring = _of_traits(scoring, cycle, key)
            scorings[plugin.name] = scoring, plugin.weight_in(cycle.profile)
        return scorings


def read_by(plugin: Plugin, cycle: Cycle) -> Hashable:
    """Return all of the pod that makes a difference for a plugin that looks at nothing of a node that changes."""
    reads = plugin.reads
    assert reads is not None
    return cycle.memory.once(f"{plugin.name} reads", lambda: reads(cycle))


def _has_choice(cycle: Cycle) -> bool:
    """Whether a claim of the pod has a request with alternatives."""
    return cycle.memory.once(
        "has a choice", lambda: cycle.devices.has_choice(cycle.pod)
    )


def weight_of_choice(cycle: Cycle) -> int:
    """Return what the alternatives count for by which claims are served; nothing if there is no choice."""
    profile = cycle.profile
    if CLAIMS_FILTER in profile.no_scores or not _has_choice(cycle):
        return 0
    return DYNAMIC_RESOURCES.weight_in(profile)


def never_fails(cycle: Cycle) -> bool:
    """Whether it is certain that no search for the pod's claims ends with an error."""
    of_claims = cycle.memory.of_claims or cycle.memory
    return of_claims.once(
        "never fails", lambda: cycle.devices.never_fails(cycle.pod)
    )


def _of_traits(scoring: Scoring, cycle: Cycle, key: Hashable) -> Scoring:
    """The same scoring of what nodes are, asked once for all pods to which the same matters."""
    values = cycle.snapshot.columns.trait(key, scoring.score)
    return scoring._replace(column=lambda positions: values[positions])


def _once(answer: Any, view: Callable[[NodeInfo], Hashable]) -> Any:
    """The same check or scoring, asked once for nodes that look the same."""
    match answer:
        case None | Rejection():
            return answer
        case Scoring():
            return answer._replace(score=_once(answer.score, view))
    answers: dict[Hashable, Any] = {}

    def asked(node: NodeInfo) -> Any:
        seen = view(node)
        if seen not in answers:
            answers[seen] = answer(node)
        return answers[seen]

    return asked
