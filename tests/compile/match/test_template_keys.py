"""Devices of one template have one key at each place, unless somebody reads in what they differ."""

from typing import Any

import pytest

from dralloc.compile.compiler import compile_cluster
from dralloc.objects import load as loading
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_text
from dralloc.problem import AlternativeIndex, indices
from objects.load.test_slice_texts import SLICES, slice_of, text_of, uuid

WHERE = "device.attributes['d']"
EXPRESSIONS = (
    f"{WHERE}.model == 'H100'",
    f"{WHERE}.uuid == '{uuid(3, 1)}'",
    f"{WHERE}.parent.endsWith('3') && {WHERE}.model == 'H100'",
    f"{WHERE}.serial == 'x'",
    f"'uuid' in {WHERE}",
    "device.capacity['d'].memory.compareTo(quantity('80Gi')) == 0",
)


def objects(expression: str) -> list[dict[str, Any]]:
    request = {
        "name": "r",
        "exactly": {
            "deviceClassName": "c",
            "selectors": [{"cel": {"expression": expression}}],
        },
    }
    resource = {"apiVersion": "resource.k8s.io/v1"}
    return [
        {
            **resource,
            "kind": "DeviceClass",
            "metadata": {"name": "c"},
            "spec": {},
        },
        {
            **resource,
            "kind": "ResourceClaim",
            "metadata": {"name": "a"},
            "spec": {"devices": {"requests": [request]}},
        },
        *(slice_without_counters(index) for index in range(SLICES)),
    ]


def slice_without_counters(slice_index: int) -> dict[str, Any]:
    slice_object = slice_of(slice_index)
    for device in slice_object["spec"]["devices"]:
        del device["consumesCounters"]
    return slice_object


def accepted(cluster: Cluster) -> tuple[list[object], int]:
    """What the selector says of each device, and how many keys there are."""
    problem = compile_cluster(cluster).problem
    devices = indices(problem.devices)
    keys = {problem.eligibility.device_key(device) for device in devices}
    return [
        str(problem.eligibility.selects(AlternativeIndex(0), device))
        for device in devices
    ], len(keys)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_selectors_say_the_same_of_devices_of_a_template(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(objects(expression))
    plain = accepted(load_text(text))
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    assert accepted(load_text(text)) == plain
    assert len(plain[0]) == 3 * SLICES


def test_what_nobody_reads_makes_no_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    read, unread = (
        accepted(load_text(text_of(objects(EXPRESSIONS[index]))))[1]
        for index in (1, 0)
    )
    assert (read, unread) == (3 * SLICES, 1)
