"""Verdicts: what is against nodes, and how the scheduler says why a pod has no node.

Nodes are known by their positions in the scheduler's order. They are asked one by one, or many at once by columns of
what plugins look at. Source of the words: ``FitError`` in ``framework/types.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.solve.scheduler.node_info import NodeInfo

__all__ = [
    "FEW_NODES",
    "MANY_NODES",
    "Check",
    "Places",
    "Rejected",
    "Rejection",
    "RejectionColumn",
    "Verdicts",
    "fit_error",
    "refused",
]


class Rejection(NamedTuple):
    """Why a node, or every node, is not for a pod.

    Parameters
    ----------
    resolvable
        Whether fewer pods on the node could change that, so that preemption looks at it.
    eased
        Whether more pods on nodes could change that, so that the pod is tried again.
    """

    reasons: tuple[str, ...]
    resolvable: bool = False
    eased: bool = False


Check = Callable[[NodeInfo], Rejection | None]
"""Says what is against a node; None if nothing is."""


class RejectionColumn(NamedTuple):
    """The rejections of some nodes, all at once.

    Parameters
    ----------
    codes
        By node, 0 if nothing is, or the place of a rejection, counted from 1.
    """

    codes: NDArray[np.int64]
    rejections: Sequence[Rejection]


FEW_NODES: Final = 8
"""Fewer nodes than this are asked about one by one: columns would take longer."""

MANY_NODES: Final = 32
"""Fewer are asked one by one where most of what is asked was answered before."""


Places = NDArray[np.intp]
"""Nodes by their positions in the scheduler's order."""

_UNKNOWN: Final = 0
_PASSES: Final = 1
"""Verdicts; higher ones stand for a rejection each."""


