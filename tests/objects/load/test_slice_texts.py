"""Slices that publish what others do are recognised by their text, and mean what they mean when they are parsed."""

import json
from typing import Any

import pytest

from dralloc.objects import load as loading
from dralloc.objects.api.slice_reader import TemplateDevices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import InputError
from dralloc.objects.load import load_text

SLICES = 4


def uuid(node: int, device: int) -> str:
    return f"GPU-{node:08}-{device:04}-4000-8000-{node:012}"


def slice_of(node: int) -> dict[str, Any]:
    """What a node publishes; beside its own names, only identifiers tell it from others."""
    devices = [
        {
            "name": f"gpu-{device}",
            "attributes": {
                "uuid": {"string": uuid(node, device)},
                "model": {"string": "H100"},
                "parent": {"string": uuid(node, 0)},
            },
            "capacity": {"memory": {"value": "80Gi"}},
            "consumesCounters": [
                {"counterSet": "all", "counters": {"memory": {"value": "80Gi"}}}
            ],
        }
        for device in range(3)
    ]
    pool = {"name": f"p{node}", "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s{node}"},
        "spec": {
            "devices": devices,
            "driver": "d",
            "nodeName": f"n{node}",
            "pool": pool,
        },
    }


def text_of(items: list[dict[str, Any]], **layout: Any) -> str:
    return json.dumps(
        {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}},
        **layout,
    )


def both(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Cluster | str, Cluster | str]:
    """What comes of a text that is read item by item, and of the same text parsed as a whole."""
    outcomes: list[Cluster | str] = []
    for split_from in (0, len(text.encode()) + 1):
        monkeypatch.setattr(loading, "SPLIT_FROM", split_from)
        try:
            outcomes.append(load_text(text, source="a.json"))
        except InputError as error:
            outcomes.append(str(error))
    return outcomes[0], outcomes[1]


@pytest.mark.parametrize(
    "layout", [{}, {"indent": 2}, {"separators": (",", ":")}]
)
def test_lists_of_one_template_differ_in_identifiers_only(
    layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, plain = both(
        text_of([slice_of(node) for node in range(SLICES)], **layout),
        monkeypatch,
    )
    assert isinstance(quick, Cluster)
    assert quick == plain
    *_, third, fourth = [
        resource_slice.spec.devices for resource_slice in quick.slices
    ]
    assert isinstance(third, TemplateDevices)
    assert isinstance(fourth, TemplateDevices)
    assert third.template is fourth.template
    assert third.template.open == {"uuid", "parent"}
    assert fourth[2].attributes == {
        "uuid": uuid(3, 2),
        "model": "H100",
        "parent": uuid(3, 0),
    }
    assert third[1].capacity is fourth[1].capacity


def test_counter_sets_are_recognised_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [slice_of(node) for node in range(SLICES)]
    for item in items:
        del item["spec"]["devices"]
        item["spec"]["sharedCounters"] = [
            {"name": "all", "counters": {"memory": {"value": "240Gi"}}}
        ]
    quick, plain = both(text_of(items), monkeypatch)
    assert isinstance(quick, Cluster)
    assert quick == plain
    assert (
        quick.slices[2].spec.shared_counters
        is quick.slices[3].spec.shared_counters
    )


def test_devices_and_counter_sets_that_are_written_alike_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [slice_of(node) for node in range(2 * SLICES)]
    for node, item in enumerate(items):
        del item["spec"]["devices"]
        key = "devices" if node < SLICES else "sharedCounters"
        item["spec"][key] = [{"name": "a"}]
    quick, plain = both(text_of(items), monkeypatch)
    assert isinstance(quick, Cluster)
    assert isinstance(plain, Cluster)
    assert quick == plain
    assert str(quick.slices) == str(plain.slices)


LONG = "x" * 40

CHANGES = {
    "nothing": ("", ""),
    "an unknown field of a device": (
        '"name": "gpu-2"',
        '"name": "gpu-2", "colour": "red"',
    ),
    "an unknown field of the slice": ('"driver"', '"colour": "red", "driver"'),
    "a key twice in a device": (
        '"name": "gpu-2"',
        '"name": "gpu-2", "name": "gpu-2"',
    ),
    "the list twice": ('"driver"', '"devices": [], "driver"'),
    "a wrong type": ('"name": "gpu-2"', '"name": 2'),
    "a line break in an identifier": (
        "GPU-00000003-0002",
        "GPU-00000003\n0002",
    ),
    "an escaped identifier": ("GPU-00000003-0002", "GPU-00000003\\n0002"),
    "an identifier that is not ASCII": ("GPU-00000003-0002", "GPU-00000003-é"),
    "a character that stands for an identifier": (
        "GPU-00000003-0002",
        "GPU-00000003-\x7f1",
    ),
    "a missing bracket": ('"driver"', '"driver" ]'),
    "no value": ('"80Gi"', ""),
    "another list of that name": (
        '"metadata": {',
        '"metadata": {"devices": [],',
    ),
    "a key that ends with that name": (
        '"metadata": {',
        '"metadata": {"labels": {"my\\"devices": "[]"},',
    ),
    "a long text elsewhere": (
        '"metadata": {',
        f'"metadata": {{"annotations": {{"string": "{LONG}"}},',
    ),
    "a list behind it": (
        '"driver"',
        '"skipNodeOperations": ["NodePrepareResources"], "driver"',
    ),
    "no devices": ('"devices": [', '"devices": [], "gone": ['),
    "devices that are none": ('"devices": [', '"devices": ["a", '),
    "no driver": ('"driver": "d",', ""),
    "another version": ("resource.k8s.io/v1", "resource.k8s.io/v1beta1"),
    "an old version": ("resource.k8s.io/v1", "resource.k8s.io/v1alpha1"),
    "another kind": ('"ResourceSlice"', '"Something"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_unusual_is_read_as_without_templates(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = CHANGES[change]
    before, after = text_of([slice_of(node) for node in range(SLICES)]).rsplit(
        '{"apiVersion"', 1
    )
    text = (
        before
        + '{"apiVersion"'
        + (after.replace(old, new, 1) if old else after)
    )
    quick, plain = both(text, monkeypatch)
    assert quick == plain
    assert str(quick) == str(plain)
    if isinstance(quick, Cluster) and isinstance(plain, Cluster):
        assert quick.findings == plain.findings
