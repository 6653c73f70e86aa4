"""The fragmentation measure of Weng et al. (USENIX ATC 2023), in the terms of devices and claims.

Source: Q. Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", section 3. For a node and a kind of task, all free GPU capacity counts as fragmented if the task cannot run on
the node, and otherwise the free capacity of those GPUs that cannot serve it; the measure is the mean over the mix of
tasks. Here a GPU is a unit of a measure (a counter set, or a device), and a task is a claim, each as if it came alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from dralloc.explain.plausible import Plausible
from dralloc.explain.scene import NO_LIFT, Lift
from dralloc.problem import Demand
from dralloc.solvers.first_fit import first_fit
from dralloc.stranded.ground import Ground, alternatives_of
from dralloc.stranded.measures import Measure, Unit

__all__ = ["Fragmentation"]


class _Served(NamedTuple):
    """What can serve a claim as things are: devices by slot, and the counters that they draw on."""

    slots: frozenset[int]
    counters: frozenset[int]

    def by(self, unit: Unit) -> bool:
        """Whether some of it belongs to the unit."""
        return unit.slot in self.slots or not self.counters.isdisjoint(unit.counters)


class Fragmentation:
    """Adds up what is fragmented."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._known: dict[tuple[int, Hashable], bool] = {}

    def times_claims(self, measure: Measure) -> int:
        """The fragmented amount of a measure, in nanos, times the number of claims in the mix: an exact integer."""
        units = self._ground.measures.units[measure]
        return sum(
            kind.count * unit.free
            for kind, served in zip(self._ground.mix.kinds, self._served, strict=True)
            for unit in units
            if not served.by(unit)
        )

    @cached_property
    def _served(self) -> list[_Served]:
        return [self._of(number, demand) for number, demand in enumerate(self._ground.problem.demands)]

    def _of(self, number: int, demand: Demand) -> _Served:
        devices = set(self._serving(number, demand))
        slots = frozenset(self._ground.problem.devices[device].slot for device in devices)
        return _Served(slots, frozenset(counter for device in devices for counter in self._ground.draws(device)))

    def _serving(self, number: int, demand: Demand) -> Iterator[int]:
        """Devices that could serve some request, on nodes where the claim fits."""
        plausible = Plausible(self._ground.scene, demand, NO_LIFT)
        alternatives = [each for each in alternatives_of(demand) if not each.admin]
        for node, devices in self._ground.reached.items():
            serving = [
                device for device in devices if any(plausible.serves(each, device, node) for each in alternatives)
            ]
            if serving and self._fits(number, demand, node):
                yield from serving

    def _fits(self, number: int, demand: Demand, node: int) -> bool:
        if node not in self._ground.schedulable:
            return False
        part = self._ground.scene.part([node], [replace(demand, nodes=None)], Lift(lenient=True))
        key = number, part.signature()
        if key not in self._known:
            self._known[key] = bool(first_fit(part.problem).placements)
        return self._known[key]
