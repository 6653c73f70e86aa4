"""Hardware of varied clusters: what a node has of each kind, and what pods claim of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from benchmarks.objects import (
    DRIVER,
    Json,
    amounts,
    claim_spec,
    consumes,
    device,
    exactly,
    first_available,
)

__all__ = ["HARDWARE", "Equipment", "Hardware", "class_of", "has"]

_NUMA: Final = "resource.kubernetes.io/numaNode"
_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_PARENT: Final = f"{DRIVER}/parent"


class Equipment(NamedTuple):
    """The devices of a node, the counter sets that they draw on, and the names of those that running pods may hold."""

    devices: list[Json]
    counter_sets: Sequence[Json] = ()
    whole: tuple[str, ...] = ()


class Hardware(ABC):
    """A kind of hardware.

    Attributes
    ----------
    type
        The type of its devices; what `class_of` makes a class of.
    units
        About how many units of demand a node has.
    """

    type: str
    units: int

    @abstractmethod
    def equipment(self, node: str, random: Random) -> Equipment:
        """Return what a node has."""

    @abstractmethod
    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        """Return a claim, and how many units it takes; with alternatives as often as ``choose`` says."""


def class_of(device_type: str) -> str:
    """Return the name of the class of a type of devices."""
    return f"{device_type}.example.com"


def has(attribute: str, value: str | int) -> str:
    """Return the expression that is true of devices with this value of an attribute."""
    literal = f"'{value}'" if isinstance(value, str) else value
    return f"device.attributes['{DRIVER}'].{attribute} == {literal}"


class _NumaGpus(Hardware):
    """GPUs of two models on two NUMA nodes, beside network adapters whose bandwidth is shared (KEP-5075)."""

    type = "numa"
    units = 6

    def equipment(self, node: str, random: Random) -> Equipment:
        gpus = random.choice((4, 8))
        devices = [
            device(
                f"gpu-{index}",
                {
                    "type": self.type,
                    "uuid": f"{node}-{index}",
                    "model": random.choice("AB"),
                    _NUMA: 2 * index // gpus,
                    _ROOT: f"pci{index // 2}",
                },
                capacity=amounts(memory=random.choice(("40Gi", "80Gi"))),
            )
            for index in range(gpus)
        ]
        whole = tuple(gpu["name"] for gpu in devices)
        bandwidth = amounts(bandwidth="100")
        bandwidth["bandwidth"]["requestPolicy"] = {
            "default": "10",
            "validRange": {"min": "10", "step": "10", "max": "100"},
        }
        devices += [
            device(
                f"nic-{index}",
                {
                    "type": "nic",
                    _NUMA: 4 * index // gpus,
                    _ROOT: f"pci{index}",
                },
                capacity=bandwidth,
                allowMultipleAllocations=True,
            )
            for index in range(gpus // 2)
        ]
        return Equipment(devices, whole=whole)

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        count = random.choice((1, 1, 1, 2, 2, 4))
        wanted = [has("model", random.choice("AB"))] * (random.random() < 0.3)
        gpus = exactly("gpus", class_of(self.type), *wanted, count=count)
        if random.random() < choose:
            fewer = max(1, count - 1)
            entries = (
                ("wanted", class_of(self.type), wanted, {"count": count}),
                ("fewer", class_of(self.type), (), {"count": fewer}),
            )
            return claim_spec(first_available("gpus", *entries)), count
        if random.random() < 0.4:
            # Four GPUs are never on one PCIe root.
            common = random.choice((_NUMA, _ROOT)) if count < 3 else _NUMA
            nic = exactly(
                "nic",
                class_of("nic"),
                capacity={
                    "requests": {"bandwidth": random.choice(("10", "30", "50"))}
                },
            )
            together = {
                "requests": ["gpus", "nic"],
                "matchAttribute": common,
            }
            return claim_spec(gpus, nic, constraints=[together]), count
        return claim_spec(gpus), count


class _SmallPartitions(Hardware):
    """GPUs in up to four partitions each (KEP-4815), as an A30 with MIG."""

    type = "part"
    units = 12
    sizes: Final = {"1g": 1, "2g": 2, "4g": 4}

    def equipment(self, node: str, random: Random) -> Equipment:
        devices = []
        sets = []
        gpus = random.choice((2, 4))
        for gpu in range(gpus):
            sets.append(
                {"name": f"gpu-{gpu}", "counters": self._counters(0, 4)}
            )
            for profile, size in self.sizes.items():
                for start in range(0, 4, size):
                    attributes = {
                        "type": self.type,
                        "profile": profile,
                        "parent": f"{node}-{gpu}",
                        "size": size,
                    }
                    drawn = consumes(f"gpu-{gpu}", self._counters(start, size))
                    devices.append(
                        device(
                            f"gpu-{gpu}-{profile}-{start}",
                            attributes,
                            consumesCounters=drawn,
                        )
                    )
        halves = tuple(f"gpu-{gpu}-2g-0" for gpu in range(gpus))
        return Equipment(devices, sets, halves)

    def _counters(self, start: int, size: int) -> Json:
        slices = {
            f"slice_{slice_index}": "1"
            for slice_index in range(start, start + size)
        }
        return amounts(memory=f"{6 * size}Gi", **slices)

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        profile = random.choice(("1g", "1g", "2g", "4g"))
        count = random.choice((1, 1, 1, 2, 3))
        name, wanted = class_of(self.type), has("profile", profile)
        if random.random() < choose:
            entries = (
                ("wanted", name, [wanted], {"count": count}),
                ("small", name, [has("profile", "1g")], {"count": count}),
            )
            spec = claim_spec(first_available("parts", *entries))
            return spec, count * self.sizes[profile]
        how = random.choice(("matchAttribute", "distinctAttribute", "", ""))
        request = exactly("parts", name, wanted, count=count)
        rules = {"constraints": [{how: _PARENT}]} if how else {}
        return claim_spec(request, **rules), count * self.sizes[profile]


class _SharedGpus(Hardware):
    """GPUs that are shared by memory, cores and slots, each with another rule for requests (KEP-5075)."""

    type = "shared"
    units = 12

    def equipment(self, node: str, random: Random) -> Equipment:
        capacity = amounts(memory="48Gi", cores="100", slots="7")
        capacity["memory"]["requestPolicy"] = {
            "default": "1Gi",
            "validRange": {"min": "1Gi", "step": "512Mi"},
        }
        capacity["slots"]["requestPolicy"] = {
            "default": "1",
            "validValues": ["1", "2", "4", "7"],
        }
        return Equipment(
            [
                device(
                    f"gpu-{index}",
                    {
                        "type": self.type,
                        "uuid": f"{node}-{index}",
                        _NUMA: index % 2,
                    },
                    capacity=capacity,
                    allowMultipleAllocations=True,
                )
                for index in range(random.choice((2, 4)))
            ]
        )

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        count = random.choice((1, 1, 1, 2))
        wanted = {
            "memory": f"{512 * random.randint(1, 60)}Mi",
            "cores": str(random.randint(3, 60)),
            "slots": random.choice(("1", "1", "2", "3")),
        }
        share = {"capacity": {"requests": wanted}, "count": count}
        if random.random() < choose:
            little = {"capacity": {"requests": {"memory": "2Gi", "cores": "2"}}}
            entries = (
                ("wanted", class_of(self.type), (), share),
                ("little", class_of(self.type), (), little),
            )
            return claim_spec(first_available("share", *entries)), count
        return claim_spec(exactly("share", class_of(self.type), **share)), count


class _WholeGpus(Hardware):
    """One to eight GPUs of several models."""

    type = "gpu"
    units = 4

    def equipment(self, node: str, random: Random) -> Equipment:
        devices = [
            device(
                f"gpu-{index}",
                {
                    "type": self.type,
                    "uuid": f"{node}-{index}",
                    "model": random.choice(("L4", "L40", "H100")),
                },
            )
            for index in range(random.choice((1, 2, 4, 8)))
        ]
        return Equipment(devices, whole=tuple(gpu["name"] for gpu in devices))

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        count, name = random.choice((1, 1, 1, 2, 4)), class_of(self.type)
        if random.random() < choose:
            entries = (
                ("best", name, [has("model", "H100")], {"count": count}),
                ("any", name, (), {"count": count}),
            )
            return claim_spec(first_available("gpus", *entries)), count
        if random.random() < 0.05:
            every = exactly("gpus", name, allocationMode="All")
            return claim_spec(every), self.units
        return claim_spec(exactly("gpus", name, count=count)), count


class _VirtualFunctions(Hardware):
    """Virtual functions that draw on the bandwidth of one or two adapters by request (KEP-5941)."""

    type = "vf"
    units = 10

    def equipment(self, node: str, random: Random) -> Equipment:
        adapters = random.choice((1, 2))
        policy = {
            "default": "5",
            "validRange": {"min": "5", "step": "5"},
        }
        sets = [
            {
                "name": f"adapter-{adapter}",
                "counters": {
                    "bandwidth": {"value": "100", "requestPolicy": policy},
                    "functions": {"value": "8"},
                },
            }
            for adapter in range(adapters)
        ]
        by_request = {"valueFrom": {"capacityKey": f"{DRIVER}/bandwidth"}}
        drawn = {"functions": {"value": "1"}, "bandwidth": by_request}
        devices = [
            device(
                f"adapter-{adapter}-vf-{virtual_function}",
                {"type": self.type, "parent": f"{node}-{adapter}"},
                consumesCounters=consumes(f"adapter-{adapter}", drawn),
            )
            for adapter in range(adapters)
            for virtual_function in range(8)
        ]
        return Equipment(devices, sets)

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        count, name = random.choice((1, 1, 2)), class_of(self.type)
        bandwidth = random.choice((5, 10, 15, 25, 40))
        wanted, little = (
            {
                "count": count,
                "capacity": {"requests": {f"{DRIVER}/bandwidth": str(amount)}},
            }
            for amount in (bandwidth, 5)
        )
        if random.random() < choose:
            entries = (
                ("wanted", name, (), wanted),
                ("little", name, (), little),
            )
            return claim_spec(first_available("vf", *entries)), count
        request = exactly("vf", name, **wanted)
        apart = count > 1 and random.random() < 0.5
        rules = {"constraints": [{"distinctAttribute": _PARENT}]}
        return claim_spec(request, **(rules if apart else {})), count


class _Grid(Hardware):
    """Chips in two or four rows of four."""

    type = "chip"
    units = 12

    def equipment(self, node: str, random: Random) -> Equipment:
        devices = [
            device(
                f"chip-{index}",
                {
                    "type": self.type,
                    "uuid": f"{node}-{index}",
                    "row": index // 4,
                    "column": index % 4,
                },
            )
            for index in range(random.choice((8, 16)))
        ]
        return Equipment(devices, whole=tuple(chip["name"] for chip in devices))

    def claim(self, choose: float, random: Random) -> tuple[Json, int]:
        count, name = random.choice((1, 2, 3, 4, 4, 8)), class_of(self.type)
        if random.random() < choose:
            entries = (
                ("wanted", name, (), {"count": count}),
                ("single", name, (), {"count": 1}),
            )
            return claim_spec(first_available("chips", *entries)), count
        request = exactly("chips", name, count=count)
        rules: tuple[Json, ...] = (
            {},
            {"constraints": [{"matchAttribute": f"{DRIVER}/row"}]},
            {"constraints": [{"matchAttribute": f"{DRIVER}/column"}]},
            {"constraints": [{"distinctAttribute": f"{DRIVER}/row"}]},
        )
        # Eight chips have nothing in common.
        rule = random.choice(rules) if count <= 4 else {}
        return claim_spec(request, **rule), count


HARDWARE: Final[Mapping[str, Hardware]] = {
    kind.type: kind
    for kind in (
        _NumaGpus(),
        _SmallPartitions(),
        _SharedGpus(),
        _WholeGpus(),
        _VirtualFunctions(),
        _Grid(),
    )
}
"""By type of devices."""
