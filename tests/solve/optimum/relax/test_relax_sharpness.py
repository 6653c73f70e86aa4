"""What relaxations see: small problems whose bound is the optimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dralloc.objects.choices import Goal
from dralloc.problem import Constraint, ConstraintKind, DemandIndex
from dralloc.problem.inter_pod import (
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.solve.optimum.objective import (
    ALTERNATIVES,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import (
    RelaxationLadder,
    patterns,
    relaxed_bounds,
)
from dralloc.solve.optimum.relax.levels import LexicographicLevel, levels_of
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def least_missed(builder: ProblemBuilder) -> int:
    problem = builder.problem()
    tiers = (*placed_weight(problem), *after_weight(Goal.NONE))
    *_, bound = relaxed_bounds(problem, tiers, Stop())
    return bound.costs[0]


def test_partitions_share_counters() -> None:
    builder = ProblemBuilder()
    slices = builder.counter(total=4, free=3)
    for _ in range(4):
        builder.device(consumes={slices: 1})
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_missed(builder) == 1


def test_who_needs_more_than_half_of_a_device_has_it_alone() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device(capacity={"memory": 10})
    for memory in (6, 6, 6, 6, 10):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    # In fractions there is room for four of them, and for a part of the last one.
    assert least_missed(builder) == 2


def test_of_a_shared_device_there_are_no_fractions_of_shares() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device(capacity={"memory": 10, "cores": 10})
    for memory, cores in [(4, 2), (2, 4)] * 5:
        amounts = {"memory": memory, "cores": cores}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    # Three fit on each device; in fractions, 10 thirds, and none of them takes more than half.
    assert least_missed(builder) == 1


def test_shares_that_are_not_listed_still_take_their_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "_PATTERNS_PER_DEVICE", 2)
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 20})
    for memory in (9, 9, 9, 2, 2):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    # What is left beside two large shares is enough for one of the small ones.
    assert least_missed(builder) == 2


def test_a_share_of_a_byte_is_not_listed_billions_of_times() -> None:
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 2**50})
    for memory in (2**49, 2**49, 2**49, 1):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    # A byte is next to nothing of what there is: only the large ones are counted.
    assert least_missed(builder) == 1


def test_halves_of_a_counter_are_counted_too() -> None:
    builder = ProblemBuilder()
    slices = builder.counter(total=7)
    for _ in range(2):
        builder.device(consumes={slices: 4})
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_missed(builder) == 1


def test_who_asks_for_all_devices_of_a_node_has_it_alone() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 0, 1, 1):
        builder.device(node)
    for count in (None, None, 1, 1):
        builder.pod(builder.claim(AlternativeSpec(count=count)))
    # One node goes to a claim for all, the other one to the two that ask for one device.
    assert least_missed(builder) == 1


def test_all_devices_of_a_node_and_one_more_are_of_the_same_device() -> None:
    """Where a node has one device, a pod with these two requests draws on it twice."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 1):
        builder.device(node)
    builder.pod(
        builder.claim(AlternativeSpec(count=None)),
        builder.claim(AlternativeSpec()),
    )
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_missed(builder) == 2


def test_all_shared_devices_are_one_share_at_least() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(capacity={"memory": 10})
    for _ in range(3):
        amounts = {"memory": 5}
        builder.pod(builder.claim(AlternativeSpec(None, capacity=amounts)))
    # Two of them fit, with a share of each device; the bound counts one share of any, which leaves room for the third.
    assert least_missed(builder) == 0


def test_who_uses_a_claim_with_others_takes_a_part_of_it() -> None:
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    shared = [builder.claim(AlternativeSpec()) for _ in range(3)]
    for claim in shared:
        builder.pod(claim)
        builder.pod(claim)
    # Two claims, and so four of the pods, get a device.
    assert least_missed(builder) == 2


def least_missed_with(rule: InterPodRule, pods: int) -> int:
    """Of so many pods that carry a rule and count for it, on three nodes with four devices each."""
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        for _ in range(4):
            builder.device(node)
    for _ in range(pods):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    role = Role(rule, carries=True, counts=True)
    demands = [replace(demand, roles=(role,)) for demand in problem.demands]
    problem = replace(problem, demands=tuple(demands))
    *_, bound = relaxed_bounds(problem, placed_weight(problem), Stop())
    return bound.costs[0]


ZONES = {"node-0": "a", "node-1": "a", "node-2": "b"}


