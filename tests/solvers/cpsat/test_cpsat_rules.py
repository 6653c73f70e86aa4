from __future__ import annotations

import pytest

from dralloc.problem import Constraint, ConstraintKind, PoolState, Usage
from solvers.cpsat.scene import Ask, Scene, answer, devices_of, placed

ALL = Ask(count=None)
MATCH = Constraint(ConstraintKind.MATCH, "numa")
DISTINCT = Constraint(ConstraintKind.DISTINCT, "numa")


def test_a_demand_is_on_one_node_with_all_of_its_claims() -> None:
    scene = Scene(nodes=2)
    scene.device(0)
    scene.device(1)
    scene.pod(scene.claim(Ask()), scene.claim(Ask()))
    assert placed(answer(scene)) == []
    scene.device(1)
    assert devices_of(answer(scene)) == [[1, 2]]


def test_a_demand_goes_to_its_candidate_nodes_only() -> None:
    scene = Scene(nodes=2)
    scene.device(0)
    scene.pod(scene.claim(Ask()), nodes=(1,))
    assert placed(answer(scene)) == []


def test_a_demand_without_requests_needs_a_node_only() -> None:
    scene = Scene()
    scene.pod(scene.claim())
    scene.pod()
    assert placed(answer(scene)) == [0, 1]


@pytest.mark.parametrize(("count", "expected"), [(3, [[0, 1, 2]]), (4, [])])
def test_count(count: int, expected: list[list[int]]) -> None:
    scene = Scene()
    for _ in range(3):
        scene.device()
    scene.pod(scene.claim(Ask(count)))
    assert devices_of(answer(scene)) == expected


def test_a_dedicated_device_serves_one_request() -> None:
    scene = Scene(nodes=2)
    scene.device(None)
    scene.pod(scene.claim(Ask()), nodes=(0,))
    scene.pod(scene.claim(Ask()), nodes=(1,))
    assert len(placed(answer(scene))) == 1


def test_versions_of_a_device_are_one_device() -> None:
    scene = Scene(nodes=2)
    scene.device(0, slot=0)
    scene.device(1, slot=0)
    scene.pod(scene.claim(Ask()), nodes=(0,))
    scene.pod(scene.claim(Ask()), nodes=(1,))
    assert len(placed(answer(scene))) == 1


@pytest.mark.parametrize(("weight", "expected"), [(1, [1, 2]), (3, [0])])
def test_a_version_that_is_shareable_and_one_that_is_not_exclude_each_other(weight: int, expected: list[int]) -> None:
    scene = Scene(nodes=2)
    scene.device(0, slot=0)
    scene.device(1, slot=0, capacity={"memory": 2})
    scene.pod(scene.claim(Ask()), nodes=(0,), weight=weight)
    for _ in range(2):
        scene.pod(scene.claim(Ask(capacity={"memory": 1})), nodes=(1,))
    assert placed(answer(scene)) == expected


@pytest.mark.parametrize(
    "usage", [Usage(frozenset({0}), {}, {}), Usage(frozenset(), {0: 1}, {})], ids=["held", "shared"]
)
def test_a_dedicated_device_in_use_is_taken(usage: Usage) -> None:
    scene = Scene()
    scene.device()
    scene.usage = usage
    scene.pod(scene.claim(Ask()))
    assert placed(answer(scene)) == []
    scene.pod(scene.claim(Ask(admin=True)))
    assert placed(answer(scene)) == [1]


def test_a_shareable_device_that_is_held_is_taken() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 2})
    scene.usage = Usage(frozenset({0}), {}, {})
    scene.pod(scene.claim(Ask(capacity={"memory": 1})))
    assert placed(answer(scene)) == []


def test_admin_access_is_beside_other_claims_but_not_beside_requests_of_its_own() -> None:
    scene = Scene()
    scene.device()
    scene.pod(scene.claim(Ask(admin=True)), scene.claim(Ask(admin=True)))
    scene.pod(scene.claim(Ask()))
    scene.pod(scene.claim(Ask(), Ask(admin=True)))
    assert placed(answer(scene)) == [0, 1]


def test_a_request_never_shares_a_device_with_itself_but_with_others() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 4})
    one = {"memory": 1}
    scene.pod(scene.claim(Ask(2, capacity=one)))
    scene.pod(scene.claim(Ask(capacity=one), Ask(capacity=one)))
    assert placed(answer(scene)) == [1]


