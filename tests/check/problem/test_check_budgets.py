"""What namespaces may use, and how fairly they share it."""

from __future__ import annotations

import pytest

from check.problem.edits import (
    Broken,
    broken,
    device,
    gets,
    only_violation,
    problem,
    solution,
    watts,
)
from check.problem.scene import BASE, LINK, NIC_1, Edit
from dralloc.check import violations
from dralloc.objects.user_rules import Budget
from dralloc.problem import Capacity
from dralloc.problem.solution import Tier


def capped(
    resource: str, most: int | None, used: int = 0, namespace: str = "default"
) -> Edit:
    """Limit what a namespace may use."""
    return problem(budgets=(Budget(namespace, resource, used, 100, most),))


def fair(*tiers: Tier) -> Edit:
    """Share the slices fairly with another namespace, and with one that uses nothing; say so much about it."""
    budgets = (
        Budget("default", "slices", 1, 100, fair=True),
        Budget("other", "slices", 4, 100, fair=True),
        Budget("poor", "slices", 0, 100, fair=True),
        Budget("elsewhere", "slices", 2, 100),
    )
    return lambda scene: scene.edited(
        problem(budgets=budgets), solution(tiers=tiers)
    )


WITH_MEMORY = device(0, capacity={"memory": Capacity("memory", 7)})
"""The GPU that one demand has, and another one with admin access, has a capacity, which it is dedicated with."""

BROKEN = {
    "counters of devices": broken(
        capped("slices", 10, used=3),
        rule="namespace default: slices: 8n taken beside 3n, at most 10n",
    ),
    "counters by request": broken(
        capped("watts", 5),
        rule="namespace default: watts: 6n taken beside 0, at most 5n",
    ),
    "what a shared device takes itself is nobody's": broken(
        gets(LINK, (0, 0, NIC_1)),
        watts(11),
        capped("watts", 5),
        rule="watts: 6n taken beside 0, at most 5n",
    ),
    "capacity of shares": broken(
        capped("bandwidth", 7),
        rule="bandwidth: 8n taken beside 0, at most 7n",
    ),
    "capacity of a dedicated device": broken(
        WITH_MEMORY,
        capped("memory", 6),
        rule="memory: 7n taken beside 0, at most 6n",
    ),
    "anything on top of too much": broken(
        capped("slices", 10, used=11),
        rule="slices: 8n taken beside 11n, at most 10n",
    ),
    "fairness": broken(
        fair(Tier("fairness-1", 1, 1)),
        rule="tier fairness-1: value 1, but the placements have 0",
    ),
    "fairness of two": broken(
        fair(Tier("fairness-2", 9, 9)),
        rule="tier fairness-2: value 9, but the placements have 4",
    ),
    "fairness the other way round": broken(
        fair(Tier("fairness-3", 13, 13, -1)),
        rule="tier fairness-3: sense -1",
    ),
}
VALID: dict[str, tuple[Edit, ...]] = {
    "as much as it may": (capped("slices", 11, used=3),),
    "without a cap": (capped("slices", None, used=3),),
    "of another namespace": (capped("slices", 0, namespace="other"),),
    "too much before, and nothing taken": (capped("memory", 0, used=1),),
    "admin access takes nothing": (WITH_MEMORY, capped("memory", 7)),
    "fairness of each number": (
        fair(
            Tier("fairness-1", 0, 0),
            Tier("fairness-2", 4, 4),
            Tier("fairness-3", 13, 13),
        ),
    ),
    "fairness of more than there are": (fair(Tier("fairness-4", 99, 99)),),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_budget_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_budget_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []
