"""Reading one object: unknown fields, and findings for what is wrong."""

from typing import Any

import pytest

from dralloc.objects.api import ObjectReader, Pod, ResourceSlice
from dralloc.objects.api.field_errors import field_path
from dralloc.objects.quantity import parse_quantity


def slice_with(
    device: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "devices": [{"name": "a", **(device or {})}],
            **spec,
        },
    }


UNKNOWN = [
    (slice_with(nodename="n"), "spec.nodename"),
    (
        slice_with({"allow_multiple_allocations": True}),
        "spec.devices[0].allow_multiple_allocations",
    ),
    (
        slice_with({"attributes": {"x": {"float": 1.5}}}),
        "spec.devices[0].attributes[x].float",
    ),
    (
        slice_with({"capacity": {"a.b/c": {"value": 1, "unit": "Gi"}}}),
        "spec.devices[0].capacity[a.b/c].unit",
    ),
    (
        slice_with({"capacity": {"m": {"value": 1, "consumable": False}}}),
        "spec.devices[0].capacity[m].consumable",
    ),
    ({**slice_with(), "statsu": {}}, "statsu"),
    (
        {**slice_with(), "metadata": {"name": "s", "clusterName": "x"}},
        "metadata.clusterName",
    ),
]


@pytest.mark.parametrize(("raw", "path"), UNKNOWN)
def test_an_unknown_field_is_a_warning_with_its_path(
    raw: dict[str, Any], path: str
) -> None:
    reader = ObjectReader()
    slice_object = reader.read(raw, "a.yaml")
    assert isinstance(slice_object, ResourceSlice)
    [finding] = reader.warnings
    assert str(finding).startswith(
        f"a.yaml: ResourceSlice s: {path}: unknown field"
    )
    assert not reader.errors


@pytest.mark.parametrize(("raw", "path"), UNKNOWN)
def test_an_unknown_field_is_an_error_when_strict(
    raw: dict[str, Any], path: str
) -> None:
    reader = ObjectReader(strict=True)
    assert reader.read(raw, "a.yaml") is None
    [finding] = reader.errors
    assert str(finding).startswith(
        f"a.yaml: ResourceSlice s: {path}: unknown field"
    )
    assert not reader.warnings


def test_unknown_fields_do_not_hide_other_defects() -> None:
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "a", "exaclty": {}}]}},
    }
    for strict in (False, True):
        reader = ObjectReader(strict=strict)
        assert reader.read(raw, "") is None
        assert [
            str(finding) for finding in (*reader.warnings, *reader.errors)
        ] == [
            'ResourceClaim c: spec.devices.requests[0].exaclty: unknown field, did you mean "exactly"?',
            "ResourceClaim c: spec.devices.requests[0]: needs exactly or firstAvailable",
        ]


def test_a_field_that_is_unknown_in_many_places_is_one_finding() -> None:
    raw = slice_with(
        devices=[
            {"name": f"gpu-{device_index}", "colour": "red"}
            for device_index in range(4)
        ]
    )
    reader = ObjectReader()
    slice_object = reader.read(raw, "")
    assert isinstance(slice_object, ResourceSlice)
    assert len(slice_object.spec.devices) == 4
    assert [str(finding) for finding in reader.warnings] == [
        "ResourceSlice s: spec.devices[0].colour: unknown field, here and in 3 more places"
    ]


def test_other_groups_have_fields_that_do_not_matter() -> None:
    reader = ObjectReader(strict=True)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "brandNew": 1},
        "spec": {
            "containers": [{"name": "c", "image": "x"}],
            "tolerations": [{"operator": "Exists"}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }
    assert reader.read(pod, "") is not None
    assert not reader.errors
    assert not reader.warnings


def test_all_defects_of_an_object_are_reported() -> None:
    reader = ObjectReader()
    raw = slice_with(
        {"name": 3, "capacity": {"m": {"value": []}}},
        driver=None,
        allNodes="yes",
    )
    assert reader.read(raw, "") is None
    assert sorted(
        (finding.path, finding.rule) for finding in reader.errors
    ) == [
        ("spec.allNodes", 'must be true or false, not "yes"'),
        ("spec.devices[0].capacity[m].value", "must be a quantity"),
        ("spec.devices[0].name", "must be a string, not 3"),
        ("spec.driver", "is required"),
    ]


def test_an_amount_that_is_left_out_is_zero() -> None:
    """As the API server keeps it; what a counter gives by request needs no amount."""
    by_request = {
        "counterSet": "s",
        "counters": {"a": {}, "b": {"valueFrom": {"capacityKey": "b"}}},
    }
    read = ObjectReader().read(
        slice_with({"capacity": {"m": {}}, "consumesCounters": [by_request]}),
        "",
    )
    assert isinstance(read, ResourceSlice)
    (device,) = read.spec.devices
    assert device.capacity["m"].value == parse_quantity("0")
    consumed = device.consumes_counters[0].counters
    assert (consumed["a"].value, consumed["b"].value) == (
        parse_quantity("0"),
        None,
    )


def test_what_is_nested_without_end() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    reader = ObjectReader()
    assert reader.read(slice_with(nodeName=deep), "") is None
    assert [str(finding) for finding in reader.errors] == [
        "ResourceSlice s: is nested too deeply"
    ]


def test_values_in_messages_are_short() -> None:
    reader = ObjectReader()
    assert (
        reader.read(
            slice_with(nodeName=["n"], driver={"a": 1}, allNodes="x" * 100), ""
        )
        is None
    )
    rules = {finding.path: finding.rule for finding in reader.errors}
    assert rules["spec.nodeName"] == "must be a string, not a list"
    assert rules["spec.driver"] == "must be a string, not an object"
    assert rules["spec.allNodes"].endswith("xxx...")
    assert len(rules["spec.allNodes"]) < 100


def test_field_paths() -> None:
    assert (
        field_path(("spec", "devices", 3, "capacity", "memory", "value"))
        == "spec.devices[3].capacity[memory].value"
    )
    assert (
        field_path(("capacity", "dra.example.com/memory"))
        == "capacity[dra.example.com/memory]"
    )
    assert field_path(("labels", "a", "[key]")) == "labels[a]"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_equal_specifications_are_one_object() -> None:
    reader = ObjectReader()
    first, second, other = (
        reader.read(
            pod(
                name,
                containers=[
                    {"name": "c", "resources": {"requests": {"cpu": cpu}}}
                ],
            ),
            "",
        )
        for name, cpu in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert isinstance(other, Pod)
    assert (first.name, second.name) == ("a", "b")
    assert first.spec is second.spec
    assert first.spec != other.spec


def test_what_is_wrong_with_a_specification_is_said_of_every_object() -> None:
    reader = ObjectReader()
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {}, "colour": "red"},
    }
    for name in "ab":
        reader.read({**claim, "metadata": {"name": name}}, "")
        reader.read(pod(name, priority="high"), "")
    assert [str(finding) for finding in reader.warnings] == [
        "ResourceClaim a: spec.colour: unknown field",
        "ResourceClaim b: spec.colour: unknown field",
    ]
    assert [finding.subject for finding in reader.errors] == ["Pod a", "Pod b"]
