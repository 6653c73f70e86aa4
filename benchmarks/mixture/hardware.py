"""Three kinds of nodes, what of their devices running pods hold, and how much stays free."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from benchmarks.nodes import (
    GPU_CLASS,
    MIG_CLASS,
    NIC_CLASS,
    PROFILES,
    Profile,
    mig_device,
    mig_node,
    nic_node,
)
from benchmarks.objects import (
    DRIVER,
    Json,
    amounts,
    claim_spec,
    device,
    device_class,
    exactly,
    node,
    resource_slice,
)

__all__ = [
    "GIBIBYTES",
    "HARDWARE_KINDS",
    "SHARED_CLASS",
    "SLICES",
    "HardwareKind",
    "Holding",
    "shared_classes",
]

USED: Final = 0.4
"""Part of all devices in use."""

GPUS: Final = 8
"""GPUs of a node, if they are not shared."""

SLICES: Final = 8
"""Memory slices of a GPU with MIG."""

SHARED_CLASS: Final = "shared.example.com"
SHARED_GPUS: Final = 4
GIBIBYTES: Final = 80
CORES: Final = 100
"""A shared GPU, and what it has."""


class Holding(NamedTuple):
    """What a running pod holds of a node's devices: its claim, and the results of its allocation."""

    spec: Json
    results: list[Json]


class HardwareKind(ABC):
    """Nodes with one kind of devices."""

    share: float
    """How often a node is of this kind."""

    cpus: int
    gibibytes: int
    """CPU and memory of a node."""

    units: int
    """What a node has of the unit in which demand is counted."""

    @abstractmethod
    def objects(self, name: str, random: Random) -> Iterator[Json]:
        """The node and its slices."""

    @abstractmethod
    def holdings(self, pool: str, random: Random) -> tuple[list[Holding], int]:
        """What running pods hold of a node, and how many units that takes."""


class _WholeGpus(HardwareKind):
    """Eight GPUs and eight network adapters, two of each on a PCIe root; demand is counted in GPUs."""

    share = 0.5
    cpus, gibibytes = 112, 1000
    units = GPUS

    def objects(self, name: str, random: Random) -> Iterator[Json]:
        return nic_node(name, GPUS, random)

    def holdings(self, pool: str, random: Random) -> tuple[list[Holding], int]:
        """Each GPU and each adapter is in use or not; a pod holds up to four of them."""
        gpus = [
            f"gpu-{index}" for index in range(GPUS) if random.random() < USED
        ]
        adapters = [
            f"nic-{index}" for index in range(GPUS) if random.random() < USED
        ]
        holdings = []
        for request, class_name, names in (
            ("gpu", GPU_CLASS, gpus),
            ("nic", NIC_CLASS, adapters),
        ):
            first = 0
            while first < len(names):
                held = names[first : first + random.choice((1, 1, 2, 4))]
                results = [_result(request, pool, name) for name in held]
                holdings.append(
                    Holding(
                        claim_spec(
                            exactly(request, class_name, count=len(held))
                        ),
                        results,
                    )
                )
                first += len(held)
        return holdings, len(gpus)


class _PartitionedGpus(HardwareKind):
    """Eight GPUs with MIG (KEP-4815), as a whole and in parts; demand is counted in memory slices."""

    share = 0.2
    cpus, gibibytes = 192, 1500
    units = GPUS * SLICES

    def objects(self, name: str, random: Random) -> Iterator[Json]:
        return mig_node(name, GPUS, random)

    def holdings(self, pool: str, random: Random) -> tuple[list[Holding], int]:
        """MIG devices of random profiles, on some GPUs one after the other until they would take too much."""
        holdings = []
        units = 0
        for gpu in range(GPUS):
            for profile, start in _partitions(random):
                wanted = (
                    f"device.attributes['{DRIVER}'].profile == '{profile.name}'"
                )
                results = [
                    _result("mig", pool, mig_device(gpu, profile, start))
                ]
                holdings.append(
                    Holding(
                        claim_spec(exactly("mig", MIG_CLASS, wanted)), results
                    )
                )
                units += profile.slices
        return holdings, units


def _partitions(random: Random) -> Iterator[tuple[Profile, int]]:
    """Profiles in use on a GPU, and where they start; together about the part of it that is to be in use."""
    most = random.choice((0, 1, 2, 3, 4, 6, 8))
    vacant = set(range(SLICES))
    # Only one device of a GPU can have its media extensions, and none beside the whole.
    profiles = [profile for profile in PROFILES if "+me" not in profile.name]
    for profile in random.choices(profiles, k=SLICES):
        start = random.choice(profile.starts)
        slices = set(range(start, start + profile.slices))
        if slices <= vacant and SLICES - len(vacant - slices) <= most:
            vacant -= slices
            yield profile, start


class _SharedGpus(HardwareKind):
    """Four GPUs that claims share by memory and cores (KEP-5075); demand is counted in gibibytes."""

    share = 0.3
    cpus, gibibytes = 128, 750
    units = SHARED_GPUS * GIBIBYTES

    def objects(self, name: str, random: Random) -> Iterator[Json]:
        capacity = amounts(memory=f"{GIBIBYTES}Gi", cores=str(CORES))
        # Cores are given out in steps of five; who says nothing gets ten.
        capacity["cores"]["requestPolicy"] = {
            "default": "10",
            "validRange": {"min": "5", "step": "5"},
        }
        devices = [
            device(
                f"gpu-{index}",
                {
                    "type": "shared",
                    "uuid": str(UUID(int=random.getrandbits(128))),
                },
                capacity=capacity,
                allowMultipleAllocations=True,
            )
            for index in range(SHARED_GPUS)
        ]
        yield node(name)
        yield resource_slice(name, name, devices)

    def holdings(self, pool: str, random: Random) -> tuple[list[Holding], int]:
        """Shares of random size, on each GPU one after the other until they would take too much."""
        holdings = []
        units = 0
        for gpu in range(SHARED_GPUS):
            most = random.uniform(0, 2 * USED)
            memory, cores = random.randint(3, 30), 5 * random.randint(1, 8)
            taken_memory = taken_cores = 0
            while (
                taken_memory + memory <= most * GIBIBYTES
                and taken_cores + cores <= most * CORES
            ):
                consumed = {"memory": f"{memory}Gi", "cores": str(cores)}
                spec = claim_spec(
                    exactly(
                        "share", SHARED_CLASS, capacity={"requests": consumed}
                    )
                )
                share = {
                    "shareID": str(UUID(int=random.getrandbits(128))),
                    "consumedCapacity": consumed,
                }
                holdings.append(
                    Holding(
                        spec, [_result("share", pool, f"gpu-{gpu}") | share]
                    )
                )
                taken_memory += memory
                taken_cores += cores
                memory, cores = random.randint(3, 30), 5 * random.randint(1, 8)
            units += taken_memory
        return holdings, units


def _result(request: str, pool: str, name: str) -> Json:
    return {"request": request, "driver": DRIVER, "pool": pool, "device": name}


def shared_classes() -> Iterator[Json]:
    """The class of shared GPUs, which nobody gets as a whole."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'shared'"
    yield device_class(SHARED_CLASS, expression)


HARDWARE_KINDS: Final = {
    "gpus": _WholeGpus(),
    "mig": _PartitionedGpus(),
    "sharing": _SharedGpus(),
}
"""By the ingredient."""
