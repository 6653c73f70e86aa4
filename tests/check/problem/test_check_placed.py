from __future__ import annotations

from dataclasses import replace

import pytest

from check.problem.edits import (
    Broken,
    asks,
    broken,
    charges,
    claim,
    demand,
    gets,
    only_violation,
    placement,
    plus,
    without,
)
from check.problem.scene import BASE, EVERY, LINK, NIC_0, TRAIN, WATCH, Edit
from dralloc.check import violations
from dralloc.problem import (
    Charge,
    CounterIndex,
    DemandIndex,
    NodeIndex,
    ParentGroup,
)

GROUP = ParentGroup("job", quorum=2)
INNER = ParentGroup("stage", quorum=1, parent=GROUP)
UNDER_GROUP = (
    demand(TRAIN, gang="h", parent=GROUP),
    demand(EVERY, parent=GROUP),
    demand(LINK, parent=GROUP),
)
"""A gang of one and a gang of two, below a group that needs both."""
UNDER_STAGE = (
    demand(TRAIN, gang="h", parent=GROUP),
    demand(EVERY, parent=INNER),
    demand(LINK, parent=INNER),
)
"""The gang of two is below a stage, and that below the group, beside the gang of one."""


def settled(name: str) -> tuple[Edit, ...]:
    """Let a child of the group not count for it."""
    group = replace(GROUP, settled=frozenset({name}))
    return tuple(
        demand(index, gang=gang, parent=group)
        for index, gang in ((TRAIN, "h"), (EVERY, "g"), (LINK, "g"))
    )


BROKEN = {
    "the next demand behind the last": broken(
        plus(DemandIndex(5), NodeIndex(0)),
        rule="placement 4: there is no demand 5, only 5",
    ),
    "half a group of gangs": broken(
        *UNDER_GROUP,
        without(TRAIN),
        rule="group job: 1 of its groups are admitted, 2 are needed",
    ),
    "half a group of groups": broken(
        *UNDER_STAGE,
        without(TRAIN),
        rule="group job: 1 of its groups are admitted, 2 are needed",
    ),
    "half a group, beside a gang of which enough run": broken(
        *settled("h"),
        rule="group job: 1 of its groups are admitted, 2 are needed",
    ),
    "no such demand": broken(
        plus(DemandIndex(9), NodeIndex(0)),
        rule="placement 4: there is no demand 9, only 5",
    ),
    "negative demand": broken(
        plus(DemandIndex(-1), NodeIndex(0)),
        rule="placement 4: there is no demand -1",
    ),
    "no such node": broken(
        placement(TRAIN, node=2),
        rule="demand default/pod-train: there is no node 2, only 2",
    ),
    "negative node": broken(
        placement(TRAIN, node=-1), rule="there is no node -1"
    ),
    "no claims": broken(
        placement(LINK, grants=()),
        rule="pod-link: grants for 0 claims, but it has 1",
    ),
    "too many claims": broken(
        placement(LINK, grants=((), ())),
        rule="grants for 2 claims, but it has 1",
    ),
    "no such request": broken(
        gets(LINK, (1, 0, NIC_0)),
        rule="claim default/link: there is no request 1, only 1",
    ),
    "no such alternative": broken(
        gets(LINK, (0, 1, NIC_0)),
        rule="request nic: there is no alternative 1, only 1",
    ),
    "no such device": broken(
        gets(LINK, (0, 0, 7)),
        rule="claim default/link: there is no device 7, only 7",
    ),
    "negative device": broken(
        gets(LINK, (0, 0, -2)), rule="claim default/link: there is no device -2"
    ),
    "demand twice": broken(
        without(TRAIN),
        plus(LINK, NodeIndex(1), (0, 0, NIC_0)),
        charges(5, NIC_0, Charge((("bandwidth", 1),), ((CounterIndex(2), 3),))),
        rule="demand default/pod-link: placed 2 times",
    ),
    "against the order": broken(
        without(WATCH),
        plus(WATCH, NodeIndex(0), (0, 0, 0)),
        rule="demand default/pod-watch: comes after demand default/pod-link, against their order",
    ),
    "not a candidate": broken(
        placement(WATCH, node=1),
        gets(WATCH, (0, 0, 3)),
        rule="demand default/pod-watch: node node-b is not a candidate (node-a)",
    ),
    "less than the quorum": broken(
        demand(TRAIN, gang="g", quorum=2),
        demand(EVERY, quorum=2),
        demand(LINK, quorum=2),
        without(TRAIN, LINK),
        rule="gang g: 1 of 3 demands placed, at least 2 are needed",
    ),
    "half a gang": broken(without(EVERY), rule="gang g: 1 of 2 demands placed"),
    "claim with defect": broken(
        claim(LINK, defect="no class"),
        rule="claim default/link: allocated in spite of its defect: no class",
    ),
    "alternative with defect": broken(
        asks(TRAIN, 1, defect="no class"),
        rule="request nic/fast: allocated in spite of its defect: no class",
    ),
    "defect of an alternative that is not picked": broken(
        asks(TRAIN, 1, alternative=1, defect="no class"),
        rule="request nic/slow: allocated in spite of its defect: no class",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_placement_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


VALID: dict[str, tuple[Edit, ...]] = {
    "a group of gangs": UNDER_GROUP,
    "a group of groups": UNDER_STAGE,
    "nothing of a group": (*UNDER_GROUP, without(TRAIN, EVERY, LINK)),
    "more than a quorum": (
        demand(TRAIN, gang="g", quorum=2),
        demand(EVERY, quorum=2),
        demand(LINK, quorum=2),
    ),
    "a quorum": (
        demand(TRAIN, gang="g", quorum=2),
        demand(EVERY, quorum=2),
        demand(LINK, quorum=2),
        without(LINK),
    ),
}


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_placement_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []
