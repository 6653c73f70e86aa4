"""Attempts of the scheduler in the form of recorded ones, and in what they differ."""

from __future__ import annotations

from typing import Any

from dralloc.conformance.cases import Json
from dralloc.conformance.difference import first_difference
from dralloc.scheduling import Attempt

__all__ = ["answer_of", "difference_of"]


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
        "totals": dict(zip(names, found.totals.tolist(), strict=True)) if scored else {},
        "best": [node.name for node in found.best],
        "message": found.message,
    }
    if names:
        answer |= {"evaluated": found.evaluated, "feasible": len(names)}
    return answer


def difference_of(recorded: Json, answer: Json) -> str:
    """In what an answer differs from what was recorded of an attempt; empty if it does not."""
    expected = {key: recorded.get(key, value) for key, value in answer.items()}
    difference = first_difference(expected, dict(answer))
    if not difference and recorded["outcome"] == "bound" and recorded["node"] not in answer["best"]:
        difference = f"best: expected {recorded['node']} among them, got {answer['best']}"
    return difference
