"""What is known about nodes for pods of one kind, and forgotten node by node as nodes change.

Most verdicts and scores of a node depend on the kind of the pod and on what is on the node alone. They hold until a pod
comes or goes there, or a device that the node reaches is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Check, Plugin, Rejection, Scoring

if TYPE_CHECKING:
    from dralloc.scheduling.cycle import Cycle

__all__ = ["PASSES", "KindMemory", "Memory", "Places", "Rejected", "Verdicts"]

Places = NDArray[np.intp]
"""Nodes by their places in the scheduler's order."""

Score = Callable[[NodeInfo], int]
T = TypeVar("T")

_UNKNOWN: Final = 0
PASSES: Final = 1
"""Verdicts; higher ones stand for a rejection each."""


class Verdicts:
    """What filters say about each node, as far as they were asked."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, np.int64)
        self.rejections: list[Rejection] = []
        self._known: dict[Rejection, int] = {}

    def find(self, ask: Check, window: Places, nodes: Sequence[NodeInfo], enough: int) -> tuple[Places, Places]:
        """The first feasible places of a window, and all others up to the first feasible one that is not needed."""
        while True:
            found = self.codes[window]
            (feasible,) = (found == PASSES).nonzero()
            end = int(feasible[enough]) if len(feasible) > enough else len(window)
            (unknown,) = (found[:end] == _UNKNOWN).nonzero()
            if not len(unknown):
                (rejected,) = (found[:end] > PASSES).nonzero()
                return window[feasible[:enough]], window[rejected]
            for place in window[unknown[: enough + 1]].tolist():
                self.enter(place, ask(nodes[place]))

    def ask(self, ask: Check, node: NodeInfo) -> Rejection | None:
        """What is against one node."""
        code = int(self.codes[node.place])
        if code == _UNKNOWN:
            code = self.codes[node.place] = self._code(ask(node))
        return None if code == PASSES else self.rejections[code - PASSES - 1]

    def enter(self, place: int, rejection: Rejection | None) -> None:
        """Know what is against one node."""
        self.codes[place] = self._code(rejection)

    def _code(self, rejection: Rejection | None) -> int:
        if rejection is None:
            return PASSES
        if rejection not in self._known:
            self.rejections.append(rejection)
            self._known[rejection] = PASSES + len(self.rejections)
        return self._known[rejection]


_NOWHERE: Final = np.array([], np.intp)
_NONE: Final = Verdicts(0)


class Rejected(Mapping[NodeInfo, Rejection]):
    """What is against nodes, worked out when somebody asks; against none by default."""

    def __init__(self, nodes: Sequence[NodeInfo] = (), places: Places = _NOWHERE, verdicts: Verdicts = _NONE) -> None:
        self._nodes, self._places = nodes, places
        self._codes = verdicts.codes[places]
        self._rejections = verdicts.rejections

    @cached_property
    def _found(self) -> dict[NodeInfo, Rejection]:
        pairs = zip(self._places.tolist(), self._codes.tolist(), strict=True)
        return {self._nodes[place]: self._rejections[code - PASSES - 1] for place, code in pairs}

    def __getitem__(self, node: NodeInfo) -> Rejection:
        return self._found[node]

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def tally(self) -> Mapping[Rejection, int]:
        """How many nodes each rejection is against."""
        codes, numbers = np.unique(self._codes, return_counts=True)
        rejections = (self._rejections[code - PASSES - 1] for code in codes.tolist())
        return dict(zip(rejections, numbers.tolist(), strict=True))

    def resolvable(self) -> Iterator[NodeInfo]:
        """The nodes for which fewer pods there could make a difference."""
        if any(rejection.resolvable for rejection in self.tally):
            yield from (node for node, rejection in self._found.items() if rejection.resolvable)


@dataclass(eq=False)
class KindMemory:
    """What plugins say for one kind of pods, and of nodes that look the same to them."""

    _filters: dict[str, Check | Rejection | None] = field(default_factory=dict)
    _scorings: dict[str, Scoring | None] = field(default_factory=dict)

    def filter(self, plugin: Plugin, cycle: Cycle) -> Check | Rejection | None:
        """What the plugin's filter says."""
        assert plugin.filter is not None
        if plugin.view is None:
            return plugin.filter(cycle)
        if plugin.name not in self._filters:
            found = plugin.filter(cycle)
            known = found is None or isinstance(found, Rejection)
            self._filters[plugin.name] = found if known else _remembering(found, plugin.view)
        return self._filters[plugin.name]

    def scoring(self, plugin: Plugin, cycle: Cycle, feasible: Sequence[NodeInfo]) -> Scoring | None:
        """How the plugin scores."""
        assert plugin.score is not None
        if plugin.view is None:
            return plugin.score(cycle, feasible)
        if plugin.name not in self._scorings:
            found = plugin.score(cycle, feasible)
            self._scorings[plugin.name] = found and found._replace(score=_remembering(found.score, plugin.view))
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


@dataclass(eq=False)
class Memory:
    """Verdicts and scores for pods of one kind with equal claims.

    ``ranks``: what DynamicResources found out about a node on the way to its verdict.
    """

    size: int
    seen: int = 0
    ranks: dict[NodeInfo, int] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.bool_]]] = field(default_factory=dict)

    def forget(self, changes: Sequence[int]) -> None:
        """Forget what is known about the places that have changed since the last time."""
        places = np.array(changes[self.seen :], np.intp)
        self.seen = len(changes)
        if len(places):
            for verdicts in self._verdicts.values():
                verdicts.codes[places] = _UNKNOWN
            for _, known in self._scores.values():
                known[places] = False

    def verdicts(self, filters: Hashable) -> Verdicts:
        """The verdicts of some filters together."""
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    def scores(
        self, plugins: tuple[str, ...], scores: Sequence[Score], places: Places, nodes: Sequence[NodeInfo]
    ) -> NDArray[np.int64]:
        """The scores of some plugins, a row each, at some places, before they are normalised."""
        if plugins not in self._scores:
            self._scores[plugins] = np.zeros((len(plugins), self.size), np.int64), np.zeros(self.size, np.bool_)
        values, known = self._scores[plugins]
        for place in places[~known[places]].tolist():
            values[:, place] = [score(nodes[place]) for score in scores]
            known[place] = True
        return values[:, places]
