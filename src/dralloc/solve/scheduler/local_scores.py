"""What plugins that look at each node by itself score, kept until a node changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Scores, Scoring, unchanged
from dralloc.solve.scheduler.verdicts import FEW_NODES, MANY_NODES, Places

__all__ = ["LocalScores", "independent_totals_of"]


class LocalScores:
    """The scores by plugins that do not look around, until a node changes.

    Parameters
    ----------
    scorings
        By plugin, with its weight.
    """

    def __init__(
        self, scorings: Mapping[str, tuple[Scoring, int]], size: int
    ) -> None:
        self._scorings = scorings
        self._values = {name: np.zeros(size, np.int64) for name in scorings}
        self._known = np.zeros(size, np.bool_)
        # What is normalised is relative to the other feasible nodes. The totals are of the others.
        self._relative = {
            name
            for name, (scoring, _) in scorings.items()
            if scoring.normalise is not unchanged
        }
        self._totals = np.zeros(size, np.int64)
        # Most often many plugins have nothing to say about any node: what they add is worked out once.
        self._varying: set[str] = set()
        nothing = np.zeros(size, np.int64)
        self._unvaried = {
            name: weight * scoring.normalise(nothing)
            for name, (scoring, weight) in scorings.items()
        }

    def raw(self, positions: Places, nodes: Sequence[NodeInfo]) -> Scores:
        """The scores by the first plugin at some positions, each by itself and without weight."""
        self._ask_for(positions, nodes)
        first_values = next(iter(self._values.values()))
        return first_values[positions]

    def forget(self, positions: int | Places) -> None:
        """Forget the scores at these positions."""
        self._known[positions] = False

    def at(
        self, positions: Places, nodes: Sequence[NodeInfo]
    ) -> dict[str, Scores]:
        """The scores by plugin at some positions, all feasible ones."""
        self._ask_for(positions, nodes)
        scores: dict[str, Scores] = {}
        for name, (scoring, weight) in self._scorings.items():
            if name in self._varying:
                values = self._values[name][positions]
                scores[name] = weight * scoring.normalise(values)
            else:
                scores[name] = self._unvaried[name][: len(positions)]
        return scores

    def independent_totals(
        self, positions: Places, nodes: Sequence[NodeInfo]
    ) -> Scores | None:
        """See `Memory.independent_totals`."""
        self._ask_for(positions, nodes)
        if self._relative & self._varying:
            return None
        totals: Scores = self._totals[positions]
        return totals

    def independent_total(self, node: NodeInfo) -> int:
        """See `Memory.independent_total`."""
        return sum(
            weight * scoring.score(node)
            for scoring, weight in self._scorings.values()
            if scoring.normalise is unchanged
        )

    def _ask_for(self, positions: Places, nodes: Sequence[NodeInfo]) -> None:
        """Know the scores at these positions."""
        unknown = positions[~self._known[positions]]
        if not len(unknown):
            return
        if len(unknown) < MANY_NODES:
            # Most of them look as others did that were asked about.
            for position in unknown.tolist():
                self._ask_about(nodes[position])
            return
        self._totals[unknown] = 0
        for name, (scoring, weight) in self._scorings.items():
            scores = _scores_at(scoring, unknown, nodes)
            self._values[name][unknown] = scores
            if name not in self._relative:
                self._totals[unknown] += weight * scores
            if name not in self._varying and np.count_nonzero(scores):
                self._varying.add(name)
        self._known[unknown] = True

    def _ask_about(self, node: NodeInfo) -> None:
        """Know the scores of one node."""
        total = 0
        for name, (scoring, weight) in self._scorings.items():
            score = scoring.score(node)
            self._values[name][node.place] = score
            if name not in self._relative:
                total += weight * score
            if score:
                self._varying.add(name)
        self._totals[node.place] = total
        self._known[node.place] = True


def _scores_at(
    scoring: Scoring, positions: Places, nodes: Sequence[NodeInfo]
) -> Scores:
    """The scores at some positions, each by itself."""
    scores = None
    if len(positions) >= FEW_NODES:
        scores = scoring.column(positions)
    if scores is None:
        asked = [nodes[position] for position in positions.tolist()]
        scores = np.array(list(map(scoring.score, asked)), np.int64)
    return scores


def independent_totals_of(
    scorings: Iterable[tuple[Scoring, int]],
    positions: Places,
    nodes: Sequence[NodeInfo],
) -> Scores | None:
    """See `Memory.independent_totals`: for a pod that is alone in its kind, so that nothing is kept."""
    totals = np.zeros(len(positions), np.int64)
    for scoring, weight in scorings:
        scores = _scores_at(scoring, positions, nodes)
        if scoring.normalise is unchanged:
            totals += weight * scores
        elif np.count_nonzero(scores):
            return None
    return totals
