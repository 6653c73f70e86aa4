"""Every model gives the outcome that it states, in both modes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import dralloc
from conftest import ROOT
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import parse_quantity
from dralloc.problem import Problem

MODELS = sorted(
    path.parent for path in (ROOT / "models").rglob("expected.yaml")
)
Json = dict[str, Any]


def name_of(model: Path) -> str:
    return str(model.relative_to(ROOT / "models"))


@cache
def expected(model: Path) -> Json:
    content: Json = yaml.safe_load((model / "expected.yaml").read_text())
    return content


@cache
def compared(model: Path) -> dralloc.Comparison:
    return dralloc.compare(
        dralloc.load(model, strict=True), **expected(model).get("options", {})
    )


def claim_key(cluster: Cluster, name: str) -> ClaimKey:
    """The key of ``namespace/claim``, or of ``namespace/pod:entry`` for a claim that was made for a pod."""
    namespace, _, rest = name.partition("/")
    pod, _, entry = rest.partition(":")
    if not entry:
        return ClaimKey(namespace, rest)
    owner = next(
        candidate
        for candidate in cluster.pods
        if candidate.key == ClaimKey(namespace, pod)
    )
    entries = [reference.name for reference in owner.spec.resource_claims]
    return cluster.pod_claims(owner)[entries.index(entry)]


def outcome(plan: dralloc.Plan, key: ClaimKey) -> Json:
    """What a claim got, in the form of an expectation."""
    allocation = plan.allocations.get(key)
    if allocation is None:
        return {"node": None}
    node = next(
        plan.node_of(placement)
        for placement in plan.solution.placements
        for claim, grants in zip(
            plan.demands[placement.demand].claims, placement.grants, strict=True
        )
        if claim.key == key and (grants or not claim.requests)
    )
    devices: list[Json] = []
    for result in allocation.devices.results:
        entry: Json = {
            "request": result.request,
            "device": str(result.device_id),
        }
        if result.consumed_capacity:
            entry["consumedCapacity"] = dict(result.consumed_capacity)
        devices.append(entry)
    return {"node": node, "devices": devices}


def differences(plan: dralloc.Plan, claims: Json) -> Iterator[str]:
    for name, wanted in claims.items():
        got = outcome(plan, claim_key(plan.compiled.cluster, name))
        for field, value in wanted.items():
            if got.get(field) != with_quantities(value):
                yield f"{name}: {field}: expected {value}, got {got.get(field)}"


def with_quantities(value: Any) -> Any:
    """The expectation with amounts as quantities, because 10G and 9765625Ki are the same."""
    if not isinstance(value, list):
        return value
    consumed = {
        "consumedCapacity": lambda amounts: {
            name: parse_quantity(amount) for name, amount in amounts.items()
        }
    }
    return [
        {key: consumed.get(key, str)(item) for key, item in entry.items()}
        for entry in value
    ]


def claims_of(section: Json) -> Json:
    return section.get("claims", {}) if "placed" in section else section


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_first_fit(model: Path) -> None:
    plan, section = compared(model).first_fit, expected(model)["first-fit"]
    assert list(differences(plan, claims_of(section))) == []
    if "placed" in section:
        assert plan.metrics.placed == section["placed"]


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_optimum(model: Path) -> None:
    plan, section = compared(model).optimal, expected(model)["optimal"]
    assert plan.status == "OPTIMAL"
    assert plan.metrics.placed == section["placed"]
    assert list(differences(plan, section.get("claims") or {})) == []


@pytest.mark.parametrize(
    "model",
    [model for model in MODELS if expected(model).get("remaining")],
    ids=name_of,
)
def test_what_remains(model: Path) -> None:
    """Counters and capacities after the answer, read back from the written claims."""
    for plan in (compared(model).first_fit, compared(model).optimal):
        free_amounts = dict(remaining(plan))
        for kind in ("capacity", "counters"):
            for owner, amounts in (
                expected(model)["remaining"].get(kind) or {}
            ).items():
                got = {name: free_amounts[owner, name] for name in amounts}
                assert got == {
                    name: parse_quantity(amount).nanos
                    for name, amount in amounts.items()
                }, owner


def remaining(plan: dralloc.Plan) -> Iterator[tuple[tuple[str, str], int]]:
    problem = loaded_again(plan)
    for counter in problem.counters:
        yield (
            (
                f"{counter.id.driver}/{counter.id.pool}/{counter.id.counter_set}",
                counter.id.counter,
            ),
            counter.free,
        )
    for device in problem.devices:
        consumed = problem.usage.consumed.get(device.slot, {})
        for capacity in device.capacity.values():
            yield (
                (str(device.id), capacity.name),
                capacity.total - consumed.get(capacity.name, 0),
            )


def loaded_again(plan: dralloc.Plan) -> Problem:
    """The problem of the cluster in which the plan's claims are allocated."""
    written = {claim.key: claim for claim in plan.claims}
    cluster = plan.compiled.cluster
    claims = tuple(written.get(claim.key, claim) for claim in cluster.claims)
    return compile_cluster(replace(cluster, claims=claims)).problem


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_every_file_of_a_model_is_used(model: Path) -> None:
    assert dralloc.load(model).skipped == {}


def test_there_are_models() -> None:
    assert len(MODELS) >= 60
