"""Attempts of the scheduler in the form of recorded ones, and in what they differ."""

from __future__ import annotations

from typing import Any, Final

from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.difference import first_difference
from dralloc.solve.scheduler import Attempt
from dralloc.solve.scheduler.nodes import NodeInfo

__all__ = ["answer_of", "difference_of", "taken"]

_SCORED: Final = frozenset({"scores", "totals"})


def answer_of(recorded: Json, found: Attempt) -> dict[str, Any]:
    """An attempt in the form of a recorded one."""
    names = [node.name for node in found.feasible]
    scored = len(names) > 1
    scores = {
        name: {plugin: int(column[place]) for plugin, column in found.scores.items()}
        for place, name in enumerate(names)
    }
    answer: dict[str, Any] = {
        "pod": recorded["pod"],
        "outcome": "bound" if names else "unschedulable",
        "scores": scores if scored else {},
        "totals": dict(zip(names, found.totals.tolist(), strict=True))
        if scored
        else {},
        "best": [node.name for node in found.best],
        "message": found.message,
    }
    if names:
        answer |= {"evaluated": found.evaluated, "feasible": len(names)}
    return answer


def taken(recorded: Json, found: Attempt) -> NodeInfo:
    """The node of a pod that was feasible: as recorded, or the one that the order of the scores tells."""
    names = [recorded["node"]] if recorded["node"] else list(recorded["totals"])
    nodes = [node for name in names for node in found.feasible if node.name == name]
    place = {node: number for number, node in enumerate(found.feasible)}
    order = [place[node] for node in nodes] or list(place.values())
    scores = {plugin: column[order] for plugin, column in found.scores.items()}
    return Attempt(
        found.pod, [found.feasible[number] for number in order], scores=scores
    ).chosen


def difference_of(recorded: Json, answer: Json) -> str:
    """In what an answer differs from what was recorded of an attempt; empty if it does not.

    Without an outcome, which came later or not at all, it is the nodes with their scores that are compared.
    """
    compared = {
        key: answer[key] for key in answer if recorded["outcome"] or key in _SCORED
    }
    difference = first_difference(
        {key: recorded.get(key, value) for key, value in compared.items()}, compared
    )
    if (
        not difference
        and recorded["outcome"] == "bound"
        and recorded["node"] not in answer["best"]
    ):
        difference = (
            f"best: expected {recorded['node']} among them, got {answer['best']}"
        )
    return difference
