"""Another mixture with every seed: hardware, rules and habits of pods are drawn anew, from all that dralloc knows.

`mixed` is one kind of cluster that is always measured; this one is for what nobody has thought of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.objects import DRIVER, Json, device, node, resource_slice
from benchmarks.registry import WORKLOADS, register
from benchmarks.variety.habits import Habits, habits_of
from benchmarks.variety.hardware import FABRIC, HARDWARE, classes
from benchmarks.variety.population import (
    RACK,
    TAINT,
    ZONE,
    ZONES,
    Arrivals,
    running,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents

__all__ = ["varied"]

_TAINTED: Final = 0.06
_CORDONED: Final = 0.02
_UNHEALTHY: Final = 0.01
"""The parts of nodes that are tainted or cordoned, and of devices with a taint."""

_LANES: Final = 4
"""Devices that a rack has for all its nodes."""


@register(
    "varied",
    "other hardware, rules and habits of pods with every seed: for what nobody has thought of",
    size=100,
)
def _varied(size: int, random: Random) -> Iterator[Json]:
    """A cluster of so many nodes."""
    habits = habits_of(list(HARDWARE), random)
    allowed = {"resource.kubernetes.io/admin-access": "true"}
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": allowed},
    }
    yield from classes()
    free: Counter[str] = Counter()
    for number in range(size):
        [kind] = random.choices(habits.hardware, habits.shares)
        yield from _server(number, kind, habits, random)
        units = HARDWARE[kind].units
        free[kind] += units - round(units * habits.used)
    for rack in range(-(-size // habits.rack_nodes)):
        yield _fabric(rack)
    yield from Arrivals(habits, free, random).objects()


def _server(
    number: int, kind: str, habits: Habits, random: Random
) -> Iterator[Json]:
    """A node with its devices, and who runs there."""
    name = f"node-{number:04d}"
    yield _node(name, number, habits, random)
    equipment = HARDWARE[kind].equipment(name, random)
    for element in equipment.devices:
        if random.random() < _UNHEALTHY:
            element["taints"] = [{"key": "unhealthy", "effect": "NoSchedule"}]
    slices = 1 + bool(equipment.counter_sets)
    if equipment.counter_sets:
        yield resource_slice(
            f"{name}-counters",
            name,
            slices=slices,
            sharedCounters=list(equipment.counter_sets),
        )
    yield resource_slice(
        f"{name}-devices", name, equipment.devices, slices=slices
    )
    for index, device_name in enumerate(equipment.whole):
        if random.random() < habits.used:
            held = {
                "request": "held",
                "driver": DRIVER,
                "pool": name,
                "device": device_name,
            }
            yield from running(
                f"running-{number:04d}-{index:02d}", name, held, habits, random
            )


def _node(name: str, number: int, habits: Habits, random: Random) -> Json:
    server = node(name)
    rack = number // habits.rack_nodes
    server["metadata"]["labels"] |= {
        RACK: f"rack-{rack:03d}",
        ZONE: ZONES[rack % len(ZONES)],
    }
    cpus, gibibytes = random.choice((48, 64, 96, 128)), random.choice((4, 6, 8))
    if habits.counts_cpu:
        server["status"] = {
            "allocatable": {
                "cpu": str(cpus),
                "memory": f"{cpus * gibibytes}Gi",
                "pods": "110",
            }
        }
    spec: Json = {}
    if random.random() < _TAINTED:
        spec["taints"] = [TAINT]
    if random.random() < _CORDONED:
        spec["unschedulable"] = True
    return {**server, "spec": spec}


def _fabric(rack: int) -> Json:
    """The devices of a rack, which all of its nodes reach."""
    name = f"fabric-{rack:03d}"
    lanes = [device(f"lane-{lane}", {"type": FABRIC}) for lane in range(_LANES)]
    element = resource_slice(name, "", lanes, pool=name)
    del element["spec"]["nodeName"]
    in_rack = {
        "key": RACK,
        "operator": "In",
        "values": [f"rack-{rack:03d}"],
    }
    term = {"matchExpressions": [in_rack]}
    element["spec"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    return element


def varied(nodes: int = 100, seed: int = 0) -> Cluster:
    """A varied cluster, ready to be compiled; equal seeds give equal clusters, also on the command line."""
    return load_documents(WORKLOADS["varied"].objects(nodes, seed))
