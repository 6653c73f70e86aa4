from __future__ import annotations

from dataclasses import replace

import pytest

from dralloc.check import check
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    NodeIndex,
    PoolState,
    SlotIndex,
    Usage,
)
from dralloc.problem.requests import ParentGroup
from dralloc.solve.first_fit import first_fit
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    answer,
    devices_of,
    placed,
)

ALL = AlternativeSpec(count=None)
MATCH = Constraint(ConstraintKind.MATCH, "numa")
DISTINCT = Constraint(ConstraintKind.DISTINCT, "numa")


def test_a_demand_is_on_one_node_with_all_of_its_claims() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    builder.device(1)
    builder.pod(
        builder.claim(AlternativeSpec()), builder.claim(AlternativeSpec())
    )
    assert placed(answer(builder)) == []
    builder.device(1)
    assert devices_of(answer(builder)) == [[1, 2]]


def test_a_demand_goes_to_its_candidate_nodes_only() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(1),))
    assert placed(answer(builder)) == []


def test_a_demand_without_requests_needs_a_node_only() -> None:
    builder = ProblemBuilder()
    builder.pod(builder.claim())
    builder.pod()
    assert placed(answer(builder)) == [0, 1]


@pytest.mark.parametrize(("count", "expected"), [(3, [[0, 1, 2]]), (4, [])])
def test_count(count: int, expected: list[list[int]]) -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device()
    builder.pod(builder.claim(AlternativeSpec(count)))
    assert devices_of(answer(builder)) == expected


def test_a_dedicated_device_serves_one_request() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(None)
    builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(0),))
    builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(1),))
    assert len(placed(answer(builder))) == 1


def test_versions_of_a_device_are_one_device() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0, slot=0)
    builder.device(1, slot=0)
    builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(0),))
    builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(1),))
    assert len(placed(answer(builder))) == 1


@pytest.mark.parametrize(("weight", "expected"), [(1, [1, 2]), (3, [0])])
def test_a_version_that_is_shareable_and_one_that_is_not_exclude_each_other(
    weight: int, expected: list[int]
) -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0, slot=0)
    builder.device(1, slot=0, capacity={"memory": 2})
    builder.pod(
        builder.claim(AlternativeSpec()), nodes=(NodeIndex(0),), weight=weight
    )
    for _ in range(2):
        builder.pod(
            builder.claim(AlternativeSpec(capacity={"memory": 1})),
            nodes=(NodeIndex(1),),
        )
    assert placed(answer(builder)) == expected


@pytest.mark.parametrize(
    "usage",
    [
        Usage(frozenset({SlotIndex(0)}), {}, {}),
        Usage(frozenset(), {SlotIndex(0): 1}, {}),
    ],
    ids=["held", "shared"],
)
def test_a_dedicated_device_in_use_is_taken(usage: Usage) -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.usage = usage
    builder.pod(builder.claim(AlternativeSpec()))
    assert placed(answer(builder)) == []
    builder.pod(builder.claim(AlternativeSpec(admin=True)))
    assert placed(answer(builder)) == [1]


def test_a_shareable_device_that_is_held_is_taken() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2})
    builder.usage = Usage(frozenset({SlotIndex(0)}), {}, {})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 1})))
    assert placed(answer(builder)) == []


def test_admin_access_is_beside_other_claims_but_not_beside_requests_of_its_own() -> (
    None
):
    builder = ProblemBuilder()
    builder.device()
    builder.pod(
        builder.claim(AlternativeSpec(admin=True)),
        builder.claim(AlternativeSpec(admin=True)),
    )
    builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(builder.claim(AlternativeSpec(), AlternativeSpec(admin=True)))
    assert placed(answer(builder)) == [0, 1]


def test_a_request_never_shares_a_device_with_itself_but_with_others() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    share = {"memory": 1}
    builder.pod(builder.claim(AlternativeSpec(2, capacity=share)))
    builder.pod(
        builder.claim(
            AlternativeSpec(capacity=share), AlternativeSpec(capacity=share)
        )
    )
    assert placed(answer(builder)) == [1]


@pytest.mark.parametrize(
    ("consumed", "expected"), [(0, 3), (1, 3), (4, 1), (5, 1), (6, 0)]
)
def test_capacity(consumed: int, expected: int) -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 7})
    builder.usage = Usage(
        frozenset(), {SlotIndex(0): 1}, {SlotIndex(0): {"memory": consumed}}
    )
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 2})))
    assert len(placed(answer(builder))) == expected


def test_admin_access_takes_capacity_beside_its_own_demand_only() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 4})))
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 3}, admin=True))
    )
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 3}, admin=True)),
        builder.claim(AlternativeSpec(capacity={"memory": 2}, admin=True)),
    )
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 5}, admin=True))
    )
    assert placed(answer(builder)) == [0, 1]


def test_capacity_of_the_version_in_use_counts() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0, slot=0, capacity={"memory": 4})
    builder.device(1, slot=0, capacity={"memory": 2})
    for _ in range(4):
        builder.pod(
            builder.claim(AlternativeSpec(capacity={"memory": 1})),
            nodes=(NodeIndex(0),),
        )
    assert placed(answer(builder)) == [0, 1, 2, 3]
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 1})),
        nodes=(NodeIndex(1),),
        weight=4,
    )
    assert placed(answer(builder)) == [0, 1, 2, 4]


@pytest.mark.parametrize(("free", "expected"), [(6, 3), (5, 2), (-1, 0)])
def test_counters(free: int, expected: int) -> None:
    builder = ProblemBuilder()
    counter = builder.counter(6, free)
    for _ in range(3):
        builder.device(consumes={counter: 2})
        builder.pod(builder.claim(AlternativeSpec()))
    assert len(placed(answer(builder))) == expected


def test_a_shareable_device_is_charged_once_and_requests_every_time() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(7)
    builder.device(consumes={counter: 4}, capacity={"memory": 9})
    for _ in range(4):
        builder.pod(
            builder.claim(
                AlternativeSpec(capacity={"memory": 1}, counters={counter: 1})
            )
        )
    assert len(placed(answer(builder))) == 3


def test_a_device_that_is_shared_already_is_charged_already() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(4, free=0)
    builder.device(consumes={counter: 4}, capacity={"memory": 9})
    builder.usage = Usage(
        frozenset(), {SlotIndex(0): 1}, {SlotIndex(0): {"memory": 1}}
    )
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 1})))
    assert placed(answer(builder)) == [0]


def test_admin_access_charges_no_counters() -> None:
    builder = ProblemBuilder()
    counter = builder.counter(4, free=0)
    builder.device(consumes={counter: 4})
    builder.pod(builder.claim(AlternativeSpec(admin=True)))
    builder.pod(builder.claim(AlternativeSpec()))
    assert placed(answer(builder)) == [0]


def test_a_grant_minds_the_counters_of_the_version_that_its_node_sees() -> None:
    for node, expected in ((0, []), (1, [0])):
        builder = ProblemBuilder(nodes=2)
        builder.device(
            0,
            slot=0,
            consumes={builder.counter(1, free=0, group=1): 1},
        )
        builder.device(1, slot=0)
        builder.pod(builder.claim(AlternativeSpec()), nodes=(NodeIndex(node),))
        assert placed(answer(builder)) == expected


def test_who_shares_a_device_in_use_asks_for_no_counters() -> None:
    """The share of the version without counters comes first."""
    builder = ProblemBuilder(nodes=2)
    counter = builder.counter(1, free=1, group=1)
    builder.device(0, slot=0, consumes={counter: 1}, capacity={"memory": 2})
    builder.device(1, slot=0, capacity={"memory": 2})
    builder.device(0, slot=1, consumes={counter: 1})
    builder.pod(builder.claim(AlternativeSpec(only=[2])), nodes=(NodeIndex(0),))
    builder.pod(
        builder.claim(AlternativeSpec(only=[1], capacity={"memory": 1})),
        nodes=(NodeIndex(1),),
    )
    assert placed(answer(builder)) == [0, 1]
    builder.pod(
        builder.claim(AlternativeSpec(only=[0], capacity={"memory": 1})),
        nodes=(NodeIndex(0),),
        weight=2,
    )
    assert placed(answer(builder)) == [0, 1, 2]
    check(builder.problem(), first_fit(builder.problem()))
    assert placed(first_fit(builder.problem())) == [0, 1, 2]


def test_an_overdrawn_group_is_closed_but_what_is_open_stays_open() -> None:
    builder = ProblemBuilder()
    builder.counter(4, free=-1)
    other = builder.counter(4)
    builder.device(consumes={other: 1})
    builder.pod(builder.claim(AlternativeSpec(only=[0])))
    shared = builder.device(consumes={other: 1}, capacity={"memory": 2})
    builder.usage = Usage(frozenset(), {SlotIndex(shared): 1}, {})
    builder.pod(
        builder.claim(AlternativeSpec(only=[shared], capacity={"memory": 1}))
    )
    assert placed(answer(builder)) == [1]


