"""The nodes of a mixed cluster, and the pods that run there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from benchmarks.mixture.hardware import HARDWARE_KINDS, HardwareKind
from benchmarks.mixture.recipe import Recipe
from benchmarks.objects import Json, held_claim, pod

__all__ = [
    "PRIORITIES",
    "RACK",
    "TAINT",
    "ZONE",
    "ZONES",
    "Servers",
    "with_requests",
]

RACK: Final = "example.com/rack"
RACK_NODES: Final = 10
"""Label of a rack, and how many nodes it has."""

ZONE: Final = "topology.kubernetes.io/zone"
ZONES: Final = ("a", "b", "c")

TAINT: Final[Json] = {
    "key": "example.com/team",
    "value": "vision",
    "effect": "NoSchedule",
}
DEVICE_TAINT: Final[Json] = {
    "key": "example.com/unhealthy",
    "value": "xid-79",
    "effect": "NoSchedule",
}

TAINTED: Final = 0.08
TAINTED_DEVICES: Final = 0.02
CORDONED: Final = 0.03
"""How many nodes and devices have a taint, and how many nodes are cordoned."""

PRIORITIES: Final = {0: 6, 100: 3, 1000: 1}
"""And how often pods have them."""


@dataclass
class Servers:
    """The nodes, and what stays free of them.

    Parameters
    ----------
    recipe
        What they are made of.
    free
        By kind of hardware the units that no running pod holds, after the objects were made.
    """

    recipe: Recipe
    free: Counter[str] = field(default_factory=Counter)

    def objects(self) -> Iterator[Json]:
        """Nodes, slices, and running pods with their claims."""
        recipe = self.recipe
        kinds = {
            name: kind
            for name, kind in HARDWARE_KINDS.items()
            if recipe.has(name)
        }
        shares = [kind.share for kind in kinds.values()]
        drawing, devices, usage, labels = map(
            recipe.source, ("kinds", "devices", "usage", "labels")
        )
        for node_index in range(recipe.nodes):
            name = f"node-{node_index:05d}"
            [hardware] = drawing.choices(list(kinds), shares)
            kind = kinds[hardware]
            for element in kind.objects(name, devices):
                yield self._marked(element, node_index, kind, labels)
            held = 0
            if recipe.has("usage"):
                holdings, held = kind.holdings(name, usage)
                for index, holding in enumerate(holdings):
                    held_by = f"running-{node_index:05d}-{index:02d}"
                    yield held_claim(
                        held_by, holding.spec, name, holding.results
                    )
                    yield self._running(
                        pod(held_by, claims=[held_by]), name, usage
                    )
            self.free[hardware] += kind.units - held
            yield from self._others(name, kind, node_index)

    def _marked(
        self, element: Json, node_index: int, kind: HardwareKind, random: Random
    ) -> Json:
        """A node with its labels, taints and amounts; a slice with taints of its devices."""
        recipe = self.recipe
        if element["kind"] != "Node":
            tainted = [
                device
                for device in element["spec"].get("devices", ())
                if random.random() < TAINTED_DEVICES
            ]
            if recipe.has("taints"):
                for device in tainted:
                    device["taints"] = [DEVICE_TAINT]
            return element
        rack = node_index // RACK_NODES
        element["metadata"]["labels"] |= {
            RACK: f"rack-{rack:03d}",
            ZONE: ZONES[rack % len(ZONES)],
        }
        spec: Json = {}
        tainted_node, cordoned = (
            random.random() < TAINTED,
            random.random() < CORDONED,
        )
        if tainted_node and recipe.has("taints"):
            spec["taints"] = [TAINT]
        if cordoned and recipe.has("cordons"):
            spec["unschedulable"] = True
        if recipe.has("cpu"):
            amounts = {"cpu": str(kind.cpus), "memory": f"{kind.gibibytes}Gi"}
            element["status"] = {
                "allocatable": {
                    **amounts,
                    "ephemeral-storage": "1Ti",
                    "pods": "110",
                }
            }
        return {**element, "spec": spec}

    def _others(
        self, node_name: str, kind: HardwareKind, node_index: int
    ) -> Iterator[Json]:
        """Pods without devices that use CPU and memory; hardly two nodes have as much left."""
        if not self.recipe.has("cpu"):
            return
        random = self.recipe.source(f"others-{node_index}")
        count = random.randint(2, 8)
        share = random.uniform(0.1, 0.5) / count
        for index in range(count):
            other = pod(f"other-{node_index:05d}-{index}")
            cpu = int(kind.cpus * 1000 * share * random.uniform(0.5, 1.5))
            mebibytes = int(
                kind.gibibytes * 1024 * share * random.uniform(0.5, 1.5)
            )
            yield self._bound(
                with_requests(other, f"{cpu}m", f"{mebibytes}Mi"),
                node_name,
                random,
            )

    def _running(self, running: Json, node_name: str, random: Random) -> Json:
        cpus, mebibytes = random.randint(1, 4), random.randint(900, 12000)
        if self.recipe.has("cpu"):
            with_requests(running, str(cpus), f"{mebibytes}Mi")
        return self._bound(running, node_name, random)

    def _bound(self, running: Json, node_name: str, random: Random) -> Json:
        running["spec"]["nodeName"] = node_name
        [priority] = random.choices(list(PRIORITIES), list(PRIORITIES.values()))
        if self.recipe.has("priorities"):
            running["spec"]["priority"] = priority
        return running


def with_requests(waiting: Json, cpu: str, memory: str) -> Json:
    """The same pod, with requests of its container."""
    waiting["spec"]["containers"] = [
        {
            "name": "main",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
        }
    ]
    return waiting