@pytest.mark.parametrize(("consumed", "expected"), [(0, 3), (1, 3), (4, 1), (5, 1), (6, 0)])
def test_capacity(consumed: int, expected: int) -> None:
    scene = Scene()
    scene.device(capacity={"memory": 7})
    scene.usage = Usage(frozenset(), {0: 1}, {0: {"memory": consumed}})
    for _ in range(4):
        scene.pod(scene.claim(Ask(capacity={"memory": 2})))
    assert len(placed(answer(scene))) == expected


def test_admin_access_takes_capacity_beside_its_own_demand_only() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 4})
    scene.pod(scene.claim(Ask(capacity={"memory": 4})))
    scene.pod(scene.claim(Ask(capacity={"memory": 3}, admin=True)))
    scene.pod(
        scene.claim(Ask(capacity={"memory": 3}, admin=True)), scene.claim(Ask(capacity={"memory": 2}, admin=True))
    )
    scene.pod(scene.claim(Ask(capacity={"memory": 5}, admin=True)))
    assert placed(answer(scene)) == [0, 1]


def test_capacity_of_the_version_in_use_counts() -> None:
    scene = Scene(nodes=2)
    scene.device(0, slot=0, capacity={"memory": 4})
    scene.device(1, slot=0, capacity={"memory": 2})
    for _ in range(4):
        scene.pod(scene.claim(Ask(capacity={"memory": 1})), nodes=(0,))
    assert placed(answer(scene)) == [0, 1, 2, 3]
    scene.pod(scene.claim(Ask(capacity={"memory": 1})), nodes=(1,), weight=4)
    assert placed(answer(scene)) == [0, 1, 2, 4]


@pytest.mark.parametrize(("free", "expected"), [(6, 3), (5, 2), (-1, 0)])
def test_counters(free: int, expected: int) -> None:
    scene = Scene()
    counter = scene.counter(6, free)
    for _ in range(3):
        scene.device(consumes={counter: 2})
        scene.pod(scene.claim(Ask()))
    assert len(placed(answer(scene))) == expected


def test_a_shareable_device_is_charged_once_and_requests_every_time() -> None:
    scene = Scene()
    counter = scene.counter(7)
    scene.device(consumes={counter: 4}, capacity={"memory": 9})
    for _ in range(4):
        scene.pod(scene.claim(Ask(capacity={"memory": 1}, counters={counter: 1})))
    assert len(placed(answer(scene))) == 3


def test_a_device_that_is_shared_already_is_charged_already() -> None:
    scene = Scene()
    counter = scene.counter(4, free=0)
    scene.device(consumes={counter: 4}, capacity={"memory": 9})
    scene.usage = Usage(frozenset(), {0: 1}, {0: {"memory": 1}})
    scene.pod(scene.claim(Ask(capacity={"memory": 1})))
    assert placed(answer(scene)) == [0]


def test_admin_access_charges_no_counters() -> None:
    scene = Scene()
    counter = scene.counter(4, free=0)
    scene.device(consumes={counter: 4})
    scene.pod(scene.claim(Ask(admin=True)))
    scene.pod(scene.claim(Ask()))
    assert placed(answer(scene)) == [0]


def test_a_grant_minds_the_counters_of_the_version_that_its_node_sees() -> None:
    for node, found in ((0, []), (1, [0])):
        scene = Scene(nodes=2)
        scene.device(0, slot=0, consumes={scene.counter(1, free=0, group=1): 1})
        scene.device(1, slot=0)
        scene.pod(scene.claim(Ask()), nodes=(node,))
        assert placed(answer(scene)) == found


def test_shares_of_two_versions_mind_the_counters_of_their_own() -> None:
    scene = Scene(nodes=2)
    counter = scene.counter(1, free=1, group=1)
    scene.device(0, slot=0, consumes={counter: 1}, capacity={"memory": 2})
    scene.device(1, slot=0, capacity={"memory": 2})
    scene.device(0, slot=1, consumes={counter: 1})
    scene.pod(scene.claim(Ask(only=[2])), nodes=(0,))
    scene.pod(scene.claim(Ask(only=[1], capacity={"memory": 1})), nodes=(1,))
    assert placed(answer(scene)) == [0, 1]
    scene.pod(scene.claim(Ask(only=[0], capacity={"memory": 1})), nodes=(0,), weight=2)
    assert placed(answer(scene)) == [1, 2]


