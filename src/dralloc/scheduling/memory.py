"""What is known about nodes for pods of one kind, and forgotten node by node as nodes change.

Most verdicts and scores of a node depend on the kind of the pod and on what is on the node alone. They hold until a pod
comes or goes there, or a device that the node reaches is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugin import Cycle, Plugin, Rejection, Scores, Scoring
from dralloc.scheduling.verdicts import Places, Verdicts

if TYPE_CHECKING:
    from dralloc.scheduling.attempt import Attempt

__all__ = ["Memory"]

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

    Notes
    -----
    ``ranks``: what DynamicResources found out about a node on the way to its verdict. ``failure``: the last attempt
    that found no node, after how many changes of the snapshot and among which nodes.
    """

    size: int
    of_kind: dict[Hashable, Any] | None = None
    ranks: dict[NodeInfo, int] = field(default_factory=dict)
    failure: tuple[int, Places | None, Attempt | None] = (-1, None, None)
    _seen: int = 0
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: _LocalScores | None = None

    def failed(self, within: Places | None) -> Attempt | None:
        """The last failure, if it was among the same nodes, and nothing has changed since."""
        changes, among, attempt = self.failure
        return attempt if changes == self._seen and among is within else None

    def forget(self, changes: Sequence[int]) -> None:
        """Forget what is known about the places that have changed since the last time."""
        if self._seen == len(changes):
            return
        places = np.array(changes[self._seen :], np.intp)
        self._seen = len(changes)
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
            known[ask] = ask(cycle) if view is None or known is self._answers else _once(ask(cycle), view)
        found: T = known[ask]
        return found

    def verdicts(self, filters: Hashable) -> Verdicts:
        """The verdicts of some filters together."""
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    def scores(self, cycle: Cycle, plugins: Iterable[Plugin], places: Places) -> dict[str, Scores]:
        """The weighted scores at some places, all feasible ones, by those of the plugins that do not look around."""
        if self._scores is None:
            weighted = {}
            for plugin in plugins:
                scoring = self.answer(plugin, plugin.score, cycle) if plugin.score and not plugin.looks_around else None
                if scoring is not None:
                    weighted[plugin.name] = scoring, plugin.weight_in(cycle.profile)
            self._scores = _LocalScores(weighted, self.size)
        return self._scores.at(places, cycle.snapshot.nodes)


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
        self._rates = [scoring.score for scoring, _ in scorings.values()]
        self._values = np.zeros((len(scorings), size), np.int64)
        self._known = np.zeros(size, np.bool_)
        self._varies = np.zeros(len(scorings), np.bool_)
        none = np.zeros(size, np.int64)
        self._without = {name: weight * scoring.normalise(none) for name, (scoring, weight) in scorings.items()}

    def forget(self, places: Places) -> None:
        """Forget the scores of these places."""
        self._known[places] = False

    def at(self, places: Places, nodes: Sequence[NodeInfo]) -> dict[str, Scores]:
        """The scores by plugin at some places, all feasible ones."""
        unknown = places[~self._known[places]]
        if len(unknown):
            rated = [nodes[place] for place in unknown.tolist()]
            scores = np.array([[rate(node) for node in rated] for rate in self._rates], np.int64)
            scores = scores.reshape(len(self._rates), len(rated))
            self._values[:, unknown] = scores
            self._known[unknown] = True
            self._varies |= scores.any(axis=1)
        found = {}
        # Most often many plugins have nothing to say about any node.
        for varies, row, (name, (scoring, weight)) in zip(
            self._varies.tolist(), self._values, self._scorings.items(), strict=True
        ):
            without = self._without[name][: len(places)]
            found[name] = weight * scoring.normalise(row.take(places)) if varies else without
        return found
