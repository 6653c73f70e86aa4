from __future__ import annotations

from dataclasses import replace

from dralloc.problem import Claim
from dralloc.solution import Grant, Placement, Solution, Status
from dralloc.solvers.cpsat import solve
from solvers.cpsat.scene import Ask, Scene, answer, devices_of, placed


def shared(scene: Scene, claim: Claim, *nodes: int) -> None:
    """One pod per node, all of them with the claim."""
    for node in nodes:
        scene.pod(claim, nodes=(node,))


def test_a_claim_of_several_demands_is_granted_once() -> None:
    scene = Scene()
    scene.device()
    shared(scene, scene.claim(Ask()), 0, 0, 0)
    solution = answer(scene)
    assert placed(solution) == [0, 1, 2]
    assert sorted(devices_of(solution)) == [[], [], [0]]


def test_the_others_go_where_its_devices_are_in_reach() -> None:
    scene = Scene(nodes=2)
    scene.device(0)
    claim = scene.claim(Ask())
    shared(scene, claim, 0, 1)
    assert placed(answer(scene)) == [0]
    scene.device(None)
    solution = answer(scene)
    assert placed(solution) == [0, 1]
    assert sorted(devices_of(solution)) == [[], [1]]


def test_a_device_can_be_bound_to_the_node_of_its_claim() -> None:
    scene = Scene(nodes=2)
    scene.device(None)
    scene.devices[0] = replace(scene.devices[0], binds_to_node=True)
    shared(scene, scene.claim(Ask()), 0, 1)
    assert len(placed(answer(scene))) == 1


def test_a_claim_is_granted_with_a_demand_that_can_have_it() -> None:
    scene = Scene(nodes=2)
    scene.device(None)
    scene.devices[0] = replace(scene.devices[0], nodes=frozenset({1}))
    shared(scene, scene.claim(Ask()), 0, 1)
    assert placed(answer(scene)) == [1]


def test_alternatives_of_a_shared_claim_count_once() -> None:
    scene = Scene()
    scene.device()
    claim = scene.claim([Ask(2), Ask(1)])
    shared(scene, claim, 0, 0, 0)
    assert [tier.value for tier in answer(scene).tiers] == [3, 1]


def test_a_hint_with_a_shared_claim_is_kept() -> None:
    scene = Scene()
    scene.device()
    scene.device()
    shared(scene, scene.claim([Ask(), Ask()]), 0, 0)
    hint = Solution((Placement(0, 0, ((Grant(0, 0, 1),),)), Placement(1, 0, ((),))))
    solution = solve(scene.problem(), hint=hint)
    assert solution.placements == hint.placements
    assert solution.status is Status.OPTIMAL
