"""A small problem with a valid answer, for tests to break.

Two nodes with GPUs of their own, and network cards that both nodes reach::

    node-a    gpu-0, gpu-1 (numa 0), gpu-2 (numa 1, held by an allocated claim); each takes 2 of 6 slices
    node-b    gpu-0 (numa 0), gpu-1 (numa 1); each takes 2 of 4 slices
    fabric    nic-0 (numa 0 and 1), shared by one allocated claim already; nic-1 (no numa), for node-b only;
              bandwidth 10 each; opening one takes 5 of the fabric's 15 watts, every allocation 3 more

    train     2 gpus and a nic on one numa node; prefers a fast nic (bandwidth 6) to a slow one (2)
    watch     a gpu with admin access, on node-a only
    every     all gpus of a node, on different numa nodes; in one gang with link
    link      a nic (bandwidth 2)
    late      a gpu; there is none left
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Counter,
    CounterID,
    CounterIndex,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Scalar,
    SlotIndex,
    Usage,
)
from dralloc.problem.solution import Grant, Placement, Solution, Tier
from strategies import TableEligibility

__all__ = [
    "BASE",
    "EVERY",
    "LATE",
    "LINK",
    "NIC_0",
    "NIC_1",
    "NUMA",
    "TRAIN",
    "WATCH",
    "Edit",
    "Scene",
    "numa",
]

DRIVER = "example.com"
NUMA = "example.com/numa"
GPUS = tuple(map(DeviceIndex, range(5)))
NIC_0, NIC_1 = DeviceIndex(5), DeviceIndex(6)
TRAIN, WATCH, EVERY, LINK, LATE = map(DemandIndex, range(5))


@dataclass(frozen=True)
class Scene:
    problem: Problem
    solution: Solution

    def edited(self, *edits: Edit) -> Scene:
        scene = self
        for edit in edits:
            scene = edit(scene)
        return scene


Edit = Callable[[Scene], Scene]


def numa(*numa_nodes: int) -> dict[str, frozenset[Scalar]]:
    return {NUMA: frozenset(("int", numa_node) for numa_node in numa_nodes)}


def _gpu(index: SlotIndex, node: str, name: str, on: int) -> Device:
    group = 0 if node == "node-a" else 1
    return Device(
        DeviceID(DRIVER, node, name),
        index,
        group,
        False,
        {},
        ((CounterIndex(group), 2),),
        numa(on),
        None,
    )


def _nic(
    index: SlotIndex,
    name: str,
    attributes: dict[str, frozenset[Scalar]],
    nodes: frozenset[NodeIndex] | None,
) -> Device:
    capacity = {"bandwidth": Capacity("bandwidth", 10)}
    return Device(
        DeviceID(DRIVER, "fabric", name),
        index,
        2,
        True,
        capacity,
        ((CounterIndex(2), 5),),
        attributes,
        nodes,
    )


def _demand(
    name: str,
    *requests: Request,
    constraints: tuple[Constraint, ...] = (),
    **more: Any,
) -> Demand:
    claim = Claim(
        ClaimKey("default", name), f"uid-{name}", requests, constraints
    )
    return Demand(ClaimKey("default", f"pod-{name}"), (claim,), **more)


def _exactly(
    index: AlternativeIndex,
    name: str,
    count: int | None = 1,
    *,
    admin: bool = False,
) -> Request:
    return Request(
        name, (Alternative(index, RequestName(name), 0, count, admin),)
    )


def _problem() -> Problem:
    fast = Alternative(AlternativeIndex(1), RequestName("nic", "fast"), 0, 1)
    slow = Alternative(AlternativeIndex(2), RequestName("nic", "slow"), 1, 1)
    on_gpus, on_nics = (0, 3, 4, 6), (1, 2, 5)
    refused = {(wants, nic) for wants in on_gpus for nic in (NIC_0, NIC_1)}
    refused |= {(wants, gpu) for wants in on_nics for gpu in GPUS}
    fabric = PoolAccess(
        PoolID(DRIVER, "fabric"), PoolState.USABLE, (NIC_0, NIC_1)
    )
    return Problem(
        demands=(
            _demand(
                "train",
                _exactly(AlternativeIndex(0), "gpu", 2),
                Request("nic", (fast, slow)),
                constraints=(Constraint(ConstraintKind.MATCH, NUMA),),
                weight=2,
            ),
            _demand(
                "watch",
                _exactly(AlternativeIndex(3), "gpu", admin=True),
                nodes=(0,),
            ),
            _demand(
                "every",
                _exactly(AlternativeIndex(4), "gpu", None),
                constraints=(Constraint(ConstraintKind.DISTINCT, NUMA),),
                gang="g",
            ),
            _demand("link", _exactly(AlternativeIndex(5), "nic"), gang="g"),
            _demand("late", _exactly(AlternativeIndex(6), "gpu")),
        ),
        nodes=(
            Node(
                "node-a",
                (
                    fabric,
                    PoolAccess(
                        PoolID(DRIVER, "node-a"),
                        PoolState.USABLE,
                        (DeviceIndex(0), DeviceIndex(1), DeviceIndex(2)),
                    ),
                ),
            ),
            Node(
                "node-b",
                (
                    fabric,
                    PoolAccess(
                        PoolID(DRIVER, "node-b"),
                        PoolState.USABLE,
                        (DeviceIndex(3), DeviceIndex(4)),
                    ),
                ),
            ),
        ),
        devices=(
            _gpu(SlotIndex(0), "node-a", "gpu-0", 0),
            _gpu(SlotIndex(1), "node-a", "gpu-1", 0),
            _gpu(SlotIndex(2), "node-a", "gpu-2", 1),
            _gpu(SlotIndex(3), "node-b", "gpu-0", 0),
            _gpu(SlotIndex(4), "node-b", "gpu-1", 1),
            _nic(SlotIndex(NIC_0), "nic-0", numa(0, 1), None),
            _nic(SlotIndex(NIC_1), "nic-1", {}, frozenset({NodeIndex(1)})),
        ),
        counters=(
            Counter(CounterID(DRIVER, "node-a", "shared", "slices"), 6, 4, 0),
            Counter(CounterID(DRIVER, "node-b", "shared", "slices"), 4, 4, 1),
            Counter(CounterID(DRIVER, "fabric", "shared", "watts"), 15, 7, 2),
        ),
        usage=Usage(
            frozenset({SlotIndex(2)}),
            {SlotIndex(NIC_0): 1},
            {SlotIndex(NIC_0): {"bandwidth": 2}},
        ),
        eligibility=TableEligibility(
            selected=dict.fromkeys(sorted(refused), False),
            charges={
                (wants, nic): Charge(
                    (("bandwidth", nanos),), ((CounterIndex(2), 3),)
                )
                for wants, nanos in ((1, 6), (2, 2), (5, 2))
                for nic in (NIC_0, NIC_1)
            },
        ),
    )


BASE = Scene(
    _problem(),
    Solution(
        placements=(
            Placement(
                TRAIN,
                NodeIndex(0),
                (
                    (
                        Grant(0, 0, DeviceIndex(0)),
                        Grant(0, 0, DeviceIndex(1)),
                        Grant(1, 0, NIC_0),
                    ),
                ),
            ),
            Placement(WATCH, NodeIndex(0), ((Grant(0, 0, DeviceIndex(0)),),)),
            Placement(
                EVERY,
                NodeIndex(1),
                ((Grant(0, 0, DeviceIndex(3)), Grant(0, 0, DeviceIndex(4))),),
            ),
            Placement(LINK, NodeIndex(1), ((Grant(0, 0, NIC_0),),)),
        ),
        tiers=(Tier("weight", 5, 6), Tier("alternatives", 0, 0, -1)),
    ),
)
