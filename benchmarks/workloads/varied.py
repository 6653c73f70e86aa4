"""Another mixture with every seed: hardware, rules and habits of pods are drawn anew, from all that dralloc knows.

`mixed` is one kind of cluster that is always measured; this one is for what nobody has thought of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.objects import DRIVER, Json, node, resource_slice
from benchmarks.registry import WORKLOADS, register
from benchmarks.variety.habits import Habits, habits_of
from benchmarks.variety.hardware import HARDWARE
from benchmarks.variety.pools import BLOCK, HOSTS, block, fabric, licences
from benchmarks.variety.population import (
    HOST,
    PLUGIN,
    RACK,
    TAINT,
    ZONE,
    ZONES,
    Arrivals,
    classes,
    running,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents

__all__ = ["varied"]

_TAINTED: Final = 0.06
_CORDONED: Final = 0.02
_UNHEALTHY: Final = 0.01
"""The parts of nodes that are tainted or cordoned, and of devices with a taint."""

_PLUGGED: Final = 0.3
"""The part of nodes with a device plugin, where pods want what it offers."""


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
    for node_index in range(size):
        if random.random() < habits.bare:
            yield _node(_host(node_index), node_index, habits, random)
            continue
        [kind] = random.choices(habits.hardware, habits.shares)
        yield from _server(node_index, kind, habits, random)
        units = HARDWARE[kind].units
        free[kind] += units - round(units * habits.used)
    for rack in range(-(-size // habits.rack_nodes)):
        yield fabric(_rack(rack), RACK)
    yield licences(size)
    for start in range(0, size - HOSTS + 1, HOSTS):
        if random.random() < habits.in_blocks:
            members = range(start, start + HOSTS)
            yield from block(
                f"block-{start // HOSTS:03d}", list(map(_host, members)), HOST
            )
            free[BLOCK] += HOSTS
    nodes = list(map(_host, range(size)))
    yield from Arrivals(habits, free, nodes, random).objects()


def _host(node_index: int) -> str:
    return f"node-{node_index:04d}"


def _rack(rack: int) -> str:
    return f"rack-{rack:03d}"


def _server(
    node_index: int, kind: str, habits: Habits, random: Random
) -> Iterator[Json]:
    """A node with its devices, and who runs there."""
    name = _host(node_index)
    yield _node(name, node_index, habits, random)
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
                f"running-{node_index:04d}-{index:02d}",
                name,
                held,
                habits,
                random,
            )


def _node(name: str, node_index: int, habits: Habits, random: Random) -> Json:
    server = node(name)
    rack = node_index // habits.rack_nodes
    server["metadata"]["labels"] |= {
        RACK: _rack(rack),
        ZONE: ZONES[rack % len(ZONES)],
    }
    cpus, gibibytes = random.choice((48, 64, 96, 128)), random.choice((4, 6, 8))
    allocatable = {}
    if habits.counts_cpu:
        allocatable = {
            "cpu": str(cpus),
            "memory": f"{cpus * gibibytes}Gi",
            "pods": "110",
        }
    if habits.use_plugins and random.random() < _PLUGGED:
        allocatable[PLUGIN] = str(random.randint(1, 4))
    if allocatable:
        server["status"] = {"allocatable": allocatable}
    spec: Json = {}
    if random.random() < _TAINTED:
        spec["taints"] = [TAINT]
    if random.random() < _CORDONED:
        spec["unschedulable"] = True
    return {**server, "spec": spec}


def varied(nodes: int = 100, seed: int = 0) -> Cluster:
    """A varied cluster, ready to be compiled; equal seeds give equal clusters, also on the command line."""
    return load_documents(WORKLOADS["varied"].objects(nodes, seed))
