"""Slots: numbers of devices. The versions of one device in two generations of a pool have one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, filterfalse

from dralloc.names import DeviceID, PoolID

__all__ = ["Slots"]


class Slots(Mapping[DeviceID, int]):
    """The slot of each device, found by pool: a million names are looked up seldom."""

    def __init__(self) -> None:
        self._by_name: dict[PoolID, dict[str, int]] = {}
        self._count = 0

    def enter(self, pool: PoolID, names: Sequence[str]) -> Sequence[int]:
        """The slots of some devices of a pool, new ones for those that are not known."""
        known = self._by_name.setdefault(pool, {})
        news = dict.fromkeys(filterfalse(known.__contains__, names))
        known.update(zip(news, count(self._count)))
        self._count += len(news)
        return list(map(known.__getitem__, names))

    def __getitem__(self, device: DeviceID) -> int:
        return self._by_name[device.pool_id][device.device]

    def __iter__(self) -> Iterator[DeviceID]:
        return (DeviceID(*pool, name) for pool, names in self._by_name.items() for name in names)

    def __len__(self) -> int:
        return self._count