def test_all_takes_every_matching_device_or_nothing() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device()
    builder.pod(builder.claim(AlternativeSpec(None, only=[0, 1])))
    builder.pod(builder.claim(AlternativeSpec()))
    assert devices_of(answer(builder)) == [[0, 1], [2]]
    builder.pod(builder.claim(AlternativeSpec(only=[1])), weight=2)
    assert placed(answer(builder)) == [1, 2]
    builder.usage = Usage(frozenset({SlotIndex(0)}), {}, {})
    assert placed(answer(builder)) == [1, 2]


def test_two_requests_for_all_of_the_same_devices_exclude_each_other() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    builder.pod(builder.claim(ALL, ALL))
    builder.pod(builder.claim(ALL), builder.claim(ALL))
    assert placed(answer(builder)) == []


@pytest.mark.parametrize("state", [PoolState.INCOMPLETE, PoolState.INVALID])
def test_all_needs_pools_in_order(state: PoolState) -> None:
    builder = ProblemBuilder()
    builder.device(None)
    builder.states[0] = state
    builder.pod(builder.claim(ALL))
    builder.pod(builder.claim(AlternativeSpec()))
    assert placed(answer(builder)) == [1]


def test_all_needs_a_device_and_admission_to_each() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    builder.pod(builder.claim(AlternativeSpec(None, only=[])))
    builder.pod(builder.claim(AlternativeSpec(None, refused=[1])))
    assert placed(answer(builder)) == []


def test_all_leaves_out_a_shareable_device_without_room() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2})
    builder.device(capacity={"memory": 2})
    builder.usage = Usage(
        frozenset(), {SlotIndex(0): 1}, {SlotIndex(0): {"memory": 2}}
    )
    builder.pod(builder.claim(AlternativeSpec(None, capacity={"memory": 1})))
    assert devices_of(answer(builder)) == [[1]]


@pytest.mark.parametrize(
    ("other", "expected"), [(2, [[0, 1], [0]]), (3, [[1], [0]])]
)
def test_all_leaves_out_what_others_fill(
    other: int, expected: list[list[int]]
) -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    builder.device(capacity={"memory": 4})
    builder.pod(builder.claim(AlternativeSpec(None, capacity={"memory": 2})))
    builder.pod(
        builder.claim(AlternativeSpec(only=[0], capacity={"memory": other}))
    )
    assert devices_of(answer(builder)) == expected


def test_all_takes_at_least_one_device() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    builder.pod(builder.claim(AlternativeSpec(None, capacity={"memory": 2})))
    builder.pod(
        builder.claim(AlternativeSpec(capacity={"memory": 3})), weight=2
    )
    assert placed(answer(builder)) == [1]


@pytest.mark.parametrize(("other", "expected"), [(2, [1]), (3, [0, 1])])
def test_all_needs_what_it_cannot_have_to_be_full(
    other: int, expected: list[int]
) -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    builder.device()
    builder.pod(
        builder.claim(
            AlternativeSpec(None, refused=[0], capacity={"memory": 2})
        )
    )
    builder.pod(
        builder.claim(AlternativeSpec(only=[0], capacity={"memory": other}))
    )
    assert placed(answer(builder)) == expected


@pytest.mark.parametrize("constraints", [(), (MATCH,)], ids=["any", "matching"])
def test_no_more_results_than_a_claim_can_hold(
    constraints: tuple[Constraint, ...],
) -> None:
    builder = ProblemBuilder()
    for _ in range(40):
        builder.device(attributes={"numa": [0]})
    builder.pod(
        builder.claim(
            [AlternativeSpec(20), AlternativeSpec(12)],
            [AlternativeSpec(20), AlternativeSpec(13)],
            constraints=constraints,
        )
    )
    builder.pod(builder.claim(AlternativeSpec(33)), weight=9)
    builder.pod(builder.claim(ALL), weight=9)
    solution = answer(builder)
    assert [len(devices) for devices in devices_of(solution)] == [32]


def test_match_attribute() -> None:
    builder = ProblemBuilder()
    for numa in (0, 1, 2, 1):
        builder.device(attributes={"numa": [numa]})
    builder.pod(
        builder.claim(AlternativeSpec(), AlternativeSpec(), constraints=[MATCH])
    )
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[MATCH]))
    assert [sorted(devices) for devices in devices_of(answer(builder))] == [
        [1, 3]
    ]


def test_match_attribute_with_lists_needs_one_value_on_all() -> None:
    builder = ProblemBuilder()
    for values in ((0, 1), (1, 2), (2, 0)):
        builder.device(attributes={"numa": values})
    builder.pod(builder.claim(AlternativeSpec(3), constraints=[MATCH]))
    assert placed(answer(builder)) == []
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[MATCH]))
    assert placed(answer(builder)) == [1]


