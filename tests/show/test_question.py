"""What was asked, what was not, and that nothing of the input gets lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dralloc
from dralloc.cli import app
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Table
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

GATES = [{"name": "kueue.x-k8s.io/admission"}]
LATER: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "later", "namespace": "default"},
    "spec": {
        "suspend": True,
        "template": {
            "spec": {
                "containers": [],
                "resourceClaims": [
                    {"name": "gpu", "resourceClaimName": "third"}
                ],
            }
        },
    },
}
GIVEN: list[Json] = [
    node(),
    device_class(),
    resource_slice(gpus(4)),
    *(claim(name, request()) for name in ("first", "second", "third")),
    allocated("held", {"device": "gpu-3"}),
    pod("plain", "first"),
    pod("gated", "second", schedulingGates=GATES),
    pod("running", "held", nodeName="node-0"),
    pod("web"),
    LATER,
]


def run(*arguments: str, path: Path) -> Any:
    path.write_text(yaml.safe_dump_all(GIVEN))
    return CliRunner().invoke(app, [*arguments, str(path)])


def titled(parts: list[Any], title: str) -> list[tuple[str, ...]]:
    return [
        tuple(row)
        for part in parts
        if isinstance(part, Table) and part.title == title
        for row in part.rows
    ]


def test_every_pod_is_placed_unplaced_or_listed() -> None:
    plan = dralloc.allocate(cluster(GIVEN))
    listed = [row["pods"] for row in plan.to_dict()["notAsked"]]
    assert len(plan.demands) + sum(listed) == 5
    assert titled(plan.parts(), "Not asked about") == [
        (
            "has scheduling gates (--include gated plans for them)",
            "1",
            "default/gated",
        ),
        (
            "belongs to a suspended owner (--include suspended plans for them)",
            "1",
            "default/later-0",
        ),
        ("is bound to a node", "1", ""),
        ("asks for no device", "1", ""),
    ]


def test_names_are_given_where_they_tell_something() -> None:
    rows = dralloc.allocate(cluster(GIVEN)).to_dict()["notAsked"]
    assert rows[0] == {
        "reason": "has scheduling gates",
        "pods": 1,
        "names": ["default/gated"],
    }
    assert rows[3] == {"reason": "asks for no device", "pods": 1, "names": []}


@pytest.mark.parametrize(
    ("include", "total"),
    [
        ((), 1),
        ("gated", 2),
        ("suspended", 2),
        ("gated,suspended", 3),
        (["gated", "suspended"], 3),
    ],
)
def test_pods_can_be_included(include: str | list[str], total: int) -> None:
    given = cluster(GIVEN)
    assert (
        len(dralloc.allocate(given, include=include).solution.placements)
        == total
    )
    assert len(dralloc.compare(given, include=include).optimal.demands) == total
    assert sum(dralloc.stranded(given, include=include).mix.values()) == total


def test_explain_says_why_a_pod_is_not_asked_about() -> None:
    given = cluster(GIVEN)
    with pytest.raises(
        DrallocError,
        match="default/later-0: belongs to a suspended owner; --include suspended",
    ):
        dralloc.explain(given, pod="default/later-0")
    assert dralloc.explain(
        given, pod="default/later-0", include="suspended"
    ).placed


@pytest.mark.parametrize(
    "command",
    [["allocate"], ["compare"], ["stranded"], ["plan", "fewest-nodes"]],
)
def test_commands_take_the_same_option(
    command: list[str], tmp_path: Path
) -> None:
    result = run(
        *command,
        "--include",
        "gated",
        "--include",
        "suspended",
        path=tmp_path / "in.yaml",
    )
    assert result.exit_code == 0


def test_an_unknown_inclusion_is_named(tmp_path: Path) -> None:
    result = run("allocate", "--include", "done", path=tmp_path / "in.yaml")
    assert result.exit_code == 2
    assert "known inclusions: gated, suspended" in result.stderr


def test_an_empty_question_proves_nothing(tmp_path: Path) -> None:
    given = cluster(
        node(),
        device_class(),
        claim("a", request()),
        pod("p", "a", schedulingGates=GATES),
    )
    plan, comparison = dralloc.allocate(given), dralloc.compare(given)
    assert plan.headline == "optimal: nothing to place"
    assert comparison.headline == "nothing to place"
    assert "proven" not in str(plan) + str(comparison)
    path = tmp_path / "in.yaml"
    path.write_text(yaml.safe_dump_all([node(), device_class()]))
    result = CliRunner().invoke(app, ["allocate", str(path), "-o", "json"])
    assert json.loads(result.stdout)["demands"] == 0
    assert (
        result.stderr
        == "warning: there is nothing to place: no pod and no claim is pending\n"
    )


def test_what_could_be_placed_all_the_same_is_said() -> None:
    given = cluster(
        node(),
        device_class(),
        claim("later", request()),
        pod("p", "later", schedulingGates=GATES),
    )
    (remark,) = dralloc.allocate(given).findings
    assert (
        remark.rule
        == "there is nothing to place: no pod and no claim is pending; --include gated plans for 1 more"
    )


def test_what_neither_answer_places_is_listed_in_bounds() -> None:
    claims = [claim(f"c{index:02}", request()) for index in range(24)]
    comparison = dralloc.compare(
        cluster(node(), device_class(), resource_slice(gpus(2)), claims)
    )
    assert len(comparison.neither) == len(comparison.to_dict()["neither"]) == 22
    rows = titled(comparison.parts(), "Neither places")
    assert rows[0] == ("default/c02", "fits on no node")
    assert rows[20:] == [("and 2 more", "")]


def test_pods_and_claims_are_counted_apart() -> None:
    claims = [claim("twin", request()), claim("a", request())]
    given = cluster(
        node(),
        device_class(),
        resource_slice(gpus(3)),
        claims,
        pod("twin", "a"),
    )
    assert (
        dralloc.compare(given).headline
        == "1 pod and 1 claim: first fit places 2, the optimum 2 (proven optimal)"
    )


def test_reasons_without_names_are_the_dull_ones() -> None:
    assert [why.name for why in Unasked if why.telling] == [
        "GATED",
        "SUSPENDED",
        "PLUGIN",
    ]
