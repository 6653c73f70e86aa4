from __future__ import annotations

import pytest

from check.problem.edits import (
    Broken,
    broken,
    claim,
    device,
    gets,
    only_violation,
    sharing,
    solution,
    usage,
    watts,
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
from dralloc.problem.solution import Tier

BROKEN = {
    "granted twice": broken(
        sharing(TRAIN, LINK, (0, 0, NIC_0)),
        usage(consumed={}),
        watts(9),
        rule="claim default/link: shared, but granted 2 times: with default/pod-train, default/pod-link",
    ),
    "granted with none": broken(
        sharing(TRAIN, LINK),
        gets(LINK),
        rule="claim default/link: shared by default/pod-train, default/pod-link, but granted with none of them",
    ),
    "left to a demand that is not placed": broken(
        sharing(EVERY, LATE),
        rule="claim default/late: request gpu: served by 0 alternatives instead of one",
    ),
    "of another node": broken(
        sharing(LINK, WATCH),
        rule="claim default/watch: request gpu: device example.com/node-a/gpu-0: granted on node node-a, "
        "cannot be used from node node-b of demand default/pod-link",
    ),
    "out of reach": broken(
        sharing(TRAIN, LINK),
        gets(LINK, (0, 0, NIC_1)),
        watts(11),
        rule="request nic: device example.com/fabric/nic-1: granted on node node-b, cannot be used from node node-a",
    ),
    "bound to its node": broken(
        sharing(TRAIN, LINK),
        device(NIC_0, binds_to_node=True),
        rule="request nic: device example.com/fabric/nic-0: granted on node node-b, cannot be used from node node-a",
    ),
    "with a defect of the demand that does not allocate it": broken(
        sharing(TRAIN, LINK, (0, 0, NIC_0)),
        gets(LINK),
        claim(LINK, defect="its pod has a defect"),
        rule="claim default/link: allocated in spite of its defect: its pod has a defect",
    ),
    "rank counted twice": broken(
        sharing(WATCH, TRAIN),
        gets(TRAIN, (0, 0, 0), (0, 0, 1), (1, 1, NIC_0)),
        solution(tiers=(Tier("alternatives", 2, 0, -1),)),
        rule="tier alternatives: value 2, but the placements have 1",
    ),
}
VALID: dict[str, tuple[Edit, ...]] = {
    "reachable from both nodes": (sharing(TRAIN, LINK),),
    "granted with the earlier demand": (
        sharing(TRAIN, LINK, (0, 0, NIC_0)),
        gets(LINK),
    ),
    "by three": (
        sharing(TRAIN, LINK),
        sharing(EVERY, LINK, (0, 0, NIC_0)),
        gets(LINK),
    ),
    "on one node": (sharing(WATCH, TRAIN),),
    "bound to the node of both": (
        sharing(EVERY, LINK),
        device(NIC_0, binds_to_node=True),
    ),
    "with a demand that is not placed": (sharing(LATE, LINK),),
    "without requests": (
        claim(LINK, requests=()),
        gets(LINK),
        sharing(TRAIN, LINK),
    ),
    "rank counted once": (
        sharing(WATCH, TRAIN),
        gets(TRAIN, (0, 0, 0), (0, 0, 1), (1, 1, NIC_0)),
        solution(tiers=(Tier("alternatives", 1, 0, -1),)),
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_sharing_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_sharing_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []
