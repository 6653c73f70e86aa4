"""The fast way to read slices gives what the models give, and keeps equal parts once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.api import ResourceSlice
from dralloc.objects.api.slice_reader import SliceReader

names = st.text("abcdefgh-", min_size=1, max_size=4)
quantities = st.one_of(
    st.sampled_from(("1", "2Gi", "500m", "1e3")),
    st.integers(0, 9),
    st.just(0.5),
)
attributes = st.one_of(
    st.builds(lambda value: {"int": value}, st.integers(-3, 3)),
    st.builds(lambda value: {"bool": value}, st.booleans()),
    st.builds(lambda value: {"string": value}, st.text(max_size=40)),
    st.builds(
        lambda value: {"version": value}, st.sampled_from(("1.0.0", "2.0.0"))
    ),
    st.builds(lambda value: {"strings": value}, st.lists(names, max_size=3)),
    st.builds(
        lambda value: {"ints": value}, st.lists(st.integers(0, 3), max_size=3)
    ),
    st.just({}),
)
capacities = st.fixed_dictionaries(
    {"value": quantities},
    optional={
        "requestPolicy": st.fixed_dictionaries(
            {"default": quantities},
            optional={"validValues": st.lists(quantities)},
        )
    },
)
consumption = st.fixed_dictionaries(
    {
        "counterSet": names,
        "counters": st.dictionaries(
            names, st.builds(lambda value: {"value": value}, quantities)
        ),
    }
)
devices = st.fixed_dictionaries(
    {"name": names},
    optional={
        "attributes": st.dictionaries(names, attributes, max_size=4),
        "capacity": st.dictionaries(names, capacities, max_size=3),
        "consumesCounters": st.lists(consumption, max_size=2),
        "nodeName": names,
        "allNodes": st.booleans(),
        "allowMultipleAllocations": st.booleans(),
        "bindingConditions": st.lists(names, max_size=2),
        "taints": st.lists(
            st.fixed_dictionaries(
                {"key": names, "effect": st.just("NoSchedule")}
            ),
            max_size=2,
        ),
    },
)


def body(*items: Any) -> dict[str, Any]:
    spec = {
        "driver": "d",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "devices": list(items),
    }
    return {"metadata": {"name": "s"}, "spec": spec}


def by_models(raw: dict[str, Any]) -> ResourceSlice:
    return ResourceSlice.model_validate(raw, by_alias=True, by_name=False)


@given(st.lists(devices, max_size=4))
def test_gives_what_the_models_give(items: list[dict[str, Any]]) -> None:
    raw = body(*items)
    slow = by_models(raw)
    fast = SliceReader().read(json.loads(json.dumps(raw)))
    if fast is None:
        assert any(
            {} in device.get("attributes", {}).values() for device in items
        )
    else:
        assert fast == slow
        assert str(fast) == str(slow), "types as well"


shared_parts = st.one_of(
    st.tuples(st.just("version"), st.sampled_from(("10", "1.0.0"))),
    st.tuples(st.sampled_from(("strings", "taints")), st.lists(names)),
    st.tuples(st.just("nodeName"), names),
    st.tuples(st.just("bindsToNode"), st.booleans()),
)


@given(st.lists(st.tuples(st.booleans(), shared_parts), max_size=4))
def test_types_of_values_are_no_fields_of_devices(
    parts: list[tuple[bool, tuple[str, Any]]],
) -> None:
    """What is written at one place in order, and at another one by mistake."""
    reader = SliceReader()
    for is_value, (key, value) in parts:
        fields = {"attributes": {"x": {key: value}}}
        raw = body({"name": "a", **(fields if is_value else {key: value})})
        read = reader.read(raw)
        if read is not None:
            assert read == by_models(raw)


def test_equal_parts_are_one_object() -> None:
    reader = SliceReader()
    text = json.dumps(
        body(
            {
                "name": "gpu-0",
                "attributes": {
                    "model": {"string": "A100"},
                    "driver": {"version": "1.0.0"},
                    "links": {"strings": ["a"]},
                },
                "capacity": {"memory": {"value": "40Gi"}},
                "consumesCounters": [
                    {"counterSet": "c", "counters": {"m": {"value": "1"}}}
                ],
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            }
        )
    )
    first, second = reader.read(json.loads(text)), reader.read(json.loads(text))
    assert first is not None
    assert second is not None
    device, other = first.spec.devices[0], second.spec.devices[0]
    assert device == other
    assert device.capacity is other.capacity
    assert device.consumes_counters is other.consumes_counters
    assert device.taints is other.taints
    assert all(
        device.attributes[name] is other.attributes[name]
        for name in ("model", "driver", "links")
    )
    assert device.name is other.name


def test_one_and_true_are_not_equal_parts() -> None:
    read = SliceReader().read(
        body(
            {"name": "a", "attributes": {"i": {"int": 1}, "b": {"bool": True}}}
        )
    )
    assert read is not None
    assert [
        type(value) for value in read.spec.devices[0].attributes.values()
    ] == [
        int,
        bool,
    ]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"spec": []},
        {"spec": {"devices": {}}},
        body("a"),
        body({}),
        body({"name": 3}),
        body({"name": "a", "unknown": 1}),
        body({"name": "a", "attributes": []}),
        body({"name": "a", "attributes": {"x": {}}}),
        body({"name": "a", "attributes": {"x": {"int": 1, "string": "a"}}}),
        body({"name": "a", "attributes": {"x": {"int": True}}}),
        body({"name": "a", "attributes": {"x": {"bool": 1}}}),
        body({"name": "a", "attributes": {"x": {"float": 1.5}}}),
        body({"name": "a", "attributes": {"x": {"ints": ["1"]}}}),
        body({"name": "a", "capacity": {"m": {"value": "10Gx"}}}),
        body({"name": "a", "capacity": {"m": {"value": 10**30}}}),
        body({"name": "a", "capacity": None}),
        {**body({"name": "a"}), "status": {}},
    ],
)
def test_whatever_is_unusual_is_left_to_the_models(raw: dict[str, Any]) -> None:
    assert SliceReader().read(raw) is None
