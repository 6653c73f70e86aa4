from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from dralloc.check import check
from dralloc.objects.choices import Goal
from dralloc.objects.errors import ModelError
from dralloc.problem import (
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.solution import Grant, Placement, Solution, Status
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, Progress, build, solve
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
)
from strategies import problems


def hard(pods: int = 60, gpus: int = 8) -> Problem:
    """GPUs cut in many ways, with more pods than fit, and odd amounts that make every proof long."""
    builder = ProblemBuilder(nodes=2)
    crowd(builder, random.Random(1), pods, [gpu % 2 for gpu in range(gpus)])
    return builder.problem()


def islands(node_count: int, pods: int, gpus: int) -> Problem:
    """The same on several nodes that have nothing to do with each other."""
    builder, dice = ProblemBuilder(nodes=node_count), random.Random(1)
    for node in range(node_count):
        crowd(builder, dice, pods, [node] * gpus)
    return builder.problem()


def crowd(
    builder: ProblemBuilder,
    dice: random.Random,
    pods: int,
    nodes: Sequence[int],
) -> None:
    """A GPU on each of the nodes, and pods for any of them."""
    sizes: dict[int, list[int]] = {size: [] for size in (11, 17, 23, 31)}
    for node in nodes:
        counters = [
            builder.counter(
                100, counter_set=f"gpu-{len(builder.counters) // 3}"
            )
            for _ in range(3)
        ]
        for size, devices in sizes.items():
            for _ in range(100 // size):
                amounts = {
                    counter: size + dice.randint(-3, 3) for counter in counters
                }
                devices.append(builder.device(node, consumes=amounts))
    for _ in range(pods):
        size, other = dice.sample(sorted(sizes), 2)
        builder.pod(
            builder.claim(
                [
                    AlternativeSpec(only=sizes[size]),
                    AlternativeSpec(only=sizes[other]),
                ]
            ),
            weight=dice.randint(1, 99),
        )


def in_order(problem: Problem) -> Solution:
    """Some valid answer: the first pods, each with the first candidate that leaves the counters enough."""
    free = [counter.free for counter in problem.counters]
    taken: set[int] = set()
    placements = []
    for demand_index, demand in numbered(problem.demands):
        alternative = demand.claims[0].requests[0].alternatives[0]
        for device, view in numbered(problem.devices):
            fits = all(
                amount <= free[counter] for counter, amount in view.consumes
            )
            if (
                device not in taken
                and fits
                and problem.eligibility.selects(alternative.index, device)
            ):
                node = next(
                    index
                    for index, node in numbered(problem.nodes)
                    if device in node.devices()
                )
                placements.append(
                    Placement(demand_index, node, ((Grant(0, 0, device),),))
                )
                taken.add(device)
                for counter, amount in view.consumes:
                    free[counter] -= amount
                break
    return Solution(tuple(placements))


def weight(problem: Problem, solution: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in solution.placements
    )


@pytest.mark.parametrize("limit", [0.001, 0.3])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_solve_is_no_worse_than_its_hint(
    limit: float, workers: int
) -> None:
    problem = hard()
    hint = in_order(problem)
    check(problem, hint)
    solution = solve(
        problem,
        Options(time_limit=limit, workers=workers, goal=Goal.SPREAD),
        hint,
    )
    check(problem, solution)
    first = solution.tiers[0]
    assert weight(problem, hint) <= first.value <= first.bound
    if limit < 0.01:
        assert solution.status is Status.FEASIBLE
        assert solution.placements == hint.placements
        assert solution.timings["total"] < 2


def test_without_hint_and_time_there_is_an_answer_with_a_bound() -> None:
    problem = hard()
    solution = solve(problem, Options(time_limit=0.001))
    assert solution.placements == ()
    assert solution.tiers[0].bound == sum(
        demand.weight for demand in problem.demands
    )


def test_an_optimal_hint_is_proven_without_a_search_and_kept() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    hint = Solution(
        (
            Placement(
                DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(1)),),)
            ),
        )
    )
    news: list[Progress] = []
    solution = solve(problem, Options(), hint, news.append)
    assert solution.placements == hint.placements
    assert solution.status is Status.OPTIMAL
    assert news == []