def test_an_overdrawn_group_is_closed_but_what_is_open_stays_open() -> None:
    scene = Scene()
    scene.counter(4, free=-1)
    other = scene.counter(4)
    scene.device(consumes={other: 1})
    scene.pod(scene.claim(Ask(only=[0])))
    shared = scene.device(consumes={other: 1}, capacity={"memory": 2})
    scene.usage = Usage(frozenset(), {shared: 1}, {})
    scene.pod(scene.claim(Ask(only=[shared], capacity={"memory": 1})))
    assert placed(answer(scene)) == [1]


def test_all_takes_every_matching_device_or_nothing() -> None:
    scene = Scene()
    for _ in range(3):
        scene.device()
    scene.pod(scene.claim(Ask(None, only=[0, 1])))
    scene.pod(scene.claim(Ask()))
    assert devices_of(answer(scene)) == [[0, 1], [2]]
    scene.pod(scene.claim(Ask(only=[1])), weight=2)
    assert placed(answer(scene)) == [1, 2]
    scene.usage = Usage(frozenset({0}), {}, {})
    assert placed(answer(scene)) == [1, 2]


def test_two_requests_for_all_of_the_same_devices_exclude_each_other() -> None:
    scene = Scene()
    scene.device()
    scene.device()
    scene.pod(scene.claim(ALL, ALL))
    scene.pod(scene.claim(ALL), scene.claim(ALL))
    assert placed(answer(scene)) == []


@pytest.mark.parametrize("state", [PoolState.INCOMPLETE, PoolState.INVALID])
def test_all_needs_pools_in_order(state: PoolState) -> None:
    scene = Scene()
    scene.device(None)
    scene.states[0] = state
    scene.pod(scene.claim(ALL))
    scene.pod(scene.claim(Ask()))
    assert placed(answer(scene)) == [1]


def test_all_needs_a_device_and_admission_to_each() -> None:
    scene = Scene()
    scene.device()
    scene.device()
    scene.pod(scene.claim(Ask(None, only=[])))
    scene.pod(scene.claim(Ask(None, refused=[1])))
    assert placed(answer(scene)) == []


def test_all_leaves_out_a_shareable_device_without_room() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 2})
    scene.device(capacity={"memory": 2})
    scene.usage = Usage(frozenset(), {0: 1}, {0: {"memory": 2}})
    scene.pod(scene.claim(Ask(None, capacity={"memory": 1})))
    assert devices_of(answer(scene)) == [[1]]


@pytest.mark.parametrize(("other", "expected"), [(2, [[0, 1], [0]]), (3, [[1], [0]])])
def test_all_leaves_out_what_others_fill(other: int, expected: list[list[int]]) -> None:
    scene = Scene()
    scene.device(capacity={"memory": 4})
    scene.device(capacity={"memory": 4})
    scene.pod(scene.claim(Ask(None, capacity={"memory": 2})))
    scene.pod(scene.claim(Ask(only=[0], capacity={"memory": other})))
    assert devices_of(answer(scene)) == expected


def test_all_takes_at_least_one_device() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 4})
    scene.pod(scene.claim(Ask(None, capacity={"memory": 2})))
    scene.pod(scene.claim(Ask(capacity={"memory": 3})), weight=2)
    assert placed(answer(scene)) == [1]


@pytest.mark.parametrize(("other", "expected"), [(2, [1]), (3, [0, 1])])
def test_all_needs_what_it_cannot_have_to_be_full(other: int, expected: list[int]) -> None:
    scene = Scene()
    scene.device(capacity={"memory": 4})
    scene.device()
    scene.pod(scene.claim(Ask(None, refused=[0], capacity={"memory": 2})))
    scene.pod(scene.claim(Ask(only=[0], capacity={"memory": other})))
    assert placed(answer(scene)) == expected


@pytest.mark.parametrize("constraints", [(), (MATCH,)], ids=["any", "matching"])
def test_no_more_results_than_a_claim_can_hold(constraints: tuple[Constraint, ...]) -> None:
    scene = Scene()
    for _ in range(40):
        scene.device(attributes={"numa": [0]})
    scene.pod(scene.claim([Ask(20), Ask(12)], [Ask(20), Ask(13)], constraints=constraints))
    scene.pod(scene.claim(Ask(33)), weight=9)
    scene.pod(scene.claim(ALL), weight=9)
    solution = answer(scene)
    assert [len(devices) for devices in devices_of(solution)] == [32]


