"""A rulebook of canonical keys: which demands are one class, and which bins.

Demands and bins are told apart by what a decision depends on, and by nothing else: names and indices never count.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DemandIndex,
    NodeIndex,
    Problem,
    SlotIndex,
    Usage,
)
from dralloc.solve.optimum.classes.bins import (
    BinClass,
    BinClassifier,
    find_bins,
)
from dralloc.solve.optimum.classes.serving_modes import classify_demands
from dralloc.solve.optimum.classes.usable_devices import usable_devices
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    placed,
)

ANY = AlternativeSpec()
SAME_NUMA = Constraint(ConstraintKind.MATCH, "numa")


def demand_classes(builder: ProblemBuilder) -> list[list[DemandIndex]]:
    """The members of each class."""
    return [
        demand_class.members
        for demand_class in classify_demands(builder.problem(), Stop()).classes
    ]


def bin_classes(problem: Problem) -> list[BinClass]:
    demands = classify_demands(problem, Stop())
    usable = usable_devices(problem, demands, Stop(), strict_cel=False)
    classifier = BinClassifier(problem, demands, usable)
    for bin_ in find_bins(problem, demands, usable, Stop()):
        classifier.enter(bin_)
    return list(classifier.classes.values())


def sizes(problem: Problem) -> list[int]:
    """How many bins are in each class."""
    return [len(bin_class.bins) for bin_class in bin_classes(problem)]


def test_demands_that_differ_in_names_alone_are_one_class() -> None:
    builder = ProblemBuilder()
    builder.device()
    for _ in range(3):
        builder.pod(builder.claim(ANY))
    assert demand_classes(builder) == [[0, 1, 2]]


Second = Callable[[ProblemBuilder], int]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(
            lambda builder: builder.pod(builder.claim(ANY), weight=2),
            id="weight",
        ),
        pytest.param(
            lambda builder: builder.pod(builder.claim(ANY), nodes=(0,)),
            id="candidate nodes",
        ),
        pytest.param(
            lambda builder: builder.pod(
                builder.claim(AlternativeSpec(count=2))
            ),
            id="count",
        ),
        pytest.param(
            lambda builder: builder.pod(builder.claim(ANY, ANY)), id="requests"
        ),
        pytest.param(
            lambda builder: builder.pod(builder.claim(ANY), builder.claim(ANY)),
            id="claims",
        ),
        pytest.param(
            lambda builder: builder.pod(
                builder.claim(AlternativeSpec(only=[0]))
            ),
            id="devices that match",
        ),
        pytest.param(
            lambda builder: builder.pod(
                builder.claim([ANY, AlternativeSpec(count=2)])
            ),
            id="alternatives",
        ),
    ],
)
def test_demands_that_differ_in_what_a_decision_depends_on_are_two_classes(
    second: Second,
) -> None:
    builder = ProblemBuilder(nodes=2)
    for _ in range(4):
        builder.device(0)
    builder.pod(builder.claim(ANY))
    second(builder)
    assert demand_classes(builder) == [[0], [1]]


def test_bins_that_differ_in_names_alone_are_one_class() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
    builder.pod(builder.claim(ANY))
    assert sizes(builder.problem()) == [3]


def test_devices_in_use_are_in_no_bin() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
    builder.usage = Usage(frozenset({SlotIndex(1)}), {}, {})
    builder.pod(builder.claim(ANY))
    assert sizes(builder.problem()) == [2]


def test_bins_are_told_apart_by_what_is_left_of_capacities() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node, capacity={"memory": 10})
    builder.usage = Usage(
        frozenset(), {SlotIndex(0): 1}, {SlotIndex(0): {"memory": 4}}
    )
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 3})))
    assert sizes(builder.problem()) == [1, 2]


@pytest.mark.parametrize("shareable_first", [True, False])
def test_bins_are_told_apart_by_who_can_share_their_devices(
    shareable_first: bool,
) -> None:
    """Two devices that consume as much of a counter each, and have no capacities."""
    builder = ProblemBuilder()
    for is_shareable in (shareable_first, not shareable_first):
        counter = builder.counter(1)
        capacity: dict[str, int] | None = {} if is_shareable else None
        builder.device(consumes={counter: 1}, capacity=capacity)
    for _ in range(6):
        builder.pod(builder.claim(ANY))
    assert sizes(builder.problem()) == [1, 1]
    assert len(placed(answer(builder))) == 6


def test_bins_are_told_apart_by_whose_devices_are_open() -> None:
    """Of two shared devices one is in use: it consumes nothing any more."""
    builder = ProblemBuilder()
    for _ in range(2):
        counter = builder.counter(2, free=1)
        builder.device(consumes={counter: 1}, capacity={})
    builder.usage = Usage(frozenset(), {SlotIndex(0): 1}, {})
    builder.pod(builder.claim(ANY))
    assert sizes(builder.problem()) == [1, 1]


def test_what_is_left_counts_in_steps_of_what_can_be_asked_for() -> None:
    """Of 10 and of 11, in threes, 9 can be had."""
    builder = ProblemBuilder(nodes=3)
    for node, memory in enumerate((10, 11, 12)):
        builder.device(node, capacity={"memory": memory})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 3})))
    assert sizes(builder.problem()) == [2, 1]


def test_a_counter_that_cannot_run_out_is_none() -> None:
    """Two devices of 4: with 8 and with 9 both can be had, with 7 one of them."""
    builder = ProblemBuilder(nodes=3)
    for node, free in enumerate((8, 9, 7)):
        counter = builder.counter(total=free)
        builder.device(node, consumes={counter: 4})
        builder.device(node, consumes={counter: 4})
    builder.pod(builder.claim(ANY))
    ample, scarce = bin_classes(builder.problem())
    assert (len(ample.bins), len(scarce.bins)) == (2, 1)
    assert [unit.free for unit in ample.units] == [()]
    assert [unit.free for unit in scarce.units] == [(1,)], "in fours"


def test_attributes_count_only_where_a_constraint_compares_them() -> None:
    def problem(*constraints: Constraint) -> Problem:
        builder = ProblemBuilder(nodes=2)
        for node, numa in enumerate([(0, 0), (0, 1)]):
            for numa_node in numa:
                builder.device(
                    node,
                    attributes={
                        "numa": [numa_node],
                        "serial": [len(builder.devices)],
                    },
                )
        builder.pod(
            builder.claim(AlternativeSpec(count=2), constraints=constraints)
        )
        return builder.problem()

    assert sizes(problem()) == [2]
    assert [
        len(bin_class.units) for bin_class in bin_classes(problem(SAME_NUMA))
    ] == [
        2,
        1,
    ]


def test_values_are_numbered_as_they_appear() -> None:
    """So equal patterns of different values are one class."""
    builder = ProblemBuilder(nodes=2)
    for node, numa in enumerate([(0, 0), (7, 7)]):
        for numa_node in numa:
            builder.device(node, attributes={"numa": [numa_node]})
    builder.pod(
        builder.claim(AlternativeSpec(count=2), constraints=[SAME_NUMA])
    )
    assert sizes(builder.problem()) == [2]


def test_nodes_are_told_apart_by_whose_candidates_they_are() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
    builder.pod(builder.claim(ANY))
    builder.pod(builder.claim(ANY), nodes=(NodeIndex(0), NodeIndex(2)))
    node_groups = {
        tuple(node for bin_ in bin_class.bins for node in bin_.nodes)
        for bin_class in bin_classes(builder.problem())
    }
    assert node_groups == {(0, 2), (1,)}
