"""In which order the devices of a node are offered to a demand: those first that leave most to others."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from typing import Final

import numpy as np

from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.policies.table import PARTS

__all__ = ["DeviceOrder"]

_AS_PUBLISHED: Final = 0.2
"""How often devices stay in the order in which they are published: another order finds other answers."""


class DeviceOrder:
    """Orders devices; first fit then takes the first ones that can be had.

    Devices come first that draw on what is least free: a partition of a GPU that is nearly full, a shared device with
    little left. Of equal ones those come first that exclude the fewest others, since they draw on counters that few
    devices need.

    Parameters
    ----------
    problem, ledger
        The devices, and what is left of their counters and capacities.
    random
        Draws when the order is another.
    """

    def __init__(
        self, problem: Problem, ledger: Ledger, random: np.random.Generator
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._random = random
        set_of = [counter.id[:-1] for counter in problem.counters]
        self._counters_of = grouped(
            (counter_set, counter) for counter, counter_set in enumerate(set_of)
        )
        users = Tally(
            counter for device in problem.devices for counter, _ in device.consumes
        )
        self._sets_of = []
        self._rivals = []
        for device in problem.devices:
            counters = [counter for counter, _ in device.consumes]
            counter_sets = dict.fromkeys([set_of[counter] for counter in counters])
            self._sets_of.append(tuple(counter_sets))
            self._rivals.append(sum([users[counter] for counter in counters]))

    def sorted(self, devices: Sequence[int]) -> Sequence[int]:
        """Return the devices, given as published, in the order in which a demand is to try them."""
        if len(devices) == 1 or self._random.random() < _AS_PUBLISHED:
            return devices
        room_of = {device: self._room(device) for device in devices}
        return sorted(
            devices, key=lambda device: (room_of[device], self._rivals[device])
        )

    def _room(self, device: int) -> int:
        """Return how much is left of what the device draws on: the parts of each counter and capacity, added up."""
        free, counters = self._ledger.free, self._problem.counters
        room = 0
        for counter_set in self._sets_of[device]:
            for counter in self._counters_of[counter_set]:
                room += free[counter] * PARTS // max(1, counters[counter].total)
        published = self._problem.devices[device]
        if published.shareable:
            consumed = self._ledger.consumed.get(published.slot, {})
            for name, capacity in published.capacity.items():
                in_use = consumed.get(name, 0)
                room -= in_use * PARTS // max(1, capacity.total)
        return room
