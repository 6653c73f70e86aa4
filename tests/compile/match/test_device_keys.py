"""Devices have equal keys only if no selector can tell them apart."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.compile.compiler import compile_cluster
from dralloc.problem import AlternativeIndex, DeviceIndex
from wire import claim, cluster, device, device_class, request, resource_slice


def verdicts(expression: str, *attributes: dict[str, Any]) -> list[Any]:
    """What a selector says of devices with these attributes, in wire form."""
    devices = [
        device(f"gpu-{index}") | {"attributes": entries}
        for index, entries in enumerate(attributes)
    ]
    problem = compile_cluster(
        cluster(
            device_class(),
            resource_slice(devices),
            claim("claim", request("gpu", expression)),
        )
    ).problem
    return [
        problem.eligibility.selects(AlternativeIndex(0), device_index)
        for device_index in map(DeviceIndex, range(len(devices)))
    ]


@pytest.mark.parametrize(
    ("number", "truth"),
    [({"int": 1}, {"bool": True}), ({"ints": [1]}, {"bools": [True]})],
    ids=["scalar", "list"],
)
def test_one_is_not_true(number: Any, truth: Any) -> None:
    expression = "device.attributes['gpu.example.com'].x.includes(1)"
    assert verdicts(expression, {"x": number}, {"x": truth}) == [True, False]
    assert verdicts(expression, {"x": truth}, {"x": number}) == [False, True]
