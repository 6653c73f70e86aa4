"""A pod that fits nowhere: eight H100s per node, MIG devices in use on five of them, and a wish for four whole ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.clusters import GPUS
from benchmarks.nodes import (
    GPU_CLASS,
    MIG_CLASS,
    PROFILES,
    classes,
    mig_device,
    mig_node,
)
from benchmarks.objects import (
    DRIVER,
    Json,
    allocated_claim,
    claim,
    claim_spec,
    first_available,
    pod,
)
from benchmarks.registry import register

__all__ = ["PENDING", "pending"]

PENDING: Final = "training"
"""Name of the pod that waits, and of its claim."""

HELD: Final = 5
"""GPUs of a node with a MIG device in use."""

PRIORITIES: Final = (0, 0, 0, 100, 1000)

TAINTED: Final = 50
CORDONED: Final = 50
"""One GPU of so many has a taint, one node of so many is cordoned."""

_TAINTS: Final = [
    {"key": f"{DRIVER}/unhealthy", "value": "xid-79", "effect": "NoSchedule"}
]


@register(
    "explain",
    "8 H100 per node, MIG devices in use on 5 of them, and a pod that wants 4 whole ones",
    size=1000,
)
def pending(size: int, random: Random) -> Iterator[Json]:
    """Five allocated claims per node with a running pod each, and one pending pod."""
    yield from classes()
    for index in range(size):
        name = f"node-{index:05d}"
        yield from _node(name, random)
        for claim_index, held in enumerate(_held(random), index * HELD):
            yield allocated_claim(
                f"held-{claim_index:05d}", MIG_CLASS, name, [held]
            )
            yield _running(
                f"running-{claim_index:05d}",
                f"held-{claim_index:05d}",
                name,
                random,
            )
    yield claim(PENDING, claim_spec(_wish()))
    yield pod(PENDING, claims=[PENDING])


def _node(name: str, random: Random) -> Iterator[Json]:
    """A node, cordoned now and then, with GPUs of which some have a taint, whole and in all their parts."""
    tainted = {
        f"gpu-{gpu}" for gpu in range(GPUS) if random.randrange(TAINTED) == 0
    }
    for api_object in mig_node(name, GPUS, random):
        if api_object["kind"] == "Node" and random.randrange(CORDONED) == 0:
            api_object["spec"] = {"unschedulable": True}
        for device in (
            api_object["spec"].get("devices", ())
            if tainted and "spec" in api_object
            else ()
        ):
            if device["consumesCounters"][0]["counterSet"] in tainted:
                device["taints"] = _TAINTS
        yield api_object


def _held(random: Random) -> Iterator[str]:
    """Names of MIG devices on different GPUs of a node."""
    for gpu in sorted(random.sample(range(GPUS), HELD)):
        profile = random.choice(PROFILES[:-1])
        yield mig_device(gpu, profile, random.choice(profile.starts))


def _running(
    name: str, claim_name: str, node_name: str, random: Random
) -> Json:
    running = pod(name, claims=[claim_name])
    running["spec"] |= {
        "nodeName": node_name,
        "priority": random.choice(PRIORITIES),
    }
    return running


def _wish() -> Json:
    """Four GPUs, best as MIG devices of the largest profile."""
    largest = f"device.attributes['{DRIVER}'].profile == '{PROFILES[-1].name}'"
    count = {"count": GPUS - HELD + 1}
    return first_available(
        "gpus",
        ("mig", MIG_CLASS, [largest], count),
        ("whole", GPU_CLASS, [], count),
    )
