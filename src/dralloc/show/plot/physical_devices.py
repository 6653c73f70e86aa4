"""What a device map has boxes for: counter sets that partitions are cut from, and devices that stand alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.problem import (
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)

__all__ = ["MapRow", "PhysicalDevice", "rows"]

_NUMBERED: Final = re.compile(r"(.*?)(\d+)")
_SET_ENDING: Final = re.compile(r"[-_.]?counters?([-_.]?set)?$")


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """A box of the map.

    Parameters
    ----------
    title
        Its name: the counter set's without its ending, or the device's.
    driver
        Who publishes it.
    devices
        Indices of the devices in it: the partitions of a counter set, or one device.
    counters
        Indices of the counters of the set; none if the device stands alone.
    tracks
        Indices of those counters that give a partition its place, in order, e.g. ``memory-slice-0`` to
        ``memory-slice-7``: the longest row of counters whose names differ in a number at the end. Empty if there is
        none.
    shareable
        Whether it is one device that allows multiple allocations.
    """

    title: str
    driver: str
    devices: tuple[DeviceIndex, ...]
    counters: tuple[CounterIndex, ...] = ()
    tracks: tuple[CounterIndex, ...] = ()
    shareable: bool = False


@dataclass(frozen=True, slots=True)
class MapRow:
    """The units that the same nodes reach: mostly those of one node."""

    name: str
    nodes: tuple[NodeIndex, ...]
    units: tuple[PhysicalDevice, ...]


def rows(problem: Problem) -> tuple[MapRow, ...]:
    """Return all rows, in the order of the nodes; units that several nodes reach come behind those of single nodes."""
    reach: dict[DeviceIndex, list[NodeIndex]] = defaultdict(list)
    for node_index, node in numbered(problem.nodes):
        for device in node.devices():
            if problem.on_node(device, node_index):
                reach[device].append(node_index)
    by_nodes: dict[tuple[NodeIndex, ...], list[PhysicalDevice]] = defaultdict(
        list
    )
    for unit in _units(problem, reach):
        reaching = {node for device in unit.devices for node in reach[device]}
        by_nodes[tuple(sorted(reaching))].append(unit)
    ordered = sorted(by_nodes, key=lambda nodes: (len(nodes) > 1, nodes))
    return tuple(
        MapRow(_name(problem, nodes), nodes, tuple(by_nodes[nodes]))
        for nodes in ordered
    )


def _name(problem: Problem, nodes: Sequence[NodeIndex]) -> str:
    if len(nodes) == 1:
        return problem.nodes[nodes[0]].name
    return f"reached by {'all' if len(nodes) == len(problem.nodes) else ''} {len(nodes)} nodes".replace(
        "  ", " "
    )


def _units(
    problem: Problem, reached: Iterable[DeviceIndex]
) -> Iterator[PhysicalDevice]:
    by_unit: dict[tuple[str, str, str] | int, list[DeviceIndex]] = defaultdict(
        list
    )
    for index in reached:
        device = problem.devices[index]
        sets = sorted(
            {
                problem.counters[counter_index].id[:3]
                for counter_index, _ in device.consumes
            }
        )
        # A device that consumes of several sets lies in each. The versions of a lone one share a slot, and so a box.
        for unit_key in sets or (device.slot,):
            by_unit[unit_key].append(index)
    counters: dict[tuple[str, str, str], list[CounterIndex]] = defaultdict(list)
    for counter_index, counter in numbered(problem.counters):
        counters[counter.id[:3]].append(counter_index)
    for key, devices in by_unit.items():
        if isinstance(key, int):
            lone = problem.devices[devices[0]]
            yield PhysicalDevice(
                lone.id.device,
                lone.id.driver,
                (devices[0],),
                shareable=lone.shareable,
            )
        else:
            yield _partitioned(problem, key, devices, counters[key])


def _partitioned(
    problem: Problem,
    key: tuple[str, str, str],
    devices: list[DeviceIndex],
    counters: list[CounterIndex],
) -> PhysicalDevice:
    rows_of_counters: dict[str, dict[int, CounterIndex]] = defaultdict(dict)
    for index in counters:
        match = _NUMBERED.fullmatch(problem.counters[index].id.counter)
        if match and problem.counters[index].total:
            rows_of_counters[match[1]][int(match[2])] = index
    longest = max(rows_of_counters.values(), key=len, default={})
    tracks = (
        tuple(longest[suffix] for suffix in sorted(longest))
        if len(longest) > 1
        else ()
    )
    title = _SET_ENDING.sub("", key[2]) or key[2]
    return PhysicalDevice(
        title, key[0], tuple(devices), tuple(counters), tracks
    )