def test_match_attribute() -> None:
    scene = Scene()
    for numa in (0, 1, 2, 1):
        scene.device(attributes={"numa": [numa]})
    scene.pod(scene.claim(Ask(), Ask(), constraints=[MATCH]))
    scene.pod(scene.claim(Ask(2), constraints=[MATCH]))
    assert devices_of(answer(scene)) == [[1, 3]] or devices_of(answer(scene)) == [[3, 1]]


def test_match_attribute_with_lists_needs_one_value_on_all() -> None:
    scene = Scene()
    for values in ((0, 1), (1, 2), (2, 0)):
        scene.device(attributes={"numa": values})
    scene.pod(scene.claim(Ask(3), constraints=[MATCH]))
    assert placed(answer(scene)) == []
    scene.pod(scene.claim(Ask(2), constraints=[MATCH]))
    assert placed(answer(scene)) == [1]


def test_match_attribute_leaves_what_cannot_be_compared_alone() -> None:
    scene = Scene()
    scene.device(attributes={"numa": []})
    scene.device(attributes={"numa": []})
    scene.device()
    scene.pod(scene.claim(Ask(2), constraints=[MATCH]))
    assert placed(answer(scene)) == []
    scene.pod(scene.claim(Ask(), constraints=[MATCH]))
    scene.pod(scene.claim([Ask(2), Ask(1)], constraints=[MATCH]))
    assert sorted(devices_of(answer(scene))) == [[0], [1]]


def test_distinct_attribute() -> None:
    scene = Scene()
    for numa in (0, 0, 1):
        scene.device(attributes={"numa": [numa]})
    scene.pod(scene.claim(Ask(), Ask(2), constraints=[DISTINCT]), weight=9)
    scene.pod(scene.claim(Ask(2), constraints=[DISTINCT]))
    assert placed(answer(scene)) == [1]


def test_distinct_attribute_keeps_what_cannot_be_compared_apart() -> None:
    scene = Scene()
    scene.device(attributes={"numa": []})
    scene.device(attributes={"numa": []})
    scene.device(attributes={"numa": [0]})
    scene.pod(scene.claim(Ask(3), constraints=[DISTINCT]), weight=9)
    scene.pod(scene.claim(Ask(2), constraints=[DISTINCT]))
    assert placed(answer(scene)) == [1]


def test_a_device_granted_twice_is_not_distinct_from_itself() -> None:
    scene = Scene()
    scene.device(capacity={"memory": 2}, attributes={"numa": [0]})
    one = Ask(capacity={"memory": 1})
    scene.pod(scene.claim(one, one, constraints=[DISTINCT]))
    assert placed(answer(scene)) == []
    scene.pod(scene.claim(one, one, constraints=[MATCH]))
    assert placed(answer(scene)) == [1]


@pytest.mark.parametrize(("covered", "rank"), [("r0", 1), ("r0/a", 1), ("r0/b", 0)])
def test_a_constraint_covers_a_request_or_one_of_its_subrequests(covered: str, rank: int) -> None:
    scene = Scene()
    scene.device(attributes={"numa": [0]})
    scene.device(attributes={"numa": [1]})
    scene.device(attributes={"numa": [0]})
    constraint = Constraint(ConstraintKind.MATCH, "numa", frozenset({covered, "r1"}))
    scene.pod(scene.claim([Ask(only=[1]), Ask(only=[0])], Ask(only=[2]), constraints=[constraint]))
    solution = answer(scene)
    assert solution.tiers[1].value == rank


def test_gangs() -> None:
    scene = Scene()
    scene.device()
    scene.device()
    for _ in range(3):
        scene.pod(scene.claim(Ask()), gang="large", weight=5)
    for _ in range(2):
        scene.pod(scene.claim(Ask()), gang="small")
    scene.pod(scene.claim(Ask()), gang="halted", weight=5)
    scene.pod(scene.claim(Ask(only=[])), gang="halted")
    assert placed(answer(scene)) == [3, 4]


@pytest.mark.parametrize("defective", [Ask(defect="unknown class"), [Ask(), Ask(defect="unknown class")]])
def test_a_defect_is_fatal_for_the_demand(defective: Ask | list[Ask]) -> None:
    scene = Scene()
    scene.device()
    scene.pod(scene.claim(defective))
    assert placed(answer(scene)) == []
