from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pytest

from dralloc.objects.errors import FatalError, ModelError
from dralloc.problem import (
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    SlotIndex,
    Usage,
)
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    devices_of,
)


def failing() -> ProblemBuilder:
    builder = ProblemBuilder()
    for _ in range(4):
        builder.device()
    late, early = (
        FatalError("gpu-2: no such key"),
        FatalError("gpu-0: no such key"),
    )
    builder.pod(
        builder.claim(AlternativeSpec(fails={0: early, 1: early, 2: late}))
    )
    builder.pod(builder.claim(AlternativeSpec(fails={2: late})))
    return builder


def test_a_failing_selector_leaves_the_device_out_with_one_warning_per_message() -> (
    None
):
    solution = answer(failing())
    assert solution.warnings == ("gpu-0: no such key", "gpu-2: no such key")
    assert devices_of(solution)[0] == [3]


def test_a_failing_selector_can_be_an_error() -> None:
    with pytest.raises(FatalError, match="gpu-0"):
        solve(failing().problem(), Options(strict_cel=True))


def test_a_device_in_use_is_not_asked() -> None:
    builder = failing()
    builder.usage = Usage(
        frozenset({SlotIndex(0), SlotIndex(1), SlotIndex(2)}), {}, {}
    )
    assert answer(builder).warnings == ()


def test_all_leaves_a_failing_device_out() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    builder.pod(
        builder.claim(
            AlternativeSpec(None, fails={0: FatalError("no such key")})
        )
    )
    assert devices_of(answer(builder)) == [[1]]


def test_a_hint_for_what_cannot_be_placed_is_an_error() -> None:
    builder = ProblemBuilder()
    builder.pod(builder.claim(AlternativeSpec()))
    with pytest.raises(ModelError, match="hint: demand default/pod-0"):
        solve(
            builder.problem(),
            hint=Solution((Placement(DemandIndex(0), NodeIndex(0), ((),)),)),
        )


class Kinds(Overlay):
    """Devices of two kinds in turn, and a third one."""

    def device_key(self, device: DeviceIndex) -> Hashable:
        return "other" if device == 2 else device % 3


def test_candidates_are_in_search_order_whatever_their_kinds() -> None:
    """Devices of a kind are asked about together: of those that differ, the first ones are still the first."""
    builder = ProblemBuilder()
    for _ in range(5):
        builder.device()
    builder.pod(builder.claim(AlternativeSpec(only={0, 1, 3, 4})))
    problem = builder.problem()
    eligibility = Kinds(problem.eligibility)
    problem = replace(problem, eligibility=eligibility)
    [[site]] = survey(problem).sites.values()
    [[choice]] = site.requests
    devices = [candidate.device for candidate in choice.candidates]
    assert devices == [0, 1, 3, 4]