@pytest.mark.parametrize(
    ("rule", "missed"),
    [
        (AntiAffinity({node: node for node in ZONES}), 3),
        (AntiAffinity(ZONES), 4),
        # The second zone has somebody whom the term means, or who carries it.
        (AntiAffinity(ZONES, counted=frozenset("b")), 5),
        (AntiAffinity(ZONES, carried=frozenset("b")), 5),
        # On a node without a zone there may be as many as fit.
        (AntiAffinity({"node-0": "a", "node-1": "a"}), 1),
        # Of fifteen pods the zone with the fewest has seven at most: so nobody comes to that with nine.
        (Spread(ZONES, {"a": 9}, 1), 2),
        # With fewer zones than asked for, the fewest are none.
        (Spread(ZONES, {}, 2, min_domains=3), 2),
        # Spread has to be over something.
        (Spread({"node-0": "a"}, {}, 9), 2),
        (Spread({}, {}, 9), 6),
    ],
)
def test_a_domain_holds_as_many_as_rules_between_pods_say(
    rule: InterPodRule, missed: int
) -> None:
    assert least_missed_with(rule, 6) == missed


@pytest.mark.parametrize(("rule_count", "missed"), [(1, 3), (2, 0)])
def test_members_of_a_gang_choose_one_domain_if_they_share_the_rule(
    rule_count: int, missed: int
) -> None:
    """Three pods want a device each. Two devices are in one zone, and the third one is in another."""
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
        builder.pod(builder.claim(AlternativeSpec()), gang="trio")
    problem = builder.problem()
    rules = [OneDomain(ZONES) for _ in range(rule_count)]
    demands = [
        replace(demand, roles=(Role(rules[index % rule_count], True, True),))
        for index, demand in enumerate(problem.demands)
    ]
    problem = replace(problem, demands=tuple(demands))
    *_, bound = relaxed_bounds(problem, placed_weight(problem), Stop())
    assert bound.costs[0] == missed


def test_devices_with_a_common_value_are_counted_value_by_value() -> None:
    builder = ProblemBuilder()
    for root in (1, 1, 1, 2):
        builder.device(attributes={"root": [root]})
    same_root = [Constraint(ConstraintKind.MATCH, "root")]
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec(2), constraints=same_root))
    # A part of a pair is not enough, but a linear program would take it.
    assert least_missed(builder) <= 1
    builder.pod(builder.claim(AlternativeSpec(4), constraints=same_root))
    assert least_missed(builder) >= 1


@pytest.mark.parametrize(
    ("values", "asked_for", "missed"),
    [
        # Both claims would need the device with another value.
        ([0, 0, 0, 1], 2, 1),
        ([0, 0, 1, 1], 2, 0),
        # There are 924 ways to choose six of twelve values: all that is said is that they are six devices.
        (list(range(12)), 6, 0),
        (list(range(11)), 6, 1),
    ],
)
def test_devices_without_a_common_value_are_chosen_among_values(
    values: list[int], asked_for: int, missed: int
) -> None:
    builder = ProblemBuilder()
    for value in values:
        builder.device(attributes={"adapter": [value]})
    differ = Constraint(ConstraintKind.DISTINCT, "adapter", frozenset())
    for _ in range(2):
        builder.pod(
            builder.claim(AlternativeSpec(asked_for), constraints=[differ])
        )
    assert least_missed(builder) == missed


def test_a_gang_without_room_is_left_out() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 1):
        builder.device(node)
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec(2)), gang="pair")
    builder.pod(builder.claim(AlternativeSpec()))
    assert least_missed(builder) == 2


def test_alternatives_go_where_there_is_room() -> None:
    builder = ProblemBuilder()
    large, small = builder.device(), builder.device()
    for _ in range(3):
        builder.pod(
            builder.claim(
                [AlternativeSpec(only=[large]), AlternativeSpec(only=[small])]
            )
        )
    assert least_missed(builder) == 1


def test_who_finds_no_room_by_its_first_alternative_has_a_rank() -> None:
    builder = ProblemBuilder()
    large = builder.device()
    small = [builder.device() for _ in range(3)]
    for _ in range(3):
        alternatives = [
            AlternativeSpec(only=[large]),
            AlternativeSpec(only=small),
        ]
        builder.pod(builder.claim(alternatives))
    problem = builder.problem()
    ladder = RelaxationLadder(problem, placed_weight(problem), Stop())
    assert ladder.least_cost(ALTERNATIVES, [3]) == 0
    list(ladder.bounds())
    least = [ladder.least_cost(ALTERNATIVES, [placed]) for placed in range(4)]
    assert least == [0, 0, 1, 2]


def least_cost(builder: ProblemBuilder, goal: Goal) -> int:
    """What all answers cost in a goal that place as much as there can be."""
    problem = builder.problem()
    tiers = (*placed_weight(problem), *after_weight(goal))
    ladder = RelaxationLadder(problem, tiers, Stop())
    list(ladder.bounds())
    return ladder.least_cost(goal.value, ladder.limits)


def test_as_many_nodes_are_used_as_hold_everybody() -> None:
    builder = ProblemBuilder(nodes=4)
    for node in range(4):
        for _ in range(2):
            builder.device(node)
    for _ in range(5):
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_cost(builder, Goal.FEWEST_NODES) == 3
    assert least_cost(builder, Goal.SPREAD) == 2


