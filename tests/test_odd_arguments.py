"""Whoever asks in Python with something that cannot be meant is told so in one line, whatever the question is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import dralloc

ODD_VALUES: Final[tuple[Any, ...]] = (
    3,
    -1,
    1.5,
    True,
    None,
    "no-such-thing",
    ["no-such-thing"],
    [3],
    {},
    {3: "three"},
    {"three": "three"},
    object(),
)
"""None of these is meant for every argument; some are fine for some."""

CHOSEN: Final = set(inspect.signature(dralloc.allocate).parameters)
"""What all questions have in common: it is looked at in one place."""

QUESTIONS: Final[dict[str, dict[str, Any]]] = {
    "allocate": {},
    "capacity": {},
    "compare": {},
    "defragment": {"moves": 1},
    "drain": {"nodes": ["node-0"]},
    "explain": {},
    "export_model": {},
    "fewest_nodes": {},
    "headroom": {},
    "partition_layout": {},
    "preempt": {"claim": "default/large"},
    "report": {},
    "simulate": {"arrivals": []},
    "stranded": {},
    "study": {},
    "validate": {},
}
"""Each question with what it needs beside the cluster."""


def own_arguments(name: str) -> Iterator[str]:
    """The arguments of a question by keyword, without those that all have in common, but for one question."""
    question = getattr(dralloc, name)
    _, *others = inspect.signature(question).parameters.values()
    for parameter in others:
        if parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ) and (name == "allocate" or parameter.name not in CHOSEN):
            yield parameter.name


def subject_of(name: str) -> object:
    """What a question is about."""
    cluster = dralloc.example()
    return dralloc.compare(cluster) if name == "report" else cluster


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name in QUESTIONS
        for argument in (*own_arguments(name), "choices")
        if not (name in ("report", "validate") and argument == "choices")
    ],
)
def test_odd_arguments_are_refused_in_one_line(
    name: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    question: Callable[..., object] = getattr(dralloc, name)
    files = {"export_model": {"path": "m.mps"}, "report": {"output": "r.html"}}
    refusals = []
    for value in ODD_VALUES:
        keywords = QUESTIONS[name] | files.get(name, {}) | {argument: value}
        try:
            question(subject_of(name), **keywords)
        except dralloc.DrallocError as error:
            refusals.append(str(error))
    assert refusals
    assert not any("\n" in refusal for refusal in refusals)


@pytest.mark.parametrize("name", QUESTIONS)
def test_only_a_cluster_is_a_cluster(name: str, tmp_path: Path) -> None:
    question: Callable[..., object] = getattr(dralloc, name)
    files = {
        "export_model": {"path": tmp_path / "m.mps"},
        "report": {"output": tmp_path / "r.html"},
    }
    for value in (3, None, "no-such-thing", ["no-such-thing"], object()):
        with pytest.raises(dralloc.DrallocError):
            question(value, **QUESTIONS[name], **files.get(name, {}))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seed": 1.5}, "seed: must be a whole number, not 1.5"),
        ({"jobs": True}, "jobs: must be a whole number, not True"),
        ({"steps": "3"}, "steps: must be a whole number or None, not '3'"),
        ({"time_limit": "9"}, "time_limit: must be a number or None, not '9'"),
        ({"strict": 1}, "strict: must be True or False, not 1"),
        ({"fair": ["memory"]}, "fair: must be a text, not list"),
        (
            {"nodes": "node-0"},
            "nodes: must be a list of texts, not 'node-0'",
        ),
        (
            {"caps": "team-a=memory:1Gi"},
            "caps: must be a list of caps, each a Cap or a text, not 'team-a=memory:1Gi'",
        ),
        (
            {"across": [3]},
            "across: must be a list of constraints, each an Across or a text, not list",
        ),
        (
            {"include": 3},
            "include: must be a text or a list of texts, not 3",
        ),
        (
            {"scheduler_config": 3},
            "scheduler_config: must be a path or None, not 3",
        ),
    ],
)
def test_the_message_says_what_it_must_be(
    choices: dict[str, Any], message: str
) -> None:
    with pytest.raises(dralloc.DrallocError) as refused:
        dralloc.Choices(**choices)
    assert str(refused.value) == message


def test_numbers_of_numpy_and_iterators_are_fine() -> None:
    given: dict[str, Any] = {
        "seed": np.int64(7),
        "time_limit": np.float64(9),
        "nodes": (f"node-{index}" for index in range(1)),
        "include": iter(["gated"]),
    }
    choices = dralloc.Choices(**given)
    assert choices.nodes == ("node-0",)
    assert choices.include == ("gated",)
    plan = dralloc.allocate(dralloc.example(), choices=choices)
    assert plan.status_text
