from __future__ import annotations

from dataclasses import replace

import pytest

from check.problem.edits import (
    Broken,
    asks,
    broken,
    charges,
    counter,
    device,
    gets,
    only_violation,
    plus,
    pool,
    problem,
    selects,
    sharing,
    usage,
    watts,
    without,
)
from check.problem.scene import (
    BASE,
    EVERY,
    LATE,
    LINK,
    NIC_0,
    NIC_1,
    TRAIN,
    WATCH,
    Edit,
)
from dralloc.check import violations
from dralloc.problem import (
    Capacity,
    Charge,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
)


def link_takes(bandwidth: int, index: int = NIC_0) -> Edit:
    return charges(
        5, index, Charge((("bandwidth", bandwidth),), ((CounterIndex(2), 3),))
    )


SECOND_GPU_0 = (
    problem(
        devices=(
            *BASE.problem.devices,
            replace(
                BASE.problem.devices[DeviceIndex(0)],
                group=1,
                consumes=((CounterIndex(1), 1),),
            ),
        )
    ),
    pool(NodeIndex(0), 1, devices=(0, 1, 2)),
)
"""While node-a's pool is updated, gpu-0 has a second version, which takes one of node-b's slices."""
SECOND_NIC_0 = (
    problem(devices=(*BASE.problem.devices, BASE.problem.devices[NIC_0])),
    device(7, capacity={"bandwidth": Capacity("bandwidth", 9)}),
    pool(NodeIndex(1), 0, devices=(7, NIC_1)),
    selects(4, 7, False),
    link_takes(2, 7),
    gets(LINK, (0, 0, 7)),
)
"""While the fabric's pool is updated, node-b sees a version of nic-0 with less bandwidth, and link gets that."""
OVERDRAWN = problem(
    counters=(
        *BASE.problem.counters,
        replace(BASE.problem.counters[CounterIndex(2)], free=-1),
    )
)
"""One more counter in the fabric's group, of which allocated claims hold more than there is."""

DEVICES = {
    "dedicated twice": broken(
        plus(LATE, NodeIndex(0), (0, 0, 1)),
        rule="device example.com/node-a/gpu-1: dedicated, but granted 2 times: to default/train, default/late",
    ),
    "held": broken(
        counter(0, free=6),
        plus(LATE, NodeIndex(0), (0, 0, 2)),
        rule="claim default/late: request gpu: device example.com/node-a/gpu-2: held by an allocated claim",
    ),
    "share held": broken(
        usage(held=frozenset({2, NIC_1})),
        gets(LINK, (0, 0, NIC_1)),
        watts(11),
        rule="request nic: device example.com/fabric/nic-1: held by an allocated claim",
    ),
    "dedicated, but shared": broken(
        device(NIC_0, shareable=False),
        problem(demands=tuple(BASE.problem.demands)[:1]),
        without(WATCH, EVERY, LINK),
        rule="request nic/fast: device example.com/fabric/nic-0: dedicated, but shared by 1 allocated claims",
    ),
}
CAPACITIES = {
    "too much in all": broken(
        link_takes(3),
        rule="example.com/fabric/nic-0: capacity bandwidth: 11n taken of 10n",
    ),
    "too much on top": broken(
        usage(consumed={NIC_0: {"bandwidth": 3}}),
        rule="nic-0: capacity bandwidth: 11n taken of 10n",
    ),
    "too much with admin access": broken(
        asks(LINK, 0, admin=True),
        link_takes(9),
        rule="nic-0: capacity bandwidth: 11n taken of 10n in demand default/pod-link with admin access",
    ),
    "too much with the demand's own admin access": broken(
        asks(LINK, 0, admin=True),
        link_takes(3),
        sharing(TRAIN, LINK, (0, 0, NIC_0)),
        gets(LINK),
        rule="nic-0: capacity bandwidth: 11n taken of 10n in demand default/pod-train with admin access",
    ),
    "unknown with admin access": broken(
        asks(LINK, 0, admin=True),
        charges(5, NIC_0, Charge((("slots", 1),))),
        rule="nic-0: charged 1n of a capacity slots that it lacks in demand default/pod-link with admin access",
    ),
    "too much for a version": broken(
        *SECOND_NIC_0,
        device(7, capacity={"bandwidth": Capacity("bandwidth", 3)}),
        rule="device example.com/fabric/nic-0: capacity bandwidth: 4n taken of 3n",
    ),
    "unknown": broken(
        charges(5, NIC_0, Charge((("slots", 1),))),
        rule="nic-0: charged 1n of a capacity slots that it lacks",
    ),
}
COUNTERS = {
    "by devices": broken(
        counter(0, free=3),
        rule="counter example.com/node-a/shared/slices: 4n charged, 3n free: "
        "by example.com/node-a/gpu-0, example.com/node-a/gpu-1",
    ),
    "by request": broken(
        watts(5),
        rule="counter example.com/fabric/shared/watts: 6n charged, 5n free: by example.com/fabric/nic-0",
    ),
    "by both": broken(
        gets(LINK, (0, 0, NIC_1)),
        watts(10),
        rule="shared/watts: 11n charged, 10n free",
    ),
    "incompatible": broken(
        device(0, compatibility=((0, frozenset({"a"})),)),
        device(1, compatibility=((0, frozenset({"b", "c"})),)),
        rule="no compatibility group in common on a counter set: example.com/node-a/gpu-0, example.com/node-a/gpu-1",
    ),
    "overdrawn group": broken(
        OVERDRAWN,
        gets(LINK, (0, 0, NIC_1)),
        watts(11),
        rule="request nic: device example.com/fabric/nic-1: its counters are closed: "
        "counter example.com/fabric/shared/watts is overdrawn, -1n free",
    ),
}
BROKEN = {
    f"{kind}: {name}": case
    for kind, cases in {
        "device": DEVICES,
        "capacity": CAPACITIES,
        "counter": COUNTERS,
    }.items()
    for name, case in cases.items()
}
VALID: dict[str, tuple[Edit, ...]] = {
    "base": (),
    "nothing": (without(TRAIN, WATCH, EVERY, LINK),),
    "admin access to a held device": (gets(WATCH, (0, 0, 2)),),
    "admin access to overdrawn counters": (without(TRAIN), counter(0, free=-1)),
    "admin access charges no counters": (
        asks(LINK, 0, admin=True),
        gets(LINK, (0, 0, NIC_1)),
        watts(3),
    ),
    "admin access leaves capacity to other demands": (
        asks(LINK, 0, admin=True),
        link_takes(8),
    ),
    "shares stay open in an overdrawn group": (OVERDRAWN,),
    "opened by the first of new shares": (gets(LINK, (0, 0, NIC_1)), watts(11)),
    "capacity that a version with more has left": SECOND_NIC_0,
    "counters of all versions": (*SECOND_GPU_0, counter(1, free=5)),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_sum_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_sum_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []


def test_nobody_minds_the_counters_of_a_version_that_no_node_sees() -> None:
    scene = BASE.edited(*SECOND_GPU_0)
    assert violations(scene.problem, scene.solution) == []
