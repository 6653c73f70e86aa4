"""What is null, what is no time, and how the API reads quantities: as a real server does, which the live tests ask."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.api import (
    DeviceTaintRule,
    ObjectReader,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dralloc.objects.api.disclosure import is_time
from dralloc.objects.api.reading import without_nulls
from dralloc.objects.quantity import parse_quantity
from wire import Json, claim, device, request, resource_slice


def read(raw: Json) -> Any:
    reader = ObjectReader()
    api_object = reader.read(raw, "")
    assert not reader.errors, reader.errors
    return api_object


def refusals(raw: Json) -> list[str]:
    reader = ObjectReader()
    reader.read(raw, "")
    return [str(finding) for finding in reader.errors]


def test_null_in_a_list_is_the_zero_value() -> None:
    terms = [
        None,
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": [None, "a"]}
            ]
        },
    ]
    slice_object = read(
        resource_slice(
            [device("gpu-0")], nodeSelector={"nodeSelectorTerms": terms}
        )
    )
    empty, filled = slice_object.spec.node_selector.node_selector_terms
    assert empty.match_expressions == ()
    assert filled.match_expressions[0].values == ("", "a")


def test_null_in_a_map_is_the_zero_value() -> None:
    slice_object = read(
        resource_slice(
            [
                device(
                    "gpu-0", capacity={"memory": None, "cores": {"value": None}}
                )
            ]
        )
    )
    assert {
        name: amount.value
        for name, amount in slice_object.spec.devices[0].capacity.items()
    } == dict.fromkeys(("memory", "cores"), parse_quantity("0"))


def test_null_in_lists_of_attributes_and_of_amounts() -> None:
    policy = {"default": None, "validValues": [None, "1"]}
    shared = device(
        "gpu-0",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "1", "requestPolicy": policy}},
    )
    shared["attributes"] = {"a": {"ints": [None, 3]}, "b": {"strings": [None]}}
    [device_object] = read(resource_slice([shared])).spec.devices
    assert device_object.attributes == {"a": (0, 3), "b": ("",)}
    assert device_object.capacity["memory"].request_policy.valid_values == (
        parse_quantity("0"),
        parse_quantity("1"),
    )


def test_a_field_that_is_null_is_absent_and_what_may_be_anything_stays() -> (
    None
):
    config = {"opaque": {"driver": "d", "parameters": {"a": None}}}
    claim_object = read(
        claim("c", request(adminAccess=None), config=[config], constraints=None)
    )
    assert claim_object.spec.devices.constraints == ()
    assert claim_object.spec.devices.config[0].opaque.parameters == {"a": None}


@pytest.mark.parametrize(
    "model", [ResourceSlice, ResourceClaim, DeviceTaintRule, Pod]
)
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda parts: (
            st.lists(parts, max_size=3)
            | st.dictionaries(st.sampled_from(("spec", "a")), parts, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_only_null_is_changed(model: Any, body: Any) -> None:
    """Whatever else is wrong is left for the models to name."""
    clean_body = without_nulls(model, body)
    if "None" not in repr(body):
        assert clean_body == body
    assert without_nulls(model, clean_body) == clean_body


def test_a_taint_is_added_at_a_time() -> None:
    taint = {"key": "a", "effect": "NoSchedule", "timeAdded": "yesterday"}
    [refusal] = refusals(resource_slice([device("gpu-0", taints=[taint])]))
    assert (
        'spec.devices[0].taints[0].timeAdded: "yesterday" is not a point in time'
        in refusal
    )
    assert not refusals(
        resource_slice(
            [
                device(
                    "gpu-0",
                    taints=[
                        {**taint, "timeAdded": "2026-01-31T12:00:00.5+02:00"}
                    ],
                )
            ]
        )
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", True),
        ("2026-01-31T12:00:00.123456789-07:00", True),
        ("2026-01-31T12:00:00,5Z", True),
        ("2026-01-31T1:00:00Z", True),
        ("0000-02-29T12:00:00Z", True),
        ("2026-01-31T12:00:00+24:60", True),
        ("2026-02-29T12:00:00Z", False),
        ("2026-13-01T12:00:00Z", False),
        ("2026-01-31T24:00:00Z", False),
        ("2026-01-31T12:00:60Z", False),
        ("2026-01-31T12:00:00+25:00", False),
        ("2026-01-31t12:00:00z", False),
        ("2026-01-31 12:00:00Z", False),
        ("2026-01-31T12:00:00", False),
        ("2026-01-31", False),
        ("\u0662\u0660\u0662\u0666-01-31T12:00:00Z", False),
        ("", False),
    ],
)
def test_times_are_those_of_go(text: str, expected: bool) -> None:
    assert is_time(text) is expected


@pytest.mark.parametrize(
    "text", [" 1Gi", "1Gi ", "\u00a01Gi\u2003", "\u00851Gi"]
)
def test_blanks_around_a_quantity_do_not_matter(text: str) -> None:
    slice_object = read(
        resource_slice([device("gpu-0", capacity={"memory": {"value": text}})])
    )
    assert slice_object.spec.devices[0].capacity[
        "memory"
    ].value == parse_quantity("1Gi")


@pytest.mark.parametrize("text", ["", " ", "1 Gi", "\t1", "\u200b1"])
def test_other_blanks_do(text: str) -> None:
    assert refusals(
        resource_slice([device("gpu-0", capacity={"memory": {"value": text}})])
    )


@pytest.mark.parametrize(
    "text", ["1e400", "1E400", "-1e400", "0.1e400", "0e400"]
)
def test_large_exponents_are_quantities(text: str) -> None:
    slice_object = read(
        resource_slice([device("gpu-0", capacity={"memory": {"value": text}})])
    )
    assert slice_object.spec.devices[0].capacity[
        "memory"
    ].value == parse_quantity(text)
