"""What is known about nodes for pods of one kind, and forgotten node by node as nodes change.

Most verdicts and scores of a node depend on the kind of the pod and on what is on the node alone. They hold until a pod
comes or goes there, or a device that the node reaches is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from dralloc.scheduling.local_scores import LocalScores
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Check, Plugin, Rejection, Scoring
from dralloc.scheduling.verdicts import Places, Verdicts

if TYPE_CHECKING:
    from dralloc.scheduling.attempt import Attempt
    from dralloc.scheduling.cycle import Cycle

__all__ = ["Failure", "KindMemory", "Memory"]

T = TypeVar("T")


@dataclass(eq=False)
class KindMemory:
    """What plugins with a view of nodes say for pods of one kind; nodes that look the same are asked about once."""

    _filters: dict[str, Check | Rejection | None] = field(default_factory=dict)
    _scorings: dict[str, Scoring | None] = field(default_factory=dict)

    def filter(self, plugin: Plugin, cycle: Cycle) -> Check | Rejection | None:
        """What the plugin's filter says."""
        if plugin.name not in self._filters:
            found = plugin.filter and plugin.filter(cycle)
            if plugin.view and found is not None and not isinstance(found, Rejection):
                found = _remembering(found, plugin.view)
            self._filters[plugin.name] = found
        return self._filters[plugin.name]

    def scoring(self, plugin: Plugin, cycle: Cycle) -> Scoring | None:
        """How the plugin scores."""
        if plugin.name not in self._scorings:
            found = plugin.score and plugin.score(cycle, ())
            if plugin.view and found is not None:
                found = found._replace(score=_remembering(found.score, plugin.view))
            self._scorings[plugin.name] = found
        return self._scorings[plugin.name]


def _remembering(ask: Callable[[NodeInfo], T], view: Callable[[NodeInfo], Hashable]) -> Callable[[NodeInfo], T]:
    """The same answers, asked for once for nodes that look the same."""
    known: dict[Hashable, T] = {}

    def asked(node: NodeInfo) -> T:
        seen = view(node)
        if seen not in known:
            known[seen] = ask(node)
        return known[seen]

    return asked


class Failure(NamedTuple):
    """An attempt that found no node, after how many changes of the snapshot and among which nodes."""

    changes: int
    within: Places | None
    attempt: Attempt


@dataclass(eq=False)
class Memory:
    """Verdicts and scores for pods of one kind with equal claims.

    Parameters
    ----------
    size
        How many nodes there are.
    of_kind
        What is known whatever the claims are; None if plugins are to be asked again.

    Notes
    -----
    ``ranks``: what DynamicResources found out about a node on the way to its verdict. ``seen``: how many changes of
    the snapshot it knows of. ``failure``: the last one.
    """

    size: int
    of_kind: KindMemory | None = None
    seen: int = 0
    ranks: dict[NodeInfo, int] = field(default_factory=dict)
    failure: Failure | None = None
    _filters: dict[str, Check | Rejection | None] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: LocalScores | None = None

    def fails_again(self, within: Places | None) -> bool:
        """Whether the last failure was among the same nodes, and nothing has changed since."""
        failure = self.failure
        return failure is not None and failure.changes == self.seen and failure.within is within

    def forget(self, changes: Sequence[int]) -> None:
        """Forget what is known about the places that have changed since the last time."""
        if self.seen == len(changes):
            return
        places = np.array(changes[self.seen :], np.intp)
        self.seen = len(changes)
        for verdicts in self._verdicts.values():
            verdicts.forget(places)
        if self._scores is not None:
            self._scores.forget(places)

    def filter(self, plugin: Plugin, cycle: Cycle) -> Check | Rejection | None:
        """What the plugin's filter says: for equal pods the same, unless it looks around."""
        if plugin.looks_around:
            return plugin.filter and plugin.filter(cycle)
        if plugin.name not in self._filters:
            shared = self.of_kind if plugin.view else None
            found = shared.filter(plugin, cycle) if shared else plugin.filter and plugin.filter(cycle)
            self._filters[plugin.name] = found
        return self._filters[plugin.name]

    def verdicts(self, filters: Hashable) -> Verdicts:
        """The verdicts of some filters together."""
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    def scores(self, cycle: Cycle, plugins: Iterable[Plugin]) -> LocalScores:
        """The scores by those of the plugins that do not look around."""
        if self._scores is None:
            weights = cycle.profile.weights
            scorings = {plugin: self._scoring(plugin, cycle) for plugin in plugins if not plugin.looks_around}
            weighted = {
                plugin.name: (scoring, weights.get(plugin.name, plugin.weight))
                for plugin, scoring in scorings.items()
                if scoring is not None
            }
            self._scores = LocalScores(weighted, self.size)
        return self._scores

    def _scoring(self, plugin: Plugin, cycle: Cycle) -> Scoring | None:
        shared = self.of_kind if plugin.view else None
        return shared.scoring(plugin, cycle) if shared else plugin.score and plugin.score(cycle, ())
