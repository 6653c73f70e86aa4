"""Attempts of the scheduler in the form of recorded ones, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.differences import first_difference
from dralloc.solve.scheduler import Attempt
from dralloc.solve.scheduler.node_info import NodeInfo

__all__ = ["answer_of", "difference_of", "node_of", "scores_by_node"]

_SCORED: Final = frozenset({"scores", "totals"})


def answer_of(recorded: Json, attempt: Attempt) -> dict[str, Any]:
    """Put an attempt into the form of a recorded one."""
    names = [node.name for node in attempt.feasible]
    scores: dict[str, dict[str, int]] = {}
    totals: dict[str, float] = {}
    # kube-scheduler does not score a node that is the only feasible one.
    if len(names) > 1:
        scores = scores_by_node(names, attempt.scores)
        totals = dict(zip(names, attempt.totals.tolist(), strict=True))
    answer: dict[str, Any] = {
        "pod": recorded["pod"],
        "outcome": "bound" if names else "unschedulable",
        "scores": scores,
        "totals": totals,
        "best": [node.name for node in attempt.best],
        "message": attempt.message,
    }
    if names:
        answer |= {"evaluated": attempt.evaluated, "feasible": len(names)}
    return answer


def scores_by_node(
    names: Iterable[str], scores: Mapping[str, Any]
) -> dict[str, dict[str, int]]:
    """Turn columns by plugin into rows by node."""
    rows: dict[str, dict[str, int]] = {}
    for position, name in enumerate(names):
        rows[name] = {
            plugin: int(column[position]) for plugin, column in scores.items()
        }
    return rows


def node_of(recorded: Json, attempt: Attempt) -> NodeInfo:
    """Return the node of a pod that was feasible: the recorded one, or that of the best score.

    Equal scores are decided as recorded: the first of the nodes whose scores were written down.
    """
    names = [recorded["node"]] if recorded["node"] else list(recorded["totals"])
    nodes = [
        node for name in names for node in attempt.feasible if node.name == name
    ]
    positions = {
        node: position for position, node in enumerate(attempt.feasible)
    }
    order = [positions[node] for node in nodes] or list(positions.values())
    scores = {
        plugin: column[order] for plugin, column in attempt.scores.items()
    }
    return Attempt(
        attempt.pod,
        [attempt.feasible[position] for position in order],
        scores=scores,
    ).chosen


def difference_of(recorded: Json, answer: Json) -> str:
    """Return in what an answer differs from what was recorded of an attempt; empty if it does not.

    Without an outcome, which came later or not at all, it is the nodes with their scores that are compared.
    """
    compared = {
        key: answer[key]
        for key in answer
        if recorded["outcome"] or key in _SCORED
    }
    difference = first_difference(
        {key: recorded.get(key, value) for key, value in compared.items()},
        compared,
    )
    if (
        not difference
        and recorded["outcome"] == "bound"
        and recorded["node"] not in answer["best"]
    ):
        difference = f"best: expected {recorded['node']} among them, got {answer['best']}"
    return difference
