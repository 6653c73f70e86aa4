"""Slots: one for each name of a device in a pool."""

from __future__ import annotations

from dralloc.compile.inventory.catalog import Slots
from dralloc.objects.names import DeviceID, PoolID

POOL, OTHER = PoolID("d", "pool"), PoolID("d", "other")


def test_what_is_entered_again_keeps_its_slot() -> None:
    slots = Slots()
    assert slots.enter(POOL, ["a", "b"]) == [0, 1]
    assert slots.enter(OTHER, ["a"]) == [2]
    assert slots.enter(POOL, ["c", "b", "d", "c"]) == [3, 1, 4, 3]
    assert dict(slots) == {
        DeviceID(*POOL, "a"): 0,
        DeviceID(*POOL, "b"): 1,
        DeviceID(*POOL, "c"): 3,
        DeviceID(*POOL, "d"): 4,
        DeviceID(*OTHER, "a"): 2,
    }


def test_what_is_not_published_has_none() -> None:
    slots = Slots()
    slots.enter(POOL, ["a"])
    assert [
        slots.get(DeviceID(*pool, name))
        for pool, name in ((POOL, "b"), (OTHER, "a"))
    ] == [None, None]
