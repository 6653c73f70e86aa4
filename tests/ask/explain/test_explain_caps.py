"""Caps as reasons, on clusters that fit on a page."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from conftest import ROOT
from dralloc.ask.explain import Explanation, explain
from dralloc.cli import app
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
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
    pod,
    request,
    resource_slice,
    sub,
)


def cards(
    *objects: Json | list[Json], memory: tuple[str, ...] = ("1Gi", "2Gi", "4Gi")
) -> Cluster:
    """Three cards of different size, each with a counter set of its own that has enough."""
    devices = [
        device(
            f"card-{card}",
            {"size": card},
            consumesCounters=consumes(f"set-{card}", memory=size, engines="1"),
        )
        for card, size in enumerate(memory)
    ]
    sets = [
        counters(f"set-{card}", memory=size, engines="1")
        for card, size in enumerate(memory)
    ]
    slices = [
        resource_slice(name="sets", count=2, sharedCounters=sets),
        resource_slice(devices, count=2),
    ]
    return cluster(node(), device_class(), slices, *objects)


def explained(whole: Cluster, *caps: str) -> Explanation:
    return explain(whole, "default/wanted", mode=Mode.OPTIMAL, caps=caps)


def details(explanation: Explanation, kind: str) -> dict[str, str]:
    assert explanation.conflict is not None
    return {
        member.title: member.detail
        for member in explanation.conflict.members
        if member.kind.value == kind
    }


def raised(explanation: Explanation) -> list[str]:
    return [
        suggestion.text
        for suggestion in explanation.suggestions
        if suggestion.cost.name == "CAP"
    ]


def test_who_uses_how_much_of_what() -> None:
    explanation = explained(
        cards(
            allocated("held", {"device": "card-0"}), claim("wanted", request())
        ),
        "default=memory:2Gi",
    )
    assert details(explanation, "cap") == {
        "cap default=memory:2Gi": "1Gi used, held by default/held 1Gi"
    }
    assert list(details(explanation, "holder")) == [
        "allocated claim default/held"
    ]
    assert raised(explanation) == ["raise cap default=memory from 2Gi to 3Gi"]
    assert "release claim default/held (priority 0)" in [
        suggestion.text for suggestion in explanation.suggestions
    ]


def test_the_least_that_is_enough_takes_the_smallest_card() -> None:
    explanation = explained(
        cards(claim("wanted", request())), "default=memory:512Mi"
    )
    assert raised(explanation) == ["raise cap default=memory from 512Mi to 1Gi"]
    assert details(explanation, "cap") == {"cap default=memory:512Mi": "0 used"}


def test_another_alternative_needs_less() -> None:
    large, small = (
        f"device.attributes['gpu.example.com'].size == {size}"
        for size in (2, 0)
    )
    wanted = claim(
        "wanted",
        first_available("gpu", sub("large", large), sub("small", small)),
    )
    assert raised(explained(cards(wanted), "default=memory:0")) == [
        "raise cap default=memory from 0 to 1Gi"
    ]


def test_two_caps_have_to_be_raised_together() -> None:
    explanation = explained(
        cards(claim("wanted", request())),
        "default=memory:0",
        "default=engines:0",
    )
    assert raised(explanation) == [
        "raise cap default=memory from 0 to 1Gi, default=engines from 0 to 1"
    ]
    assert (
        len(details(explanation, "cap")) == 1
    )  # the one explains it without the other


def test_what_has_been_placed_counts() -> None:
    pods = [pod("first", "a", priority=5), pod("user", "wanted", priority=1)]
    whole = cards(
        claim("a", request()),
        claim("wanted", request()),
        pods,
        memory=("2Gi", "2Gi"),
    )
    explanation = explained(whole, "default=memory:3Gi")
    assert details(explanation, "cap") == {
        "cap default=memory:3Gi": "2Gi used, held by default/a (placed in this batch) 2Gi",
    }
    assert raised(explanation) == ["raise cap default=memory from 3Gi to 4Gi"]


def test_a_move_does_not_help_against_a_cap() -> None:
    whole = cards(
        allocated("held", {"device": "card-0"}),
        claim("wanted", request()),
        memory=("1Gi", "1Gi", "1Gi"),
    )
    texts = [
        suggestion.text
        for suggestion in explained(whole, "default=memory:1Gi").suggestions
    ]
    assert not any(text.startswith("move") for text in texts)


def test_less_of_a_capacity_stays_within_the_cap() -> None:
    shared = device(
        "gpu-0",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "10Gi"}},
    )
    held = allocated(
        "held",
        {
            "device": "gpu-0",
            "shareID": "a",
            "consumedCapacity": {"memory": "1Gi"},
        },
    )
    wanted = claim("wanted", request(capacity={"requests": {"memory": "4Gi"}}))
    explanation = explained(
        cluster(node(), device_class(), resource_slice([shared]), held, wanted),
        "default=memory:3Gi",
    )
    assert (
        explanation.suggestions[0].text
        == "claim default/wanted, request gpu: ask for 2Gi of memory in place of 4Gi"
    )
    assert raised(explanation) == ["raise cap default=memory from 3Gi to 5Gi"]


def test_caps_of_others_do_not_matter() -> None:
    whole = cards(
        allocated("held", {"device": "card-0"}),
        claim("wanted", request(count=3)),
    )
    assert details(explained(whole, "other=memory:0"), "cap") == {}


def test_first_fit_looks_at_no_cap() -> None:
    explanation = explain(
        cards(claim("wanted", request())),
        "default/wanted",
        caps=["default=memory:0"],
    )
    assert explanation.placed
    assert explanation.remarks == (
        "First fit looks neither at caps nor at fairness: mode optimal explains the answer that does.",
    )
    with pytest.raises(DrallocError, match='is named "memry"'):
        explain(
            cards(claim("wanted", request())),
            "default/wanted",
            caps=["default=memry:0"],
        )


def test_on_the_command_line() -> None:
    arguments = [
        "--pod",
        "green/worker-2",
        "--mode",
        "optimal",
        "--fair",
        "memory",
    ]
    caps = ["--cap", "green=memory:40Gi", "--cap", "blue=memory:40Gi"]
    result = CliRunner().invoke(
        app,
        [
            "explain",
            str(ROOT / "models/fair-share"),
            *arguments,
            *caps,
            "--json",
        ],
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert [member["kind"] for member in answer["conflict"]["members"]] == [
        "request",
        "cap",
        "holder",
    ]
    assert "raise cap green=memory from 40Gi to 80Gi" in [
        suggestion["change"] for suggestion in answer["suggestions"]
    ]
    assert "cap" in [suggestion["kind"] for suggestion in answer["suggestions"]]
