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
            raw = row.take(places) if varies else None
            found[name] = self._without[name][: len(places)] if raw is None else weight * scoring.normalise(raw)
        return found
