"""Scores of nodes that depend on nothing but the node and the kind of the pod, until the node changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Scores, Scoring
from dralloc.scheduling.verdicts import Places

__all__ = ["LocalScores"]


class LocalScores:
    """The weighted scores by plugins that do not look around.

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
        self._varies = [False] * len(scorings)
        none = np.zeros(size, np.int64)
        self._without = {name: weight * scoring.normalise(none) for name, (scoring, weight) in scorings.items()}

    def forget(self, places: Places) -> None:
        """Forget the scores of these places."""
        self._known[places] = False

    def at(self, places: Places, nodes: Sequence[NodeInfo]) -> dict[str, Scores]:
        """The scores by plugin at some places, all feasible ones."""
        for place in places[~self._known[places]].tolist():
            scores = [rate(nodes[place]) for rate in self._rates]
            self._values[:, place] = scores
            self._known[place] = True
            if any(scores):
                self._varies = [varies or score != 0 for varies, score in zip(self._varies, scores, strict=True)]
        found = {}
        for row, (name, (scoring, weight)) in enumerate(self._scorings.items()):
            # Most often many plugins have nothing to say about any node.
            raw = self._values[row].take(places) if self._varies[row] else None
            found[name] = self._without[name][: len(places)] if raw is None else weight * scoring.normalise(raw)
        return found
