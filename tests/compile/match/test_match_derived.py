"""Attributes that requests derive from devices, from the objects to the answers of all modes (KEP-6080)."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import dralloc
from dralloc.objects.cluster import Cluster
from wire import (
    Json,
    claim,
    cluster,
    device,
    device_class,
    first_available,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

GPU, NIC = "gpu.example.com", "nic.example.com"
NUMA = "example.com/numa"
GPU_NUMA = f"device.attributes['{GPU}'].numa"
NIC_NUMA = (
    f"int(device.attributes['{NIC}'].place.split('-')[0].replace('numa', ''))"
)
MODES: tuple[Literal["first-fit", "optimal"], ...] = ("first-fit", "optimal")


def machine(
    *claims: Json, nics: tuple[str, ...] = ("numa7-slot0", "numa1-slot4")
) -> Cluster:
    """A node whose GPUs and network cards say in different words to which NUMA node they belong."""
    return cluster(
        node("node-0"),
        device_class("gpu", f'device.driver == "{GPU}"'),
        device_class("nic", f'device.driver == "{NIC}"'),
        resource_slice(
            [device(f"gpu-{numa}", {"numa": numa, NUMA: 7}) for numa in (0, 1)],
            driver=GPU,
        ),
        resource_slice(
            [device(f"nic-{place}", {"place": place}) for place in nics],
            driver=NIC,
            name="slice-1",
            pool="nics",
        ),
        *claims,
    )


def deriving(expression: str, name: str = NUMA) -> Json:
    return {"derivedAttributes": [{"name": name, "expression": expression}]}


def pair(
    kind: str = "matchAttribute",
    gpu: Json | None = None,
    nic: Json | None = None,
) -> Json:
    """A GPU and a network card with a constraint on both."""
    requests = [
        request(
            "gpu",
            device_class="gpu",
            **(deriving(GPU_NUMA) if gpu is None else gpu),
        ),
        request(
            "nic",
            device_class="nic",
            **(deriving(NIC_NUMA) if nic is None else nic),
        ),
    ]
    return claim("pair", *requests, constraints=[{kind: NUMA}])


def granted(
    given: Cluster,
    mode: Literal["first-fit", "scheduler", "optimal"],
    **words: Any,
) -> list[str]:
    plan = dralloc.allocate(given, mode=mode, **words)
    return [
        result.device
        for allocation in plan.allocations.values()
        for result in allocation.devices.results
    ]


@pytest.mark.parametrize("mode", MODES)
def test_constraints_compare_what_requests_derive(
    mode: Literal["first-fit", "optimal"],
) -> None:
    assert granted(machine(pair()), mode) == ["gpu-1", "nic-numa1-slot4"]


def test_the_scheduler_compares_it_too() -> None:
    assert granted(machine(pair(), pod("user", "pair")), "scheduler") == [
        "gpu-1",
        "nic-numa1-slot4",
    ]


@pytest.mark.parametrize("mode", MODES)
def test_distinct_attributes_are_derived_too(
    mode: Literal["first-fit", "optimal"],
) -> None:
    given = machine(pair("distinctAttribute"), nics=("numa0-slot0",))
    assert granted(given, mode) == ["gpu-1", "nic-numa0-slot0"]


def test_a_derived_attribute_shadows_a_published_one_for_its_request_only() -> (
    None
):
    published = machine(pair(gpu={}))
    assert granted(published, "first-fit") == ["gpu-0", "nic-numa7-slot0"]
    assert granted(machine(pair()), "first-fit") == ["gpu-1", "nic-numa1-slot4"]


def test_selectors_do_not_see_it() -> None:
    reading = request(
        "gpu",
        f"device.attributes['example.com'].numa == {7}",
        device_class="gpu",
        **deriving("0"),
    )
    given = machine(
        claim("pair", reading, constraints=[{"matchAttribute": NUMA}])
    )
    assert granted(given, "first-fit") == ["gpu-0"]


def test_lists_agree_in_a_common_value() -> None:
    listed = deriving(f"[{GPU_NUMA} + 0, 7]")
    assert granted(machine(pair(gpu=listed)), "first-fit") == [
        "gpu-0",
        "nic-numa7-slot0",
    ]


def test_each_alternative_derives_its_own() -> None:
    """The first entry's attribute agrees with no network card, the second's does."""
    entries = [
        sub("never", device_class="gpu", **deriving("'numa1'")),
        sub("fits", device_class="gpu", **deriving("7")),
    ]
    nic = request("nic", device_class="nic", **deriving(NIC_NUMA))
    given = machine(
        claim(
            "pair",
            first_available("gpu", *entries),
            nic,
            constraints=[{"matchAttribute": NUMA}],
        )
    )
    for mode in MODES:
        assert granted(given, mode) == ["gpu-0", "nic-numa7-slot0"]


def test_an_error_ends_the_attempt_in_first_fit_and_excludes_the_device_from_the_optimum() -> (
    None
):
    """Though another card would do (KEP-6080, "Runtime Error Handling")."""
    given = machine(pair(), nics=("slot0", "numa1-slot4"))
    plan = dralloc.allocate(given, mode="first-fit")
    reason = f"claim default/pair: derived attribute {NUMA} on device {NIC}/nics/nic-slot0: CEL runtime error"
    assert not plan.allocations
    assert reason in " ".join(plan.reasons.values())
    assert granted(given, "optimal") == ["gpu-1", "nic-numa1-slot4"]
    told = f"derived attribute {NUMA} of claim default/pair fails on device {NIC}/nics/nic-slot0: CEL runtime error"
    assert any(
        told in warning
        for warning in dralloc.allocate(given, mode="optimal").warnings
    )


def test_an_attribute_that_no_constraint_compares_is_not_evaluated() -> None:
    given = machine(
        claim(
            "pair",
            request(
                "gpu",
                device_class="gpu",
                **deriving("device.attributes['x'].y"),
            ),
        )
    )
    assert granted(given, "first-fit") == ["gpu-0"]


def test_a_scheduler_without_the_gate_compares_what_is_published() -> None:
    features = dralloc.Features().switched({"DRADerivedAttributes": False})
    given = machine(pair(nic={}), nics=("numa1-slot4",))
    assert granted(given, "first-fit", features=features) == []


def test_explain_lists_what_each_request_derives() -> None:
    text = str(
        dralloc.explain(machine(pair(), nics=("numa7-slot0",)), "default/pair")
    )
    assert f"constraint #0 matchAttribute {NUMA}: no common value" in text
    assert (
        f"values of {NUMA} on the devices selected for gpu: 0 (1); 1 (1)"
        in text
    )
    assert f"values of {NUMA} on the devices selected for nic: 7 (1)" in text
