"""What is known about nodes for pods of one kind, and forgotten node by node as nodes change.

Most verdicts and scores of a node depend on the kind of the pod and on what is on the node alone. They hold until a pod
comes or goes there, or a device that the node reaches is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    Cycle,
    Plugin,
    Rejection,
    Scores,
    Scoring,
    unchanged,
)
from dralloc.solve.scheduler.verdicts import Places, Verdicts

if TYPE_CHECKING:
    from dralloc.solve.scheduler.attempt import Attempt
    from dralloc.solve.scheduler.snapshot import Snapshot

__all__ = ["CLAIMS_FILTER", "FEW", "Memory"]

CLAIMS_FILTER: Final = "DynamicResources"
"""The filter that looks at nothing of a pod but its claims."""

FEW: Final = 8
"""Fewer nodes than this are asked about one by one."""

T = TypeVar("T")


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
    is_kept
        Whether it is for several pods, so that it pays to know each node and to ask again where something changes.

    Notes
    -----
    ``failure``: the last attempt that found no node, after how many changes of the snapshot and among which nodes.
    ``crowded_until``: after so many changes nodes may be few enough to be rated before anybody looks for devices.
    """

    size: int
    of_kind: dict[Hashable, Any] | None = None
    of_claims: Memory | None = None
    is_kept: bool = True
    failure: tuple[int, Places | None, Attempt | None] = (-1, None, None)
    crowded_until: int = 0
    _seen: int = 0
    _states: Places | None = None
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: _LocalScores | None = None

    def failed(self, within: Places | None) -> Attempt | None:
        """The last failure, if it was among the same nodes, and nothing has changed since."""
        changes, among, attempt = self.failure
        return attempt if changes == self._seen and among is within else None

    def forget(self, snapshot: Snapshot) -> None:
        """Forget what is known about the nodes that are not as they were the last time."""
        if self.of_claims is not None:
            self.of_claims.forget(snapshot)
        changes, states = snapshot.changes, snapshot.states
        if self._seen == len(changes):
            return
        if not (self._verdicts or self._scores):
            self._seen, self._states = len(changes), states.copy()
            return
        if self._states is None:
            # What is known is from before the first change.
            self._states = np.zeros_like(states)
        changed = np.array(changes[self._seen :], np.intp)
        places = changed[states[changed] != self._states[changed]]
        self._seen = len(changes)
        self._states[places] = states[places]
        for verdicts in self._verdicts.values():
            verdicts.forget(places)
        if self._scores is not None:
            self._scores.forget(places)

    def answer(self, plugin: Plugin, ask: Callable[[Cycle], T], cycle: Cycle) -> T:
        """What the plugin's filter or score says: for equal pods the same, unless it looks around."""
        if plugin.looks_around:
            return ask(cycle)
        view = plugin.view
        known = self._answers if view is None or self.of_kind is None else self.of_kind
        if ask not in known:
            known[ask] = (
                ask(cycle)
                if view is None or known is self._answers
                else _once(ask(cycle), view)
            )
        found: T = known[ask]
        return found

    def verdicts(self, filters: Hashable) -> Verdicts:
        """The verdicts of some filters together, by name."""
        if self.of_claims is not None and filters == (CLAIMS_FILTER,):
            return self.of_claims.verdicts(filters)
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    def scores(
        self, cycle: Cycle, plugins: Iterable[Plugin], places: Places
    ) -> dict[str, Scores]:
        """The weighted scores at some places, all feasible ones, by those of the plugins that do not look around."""
        return self._local_scores(cycle, plugins).at(places, cycle.snapshot.nodes)

    def independent_totals(
        self, cycle: Cycle, plugins: Iterable[Plugin], places: Places
    ) -> Scores | None:
        """The sums of these scores, but for what all places have in common; None if one depends on other places."""
        return self._local_scores(cycle, plugins).independent_totals(
            places, cycle.snapshot.nodes
        )

    def _local_scores(self, cycle: Cycle, plugins: Iterable[Plugin]) -> _LocalScores:
        if self._scores is None:
            weighted = {}
            for plugin in plugins:
                scoring = (
                    self.answer(plugin, plugin.score, cycle)
                    if plugin.score and not plugin.looks_around
                    else None
                )
                if scoring is not None:
                    if plugin.reads is not None:
                        scoring = _of_traits(
                            scoring, cycle, (plugin.name, "score", plugin.reads(cycle))
                        )
                    weighted[plugin.name] = scoring, plugin.weight_in(cycle.profile)
            self._scores = _LocalScores(weighted, self.size)
        return self._scores


def _of_traits(scoring: Scoring, cycle: Cycle, key: Hashable) -> Scoring:
    """The same scoring of what nodes are, asked once for all pods to which the same matters."""
    values = cycle.snapshot.columns.trait(key, scoring.score)
    return scoring._replace(column=lambda places: values[places])


def _once(answer: Any, view: Callable[[NodeInfo], Hashable]) -> Any:
    """The same check or scoring, asked once for nodes that look the same."""
    match answer:
        case None | Rejection():
            return answer
        case Scoring():
            return answer._replace(score=_once(answer.score, view))
    known: dict[Hashable, Any] = {}

    def asked(node: NodeInfo) -> Any:
        seen = view(node)
        if seen not in known:
            known[seen] = answer(node)
        return known[seen]

    return asked


class _LocalScores:
    """The scores by plugins that do not look around, until a node changes.

    Parameters
    ----------
    scorings
        By plugin, with its weight.
    """

    def __init__(self, scorings: Mapping[str, tuple[Scoring, int]], size: int) -> None:
        self._scorings = scorings
        self._values = np.zeros((len(scorings), size), np.int64)
        self._known = np.zeros(size, np.bool_)
        self._varies = np.zeros(len(scorings), np.bool_)
        none = np.zeros(size, np.int64)
        self._without = {
            name: weight * scoring.normalise(none)
            for name, (scoring, weight) in scorings.items()
        }

    def forget(self, places: Places) -> None:
        """Forget the scores of these places."""
        self._known[places] = False

    def at(self, places: Places, nodes: Sequence[NodeInfo]) -> dict[str, Scores]:
        """The scores by plugin at some places, all feasible ones."""
        self._ask_for(places, nodes)
        found = {}
        # Most often many plugins have nothing to say about any node.
        for varies, row, (name, (scoring, weight)) in zip(
            self._varies.tolist(), self._values, self._scorings.items(), strict=True
        ):
            without = self._without[name][: len(places)]
            found[name] = (
                weight * scoring.normalise(row.take(places)) if varies else without
            )
        return found

    def independent_totals(
        self, places: Places, nodes: Sequence[NodeInfo]
    ) -> Scores | None:
        """See `Memory.independent_totals`."""
        self._ask_for(places, nodes)
        totals = np.zeros(len(places), np.int64)
        for varies, row, (scoring, weight) in zip(
            self._varies.tolist(), self._values, self._scorings.values(), strict=True
        ):
            if varies and scoring.normalise is not unchanged:
                return None
            if varies:
                totals += weight * row.take(places)
        return totals

    def _ask_for(self, places: Places, nodes: Sequence[NodeInfo]) -> None:
        """Know the scores at these places."""
        unknown = places[~self._known[places]]
        if len(unknown):
            few = len(unknown) < FEW
            for number, (scoring, _) in enumerate(self._scorings.values()):
                scores = None if few else scoring.column(unknown)
                if scores is None:
                    scores = np.array(
                        [scoring.score(nodes[place]) for place in unknown.tolist()],
                        np.int64,
                    )
                self._values[number, unknown] = scores
                self._varies[number] |= scores.any()
            self._known[unknown] = True