def test_as_many_devices_are_opened_as_hold_all_shares() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 1, 1):
        builder.device(node, capacity={"memory": 10})
    for memory in (3, 3, 3, 3, 3):
        amounts = {"memory": memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    assert least_cost(builder, Goal.FEWEST_DEVICES) == 2
    assert least_cost(builder, Goal.LEAST_FRAGMENTATION) == 2


def test_partitions_are_devices_of_units_that_are_broken() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in range(2):
        slices = builder.counter(total=4, counter_set=f"gpu-{node}")
        for _ in range(4):
            builder.device(node, consumes={slices: 1})
    for _ in range(5):
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_cost(builder, Goal.FEWEST_DEVICES) == 5
    assert least_cost(builder, Goal.LEAST_FRAGMENTATION) == 2


def test_what_is_touched_already_costs_nothing() -> None:
    builder = ProblemBuilder()
    slices = builder.counter(total=4, free=3)
    for _ in range(3):
        builder.device(consumes={slices: 1})
        builder.pod(builder.claim(AlternativeSpec()))
    assert least_cost(builder, Goal.LEAST_FRAGMENTATION) == 0


def test_a_device_is_no_unit_for_who_takes_something_of_its_node() -> None:
    builder = ProblemBuilder()
    cpu = builder.counter(total=9, free=5)
    for counters in ({cpu: 1}, {cpu: 1}, {}):
        builder.device(capacity={"memory": 10})
        asked_for = AlternativeSpec(capacity={"memory": 10}, counters=counters)
        builder.pod(builder.claim(asked_for))
    assert least_cost(builder, Goal.FEWEST_DEVICES) == 3
    # It is one; but what is drawn on a device does not say by whom.
    assert least_cost(builder, Goal.LEAST_FRAGMENTATION) == 0


def test_members_of_a_gang_that_complement_each_other_share_a_node() -> None:
    """Alone, each of them has room for one there: together they take all of both."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 3, "cores": 3})
    for memory in (1, 2):
        amounts = {"memory": memory, "cores": 3 - memory}
        claim = builder.claim(AlternativeSpec(capacity=amounts))
        builder.pod(claim, gang="pair")
    assert least_missed(builder) == 0


def test_demands_are_as_large_as_what_they_take_of_what_is_scarce() -> None:
    """Two of three pods get the scarce memory; of cores there is no end."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 6, "cores": 100})
    for memory in (2, 3, 4):
        amounts = {"memory": memory, "cores": 5 - memory}
        builder.pod(builder.claim(AlternativeSpec(capacity=amounts)))
    ladder = RelaxationLadder(
        problem := builder.problem(), placed_weight(problem), Stop()
    )
    assert ladder.appraisal() is None
    list(ladder.bounds())
    appraisal = ladder.appraisal()
    assert appraisal is not None
    small, middle, large = (
        appraisal.sizes[DemandIndex(pod)] for pod in range(3)
    )
    assert 0 < 6 * small == 4 * middle == 3 * large
    # The node is worth its memory, 6. A pod is worth 2 ** 20, and the rest of that is its profit.
    assert appraisal.nodes[0] == 3 * small
    # The last one would pay as much as it is worth, rounded.
    assert appraisal.profits == {
        0: 2**20 - small,
        1: 2**20 - middle,
        2: 2**20 - large,
    }


def test_each_level_is_worth_more_than_all_below() -> None:
    levels = levels_of([1, 1, 1, 4, 4, 20])
    assert levels == [
        LexicographicLevel(20, 20, 1 * 20, 1),
        LexicographicLevel(4, 4, 4, 2),
        LexicographicLevel(1, 1, 1, 3),
    ]


def test_weights_that_could_be_outweighed_are_one_level() -> None:
    assert levels_of([5, 4, 1, 1]) == [LexicographicLevel(1, 5, 1, 11)]


def test_a_ladder_that_there_was_no_time_for_is_climbed_on() -> None:
    """Two demands for all that there is: one of them has to wait, which the last rung proves."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 4})))
    problem = builder.problem()
    ladder = RelaxationLadder(problem, placed_weight(problem), Stop.after(0.0))
    assert list(ladder.bounds()) == []
    ladder.allow(Stop())
    *_, best = ladder.bounds()
    assert best.costs == (1,)
    assert ladder.is_at_the_top
    assert list(ladder.bounds()) == []


def test_who_lacks_demands_of_a_level_has_no_room_for_many_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven large demands find room in fractions, and six in fact: these leave room for three small ones."""
    monkeypatch.setattr(patterns, "_PATTERNS_PER_DEVICE", 0)
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node, capacity={"memory": 10})
    for _ in range(7):
        builder.pod(
            builder.claim(AlternativeSpec(capacity={"memory": 4})), weight=1000
        )
    for _ in range(20):
        builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 2})))
    *_, bound = relaxed_bounds(
        builder.problem(), placed_weight(builder.problem()), Stop()
    )
    # One small demand more than there is room for: what one large demand takes is two of them, and counts as three.
    assert bound.most_of_optimum([6, 3]) == [7, 4]
