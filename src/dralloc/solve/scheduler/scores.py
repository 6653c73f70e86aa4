"""The scores of feasible nodes: of all plugins, and as one total where no score depends on the other nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dralloc.solve.scheduler.memory import weight_of_choice
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Cycle, Plugin, Scores, relative
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.verdicts import Places

__all__ = ["best_of", "independent_totals", "scored", "scoring_plugins"]

_SCORING: Final = tuple(plugin for plugin in PLUGINS if plugin.score)


def scored(
    cycle: Cycle, positions: Places, feasible: Sequence[NodeInfo]
) -> Mapping[str, Scores]:
    """The weighted scores of feasible nodes, by plugin."""
    plugins = scoring_plugins(cycle)
    weighted = cycle.memory.scores(cycle, plugins, positions)
    cycle = cycle._replace(feasible=feasible)
    for plugin in plugins:
        if plugin.score is None or not plugin.looks_around:
            continue
        scoring = plugin.score(cycle)
        if scoring is not None:
            scores = np.array(
                [scoring.score(node) for node in feasible], np.int64
            )
            weight = plugin.weight_in(cycle.profile)
            weighted[plugin.name] = weight * scoring.normalise(scores)
    return weighted


def scoring_plugins(cycle: Cycle) -> Sequence[Plugin]:
    """The plugins that score nodes for the pod."""
    return [
        plugin
        for plugin in _SCORING
        if plugin.name not in cycle.profile.no_scores
    ]


def independent_totals(cycle: Cycle, positions: Places) -> Scores | None:
    """The totals at some positions, but for what all have in common; None if one of them depends on other nodes.

    What alternatives of claims count for is left out.
    """
    plugins = scoring_plugins(cycle)
    for plugin in plugins:
        if (
            plugin.looks_around
            and plugin.score
            and plugin.score(cycle) is not None
        ):
            return None
    return cycle.memory.independent_totals(cycle, plugins, positions)


def best_of(cycle: Cycle, feasible: Places) -> Places | None:
    """The best of several feasible positions; None if other scores than those of claims depend on all of them."""
    totals = independent_totals(cycle, feasible)
    if totals is None:
        return None
    weight = weight_of_choice(cycle)
    if weight:
        ratings = cycle.memory.ratings(cycle, feasible)
        totals = totals + weight * relative(ratings)
    best: Places = feasible[totals == totals.max()]
    return best
