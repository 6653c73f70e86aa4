from __future__ import annotations

from dataclasses import replace

import pytest

from check.problem.edits import (
    Broken,
    asks,
    broken,
    charges,
    claim,
    device,
    gets,
    only_violation,
    plus,
    pool,
    problem,
    refuses,
    selects,
    sharing,
    solution,
    usage,
    watts,
    without,
)
from check.problem.scene import (
    BASE,
    EVERY,
    LINK,
    NIC_0,
    NIC_1,
    NUMA,
    TRAIN,
    WATCH,
    Edit,
    numa,
)
from dralloc.check import violations
from dralloc.objects.errors import FatalError
from dralloc.problem import (
    MAX_RESULTS,
    AlternativeIndex,
    Capacity,
    Charge,
    Constraint,
    ConstraintKind,
    DeviceIndex,
    NodeIndex,
    PoolState,
    SlotIndex,
)

MATCH, DISTINCT = ConstraintKind.MATCH, ConstraintKind.DISTINCT
WIDE_NIC = device(NIC_0, capacity={"bandwidth": Capacity("bandwidth", 999)})
NIC_1_EVERYWHERE = device(NIC_1, nodes=None, attributes=numa(0))
ALL_NICS = (
    asks(LINK, 0, count=None),
    selects(5, 3, False),
    selects(5, 4, False),
)
NO_TIERS = solution(tiers=())
WATCHED_NIC = (
    selects(3, NIC_0, True),
    asks(WATCH, 0, admin=True),
    charges(3, NIC_0, Charge((("bandwidth", 2),))),
    gets(WATCH, (0, 0, NIC_0)),
)
"""Watch has admin access to nic-0 instead of a gpu; train and allocated claims hold 8 of its bandwidth of 10."""
ONLY_NIC_1 = (watts(14), gets(LINK, (0, 0, NIC_1)))
WITHOUT_LINK = (
    without(LINK),
    problem(demands=tuple(BASE.problem.demands)[: EVERY + 1]),
)


def constrained(kind: ConstraintKind, *requests: str) -> Edit:
    return claim(
        TRAIN, constraints=(Constraint(kind, NUMA, frozenset(requests)),)
    )


def two_gpu_requests(*, admin: bool) -> Edit:
    """Let watch ask twice for a gpu."""
    request = BASE.problem.demands[WATCH].claims[0].requests[0]
    again = replace(
        request,
        name="again",
        alternatives=(
            replace(request.alternatives[0], index=AlternativeIndex(6)),
        ),
    )
    return lambda scene: scene.edited(
        claim(WATCH, requests=(request, again)),
        asks(WATCH, 0, admin=admin),
        asks(WATCH, 1, admin=admin),
    )


