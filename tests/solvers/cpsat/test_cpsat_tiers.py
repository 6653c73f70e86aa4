from __future__ import annotations

import pytest

from dralloc.choices import Goal
from dralloc.problem import Usage
from dralloc.solution import Tier
from solvers.cpsat.scene import Ask, Scene, answer, devices_of, placed


def values(scene: Scene, goal: Goal = Goal.NONE) -> list[int]:
    return [tier.value for tier in answer(scene, goal).tiers]


def test_weight_comes_before_alternatives() -> None:
    scene = Scene()
    small, large = scene.device(), scene.device()
    scene.pod(scene.claim([Ask(only=[large]), Ask(only=[small])]))
    assert answer(scene).tiers == (Tier("weight", 1, 1), Tier("alternatives", 0, 0, -1))
    scene.pod(scene.claim(Ask(only=[large])))
    assert answer(scene).tiers == (Tier("weight", 2, 2), Tier("alternatives", 1, 1, -1))


def test_one_heavy_demand_is_worth_several_light_ones() -> None:
    scene = Scene()
    for _ in range(3):
        scene.device()
        scene.pod(scene.claim(Ask()))
    heavy = scene.pod(scene.claim(Ask(3)), weight=4)
    assert placed(answer(scene)) == [heavy]


def test_of_equal_demands_the_first_are_placed() -> None:
    scene = Scene()
    for _ in range(4):
        scene.pod(scene.claim(Ask()))
    scene.device()
    scene.device()
    assert placed(answer(scene)) == [0, 1]
    assert devices_of(answer(scene)) == [[0], [1]]


def test_nothing_to_place() -> None:
    assert answer(Scene()).tiers == (Tier("weight", 0, 0), Tier("alternatives", 0, 0, -1))


def test_fewest_nodes() -> None:
    scene = Scene(nodes=3)
    for node in (0, 1, 1, 2, 2, 2):
        scene.device(node)
    for _ in range(3):
        scene.pod(scene.claim(Ask()))
    assert values(scene, Goal.FEWEST_NODES) == [3, 0, 1]
    scene.pod(scene.claim(Ask()))
    assert values(scene, Goal.FEWEST_NODES) == [4, 0, 2]


def test_spread_keeps_the_fullest_node_small() -> None:
    scene = Scene(nodes=3)
    for node in (0, 1, 1, 2, 2, 2):
        scene.device(node)
    for _ in range(5):
        scene.pod(scene.claim(Ask()))
    assert values(scene, Goal.SPREAD) == [5, 0, 2]
    scene.pod(scene.claim(Ask()))
    assert values(scene, Goal.SPREAD) == [6, 0, 3]


def test_fewest_devices_prefers_those_in_use() -> None:
    scene = Scene()
    for _ in range(3):
        scene.device(capacity={"memory": 4})
    scene.usage = Usage(frozenset(), {2: 1}, {2: {"memory": 3}})
    for _ in range(4):
        scene.pod(scene.claim(Ask(capacity={"memory": 1})))
    assert values(scene, Goal.FEWEST_DEVICES) == [4, 0, 1]
    scene.pod(scene.claim(Ask(admin=True, only=[0], capacity={"memory": 0})))
    scene.device()
    scene.pod(scene.claim(Ask(only=[3])))
    assert values(scene, Goal.FEWEST_DEVICES) == [6, 0, 2]


def gpus(scene: Scene, count: int) -> None:
    """GPUs of four slices, each as a whole or cut in four."""
    for gpu in range(count):
        counter = scene.counter(4, counter_set=f"gpu-{gpu}")
        scene.device(consumes={counter: 4})
        for _ in range(4):
            scene.device(consumes={counter: 1})


@pytest.mark.parametrize(("slices", "touched"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_least_fragmentation_keeps_gpus_whole(slices: int, touched: int) -> None:
    scene = Scene()
    gpus(scene, 3)
    whole = {0, 5, 10}
    for _ in range(slices):
        scene.pod(scene.claim(Ask(only=set(range(15)) - whole)))
    assert values(scene, Goal.LEAST_FRAGMENTATION) == [slices, 0, touched]


def test_least_fragmentation_prefers_what_is_touched() -> None:
    scene = Scene()
    gpus(scene, 2)
    scene.device()
    scene.counters[1] = scene.counters[1].__class__(scene.counters[1].id, 4, 2, 0)
    scene.usage = Usage(frozenset({6, 7}), {}, {})
    for _ in range(2):
        scene.pod(scene.claim(Ask(only={1, 2, 3, 4, 6, 7, 8, 9})))
    assert values(scene, Goal.LEAST_FRAGMENTATION) == [2, 0, 0]
    scene.pod(scene.claim(Ask(only={10})))
    assert values(scene, Goal.LEAST_FRAGMENTATION) == [3, 0, 1]
