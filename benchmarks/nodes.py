"""Nodes with devices: plain GPUs, GPUs with MIG, shared GPUs, GPUs with network adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from benchmarks.objects import (
    DRIVER,
    Json,
    amounts,
    consumes,
    device,
    device_class,
    node,
    resource_slice,
)

__all__ = [
    "GPU_CLASS",
    "MIG_CLASS",
    "NIC_CLASS",
    "PROFILES",
    "Profile",
    "classes",
    "gpu_node",
    "mig_device",
    "mig_node",
    "nic_node",
    "shared_node",
]

GPU_CLASS: Final = "gpu.example.com"
MIG_CLASS: Final = "mig.example.com"
NIC_CLASS: Final = "nic.example.com"
PCI_ROOT: Final = "resource.kubernetes.io/pcieRoot"


class Profile(NamedTuple):
    """A MIG profile: what an instance takes of its GPU, and the memory slices at which it can start."""

    name: str
    memory: str
    multiprocessors: int
    engines: tuple[int, int, int, int]
    """Copy engines, decoders, JPEG engines, OFA engines."""
    slices: int
    starts: tuple[int, ...]


PROFILES: Final = (
    Profile("1g.10gb", "9984Mi", 16, (1, 1, 1, 0), 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile("1g.10gb+me", "9984Mi", 16, (1, 1, 1, 1), 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile("1g.20gb", "20096Mi", 26, (1, 1, 1, 0), 2, (0, 2, 4, 6)),
    Profile("2g.20gb", "20096Mi", 32, (2, 2, 2, 0), 2, (0, 2, 4)),
    Profile("3g.40gb", "40448Mi", 60, (3, 3, 3, 0), 4, (0, 4)),
    Profile("4g.40gb", "40448Mi", 64, (4, 4, 4, 0), 4, (0,)),
    Profile("7g.80gb", "81152Mi", 132, (8, 7, 7, 1), 8, (0,)),
)
"""The placements of an H100 with 80 GB: data/hardware/mig_layouts.yaml names the source."""

_WHOLE: Final = Profile("whole", "81152Mi", 132, (8, 7, 7, 1), 8, (0,))
_DEVICES_PER_SLICE: Final = 52


def classes() -> Iterator[Json]:
    """The classes of all these devices."""
    for name, kind in (
        (GPU_CLASS, "gpu"),
        (MIG_CLASS, "mig"),
        (NIC_CLASS, "nic"),
    ):
        yield device_class(
            name,
            f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'",
        )


def _uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128)))


def gpu_node(
    name: str, gpus: int, random: Random, model: str = "H100", memory: str = ""
) -> Iterator[Json]:
    """A node with plain GPUs ``gpu-0``, ``gpu-1``, ..., each with an identity of its own."""
    capacity = {"capacity": amounts(memory=memory)} if memory else {}
    devices = [
        device(
            f"gpu-{index}",
            {
                "type": "gpu",
                "model": model,
                "index": index,
                "uuid": _uuid(random),
            },
            **capacity,
        )
        for index in range(gpus)
    ]
    yield node(name)
    yield resource_slice(name, name, devices)


def shared_node(
    name: str, gpus: int, random: Random, memory: str = "80Gi"
) -> Iterator[Json]:
    """A node with GPUs that several claims can share by memory (KEP-5075)."""
    devices = [
        device(
            f"gpu-{index}",
            {"type": "gpu", "uuid": _uuid(random)},
            capacity=amounts(memory=memory),
            allowMultipleAllocations=True,
        )
        for index in range(gpus)
    ]
    yield node(name)
    yield resource_slice(name, name, devices)


def nic_node(name: str, pairs: int, random: Random) -> Iterator[Json]:
    """A node with GPUs and as many network adapters; two of each on a PCIe root."""
    devices = [
        device(
            f"{kind}-{index}",
            {
                "type": kind,
                "uuid": _uuid(random),
                PCI_ROOT: f"pci0000:{index // 2:02x}",
            },
        )
        for kind in ("gpu", "nic")
        for index in range(pairs)
    ]
    yield node(name)
    yield resource_slice(name, name, devices)


def mig_node(name: str, gpus: int, random: Random) -> Iterator[Json]:
    """A node with H100s, each as a whole and in all 25 placements of its MIG profiles (KEP-4815)."""
    devices: list[Json] = []
    for gpu in range(gpus):
        parent = _uuid(random)
        devices.append(_part(gpu, _WHOLE, 0, {"type": "gpu", "uuid": parent}))
        for profile in PROFILES:
            for start in profile.starts:
                attributes = {
                    "type": "mig",
                    "profile": profile.name,
                    "parent": parent,
                    "uuid": _uuid(random),
                }
                devices.append(_part(gpu, profile, start, attributes))
    chunks = [
        devices[first : first + _DEVICES_PER_SLICE]
        for first in range(0, len(devices), _DEVICES_PER_SLICE)
    ]
    sets = [
        {"name": f"gpu-{gpu}", "counters": _counters(_WHOLE, 0)}
        for gpu in range(gpus)
    ]
    yield node(name)
    yield resource_slice(
        f"{name}-counters", name, slices=1 + len(chunks), sharedCounters=sets
    )
    for chunk_index, chunk in enumerate(chunks):
        yield resource_slice(
            f"{name}-{chunk_index}", name, chunk, slices=1 + len(chunks)
        )


def mig_device(gpu: int, profile: Profile, start: int) -> str:
    """The name of a MIG device: a profile of a GPU from a memory slice on."""
    return f"gpu-{gpu}-mig-{profile.name.replace('.', '').replace('+', '-')}-{start}"


def _part(gpu: int, profile: Profile, start: int, attributes: Json) -> Json:
    return device(
        f"gpu-{gpu}" if profile is _WHOLE else mig_device(gpu, profile, start),
        attributes,
        capacity=amounts(
            memory=profile.memory, multiprocessors=str(profile.multiprocessors)
        ),
        consumesCounters=consumes(f"gpu-{gpu}", _counters(profile, start)),
    )


def _counters(profile: Profile, start: int) -> Json:
    engines: Sequence[str] = (
        "copy_engines",
        "decoders",
        "jpeg_engines",
        "ofa_engines",
    )
    taken = {
        name: str(count)
        for name, count in zip(engines, profile.engines, strict=True)
    }
    slices = {
        f"memory_slice_{index}": "1"
        for index in range(start, start + profile.slices)
    }
    return amounts(
        memory=profile.memory,
        multiprocessors=str(profile.multiprocessors),
        **taken,
        **slices,
    )
