from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cel_helpers import evaluate
from kubecel import (
    UNSET,
    AttributeValue,
    Version,
    compile_selector,
    convert_device,
    device_from_wire,
)
from kubecel.errors import QuantitySyntaxError
from kubecel.kubernetes_types.quantities import parse_quantity
from kubecel.kubernetes_types.semantic_versions import parse_semver
from kubecel.values import (
    EMPTY_MAP,
    MISSING,
    DomainMap,
    Duration,
    Uint,
    find,
    map_key,
    map_keys,
)


def test_conversion_of_plain_values() -> None:
    device = convert_device(
        "d",
        {
            "a": 1,
            "other/b": ("x", "y"),
            "v": Version("1.0.0"),
            "w": (Version("1.0.0"), Version("2.0.0")),
            "t": True,
        },
        {"m": parse_quantity("1Gi")},
        allow_multiple_allocations=True,
    )
    assert device.error == ""
    assert device.variables["attributes"] == {
        "d": {
            "a": 1,
            "v": parse_semver("1.0.0"),
            "w": (parse_semver("1.0.0"), parse_semver("2.0.0")),
            "t": True,
        },
        "other": {"b": ("x", "y")},
    }
    assert (
        evaluate(
            'device.capacity["d"].m.isInteger() && device.allowMultipleAllocations',
            device,
        )
        is True
    )


def test_an_attribute_without_a_value() -> None:
    assert (
        convert_device("d", {"a": UNSET}, {}).error
        == "attribute a: unsupported attribute value"
    )
    assert repr(UNSET) == "UNSET"


def test_the_wire_form_prefers_lists() -> None:
    device = device_from_wire(
        "d",
        {
            "attributes": {
                "a": {"int": 1, "ints": [2]},
                "b": {"ints": None, "bool": False},
            }
        },
    )
    assert device.variables["attributes"]["d"] == {"a": (2,), "b": False}
    assert not device.variables["allowMultipleAllocations"]
    with pytest.raises(QuantitySyntaxError):
        device_from_wire("d", {"capacity": {"m": {"value": "x"}}})


def test_maps_keep_bools_apart_from_numbers() -> None:
    values = {
        map_key(True): "yes",
        map_key(1): "one",
        map_key(Duration(1)): "short",
    }
    assert list(map_keys(values)) == [True, 1, Duration(1)]
    assert [
        find(values, key) for key in (True, 1, 1.0, Uint(1), Duration(1))
    ] == [
        "yes",
        "one",
        "one",
        "one",
        "short",
    ]
    assert find(values, False) is MISSING
    assert find(values, (1,)) is MISSING


def test_a_domain_map_has_every_domain() -> None:
    domains = DomainMap(d={"a": 1})
    assert domains["zz"] is EMPTY_MAP
    assert find(domains, "zz") is EMPTY_MAP
    assert len(domains) == 1
    assert "zz" not in domains


_SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.sampled_from(("x", "d", "m", "other", "nothing")),
    st.sampled_from((Version("1.0.0"), Version("0.1.0-rc.1"))),
)
_WRITTEN = (
    "b'x'",
    'semver("1.0.0")',
    "[1]",
    "{1: 2}",
    "null",
    "2.5",
    'duration("1s")',
    'quantity("1")',
    "type(1)",
)
_MAPS = {
    "device.attributes": {"d", "other"},
    'device.attributes["d"]': {"x", "y"},
    "device.capacity": {"d"},
    'device.capacity["d"]': {"m"},
    'device.attributes["none"]': set[str](),
    'cel.bind(d, device.attributes["d"], d)': {"x", "y"},
    'optional.of(device.attributes["d"]).value()': {"x", "y"},
}


@pytest.mark.parametrize("container", _MAPS)
@given(value=_SCALARS | st.lists(st.integers(-9, 9), max_size=2).map(tuple))
def test_only_a_text_is_in_a_map_of_a_device(
    container: str, value: AttributeValue
) -> None:
    attributes: dict[str, AttributeValue] = {"x": value, "y": 1, "other/z": 1}
    device = convert_device("d", attributes, {"m": parse_quantity("1")})
    expected = type(value) is str and value in _MAPS[container]
    assert (
        evaluate(f'device.attributes["d"].x in {container}', device) is expected
    )


@pytest.mark.parametrize("container", _MAPS)
@pytest.mark.parametrize("written", _WRITTEN)
def test_what_has_no_hash_is_in_no_map_of_a_device(
    container: str, written: str
) -> None:
    device = convert_device(
        "d", {"x": 1, "y": 1, "other/z": 1}, {"m": parse_quantity("1")}
    )
    assert evaluate(f"dyn({written}) in {container}", device) is False


@pytest.mark.parametrize(
    "key",
    [
        'device.attributes["gpu.example.com"].driverVersion',
        "b'x'",
        'semver("1.0.0")',
    ],
)
@pytest.mark.parametrize("container", ["{device.driver: 1}", '{"a": 1}'])
def test_other_maps_hash_what_is_looked_up(key: str, container: str) -> None:
    assert evaluate(f"dyn({key}) in {container}") == "runtime-error"
    assert evaluate(f"false && dyn({key}) in {container}") is False


@pytest.mark.parametrize(
    ("expression", "attributes", "capacity"),
    [
        ('device.attributes["d"].a == 1', {("d", "a")}, set()),
        (
            'has(device.attributes.d.a) && device.capacity["e"]["m"].isInteger()',
            {("d", "a")},
            {("e", "m")},
        ),
        ('device.attributes["d"].?a[0].orValue(1) == 1', {("d", "a")}, set()),
        ('cel.bind(d, device.attributes["d"], d.a)', {("d", "*")}, set()),
        ('"a" in device.attributes["d"]', {("d", "*")}, set()),
        ('device.attributes["d"][device.driver] == 1', {("d", "*")}, set()),
        ("true", set(), set()),
    ],
)
def test_what_is_read(
    expression: str,
    attributes: set[tuple[str, str]],
    capacity: set[tuple[str, str]],
) -> None:
    reads = compile_selector(expression).reads
    assert not reads.everything
    assert reads.attributes == attributes
    assert reads.capacity == capacity
    assert reads.driver == ("driver" in expression)


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes.exists(d, true)",
        "device.attributes[device.driver].a",
        "device == device",
        'cel.bind(device, device.attributes, device["d"].a)',
        "[1].all(device, device == 1)",
        "size(device.capacity) == 0",
        "optional.of(1).optMap(device, device).hasValue()",
        'cel.bind(x, dyn(device), x.attributes["d"].a)',
    ],
)
def test_what_may_read_everything(expression: str) -> None:
    assert compile_selector(expression).reads.everything


def test_reading_whether_a_device_can_be_shared() -> None:
    reads = compile_selector("device.allowMultipleAllocations").reads
    assert reads.allow_multiple_allocations
    assert not reads.driver
