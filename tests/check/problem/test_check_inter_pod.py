"""Rules between pods: what is accepted can have come in some order, and whatever can have come is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings

from brute_neighbours import can_have_come
from dralloc.check import violations
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Demand,
    DemandIndex,
    Node,
    NodeIndex,
    Problem,
    Usage,
)
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.problem.solution import Placement, Solution
from examples import INDEPENDENT, examples
from role_strategies import NODES, Neighbour, neighbourhoods
from strategies import TableEligibility

ZONES = {"n0": "a", "n1": "a", "n2": "b"}
"""The last node has no zone."""
NOBODY: frozenset[str] = frozenset()


def complaints(neighbours: Sequence[Neighbour]) -> list[str]:
    """What the checker says of pods that are where they are."""
    problem = Problem(
        demands=tuple(
            Demand(
                ClaimKey("default", f"pod-{index}"), (), roles=neighbour.roles
            )
            for index, neighbour in enumerate(neighbours)
        ),
        nodes=tuple(Node(name, ()) for name in NODES),
        devices=(),
        counters=(),
        usage=Usage(frozenset(), {}, {}),
        eligibility=TableEligibility(),
    )
    placements = tuple(
        Placement(
            DemandIndex(index), NodeIndex(NODES.index(neighbour.node)), ()
        )
        for index, neighbour in enumerate(neighbours)
    )
    return violations(problem, Solution(placements))


def both(rule: InterPodRule, node: str) -> Neighbour:
    """A pod that carries a rule, and is meant by it."""
    return Neighbour((Role(rule, carries=True, counts=True),), node)


def carrying(rule: InterPodRule, node: str) -> Neighbour:
    """A pod that carries a rule, and is not meant by it."""
    return Neighbour((Role(rule, carries=True, counts=False),), node)


def meant(rule: InterPodRule, node: str) -> Neighbour:
    """A pod that is meant by a rule, and does not carry it."""
    return Neighbour((Role(rule, carries=False, counts=True),), node)


APART = AntiAffinity(ZONES)
NEAR = Affinity((ZONES,), (NOBODY,))
OTHER = Affinity((ZONES,), (NOBODY,))
EVEN = Spread(ZONES, {}, 1)
TOGETHER = OneDomain(ZONES)
FULL = AntiAffinity(ZONES, counted=frozenset("a"))
CLOSED = AntiAffinity(ZONES, carried=frozenset("a"))
FEW = Spread(ZONES, {}, 1, min_domains=3)
ONE_AND_THREE = {"n0": "a", "n1": "b", "n2": "b", "n3": "b"}
BOTH_EVEN = (
    Role(Spread(ONE_AND_THREE, {}, 1), carries=True, counts=True),
    Role(
        Spread({node: node for node in NODES}, {}, 1), carries=True, counts=True
    ),
)
"""Evenly over two zones and over nodes."""


class Broken(NamedTuple):
    """Pods, how many violations they are, and a part of one of these."""

    neighbours: Sequence[Neighbour]
    violations: int
    rule: str


BROKEN = {
    "too near": Broken(
        [both(APART, "n0"), both(APART, "n1")],
        2,
        "anti-affinity keeps default/pod-1 out of domain a",
    ),
    "too near to whom it means": Broken(
        [carrying(APART, "n0"), meant(APART, "n0")],
        1,
        "pod-0: its anti-affinity keeps default/pod-1 out of domain a",
    ),
    "too near to pods on nodes": Broken(
        [carrying(FULL, "n0")], 1, "keeps pods on nodes out of domain a"
    ),
    "kept out by pods on nodes": Broken(
        [meant(CLOSED, "n0")],
        1,
        "anti-affinity of pods on nodes keeps it out of domain a",
    ),
    "nobody is near": Broken(
        [carrying(NEAR, "n0"), meant(NEAR, "n2")],
        1,
        "pod-0: nobody whom its affinity means can have come before it",
    ),
    "each waits for the other": Broken(
        [
            Neighbour(
                (Role(NEAR, True, False), Role(OTHER, False, True)), "n0"
            ),
            Neighbour(
                (Role(NEAR, False, True), Role(OTHER, True, False)), "n1"
            ),
        ],
        2,
        "nobody whom its affinity means can have come before it",
    ),
    "near, where no zone is": Broken(
        [both(NEAR, "n3")], 1, "nobody whom its affinity means"
    ),
    "uneven": Broken(
        [both(EVEN, "n0"), both(EVEN, "n1")],
        1,
        "topology spread: 2 in domain a, 0 in the one with the fewest, which is more than a skew of 1",
    ),
    "uneven, as domains are few": Broken(
        [both(FEW, "n0"), both(FEW, "n1"), both(FEW, "n2")],
        1,
        "topology spread: 2 in domain a, 0 in the one with the fewest",
    ),
    "spread over no domain": Broken(
        [both(EVEN, "n3")],
        1,
        "pod-0: is in no domain of its topology spread constraint",
    ),
    "in two domains": Broken(
        [both(TOGETHER, "n0"), both(TOGETHER, "n2")],
        1,
        "its topology constraint asks for one domain, but its demands are in a, b",
    ),
    "in no domain": Broken(
        [both(TOGETHER, "n0"), both(TOGETHER, "n3")],
        1,
        "its demands are in a, none",
    ),
    # A second pod may come to n0 once each node has one, and a third one to zone b once zone a has two.
    "even in the end, but in no order": Broken(
        [Neighbour(BOTH_EVEN, node) for node in ("n0", *NODES)],
        2,
        "no order of pods is found in which it, and the others, keep affinity and spread",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_rule_is_rejected(case: Broken) -> None:
    messages = complaints(case.neighbours)
    assert len(messages) == case.violations, messages
    assert any(case.rule in message for message in messages)


NEAR_PODS = Affinity((ZONES,), (frozenset("a"),))
BOTH = (Role(EVEN, carries=True, counts=True), Role(NEAR, True, True))
VALID = {
    "apart": [both(APART, "n0"), both(APART, "n2")],
    "where no zone is": [both(APART, "n3"), both(APART, "n3")],
    "near whom it means": [carrying(NEAR, "n0"), meant(NEAR, "n1")],
    "near pods on nodes": [carrying(NEAR_PODS, "n0")],
    "the first of those who mean each other": [
        both(NEAR, "n0"),
        both(NEAR, "n1"),
    ],
    "even": [both(EVEN, "n0"), both(EVEN, "n0"), both(EVEN, "n2")],
    "those whom a spread means may come last": [
        both(EVEN, "n0"),
        meant(EVEN, "n0"),
    ],
    "near first, and even then": [Neighbour(BOTH, "n0"), meant(NEAR, "n2")],
    "near pods on nodes, and even": [
        Neighbour((Role(EVEN, True, True), Role(NEAR_PODS, True, False)), "n0")
    ],
    "in one domain": [both(TOGETHER, "n0"), both(TOGETHER, "n1")],
}


@pytest.mark.parametrize("neighbours", VALID.values(), ids=VALID)
def test_valid_rule_is_accepted(neighbours: Sequence[Neighbour]) -> None:
    assert complaints(neighbours) == []


@settings(max_examples=examples(3000), backend=INDEPENDENT)
@given(neighbourhoods())
def test_what_is_accepted_can_have_come(neighbours: list[Neighbour]) -> None:
    assert (complaints(neighbours) == []) == can_have_come(neighbours)
