"""What no single slice shows: pools that do not fit together."""

from __future__ import annotations

import pytest

from dralloc.lint.validate import Level, validate
from wire import Json, cluster, consumes, counters, device, resource_slice


def found(*objects: Json) -> list[tuple[str, str, str]]:
    """Rule, object and path of everything that is not an error; there are no errors."""
    violations = validate(cluster(*objects))
    assert all(violation.level is not Level.ERROR for violation in violations)
    return [
        (violation.rule, violation.subject.partition(" ")[2], violation.path)
        for violation in violations
    ]


def slices(*device_lists: list[Json], generation: int = 1) -> list[Json]:
    """The slices of one pool, with names a, b, ..."""
    return [
        resource_slice(
            devices, name=name, count=len(device_lists), generation=generation
        )
        for name, devices in zip("abcdef", device_lists, strict=False)
    ]


SETS = resource_slice(
    name="sets", count=2, sharedCounters=[counters("set-0", memory="40Gi")]
)


def partitions(
    *amounts: str,
    name: str = "parts",
    counter_set: str = "set-0",
    counter: str = "memory",
) -> Json:
    """A slice of devices that consume so much."""
    devices = [
        device(
            f"part-{index}",
            consumesCounters=consumes(counter_set, **{counter: amount}),
        )
        for index, amount in enumerate(amounts)
    ]
    return resource_slice(devices, name=name, count=2)


def test_whole_pools_are_in_order() -> None:
    assert found(*slices([device("x")], [device("y")])) == []
    assert found(SETS, partitions("20Gi", "40Gi")) == []


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_and_too_many_slices(count: int) -> None:
    pool = [
        resource_slice([device(name)], name=name, count=count) for name in "ab"
    ]
    assert found(*pool) == [
        ("pool-slices", "a", "spec.pool.resourceSliceCount")
    ]


def test_slices_that_disagree_on_their_number() -> None:
    pool = [
        resource_slice([device(name)], name=name, count=count)
        for name, count in (("a", 2), ("b", 3))
    ]
    assert found(*pool) == [
        ("pool-counts", "b", "spec.pool.resourceSliceCount")
    ]


def test_older_slices_are_remarked_and_count_for_nothing() -> None:
    old = resource_slice([device("x")], name="old", generation=1)
    new = resource_slice([device("x")], name="new", generation=2)
    assert found(old, new) == [("pool-older", "old", "spec.pool.generation")]


def test_a_device_in_two_slices() -> None:
    assert found(*slices([device("x")], [device("y"), device("x")])) == [
        ("pool-device-unique", "b", "spec.devices[1].name")
    ]


def test_a_counter_set_in_two_slices() -> None:
    pool = [
        resource_slice(
            name=name,
            count=3,
            sharedCounters=[counters("set-0", memory="40Gi")],
        )
        for name in "ab"
    ]
    devices = resource_slice(
        [device("x", consumesCounters=consumes("set-0", memory="1Gi"))],
        name="c",
        count=3,
    )
    assert found(*pool, devices) == [
        ("pool-set-unique", "b", "spec.sharedCounters[0].name")
    ]


def test_counter_sets_and_counters_that_are_not_there() -> None:
    unknown = partitions("1Gi", "1Gi", counter_set="set-1")
    assert found(SETS, unknown) == [
        ("pool-set-unused", "sets", "spec.sharedCounters[0]"),
        ("pool-set", "parts", "spec.devices[0].consumesCounters[0].counterSet"),
    ]
    assert found(SETS, partitions("1", counter="cores")) == [
        (
            "pool-counter",
            "parts",
            "spec.devices[0].consumesCounters[0].counters[cores]",
        )
    ]


def test_the_same_name_in_another_pool_does_not_help() -> None:
    other = resource_slice(
        name="sets",
        pool="pool-1",
        sharedCounters=[counters("set-0", memory="40Gi")],
    )
    devices = resource_slice(
        [device("x", consumesCounters=consumes("set-0", memory="1Gi"))]
    )
    assert (
        "pool-set",
        "slice-0",
        "spec.devices[0].consumesCounters[0].counterSet",
    ) in found(other, devices)


def test_more_than_a_counter_has() -> None:
    assert found(SETS, partitions("40Gi", "41Gi")) == [
        (
            "pool-counter-size",
            "parts",
            "spec.devices[1].consumesCounters[0].counters[memory]",
        )
    ]
