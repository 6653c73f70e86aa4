from __future__ import annotations

import pytest

from check.problem.edits import Broken, broken, gets, only_violation, solution
from check.problem.scene import BASE, NIC_0, TRAIN, Edit
from dralloc.check import check, violations
from dralloc.objects.errors import CheckError
from dralloc.problem.solution import Status, Tier


def tiers(*known: Tier, status: Status = Status.FEASIBLE) -> Edit:
    return solution(tiers=known, status=status)


BROKEN = {
    "weight": broken(
        tiers(Tier("weight", 6, 6)),
        rule="tier weight: value 6, but the placements have 5",
    ),
    "alternatives": broken(
        tiers(Tier("alternatives", 1, 0, -1)),
        rule="tier alternatives: value 1, but the placements have 0",
    ),
    "bound too low": broken(
        tiers(Tier("weight", 5, 4)),
        rule="tier weight: value 5 is beyond the bound 4 (sense 1)",
    ),
    "bound too high": broken(
        tiers(Tier("alternatives", 0, 1, -1)),
        rule="tier alternatives: value 0 is beyond the bound 1 (sense -1)",
    ),
    "any tier's bound": broken(
        tiers(Tier("nodes", 2, 3, -1)),
        rule="tier nodes: value 2 is beyond the bound 3",
    ),
    "wrong sense": broken(
        tiers(Tier("weight", 5, 5, -1)), rule="tier weight: sense -1"
    ),
    "no sense": broken(
        tiers(Tier("spread", 5, 5, 0)), rule="tier spread: sense 0"
    ),
    "not optimal": broken(
        solution(status=Status.OPTIMAL),
        rule="tier weight: status OPTIMAL, but value 5 and bound 6 differ",
    ),
}
SLOW = gets(TRAIN, (0, 0, 0), (0, 0, 1), (1, 1, NIC_0))
VALID: dict[str, tuple[Edit, ...]] = {
    "no tiers": (tiers(),),
    "with gaps": (
        SLOW,
        tiers(Tier("weight", 5, 6), Tier("alternatives", 1, 0, -1)),
    ),
    "optimal": (
        SLOW,
        tiers(
            Tier("weight", 5, 5),
            Tier("alternatives", 1, 1, -1),
            status=Status.OPTIMAL,
        ),
    ),
    "some other tier": (tiers(Tier("nodes", 2, 1, -1)),),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_false_objective_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_true_objective_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []


def test_check_lists_all_violations_one_per_line() -> None:
    check(BASE.problem, BASE.solution)
    scene = BASE.edited(gets(TRAIN), solution(status=Status.OPTIMAL))
    with pytest.raises(CheckError) as caught:
        check(scene.problem, scene.solution)
    assert str(caught.value).splitlines() == violations(
        scene.problem, scene.solution
    )
    assert len(violations(scene.problem, scene.solution)) == 3
