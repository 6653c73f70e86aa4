from __future__ import annotations

from dralloc.choices import Goal
from dralloc.solvers.cpsat.candidates import survey
from dralloc.solvers.cpsat.components import components
from solvers.cpsat.scene import Ask, Scene, answer


def split(scene: Scene, goal: Goal = Goal.NONE) -> list[tuple[int, ...]]:
    problem = scene.problem()
    return components(problem, survey(problem), goal)


def pairs() -> Scene:
    """Two nodes with two devices, and a pod for each device."""
    scene = Scene(nodes=2)
    counter = scene.counter(2)
    for node in (0, 0, 1, 1):
        device = scene.device(node, consumes={counter: 1} if node else {})
        scene.pod(scene.claim(Ask(only=[device])))
    return scene


def test_slots_and_counters_join() -> None:
    scene = pairs()
    assert split(scene) == [(0,), (1,), (2, 3)]
    scene.pod(scene.claim([Ask(only=[0]), Ask(only=[2])]))
    assert split(scene) == [(0, 2, 3, 4), (1,)]


def test_gangs_join() -> None:
    scene = pairs()
    scene.pod(scene.claim(Ask(admin=True)), gang="gang")
    scene.pod(scene.claim(Ask(only=[1])), gang="gang")
    assert split(scene) == [(0,), (1, 4, 5), (2, 3)]


def test_admin_access_joins_nothing_but_sharers() -> None:
    scene = pairs()
    scene.pod(scene.claim(Ask(only=[0], admin=True)))
    assert split(scene) == [(0,), (1,), (2, 3), (4,)]


def test_nodes_join_when_the_goal_counts_them() -> None:
    assert split(pairs(), Goal.FEWEST_NODES) == split(pairs(), Goal.SPREAD) == [(0, 1), (2, 3)]


def test_what_nothing_can_serve_is_in_no_component() -> None:
    scene = pairs()
    scene.pod(scene.claim(Ask(only=[])))
    assert split(scene) == [(0,), (1,), (2, 3)]


def test_tiers_add_up_over_components() -> None:
    scene = pairs()
    scene.pod(scene.claim([Ask(only=[]), Ask(only=[0])]), weight=5)
    solution = answer(scene, Goal.FEWEST_NODES)
    assert [tier.value for tier in solution.tiers] == [8, 1, 2]
    assert [tier.value for tier in answer(pairs(), Goal.SPREAD).tiers] == [4, 0, 2]