def test_match_attribute_leaves_what_cannot_be_compared_alone() -> None:
    builder = ProblemBuilder()
    builder.device(attributes={"numa": []})
    builder.device(attributes={"numa": []})
    builder.device()
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[MATCH]))
    assert placed(answer(builder)) == []
    builder.pod(builder.claim(AlternativeSpec(), constraints=[MATCH]))
    builder.pod(
        builder.claim(
            [AlternativeSpec(2), AlternativeSpec(1)], constraints=[MATCH]
        )
    )
    assert sorted(devices_of(answer(builder))) == [[0], [1]]


def test_distinct_attribute() -> None:
    builder = ProblemBuilder()
    for numa in (0, 0, 1):
        builder.device(attributes={"numa": [numa]})
    builder.pod(
        builder.claim(
            AlternativeSpec(), AlternativeSpec(2), constraints=[DISTINCT]
        ),
        weight=9,
    )
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[DISTINCT]))
    assert placed(answer(builder)) == [1]


def test_distinct_attribute_keeps_what_cannot_be_compared_apart() -> None:
    builder = ProblemBuilder()
    builder.device(attributes={"numa": []})
    builder.device(attributes={"numa": []})
    builder.device(attributes={"numa": [0]})
    builder.pod(
        builder.claim(AlternativeSpec(3), constraints=[DISTINCT]), weight=9
    )
    builder.pod(builder.claim(AlternativeSpec(2), constraints=[DISTINCT]))
    assert placed(answer(builder)) == [1]


def test_a_device_granted_twice_is_not_distinct_from_itself() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2}, attributes={"numa": [0]})
    spec = AlternativeSpec(capacity={"memory": 1})
    builder.pod(builder.claim(spec, spec, constraints=[DISTINCT]))
    assert placed(answer(builder)) == []
    builder.pod(builder.claim(spec, spec, constraints=[MATCH]))
    assert placed(answer(builder)) == [1]


@pytest.mark.parametrize(
    ("covered", "rank"), [("r0", 1), ("r0/a", 1), ("r0/b", 0)]
)
def test_a_constraint_covers_a_request_or_one_of_its_subrequests(
    covered: str, rank: int
) -> None:
    builder = ProblemBuilder()
    builder.device(attributes={"numa": [0]})
    builder.device(attributes={"numa": [1]})
    builder.device(attributes={"numa": [0]})
    constraint = Constraint(
        ConstraintKind.MATCH, "numa", frozenset({covered, "r1"})
    )
    builder.pod(
        builder.claim(
            [AlternativeSpec(only=[1]), AlternativeSpec(only=[0])],
            AlternativeSpec(only=[2]),
            constraints=[constraint],
        )
    )
    solution = answer(builder)
    assert solution.tiers[1].value == rank


def test_gangs() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()), gang="large", weight=5)
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()), gang="small")
    builder.pod(builder.claim(AlternativeSpec()), gang="halted", weight=5)
    builder.pod(builder.claim(AlternativeSpec(only=[])), gang="halted")
    assert placed(answer(builder)) == [3, 4]


def test_a_gang_has_its_quorum_or_nothing() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    for gang, quorum in (("large", 3), ("small", 1), ("halted", 2)):
        for _ in range(3):
            builder.pod(
                builder.claim(AlternativeSpec()),
                gang=gang,
                weight=quorum,
                quorum=quorum,
            )
    builder.demands[-2:] = [
        replace(demand, nodes=()) for demand in builder.demands[-2:]
    ]
    assert [
        builder.demands[demand_index].gang
        for demand_index in placed(answer(builder))
    ] == [
        "small",
        "small",
    ]


@pytest.mark.parametrize(("devices", "expected"), [(1, []), (2, [0, 1])])
def test_a_group_that_needs_no_child_counts_only_with_somebody_below_it(
    devices: int, expected: list[int]
) -> None:
    builder = ProblemBuilder()
    for _ in range(devices):
        builder.device()
    root = ParentGroup("root", 2)
    lower = ParentGroup("lower", 0, parent=root)
    for gang, parent in (("beside", root), ("below", lower)):
        builder.pod(builder.claim(AlternativeSpec()), gang=gang, quorum=1)
        builder.demands[-1] = replace(builder.demands[-1], parent=parent)
    assert placed(answer(builder)) == expected


@pytest.mark.parametrize(
    "defective",
    [
        AlternativeSpec(defect="unknown class"),
        [AlternativeSpec(), AlternativeSpec(defect="unknown class")],
    ],
)
def test_a_defect_is_fatal_for_the_demand(
    defective: AlternativeSpec | list[AlternativeSpec],
) -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.pod(builder.claim(defective))
    assert placed(answer(builder)) == []
