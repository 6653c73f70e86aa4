"""Plans in files: what is read is what was written, and questions start from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dralloc
from cluster_strategies import clusters
from dralloc.cli.main import app
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.api import to_wire
from dralloc.objects.errors import DrallocError
from dralloc.objects.save import dump_yaml
from dralloc.problem.solution import Status, Tier
from examples import INDEPENDENT, examples
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

MODELS = Path(__file__).parents[2] / "models"


@settings(
    max_examples=examples(60),
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    objects=clusters(),
    mode=st.sampled_from(["first-fit", "scheduler", "optimal", "best-fit"]),
)
def test_what_is_read_is_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, objects: list[Json], mode: Any
) -> None:
    whole = cluster(objects)
    plan = dralloc.allocate(whole, mode)
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    plan.save(path)
    again = dralloc.Plan.load(path, whole)
    assert again.solution.placements == plan.solution.placements
    assert (again.mode, again.status, again.tiers) == (
        plan.mode,
        plan.status,
        tuple(
            type(tier)(tier.name, tier.value, tier.bound, tier.sense, tier.why)
            for tier in plan.tiers
        ),
    )
    assert again.reasons == plan.reasons
    assert again.most_placed == plan.most_placed
    assert again.headline == plan.headline
    assert list(again.claims) == list(plan.claims)
    assert again.solution.bindings == plan.solution.bindings
    # Who is placed does not wait any more.
    waiting = {
        demand.key for demand in compile_cluster(plan.after).problem.demands
    }
    placed = {placed_demand.demand for placed_demand in plan.placed}
    assert not waiting & placed


def two_nodes(*objects: Json | list[Json]) -> dralloc.Cluster:
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in ("node-0", "node-1")
    ]
    return cluster(
        device_class(), node("node-0"), node("node-1"), slices, *objects
    )


def test_pods_without_devices_are_bound_after_a_saved_plan(
    tmp_path: Path,
) -> None:
    whole = two_nodes(waiting("a"), pod("plain"))
    path = tmp_path / "plan.json"
    plan = dralloc.allocate(whole, "scheduler")
    plan.save(path)
    again = dralloc.Plan.load(path, whole)
    assert len(again.bindings) == 2
    assert again.after.pods == plan.after.pods
    document = json.loads(path.read_text())
    assert document["bindings"].keys() == {"default/a", "default/plain"}
    path.write_text(json.dumps({**document, "bindings": {"default/x": "n"}}))
    with pytest.raises(DrallocError, match="binds default/x to node"):
        dralloc.Plan.load(path, whole)
    path.write_text(json.dumps({**document, "bindings": []}))
    with pytest.raises(DrallocError, match="is no plan"):
        dralloc.Plan.load(path, whole)
    # An older file does not tell them.
    del document["bindings"]
    path.write_text(json.dumps(document))
    assert not dralloc.Plan.load(path, whole).bindings


def waiting(name: str) -> list[Json]:
    return [pod(name, name), claim(name, request())]


def test_the_claims_of_a_plan_are_enough_where_they_name_a_node(
    tmp_path: Path,
) -> None:
    source = two_nodes(waiting("a"), waiting("b"))
    plan = dralloc.allocate(source)
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(map(to_wire, plan.claims)))
    again = dralloc.Plan.load(path, source)
    assert again.solution.placements == plan.solution.placements
    assert again.mode == "saved"


def test_claims_that_can_be_used_anywhere_do_not_say_where_their_pod_goes(
    tmp_path: Path,
) -> None:
    source = cluster(
        device_class(),
        node("node-0"),
        node("node-1"),
        resource_slice(gpus(1), allNodes=True),
        waiting("a"),
    )
    plan = dralloc.allocate(source)
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(map(to_wire, plan.claims)))
    with pytest.raises(DrallocError, match="to which node default/a goes"):
        dralloc.Plan.load(path, source)
    plan.save(tmp_path / "plan.json")
    again = dralloc.Plan.load(tmp_path / "plan.json", source)
    assert again.after.pods[0].spec.node_name == "node-0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda plan: plan.pop("placed"),
            "this is not a Kubernetes object",
        ),
        (lambda plan: plan["placed"][0].pop("node"), "is no plan"),
        (
            lambda plan: plan["placed"][0].update(demand="default/c"),
            "places default/c, which is not pending",
        ),
        (
            lambda plan: plan["placed"][0].update(node="node-9"),
            'on node "node-9", which is not in this cluster',
        ),
        (
            lambda plan: plan["placed"][0].update(claims={}),
            "without an allocation of its claim default/a",
        ),
        (
            lambda plan: plan["placed"][1].update(node="node-0"),
            "gives gpu.example.com/node-1/gpu-0 to request gpu of default/b",
        ),
        (lambda plan: plan.update(status="GOOD"), "is no plan"),
        (lambda plan: plan["tiers"][0].pop("value"), "is no plan"),
        (lambda plan: plan.update(tiers=[{"name": "weight"}]), "is no plan"),
        (lambda plan: plan.update(warnings=None), "is no plan"),
        (lambda plan: plan.update(mostPlaced="many"), "is no plan"),
        (lambda plan: plan.update(unplaced=[{"error": "x"}]), "is no plan"),
        (lambda plan: plan["placed"][0].update(node=["a"]), "on node"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    tmp_path: Path, change: Any, said: str
) -> None:
    source = two_nodes(waiting("a"), waiting("b"))
    document = dralloc.allocate(source).to_dict()
    change(document)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DrallocError, match=said):
        dralloc.Plan.load(path, source)


def test_a_device_that_was_taken_in_the_meantime(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    dralloc.allocate(two_nodes(waiting("a"))).save(path)
    plan = dralloc.Plan.load(path, two_nodes(waiting("a"), waiting("b")))
    later = dralloc.allocate(plan.after)
    dralloc.allocate(two_nodes(waiting("b"))).save(path)
    with pytest.raises(DrallocError, match="is not pending"):
        dralloc.Plan.load(path, later.after)


def test_a_plan_that_is_read_says_how_many_are_placed_at_most(
    tmp_path: Path,
) -> None:
    """It is the bound of all priorities together; plans of files that do not tell it do without."""
    source = two_nodes(waiting("a"), waiting("b"))
    plan = dralloc.allocate(source)
    tiers = (Tier("pods@9", 1, 1), Tier("pods@0", 1, 2))
    open_ = replace(plan.solution, status=Status.FEASIBLE, tiers=tiers)
    path = tmp_path / "plan.json"
    replace(plan, solution=replace(open_, most_placed=3)).save(path)
    again = dralloc.Plan.load(path, source)
    assert "pods@0 at most 2, all at most 3, gap" in again.headline
    document = json.loads(path.read_text())
    del document["mostPlaced"]
    path.write_text(json.dumps(document))
    again = dralloc.Plan.load(path, source)
    assert "pods@0 at most 2, gap" in again.headline


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DrallocError, match=r"nowhere\.json: cannot be read"):
        dralloc.Plan.load("nowhere.json", dralloc.example())


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_command_starts_from_a_plan(tmp_path: Path, form: str) -> None:
    runner = CliRunner()
    model = str(MODELS / "h100-mig")
    written = runner.invoke(
        app, ["allocate", model, "-q", "--mode", "first-fit", "-o", form]
    )
    path = tmp_path / f"plan.{form}"
    path.write_text(written.stdout)
    later = runner.invoke(
        app, ["allocate", model, "-q", "--json", "--plan", str(path)]
    )
    document = json.loads(later.stdout)
    whole = json.loads(
        runner.invoke(app, ["allocate", model, "-q", "--json"]).stdout
    )
    first = dralloc.allocate(dralloc.load(model), "first-fit")
    assert document["demands"] == whole["demands"] - len(list(first.placed))
