from __future__ import annotations

import pytest

from dralloc.errors import FatalError, ModelError
from dralloc.problem import Usage
from dralloc.solution import Placement, Solution
from dralloc.solvers.cpsat import Options, solve
from solvers.cpsat.scene import Ask, Scene, answer, devices_of


def failing() -> Scene:
    scene = Scene()
    for _ in range(4):
        scene.device()
    late, early = FatalError("gpu-2: no such key"), FatalError("gpu-0: no such key")
    scene.pod(scene.claim(Ask(fails={0: early, 1: early, 2: late})))
    scene.pod(scene.claim(Ask(fails={2: late})))
    return scene


def test_a_failing_selector_leaves_the_device_out_with_one_warning_per_message() -> None:
    solution = answer(failing())
    assert solution.warnings == ("gpu-0: no such key", "gpu-2: no such key")
    assert devices_of(solution)[0] == [3]


def test_a_failing_selector_can_be_an_error() -> None:
    with pytest.raises(FatalError, match="gpu-0"):
        solve(failing().problem(), Options(strict_cel=True))


def test_a_device_in_use_is_not_asked() -> None:
    scene = failing()
    scene.usage = Usage(frozenset({0, 1, 2}), {}, {})
    assert answer(scene).warnings == ()


def test_all_leaves_a_failing_device_out() -> None:
    scene = Scene()
    scene.device()
    scene.device()
    scene.pod(scene.claim(Ask(None, fails={0: FatalError("no such key")})))
    assert devices_of(answer(scene)) == [[1]]


def test_a_hint_for_what_cannot_be_placed_is_an_error() -> None:
    scene = Scene()
    scene.pod(scene.claim(Ask()))
    with pytest.raises(ModelError, match="hint: demand default/pod-0"):
        solve(scene.problem(), hint=Solution((Placement(0, 0, ((),)),)))
