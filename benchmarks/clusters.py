"""Whole clusters: eight GPUs per node, 30% of them in use, and templates of what pods may claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from benchmarks.nodes import (
    GPU_CLASS,
    MIG_CLASS,
    NIC_CLASS,
    PCI_ROOT,
    classes,
    gpu_node,
    mig_node,
    nic_node,
    shared_node,
)
from benchmarks.objects import (
    DRIVER,
    Json,
    allocated_claim,
    claim_spec,
    exactly,
    pod,
    template,
)

__all__ = [
    "GPUS",
    "MIG",
    "MIXES",
    "NIC",
    "PLAIN",
    "Hardware",
    "in_use",
    "partitions",
    "pods",
    "profile_claim",
    "shares",
    "template_name",
]

GPUS: Final = 8
"""GPUs of a node."""

USED: Final = 0.3
"""Part of the GPUs in use."""

MIXES: Final[Mapping[str, Mapping[str, int]]] = {
    "small": {"1g.10gb": 60, "1g.20gb": 15, "2g.20gb": 20, "3g.40gb": 5},
    "mixed": {
        "1g.10gb": 25,
        "1g.20gb": 10,
        "2g.20gb": 25,
        "3g.40gb": 20,
        "4g.40gb": 10,
        "7g.80gb": 10,
    },
    "large": {
        "1g.10gb": 10,
        "2g.20gb": 15,
        "3g.40gb": 30,
        "4g.40gb": 25,
        "7g.80gb": 20,
    },
}
"""How often each MIG profile is asked for."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What nodes have, and what pods claim of it.

    Parameters
    ----------
    node
        Yields the objects of a node, given its name, how many GPUs it has and a source of randomness.
    claims
        By the name of the template.
    weights
        How many pods want each of the claims.
    """

    node: Callable[[str, int, Random], Iterator[Json]]
    claims: Mapping[str, Json]
    weights: Iterable[int]

    def cluster(self, size: int, random: Random) -> Iterator[Json]:
        """Everything but pods."""
        yield from self.nodes(size, random)
        yield from self.templates()

    def nodes(self, size: int, random: Random) -> Iterator[Json]:
        """Classes, nodes, and the claims that hold devices."""
        yield from classes()
        for node_index in range(size):
            yield from self.node(f"node-{node_index:05d}", GPUS, random)
        yield from in_use(size, USED, random)

    def templates(self) -> Iterator[Json]:
        """One for each claim; new ones each time."""
        return (template(name, spec) for name, spec in self.claims.items())

    def drawn(self, random: Random) -> str:
        """The template of one pod, drawn by the weights."""
        return random.choices(list(self.claims), list(self.weights))[0]

    def deck(self) -> list[str]:
        """Each template as often as it weighs."""
        return [
            name
            for name, weight in zip(self.claims, self.weights, strict=True)
            for _ in range(weight)
        ]


def in_use(
    size: int, share: float, random: Random, gpus: int = GPUS
) -> Iterator[Json]:
    """Allocated claims that hold a share of all GPUs as a whole."""
    every = [
        (node_index, gpu) for node_index in range(size) for gpu in range(gpus)
    ]
    for index, (node_index, gpu) in enumerate(
        sorted(random.sample(every, int(share * len(every))))
    ):
        yield allocated_claim(
            f"holder-{index:06d}",
            GPU_CLASS,
            f"node-{node_index:05d}",
            [f"gpu-{gpu}"],
        )


def pods(
    pod_count: int, templates: Sequence[str], random: Random
) -> Iterator[Json]:
    """Pods with one of the templates each, all equally often."""
    for index in range(pod_count):
        yield pod(f"pod-{index:06d}", templates=[random.choice(templates)])


def profile_claim(profile: str) -> Json:
    """A claim for one MIG device of a profile."""
    wanted = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    return claim_spec(exactly("mig", MIG_CLASS, wanted))


def template_name(profile: str) -> str:
    """The name of the template for a MIG profile."""
    return f"mig-{profile.replace('.', '-').replace('+', '-')}"


def partitions(mix: Mapping[str, int]) -> Hardware:
    """GPUs with MIG, and how often each profile is asked for."""
    claims = {template_name(profile): profile_claim(profile) for profile in mix}
    return Hardware(mig_node, claims, mix.values())


def shares(sizes: Iterable[int]) -> Hardware:
    """GPUs that are shared by memory; the ones in use are not shared any more."""
    asked = {
        f"memory-{size}": {"requests": {"memory": f"{size}Gi"}}
        for size in sizes
    }
    claims = {
        name: claim_spec(exactly("gpu", GPU_CLASS, capacity=capacity))
        for name, capacity in asked.items()
    }
    return Hardware(shared_node, claims, [1] * len(claims))


_COUNTS: Final = {1: 8, 2: 1, 4: 1}

PLAIN: Final = Hardware(
    gpu_node,
    {
        f"gpus-{count}": claim_spec(exactly("gpus", GPU_CLASS, count=count))
        for count in _COUNTS
    },
    _COUNTS.values(),
)
"""Plain GPUs, one, two or four of them per pod."""

MIG: Final = partitions(MIXES["mixed"])
"""GPUs with MIG, and mixed profiles."""

NIC: Final = Hardware(
    nic_node,
    {
        "pair": claim_spec(
            exactly("gpu", GPU_CLASS),
            exactly("nic", NIC_CLASS),
            constraints=[{"matchAttribute": PCI_ROOT}],
        )
    },
    [1],
)
"""A GPU and a network adapter on one PCIe root."""