def test_a_hint_with_other_ones_of_equal_demands_is_good_too() -> None:
    builder = ProblemBuilder()
    builder.device()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    hint = Solution(
        (
            Placement(
                DemandIndex(2), NodeIndex(0), ((Grant(0, 0, DeviceIndex(0)),),)
            ),
        )
    )
    solution = solve(builder.problem(), hint=hint)
    assert solution.placements == hint.placements
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_again(goal: Goal, workers: int) -> None:
    problem = hard(pods=6, gpus=1)
    options = Options(goal=goal, workers=workers, seed=7)
    first, second = solve(problem, options), solve(problem, options)
    assert replace(first, timings={}) == replace(second, timings={})
    assert first.status is Status.OPTIMAL


def test_progress_improves() -> None:
    news: list[Progress] = []
    solution = solve(hard(pods=12, gpus=2), progress=news.append)
    weights = [progress for progress in news if progress.phase == "weight"]
    assert [progress.best for progress in weights] == sorted(
        progress.best for progress in weights
    )
    assert weights[-1].best == solution.tiers[0].value
    assert all(progress.best <= progress.bound for progress in weights)


@pytest.mark.parametrize("per_device", [True, False])
@given(problem=problems(max_demands=6))
@settings(max_examples=examples(40))
def test_progress_starts_at_the_answer_in_hand_and_never_falls_below(
    per_device: bool, problem: Problem
) -> None:
    news: list[Progress] = []
    hint = first_fit(problem)
    in_hand = sum(
        problem.demands[placement.demand].weight
        for placement in hint.placements
    )
    solution = solve(problem, Options(per_device=per_device), hint, news.append)
    best = [told.best for told in news if told.phase == "weight"]
    assert best == sorted(best)
    assert best[:1] in ([], [in_hand])
    assert best[-1:] in ([], [solution.tiers[0].value])


@pytest.mark.parametrize("hinted", [True, False])
def test_a_keyboard_interrupt_ends_the_search_with_the_best_so_far(
    hinted: bool,
) -> None:
    problem = hard()
    hint = in_order(problem) if hinted else None

    def interrupt(news: Progress) -> None:
        if news.best > 100:
            raise KeyboardInterrupt

    solution = solve(problem, Options(), hint, interrupt)
    check(problem, solution)
    assert solution.status is Status.FEASIBLE
    assert solution.tiers[0].value > 100
    assert solution.tiers[0].bound >= solution.tiers[0].value


def test_an_error_of_the_listener_is_its_own() -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(hard(), progress=fail)


@pytest.mark.parametrize(
    "options",
    [
        {"time_limit": 0},
        {"workers": 0},
        {"seed": -1},
        {"time_limit": float("nan")},
    ],
)
def test_options_in_range(options: dict[str, int]) -> None:
    with pytest.raises(ModelError):
        Options(**options)  # type: ignore[arg-type]


def test_the_model_can_be_read(tmp_path: Path) -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 2})
    builder.pod(
        builder.claim(
            AlternativeSpec(capacity={"memory": 1}),
            [AlternativeSpec(), AlternativeSpec(2, capacity={"memory": 1})],
        )
    )
    path = tmp_path / "model.txt"
    build(builder.problem()).write(path)
    text = path.read_text()
    names = (
        "miss 0 default/pod-0",
        "on 0 default/pod-0 node-0",
        "serve 0 0 r1/a node-0",
        "take 0 0 r0 node-0 driver/pool-0/device-1",
        "open driver/pool-0/device-0",
    )
    for name in names:
        assert f'"{name}"' in text
    with pytest.raises(ModelError, match="cannot write"):
        build(builder.problem()).write(tmp_path / "missing" / "model.txt")


def test_timings_tell_the_phases() -> None:
    problem = hard(pods=6, gpus=2)
    assert set(solve(problem, Options(goal=Goal.SPREAD)).timings) >= {
        "survey",
        "weight",
        "total",
    }
    assert answer(ProblemBuilder()).timings == {}
