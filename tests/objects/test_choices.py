"""What users choose is one object, which every question takes whole, in words, or both."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

import dralloc
from dralloc.cli.option_sets import SCHEDULER
from dralloc.objects.choices import Choices, ChoiceWords, Options
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

IN_PYTHON_ONLY = {"per_device", "thresholds"}
"""Choices without an option of the command line: what referees need."""


def two_nodes() -> dralloc.Cluster:
    names = ("node-0", "node-1")
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in names
    ]
    return cluster(
        node("node-0"),
        node("node-1"),
        device_class(),
        slices,
        claim("a", request()),
    )


def where(plan: dralloc.Plan) -> list[str]:
    return [row["node"] for row in plan.to_dict()["placed"]]


def test_words_are_the_fields() -> None:
    assert get_type_hints(ChoiceWords) == get_type_hints(Choices)


def test_the_command_line_has_them_all() -> None:
    options = set(SCHEDULER) - {"feature"}
    several = {"nodes": "node", "caps": "cap"}
    choices = (
        {field.name for field in fields(Choices)}
        - IN_PYTHON_ONLY
        - {"features"}
    )
    assert options == {several.get(name, name) for name in choices}


def test_a_question_takes_them_whole_or_in_words() -> None:
    choices = Choices(nodes=["node-1"])
    assert where(
        dralloc.allocate(two_nodes(), "first-fit", choices=choices)
    ) == ["node-1"]
    assert where(
        dralloc.allocate(two_nodes(), "first-fit", nodes=["node-1"])
    ) == ["node-1"]


def test_words_come_before_the_object() -> None:
    choices = Choices(nodes=["node-1"], seed=7)
    assert where(
        dralloc.allocate(
            two_nodes(), "first-fit", choices=choices, nodes=["node-0"]
        )
    ) == ["node-0"]
    words: ChoiceWords = {"nodes": ["node-0"]}
    assert Choices.of(choices, words) == Choices(nodes=("node-0",), seed=7)


def test_they_are_values() -> None:
    choices = Choices(
        nodes=["node-1"], caps=["team=memory:1Gi"], include="suspended,gated"
    )
    assert pickle.loads(pickle.dumps(choices)) == choices
    assert hash(choices) == hash(
        Choices(
            nodes=("node-1",), caps=choices.caps, include=("gated", "suspended")
        )
    )


@pytest.mark.parametrize("kind", [Options, Choices])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"goal": "sperad"},
            r"there is no goal 'sperad'; known goals: fewest-nodes, ",
        ),
        (
            {"backend": "mpi"},
            r"there is no backend 'mpi'; known backends: loky, dask, ray",
        ),
        (
            {"time_limit": 0},
            r"time limit: 0 is not a positive number of seconds",
        ),
        ({"workers": 0}, r"workers: 0 is not between 1 and 1024 threads"),
        ({"seed": -1}, r"seed: -1 is not between 0 and 2147483647"),
    ],
)
def test_a_bad_value_is_told_as_it_is(
    kind: Callable[..., Options], wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(dralloc.DrallocError, match=f"^{message}"):
        kind(**wrong)


def test_a_bad_value_of_what_is_looked_at() -> None:
    with pytest.raises(
        dralloc.ChoiceError,
        match=r"^there is no inclusion 'done'; known inclusions: gated, suspended",
    ):
        Choices(include="done")
    with pytest.raises(
        dralloc.DrallocError,
        match=r"^--cap team: expected NAMESPACE=COUNTER:AMOUNT",
    ):
        Choices(caps=["team"])


@pytest.mark.parametrize(
    ("ask", "wrong", "named"),
    [
        (
            lambda cluster, **words: dralloc.headroom(cluster, "a", **words),
            {"gang": "job"},
            "gang",
        ),
        (dralloc.fewest_nodes, {"caps": ["default=memory:1"]}, "caps"),
        (
            lambda cluster, **words: dralloc.drain(cluster, "node-0", **words),
            {"nodes": ["node-1"]},
            "nodes",
        ),
        (
            lambda cluster, **words: dralloc.defragment(cluster, 1, **words),
            {"fair": "memory"},
            "fair",
        ),
        (
            lambda cluster, **words: dralloc.defragment(cluster, 1, **words),
            {"goal": "spread"},
            "goal",
        ),
        (
            lambda cluster, **words: dralloc.drain(cluster, "node-0", **words),
            {"goal": "spread"},
            "goal",
        ),
        (
            lambda cluster, **words: dralloc.headroom(cluster, "a", **words),
            {"goal": "spread"},
            "goal",
        ),
        (dralloc.fewest_nodes, {"goal": "spread"}, "goal"),
        (dralloc.partition_layout, {"goal": "spread"}, "goal"),
        (dralloc.partition_layout, {"gang": "job"}, "gang"),
        (dralloc.stranded, {"nodes": ["node-1"]}, "nodes"),
        (dralloc.study, {"seed": 1}, "seed"),
    ],
)
def test_a_choice_that_a_question_does_not_look_at_is_refused(
    ask: Callable[..., object], wrong: dict[str, Any], named: str
) -> None:
    with pytest.raises(
        dralloc.DrallocError, match=f"^{named}: not a choice of this question$"
    ):
        ask(two_nodes(), **wrong)
    with pytest.raises(
        dralloc.DrallocError, match=f"^{named}: not a choice of this question$"
    ):
        ask(two_nodes(), choices=Choices(**wrong))


def test_what_explains_shows_reasons_of_nodes_without_placing_on_them_alone() -> (
    None
):
    whole, part = two_nodes(), Choices(nodes=["node-1"])
    assert (
        dralloc.explain(whole, "default/a", nodes=["node-1"]).node == "node-0"
    )
    assert dralloc.explain(whole, "default/a", choices=part).node == "node-1"


def test_a_word_that_is_no_choice_is_named() -> None:
    meant = "^'time_limt' is no choice of this question, did you mean \"time_limit\"\\?$"
    with pytest.raises(TypeError, match=meant):
        dralloc.explain(two_nodes(), "default/a", time_limt=1)  # type: ignore[call-overload]
