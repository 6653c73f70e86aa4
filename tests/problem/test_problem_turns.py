"""Whether one order of pods suits all rules between them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    Role,
    Spread,
    can_come_in_turn,
    spreads_in_turn,
)

NODES = {"a1": "a", "b1": "b", "b2": "b", "b3": "b"}
BY_ZONE = Spread(NODES, {}, 1)
BY_NODE = Spread({node: node for node in NODES}, {}, 1)
NEAR = Affinity((dict.fromkeys(NODES, "region"),), (frozenset(),))


def pod(*rules: InterPodRule) -> Demand:
    """A pod that carries some rules, and counts for them."""
    return Demand(
        ClaimKey("default", "pod"),
        (),
        roles=tuple(Role(rule, carries=True, counts=True) for rule in rules),
    )


def test_rules_share_their_order_if_they_are_about_the_same_pods() -> None:
    alone, apart = Spread(NODES, {}, 1), AntiAffinity(NODES)
    assert spreads_in_turn([pod(alone, apart), pod(BY_ZONE, BY_NODE)]) == {
        BY_ZONE,
        BY_NODE,
    }
    assert spreads_in_turn([pod(alone), pod(BY_ZONE, NEAR)]) == {BY_ZONE}
    assert (
        spreads_in_turn([pod(NEAR, Affinity((NODES,), (frozenset(),)))])
        == frozenset()
    )


def test_what_is_even_in_the_end_may_be_so_in_no_order() -> None:
    homes = ["a1", "a1", "b1", "b2", "b3"]
    assert can_come_in_turn((pod(BY_ZONE), home) for home in homes)
    assert can_come_in_turn((pod(BY_NODE), home) for home in homes)
    assert not can_come_in_turn((pod(BY_ZONE, BY_NODE), home) for home in homes)
    assert can_come_in_turn(
        (pod(BY_ZONE, BY_NODE), home) for home in ("b1", "a1", "b2")
    )


def test_who_runs_was_there_first() -> None:
    resident = Demand(
        ClaimKey("default", "r"),
        (),
        roles=(Role(BY_ZONE, carries=True, counts=True),),
    ).running
    assert can_come_in_turn(
        [(resident, "b1"), (resident, "b2"), (pod(BY_ZONE), "a1")]
    )
    assert not can_come_in_turn(
        [
            (resident, "b1"),
            (pod(BY_ZONE), "b2"),
            (pod(BY_ZONE), "b3"),
            (pod(BY_ZONE), "a1"),
        ]
    )


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()),
        max_size=8,
    ),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)),
    st.integers(1, 2),
)
def test_for_one_rule_of_spread_an_order_is_found(
    pods: list[tuple[str, bool, bool]], before: dict[str, int], skew: int
) -> None:
    rule = Spread({"a": "a", "b": "b", "c": "c"}, before, skew)
    arrivals = [
        (
            Demand(
                ClaimKey("default", "pod"),
                (),
                roles=(Role(rule, carries, counts),),
            ),
            home,
        )
        for home, carries, counts in pods
    ]
    after = Counter(before)
    after.update(home for home, _, counts in pods if counts)
    fewest = min(after[home] for home in "abc")
    early = Counter(before)
    early.update(home for home, carries, counts in pods if counts and carries)
    assert can_come_in_turn(arrivals) == all(
        early[home] <= fewest + skew for home, carries, _ in pods if carries
    )