class Verdicts:
    """The verdicts of filters about each node, as far as they were asked."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, np.int64)
        self.rejections: list[Rejection] = []
        self._known: dict[Rejection | None, int] = {None: _PASSES}

    def copy(self) -> Verdicts:
        """The same, to enter more."""
        verdicts = Verdicts(0)
        verdicts.codes = self.codes.copy()
        verdicts.rejections = list(self.rejections)
        verdicts._known = dict(self._known)
        return verdicts

    def ask_for(
        self, ask: Check, window: Places, nodes: Sequence[NodeInfo], enough: int
    ) -> None:
        """Know the positions of a window up to the first feasible one that is not needed."""
        while True:
            unknown = self.unknown(window, enough)
            for position in unknown[: enough + 1].tolist():
                self.enter(position, ask(nodes[position]))
            # Those that pass only make the search shorter.
            if len(unknown) <= enough + 1:
                return

    def ask_about(
        self, ask: Check, positions: Places, nodes: Sequence[NodeInfo]
    ) -> None:
        """Know some positions that were not known."""
        for position in positions.tolist():
            self.enter(position, ask(nodes[position]))

    def unknown(self, window: Places, enough: int) -> Places:
        """The positions of a window that are not known, up to the first feasible one that is not needed."""
        codes = self.codes[window]
        end = _end((codes == _PASSES).nonzero()[0], len(window), enough)
        unknown: Places = window[(codes[:end] == _UNKNOWN).nonzero()[0]]
        return unknown

    def found(self, window: Places, enough: int) -> tuple[Places, Places]:
        """The first feasible positions of a window, and all others up to the first feasible one that is not needed."""
        codes = self.codes[window]
        (feasible,) = (codes == _PASSES).nonzero()
        end = _end(feasible, len(window), enough)
        (rejected,) = (codes[:end] > _PASSES).nonzero()
        return window[feasible[:enough]], window[rejected]

    def enter_column(self, positions: Places, column: RejectionColumn) -> None:
        """Know what is against some positions; those against which nothing is stay as they are."""
        (against,) = column.codes.nonzero()
        if not len(against):
            return
        codes = np.array(
            [_UNKNOWN, *map(self._code_of, column.rejections)], np.int64
        )
        self.codes[positions[against]] = codes[column.codes[against]]

    def enter_passing(self, positions: Places) -> None:
        """Know that nothing is against some positions."""
        self.codes[positions] = _PASSES

    def enter_known(self, positions: Places, verdicts: Verdicts) -> None:
        """Know what other verdicts say about some positions."""
        codes = np.array(
            [_UNKNOWN, _PASSES, *map(self._code_of, verdicts.rejections)],
            np.int64,
        )
        self.codes[positions] = codes[verdicts.codes[positions]]

    def open(self, window: Places) -> Places:
        """The positions of a window that are not known."""
        unknown: Places = window[self.codes[window] == _UNKNOWN]
        return unknown

    def not_rejected(self, window: Places) -> Places:
        """The positions of a window against which nothing is known to be."""
        passing: Places = window[self.codes[window] <= _PASSES]
        return passing

    def forget(self, positions: int | Places) -> None:
        """Forget what is against these positions."""
        self.codes[positions] = _UNKNOWN

    def ask(self, ask: Check, node: NodeInfo) -> Rejection | None:
        """Return what is against one node."""
        if self.codes[node.place] == _UNKNOWN:
            self.enter(node.place, ask(node))
        code = int(self.codes[node.place])
        if code == _PASSES:
            return None
        return self.rejections[code - _PASSES - 1]

    def enter(self, position: int, rejection: Rejection | None) -> None:
        """Know what is against one node."""
        self.codes[position] = self._code_of(rejection)

    def _code_of(self, rejection: Rejection | None) -> int:
        if rejection is not None and rejection not in self._known:
            self.rejections.append(rejection)
            self._known[rejection] = _PASSES + len(self.rejections)
        return self._known[rejection]


def _end(feasible: Places, size: int, enough: int) -> int:
    """Where a search ends: with the first feasible position that is one too many."""
    return int(feasible[enough]) if len(feasible) > enough else size


_NOWHERE: Final = np.array([], np.intp)
_NONE: Final = Verdicts(0)


class Rejected(Mapping[NodeInfo, Rejection]):
    """The rejections of nodes, worked out when somebody asks; of none by default."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo] = (),
        positions: Places = _NOWHERE,
        verdicts: Verdicts = _NONE,
    ) -> None:
        self._nodes, self._places = nodes, positions
        self._codes = verdicts.codes[positions]
        self._rejections = verdicts.rejections

    @cached_property
    def _found(self) -> dict[NodeInfo, Rejection]:
        pairs = zip(self._places.tolist(), self._codes.tolist(), strict=True)
        return {
            self._nodes[position]: self._rejections[code - _PASSES - 1]
            for position, code in pairs
        }

    def __getitem__(self, node: NodeInfo) -> Rejection:
        return self._found[node]

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def tally(self) -> Mapping[Rejection, int]:
        """The number of nodes that each rejection is against."""
        counts = np.bincount(self._codes)[_PASSES + 1 :].tolist()
        return {
            rejection: count
            for rejection, count in zip(self._rejections, counts, strict=False)
            if count
        }

    def resolvable(self) -> Sequence[NodeInfo]:
        """The nodes for which fewer pods there could make a difference."""
        return [
            self._nodes[position]
            for position in self.resolvable_places().tolist()
        ]

    def resolvable_places(self) -> Places:
        """Their positions."""
        of_rejections = [rejection.resolvable for rejection in self._rejections]
        # By code: what is unknown or passes is no rejection.
        resolvable = np.array([False, False, *of_rejections], np.bool_)
        positions: Places = self._places[resolvable[self._codes]]
        return positions


def fit_error(
    nodes: int,
    rejections: Mapping[Rejection, int],
    absent: str = "",
    after: str = "",
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
    for rejection, count in rejections.items():
        for reason in rejection.reasons:
            reasons[reason] += count
    unseen = nodes - sum(rejections.values())
    if absent and unseen:
        reasons[absent] += unseen
    # Upstream sorts the texts, so "10 ..." stands before "2 ...".
    texts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return _sentence(nodes, texts, after)


def refused(nodes: int, rejection: Rejection, after: str) -> str:
    """The message for a pod that no node could help."""
    return _sentence(nodes, rejection.reasons, after)


def _sentence(nodes: int, reasons: Sequence[str], after: str) -> str:
    against = f"{', '.join(reasons)}." if reasons else ""
    parts = (f"0/{nodes} nodes are available:", against, after)
    return " ".join(filter(None, parts))
