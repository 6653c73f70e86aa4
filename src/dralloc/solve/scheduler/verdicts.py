"""What is against nodes, by their places in the scheduler's order, and how the scheduler says why a pod has no node.

Source of the words: ``FitError`` in ``framework/types.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import Check, Rejection, RejectionColumn

__all__ = ["Places", "Rejected", "Verdicts", "fit_error", "refused"]

Places = NDArray[np.intp]
"""Nodes by their places in the scheduler's order."""

_UNKNOWN: Final = 0
_PASSES: Final = 1
"""Verdicts; higher ones stand for a rejection each."""


class Verdicts:
    """What filters say about each node, as far as they were asked."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, np.int64)
        self.rejections: list[Rejection] = []
        self._known: dict[Rejection | None, int] = {None: _PASSES}

    def ask_for(
        self, ask: Check, window: Places, nodes: Sequence[NodeInfo], enough: int
    ) -> None:
        """Know the places of a window up to the first feasible one that is not needed."""
        while True:
            found = self.codes[window]
            (feasible,) = (found == _PASSES).nonzero()
            end = int(feasible[enough]) if len(feasible) > enough else len(window)
            (unknown,) = (found[:end] == _UNKNOWN).nonzero()
            if not len(unknown):
                return
            for place in window[unknown[: enough + 1]].tolist():
                self.enter(place, ask(nodes[place]))

    def found(self, window: Places, enough: int) -> tuple[Places, Places]:
        """The first feasible places of a window, and all others up to the first feasible one that is not needed."""
        found = self.codes[window]
        (feasible,) = (found == _PASSES).nonzero()
        end = int(feasible[enough]) if len(feasible) > enough else len(window)
        (rejected,) = (found[:end] > _PASSES).nonzero()
        return window[feasible[:enough]], window[rejected]

    def enter_column(self, places: Places, column: RejectionColumn) -> None:
        """Know what is against some places; those against which nothing is stay as they are."""
        against = column.codes > 0
        codes = np.array([_UNKNOWN, *map(self._code_of, column.rejections)], np.int64)
        self.codes[places[against]] = codes[column.codes[against]]

    def enter_known(self, places: Places, known: Verdicts) -> None:
        """Know what others know about some places."""
        codes = np.array(
            [_UNKNOWN, _PASSES, *map(self._code_of, known.rejections)], np.int64
        )
        self.codes[places] = codes[known.codes[places]]

    def open(self, window: Places) -> Places:
        """The places of a window that are not known."""
        found: Places = window[self.codes[window] == _UNKNOWN]
        return found

    def not_rejected(self, window: Places) -> Places:
        """The places of a window against which nothing is known to be."""
        found: Places = window[self.codes[window] <= _PASSES]
        return found

    def forget(self, places: Places) -> None:
        """Forget what is against these places."""
        self.codes[places] = _UNKNOWN

    def ask(self, ask: Check, node: NodeInfo) -> Rejection | None:
        """What is against one node."""
        if self.codes[node.place] == _UNKNOWN:
            self.enter(node.place, ask(node))
        code = int(self.codes[node.place])
        return None if code == _PASSES else self.rejections[code - _PASSES - 1]

    def enter(self, place: int, rejection: Rejection | None) -> None:
        """Know what is against one node."""
        self.codes[place] = self._code_of(rejection)

    def _code_of(self, rejection: Rejection | None) -> int:
        if rejection is not None and rejection not in self._known:
            self.rejections.append(rejection)
            self._known[rejection] = _PASSES + len(self.rejections)
        return self._known[rejection]


_NOWHERE: Final = np.array([], np.intp)
_NONE: Final = Verdicts(0)


class Rejected(Mapping[NodeInfo, Rejection]):
    """What is against nodes, worked out when somebody asks; against none by default."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo] = (),
        places: Places = _NOWHERE,
        verdicts: Verdicts = _NONE,
    ) -> None:
        self._nodes, self._places = nodes, places
        self._codes = verdicts.codes[places]
        self._rejections = verdicts.rejections

    @cached_property
    def _found(self) -> dict[NodeInfo, Rejection]:
        pairs = zip(self._places.tolist(), self._codes.tolist(), strict=True)
        return {
            self._nodes[place]: self._rejections[code - _PASSES - 1]
            for place, code in pairs
        }

    def __getitem__(self, node: NodeInfo) -> Rejection:
        return self._found[node]

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def tally(self) -> Mapping[Rejection, int]:
        """How many nodes each rejection is against."""
        numbers = np.bincount(self._codes)[_PASSES + 1 :].tolist()
        return {
            rejection: number
            for rejection, number in zip(self._rejections, numbers, strict=False)
            if number
        }

    def resolvable(self) -> Sequence[NodeInfo]:
        """The nodes for which fewer pods there could make a difference."""
        return [self._nodes[place] for place in self.resolvable_places().tolist()]

    def resolvable_places(self) -> Places:
        """Their places."""
        resolvable = np.array(
            [False, False, *(one.resolvable for one in self._rejections)], np.bool_
        )
        found: Places = self._places[resolvable[self._codes]]
        return found


def fit_error(
    nodes: int, rejections: Mapping[Rejection, int], absent: str = "", after: str = ""
) -> str:
    """The message for a pod.

    Parameters
    ----------
    nodes
        How many there are.
    rejections
        What is against nodes, with the number of these.
    absent
        What is against the nodes for which there is none of these.
    after
        What preemption has to say.
    """
    reasons: Counter[str] = Counter()
    for rejection, number in rejections.items():
        for reason in rejection.reasons:
            reasons[reason] += number
    rest = nodes - sum(rejections.values())
    if absent and rest:
        reasons[absent] += rest
    return _sentence(
        nodes, sorted(f"{number} {reason}" for reason, number in reasons.items()), after
    )


def refused(nodes: int, rejection: Rejection, after: str) -> str:
    """The message for a pod that no node could help."""
    return _sentence(nodes, rejection.reasons, after)


def _sentence(nodes: int, reasons: Sequence[str], after: str) -> str:
    against = f"{', '.join(reasons)}." if reasons else ""
    return " ".join(filter(None, (f"0/{nodes} nodes are available:", against, after)))
