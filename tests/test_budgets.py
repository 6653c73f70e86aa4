"""Caps and fairness from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dralloc
from conftest import ROOT
from dralloc.check import violations
from dralloc.cli import app
from dralloc.objects.errors import DrallocError
from dralloc.objects.quantity import parse_quantity
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    node,
    request,
    resource_slice,
    sub,
)

MODEL = ROOT / "models" / "fair-share"


def uses(plan: dralloc.Plan) -> dict[str, str]:
    """What each namespace uses in the end, in Gi."""
    return {
        row.namespace: f"{row.used // parse_quantity('1Gi').nanos}Gi"
        for row in plan.metrics.spending
    }


@pytest.fixture(scope="module")
def model() -> dralloc.Cluster:
    return dralloc.load(MODEL)


def test_fair_shares(model: dralloc.Cluster) -> None:
    comparison = dralloc.compare(model, fair="memory")
    assert uses(comparison.first_fit) == {"blue": "160Gi", "green": "0Gi"}
    assert uses(comparison.optimal) == {"blue": "80Gi", "green": "80Gi"}
    assert comparison.optimal.status == "OPTIMAL"
    assert [tier.name for tier in comparison.optimal.tiers] == [
        "weight",
        "fairness-1",
        "fairness-2",
        "alternatives",
    ]


def test_an_alternative_is_charged_at_what_it_uses(
    model: dralloc.Cluster,
) -> None:
    comparison = dralloc.compare(
        model, caps=["blue=memory:40Gi", "green=memory:80Gi"]
    )
    assert uses(comparison.first_fit) == {"blue": "160Gi", "green": "0Gi"}
    assert uses(comparison.optimal) == {"blue": "40Gi", "green": "80Gi"}
    assert comparison.optimal.metrics.placed == 3
    assert (
        "first fit exceeds a cap: blue uses 160Gi of memory, allowed are 40Gi"
        in str(comparison)
    )
    assert "cap blue=memory:40Gi is exceeded: 160Gi in use" in str(
        comparison.first_fit
    )
    assert "is exceeded" not in str(comparison.optimal)


def test_the_checker_minds_caps(model: dralloc.Cluster) -> None:
    capped = dralloc.allocate(model, caps=["blue=memory:40Gi"])
    greedy = dralloc.allocate(model, "first-fit")
    broken = violations(capped.compiled.problem, greedy.solution)
    assert broken == [
        "namespace blue: memory: 171798691840 taken beside 0, at most 42949672960"
    ]


def two_cards(*objects: Json, **amounts: str) -> dralloc.Cluster:
    cards = [
        device(f"card-{index}", consumesCounters=consumes("set", **amounts))
        for index in range(2)
    ]
    sets = resource_slice(
        name="sets", count=2, sharedCounters=[counters("set", memory="2Gi")]
    )
    return cluster(
        node(), device_class(), sets, resource_slice(cards, count=2), *objects
    )


def test_what_is_capped_may_have_run_out() -> None:
    sets = resource_slice(
        name="sets", count=2, sharedCounters=[counters("set", memory="0")]
    )
    card = device("card", consumesCounters=consumes("set", memory="1Gi"))
    scenario = cluster(
        node(),
        device_class(),
        sets,
        resource_slice([card], count=2),
        claim("a", request()),
    )
    (row,) = dralloc.allocate(
        scenario, caps=["default=memory:1Gi"], fair="memory"
    ).metrics.spending
    assert (row.total, row.used) == (0, 0)


def test_what_is_allocated_counts() -> None:
    whole = two_cards(
        claim("a", request()), claim("b", request()), memory="1Gi"
    )
    plan = dralloc.allocate(whole)
    held = next(candidate for candidate in plan.claims if candidate.name == "a")
    later = two_cards(
        json.loads(json.dumps(dralloc_wire(held))),
        claim("b", request()),
        memory="1Gi",
    )
    assert (
        dralloc.allocate(later, caps=["default=memory:1Gi"]).metrics.placed == 0
    )
    assert (
        dralloc.allocate(later, caps=["default=memory:2Gi"]).metrics.placed == 1
    )
    assert (
        dralloc.allocate(later, caps=["default=memory:512Mi"]).metrics.placed
        == 0
    )


def dralloc_wire(api_object: object) -> Json:
    from dralloc.objects.api import ApiObject, to_wire

    assert isinstance(api_object, ApiObject)
    wire: Json = to_wire(api_object)
    return wire


@pytest.mark.parametrize("drawing", [True, False], ids=["counters", "capacity"])
def test_what_is_used_on_other_nodes_counts(drawing: bool) -> None:
    fields: Json = (
        {"consumesCounters": consumes("set", memory="1Gi")}
        if drawing
        else {"capacity": {"memory": {"value": "1Gi"}}}
    )
    objects: list[Json] = [device_class(), claim("wish", request())]
    for name in ("here", "there"):
        common: Json = {"pool": name, "nodeName": name, "count": 1 + drawing}
        objects += [
            node(name),
            resource_slice(
                [device("card", **fields)], name=f"{name}-cards", **common
            ),
        ]
        if drawing:
            sets = [counters("set", memory="1Gi")]
            objects.append(
                resource_slice(
                    name=f"{name}-sets", sharedCounters=sets, **common
                )
            )
    objects.append(allocated("held", {"pool": "there", "device": "card"}))
    whole = cluster(*objects)
    assert (
        dralloc.allocate(
            whole, nodes=["here"], caps=["default=memory:1Gi"]
        ).metrics.placed
        == 0
    )
    assert (
        dralloc.allocate(
            whole, nodes=["here"], caps=["default=memory:2Gi"]
        ).metrics.placed
        == 1
    )


def test_a_cap_on_a_namespace_without_anything_is_a_remark(
    model: dralloc.Cluster,
) -> None:
    findings = dralloc.allocate(
        model, caps=["blu=memory:40Gi", "green=memory:1Gi"]
    ).compiled.findings
    assert [str(finding) for finding in findings] == [
        '--cap blu=memory:40Gi: there is no claim and no pod in namespace "blu"'
    ]


def test_a_device_without_counters_uses_its_capacity() -> None:
    cards = [
        device(f"card-{index}", capacity={"memory": {"value": "4Gi"}})
        for index in range(2)
    ]
    whole = cluster(
        node(),
        device_class(),
        resource_slice(cards),
        claim("a", request()),
        claim("b", request()),
    )
    assert (
        dralloc.allocate(whole, caps=["default=memory:7Gi"]).metrics.placed == 1
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("blue=memory", "expected NAMESPACE=COUNTER:AMOUNT"),
        ("blue:4", "expected NAMESPACE=COUNTER:AMOUNT"),
        ("=memory:4", "expected NAMESPACE=COUNTER:AMOUNT"),
        ("blue=memory:many", "--cap blue=memory:many"),
        ("blue=memory:-1", "the amount is negative"),
        (
            "blue=memry:1",
            'no counter and no capacity of a device is named "memry"',
        ),
    ],
)
def test_what_is_no_cap(model: dralloc.Cluster, text: str, rule: str) -> None:
    with pytest.raises(DrallocError, match=rule):
        dralloc.allocate(model, caps=[text])


def test_a_cap_is_given_once(model: dralloc.Cluster) -> None:
    with pytest.raises(DrallocError, match="--cap blue=memory: is given twice"):
        dralloc.allocate(model, caps=["blue=memory:1", "blue=memory:2"])


def test_on_the_command_line(tmp_path: Path) -> None:
    run = CliRunner()
    shown = run.invoke(
        app,
        [
            "compare",
            str(MODEL),
            "--fair",
            "memory",
            "--cap",
            "blue=memory:40Gi",
        ],
    )
    assert shown.exit_code == 0, shown.output
    report = json.loads(
        run.invoke(
            app, ["allocate", str(MODEL), "--fair", "memory", "-o", "json"]
        ).stdout
    )
    used = [row["used"] for row in report["metrics"]["namespaces"]]
    assert used == [80 * 2**30] * 2
    assert (
        run.invoke(app, ["allocate", str(tmp_path), "--cap", "x"]).exit_code
        == 2
    )


@pytest.mark.parametrize(
    ("order", "others", "used"),
    [(("1Gi", "3Gi"), ("9Gi",), "3Gi"), (("3Gi", "1Gi"), (), "4Gi")],
    ids=["much", "nothing"],
)
def test_what_is_preferred_costs_no_fairness(
    order: tuple[str, ...], others: tuple[str, ...], used: str
) -> None:
    """The shares stay while alternatives are looked at, whether much is left that nobody gets, or nothing."""
    cards = [
        device(
            f"card-{size.lower()}",
            {"size": size},
            capacity={"memory": {"value": size}},
        )
        for size in ("1Gi", "3Gi", *others)
    ]
    of_size = "device.attributes['gpu.example.com'].size == '{}'".format
    claims = [
        claim(
            "a",
            first_available(
                "gpu", *(sub(size.lower(), of_size(size)) for size in order)
            ),
        )
    ]
    if not others:
        claims.append(claim("b", request("gpu", of_size("3Gi"))))
    plan = dralloc.allocate(
        cluster(node(), device_class(), resource_slice(cards), *claims),
        fair="memory",
    )
    assert plan.status == "OPTIMAL"
    assert uses(plan) == {"default": used}