REQUESTS = {
    "not in order": broken(
        gets(TRAIN, (1, 0, NIC_0), (0, 0, 0), (0, 0, 1)),
        rule="train: results are not in the order",
    ),
    "interleaved": broken(
        gets(TRAIN, (0, 0, 0), (1, 0, NIC_0), (0, 0, 1)),
        rule="train: results are not in the order",
    ),
    "forgotten": broken(
        gets(TRAIN, (0, 0, 0), (0, 0, 1)),
        rule="request nic: served by 0 alternatives instead of one",
    ),
    "nothing for all": broken(
        gets(EVERY),
        rule="every: request gpu: served by 0 alternatives instead of one",
    ),
    "two alternatives": broken(
        NIC_1_EVERYWHERE,
        watts(14),
        gets(TRAIN, (0, 0, 0), (0, 0, 1), (1, 0, NIC_0), (1, 1, NIC_1)),
        NO_TIERS,
        rule="claim default/train: request nic: served by 2 alternatives instead of one",
    ),
    "too few": broken(
        gets(TRAIN, (0, 0, 0), (1, 0, NIC_0)),
        rule="train: request gpu: 1 devices instead of 2",
    ),
    "too many": broken(
        gets(WATCH, (0, 0, 0), (0, 0, 1)),
        rule="watch: request gpu: 2 devices instead of 1",
    ),
}
DEVICES = {
    "of another node": broken(
        gets(WATCH, (0, 0, 3)),
        rule="request gpu: device example.com/node-b/gpu-0: in no usable pool of node node-a",
    ),
    "of an unusable pool": broken(
        without(TRAIN),
        pool(NodeIndex(0), 1, state=PoolState.INCOMPLETE),
        rule="gpu-0: in no usable pool of node node-a",
    ),
    "out of reach": broken(
        gets(TRAIN, (0, 0, 0), (0, 0, 1), (1, 1, NIC_1)),
        device(NIC_1, attributes=numa(0)),
        watts(11),
        NO_TIERS,
        rule="request nic/slow: device example.com/fabric/nic-1: not reachable from node node-a",
    ),
    "not selected": broken(
        selects(5, NIC_0, False),
        rule="request nic: device example.com/fabric/nic-0: not selected",
    ),
    "selector fails": broken(
        selects(5, NIC_0, FatalError("no such key")),
        rule="nic-0: not selected: no such key",
    ),
    "tainted": broken(
        refuses(5, NIC_0),
        rule="request nic: device example.com/fabric/nic-0: does not admit",
    ),
    "cannot be charged": broken(
        charges(3, 0, None),
        rule="request gpu: device example.com/node-a/gpu-0: lacks a requested capacity",
    ),
    "share twice in a request": broken(
        WIDE_NIC,
        watts(9),
        asks(LINK, 0, count=2),
        gets(LINK, (0, 0, NIC_0), (0, 0, NIC_0)),
        rule="link: request nic: device example.com/fabric/nic-0: granted 2 times in one request",
    ),
    "twice in a claim": broken(
        without(TRAIN),
        two_gpu_requests(admin=True),
        gets(WATCH, (0, 0, 0), (1, 0, 0)),
        rule="claim default/watch: dedicated device example.com/node-a/gpu-0: granted 2 times in one claim",
    ),
}
EVERYTHING = {
    "one is missing": broken(
        gets(EVERY, (0, 0, 3)),
        rule="all devices, but matching device example.com/node-b/gpu-1 is missing",
    ),
    "a share is missing": broken(
        *ALL_NICS,
        rule="link: request nic: all devices, but matching device example.com/fabric/nic-1 is missing",
    ),
    "a share with room beside later demands is missing": broken(
        *ALL_NICS,
        *ONLY_NIC_1,
        rule="all devices, but matching device example.com/fabric/nic-0 is missing",
    ),
    "a share that only its own demand fills is missing": broken(
        *ALL_NICS,
        *ONLY_NIC_1,
        *WATCHED_NIC,
        sharing(LINK, WATCH, (0, 0, NIC_0)),
        gets(WATCH),
        rule="all devices, but matching device example.com/fabric/nic-0 is missing",
    ),
    "a share that only another's admin access fills is missing": broken(
        *ALL_NICS,
        *ONLY_NIC_1,
        *WATCHED_NIC,
        rule="matching device example.com/fabric/nic-0 is missing",
    ),
    "a share is missing for admin access": broken(
        *ALL_NICS,
        asks(LINK, 0, count=None, admin=True),
        rule="all devices, but matching device example.com/fabric/nic-1 is missing",
    ),
    "incomplete pool": broken(
        *WITHOUT_LINK,
        pool(
            NodeIndex(1),
            0,
            state=PoolState.INCOMPLETE,
            devices=(),
            reason="1 of 2 slices",
        ),
        rule="every: request gpu: all devices, but pool example.com/fabric is incomplete: 1 of 2 slices",
    ),
    "invalid pool": broken(
        *WITHOUT_LINK,
        pool(
            NodeIndex(1),
            0,
            state=PoolState.INVALID,
            devices=(),
            reason="duplicate device",
        ),
        rule="every: request gpu: all devices, but pool example.com/fabric is invalid: duplicate device",
    ),
    "one is held": broken(
        usage(held=frozenset({2, 4})), rule="gpu-1: held by an allocated claim"
    ),
    "one is tainted": broken(
        refuses(4, 4), rule="device example.com/node-b/gpu-1: does not admit"
    ),
    "one too many": broken(
        selects(4, 4, False),
        rule="device example.com/node-b/gpu-1: not selected",
    ),
}
CONSTRAINTS = {
    "match: different": broken(
        device(1, attributes=numa(1)),
        rule="matchAttribute example.com/numa: violated by example.com/node-a/gpu-0 (0), example.com/node-a/gpu-1 (1)",
    ),
    "match: lacking": broken(
        device(1, attributes={}),
        rule="gpu-1: matchAttribute: lacks the attribute example.com/numa",
    ),
    "match: of another type": broken(
        device(NIC_0, attributes={NUMA: frozenset({("string", "0")})}),
        rule="train: matchAttribute example.com/numa",
    ),
    "match: only in pairs": broken(
        device(0, attributes=numa(0, 1)),
        device(1, attributes=numa(1, 2)),
        device(NIC_0, attributes=numa(0, 2)),
        rule="train: matchAttribute example.com/numa: violated",
    ),
    "match: cannot be compared": broken(
        device(0, attributes=numa()),
        rule="train: matchAttribute example.com/numa",
    ),
    "match: of a subrequest": broken(
        constrained(MATCH, "gpu", "nic/fast"),
        device(NIC_0, attributes=numa(1)),
        rule="train: matchAttribute",
    ),
    "distinct: equal": broken(
        constrained(DISTINCT, "gpu"),
        rule="train: distinctAttribute example.com/numa: violated by example.com/node-a/gpu-0 (0), example.com/node-a",
    ),
    "distinct: overlapping": broken(
        constrained(DISTINCT),
        device(1, attributes=numa(2)),
        rule="train: distinctAttribute example.com/numa: violated",
    ),
    "distinct: lacking": broken(
        device(4, attributes={}),
        rule="gpu-1: distinctAttribute: lacks the attribute",
    ),
    "distinct: two cannot be compared": broken(
        device(3, attributes=numa()),
        device(4, attributes=numa()),
        rule="every: distinctAttribute example.com/numa",
    ),
    "distinct: a share twice": broken(
        WIDE_NIC,
        constrained(DISTINCT),
        two_gpu_requests(admin=False),
        without(TRAIN),
        selects(3, NIC_0, True),
        selects(6, NIC_0, True),
        gets(WATCH, (0, 0, NIC_0), (1, 0, NIC_0)),
        claim(WATCH, constraints=(Constraint(DISTINCT, NUMA),)),
        rule="claim default/watch: distinctAttribute example.com/numa: violated",
    ),
}
BROKEN = REQUESTS | DEVICES | EVERYTHING | CONSTRAINTS
VALID: dict[str, tuple[Edit, ...]] = {
    "a share in two requests": (
        without(TRAIN),
        two_gpu_requests(admin=False),
        selects(3, NIC_0, True),
        selects(6, NIC_0, True),
        gets(WATCH, (0, 0, NIC_0), (1, 0, NIC_0)),
    ),
    "all": (*ALL_NICS, watts(14), gets(LINK, (0, 0, NIC_0), (0, 0, NIC_1))),
    "all but a full one": (
        *ALL_NICS,
        device(NIC_1, capacity={"bandwidth": Capacity("bandwidth", 1)}),
    ),
    "all but one that other demands fill": (
        *ALL_NICS,
        *ONLY_NIC_1,
        charges(5, NIC_0, Charge((("bandwidth", 3),))),
    ),
    "all but one that lacks the capacity": (*ALL_NICS, charges(5, NIC_1, None)),
    "all but one whose selector fails": (
        *ALL_NICS,
        selects(5, NIC_1, FatalError("no such key")),
    ),
    "all but one out of reach": (
        *ALL_NICS,
        device(NIC_1, nodes=frozenset({0})),
    ),
    "match of one that cannot be compared": (
        constrained(MATCH, "nic"),
        device(NIC_0, attributes=numa()),
    ),
    "match of nothing": (
        constrained(MATCH, "nic/slow"),
        device(NIC_0, attributes={}),
    ),
    "distinct beside one that cannot be compared": (
        device(3, attributes=numa()),
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_claim_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_claim_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []


@pytest.mark.parametrize("more", [0, 1])
def test_a_claim_gets_no_more_devices_than_its_status_can_list(
    more: int,
) -> None:
    count = MAX_RESULTS + more
    gpus = tuple(
        replace(
            BASE.problem.devices[DeviceIndex(0)],
            id=BASE.problem.devices[DeviceIndex(0)].id._replace(
                device=f"gpu-{slot}"
            ),
            slot=slot,
        )
        for slot in map(SlotIndex, range(10, 10 + count))
    )
    indices = range(7, 7 + count)
    scene = BASE.edited(
        problem(devices=(*BASE.problem.devices, *gpus)),
        pool(NodeIndex(0), 1, devices=tuple(indices)),
        without(TRAIN, WATCH, EVERY, LINK),
        asks(WATCH, 0, count=count),
        plus(WATCH, NodeIndex(0), *((0, 0, index) for index in indices)),
    )
    expected = ["claim default/watch: 33 devices, more than 32"] if more else []
    assert violations(scene.problem, scene.solution) == expected
