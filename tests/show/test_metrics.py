"""Figures of answers: what is in use, of how much."""

from __future__ import annotations

import dralloc
from wire import (
    Json,
    claim,
    cluster,
    device,
    device_class,
    node,
    request,
    resource_slice,
)


def gpu(memory: str, *, shared: bool) -> Json:
    return device(
        "gpu-0",
        allowMultipleAllocations=shared,
        capacity={"memory": {"value": memory}},
    )


def updated(old: Json, new: Json, asked: str) -> dict[str, tuple[str, ...]]:
    """The use by kind, before and after, where node-0 still sees the old version of a device, node-1 the new."""
    source = cluster(
        node(),
        node("node-1"),
        device_class(),
        resource_slice([old]),
        resource_slice([new], name="new", generation=2, nodeName="node-1"),
        claim("a", request(capacity={"requests": {"memory": asked}})),
    )
    plan = dralloc.allocate(source)
    assert plan.metrics.placed == 1
    return {
        row.kind: (f"{row.share_before:.0%}", f"{row.share:.0%}")
        for row in plan.metrics.utilisation
    }


def test_a_capacity_is_as_large_as_the_newest_version_says() -> None:
    old, new = gpu("10Gi", shared=True), gpu("20Gi", shared=True)
    assert updated(old, new, "15Gi") == {"capacity": ("0%", "75%")}


def test_a_device_that_its_newest_version_shares_may_be_held_as_a_whole() -> (
    None
):
    old, new = gpu("10Gi", shared=False), gpu("20Gi", shared=True)
    assert updated(old, new, "5Gi") == {"capacity": ("0%", "100%")}


def test_a_device_that_its_newest_version_does_not_share_counts_once() -> None:
    old, new = gpu("10Gi", shared=True), gpu("20Gi", shared=False)
    assert updated(old, new, "5Gi") == {"devices": ("0%", "100%")}


def test_a_shared_device_without_capacity_is_in_use() -> None:
    source = cluster(
        node(),
        device_class(),
        resource_slice([device("gpu-0", allowMultipleAllocations=True)]),
        claim("a", request()),
        claim("b", request()),
    )
    plan = dralloc.allocate(source)
    [row] = plan.metrics.utilisation
    assert (plan.metrics.placed, plan.metrics.devices) == (2, 1)
    assert (row.kind, row.share_before, row.share) == ("devices", 0, 1)
