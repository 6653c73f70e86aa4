"""``dralloc plan drain`` and ``dralloc plan defragment``, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dralloc.cli import app
from settled import held
from wire import claim, device_class, gpus, node, request, resource_slice

RUN = CliRunner()


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Two nodes with two GPUs each, one GPU of each in use, and a claim that wants two on one node."""
    names = ("node-0", "node-1")
    slices = [
        resource_slice(gpus(2), name=name, pool=name, nodeName=name)
        for name in names
    ]
    objects = [
        device_class(),
        *map(node, names),
        *slices,
        *(held(f"x-{name}", name, "gpu-0") for name in names),
    ]
    path = tmp_path / "cluster.yaml"
    path.write_text(
        yaml.safe_dump_all([*objects, claim("wanted", request(count=2))])
    )
    return path


def test_drain_as_a_table_and_as_json(given: Path) -> None:
    shown = RUN.invoke(app, ["plan", "drain", "node-0", "-f", str(given)])
    assert shown.exit_code == 0, shown.output
    assert "node-0: the claim fits on another node" in shown.stdout
    answer = json.loads(
        RUN.invoke(
            app, ["plan", "drain", "node-0", "-f", str(given), "--json"]
        ).stdout
    )
    assert (answer["possible"], answer["gone"], answer["bound"]) == (True, 1, 1)
    moved = answer["steps"][0]["claims"][0]
    assert (moved["claim"], moved["fromNode"], moved["toNode"]) == (
        "default/x-node-0",
        "node-0",
        "node-1",
    )


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (["drain", "node-0", "-f"], ["default/x-node-0"]),
        (["drain", "node-0", "node-1", "-f"], []),
        (
            ["defragment", "--moves", "1"],
            ["default/x-node-0", "default/wanted"],
        ),
    ],
)
def test_the_names_are_those_of_the_plan(
    given: Path, question: list[str], names: list[str]
) -> None:
    shown = RUN.invoke(app, ["plan", *question, str(given), "-o", "name"])
    # Either of the two claims may be the one that moves.
    printed = shown.stdout.replace("x-node-1", "x-node-0").split()
    assert printed == names


def test_a_drain_that_is_impossible(given: Path) -> None:
    shown = RUN.invoke(
        app, ["plan", "drain", "node-0", "node-1", "-f", str(given)]
    )
    assert shown.exit_code == 1
    assert "0 of 2 claims fit on other nodes, no more do" in shown.stdout
    assert "Minimal conflict" in shown.stdout


def test_an_unknown_node(given: Path) -> None:
    shown = RUN.invoke(app, ["plan", "drain", "nope", "-f", str(given)])
    assert shown.exit_code == 2
    assert 'node "nope" does not exist' in shown.output


def test_defragment_as_a_table_and_as_json(given: Path) -> None:
    shown = RUN.invoke(app, ["plan", "defragment", str(given), "--moves", "1"])
    assert shown.exit_code == 0, shown.output
    assert (
        "1 of 1 admitted with 1 move of at most 1, proven optimal"
        in shown.stdout
    )
    answer = json.loads(
        RUN.invoke(
            app, ["plan", "defragment", str(given), "--moves", "1", "--json"]
        ).stdout
    )
    assert answer["admitted"] == ["default/wanted"]
    assert (
        answer["admittedWithoutMoves"],
        answer["moves"],
        answer["restarts"],
    ) == (
        0,
        1,
        0,
    )
    assert [step["action"] for step in answer["steps"]] == ["move", "admit"]
