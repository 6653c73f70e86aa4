"""Constraints that span the claims of several demands, or several claims of one."""

from __future__ import annotations

import pytest

from check.problem.edits import (
    Broken,
    broken,
    claim,
    device,
    only_violation,
    without,
)
from check.problem.scene import (
    BASE,
    EVERY,
    LINK,
    NUMA,
    TRAIN,
    WATCH,
    Edit,
    numa,
)
from dralloc.check import violations
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DemandIndex,
    Scalar,
    Scope,
)

MATCH, DISTINCT = ConstraintKind.MATCH, ConstraintKind.DISTINCT
TEAM = Scope(0, "team")


def under(
    demand: DemandIndex,
    kind: ConstraintKind,
    *requests: str,
    scope: Scope = TEAM,
) -> Edit:
    """Put a demand's claim under one constraint, in this scope."""
    constraint = Constraint(kind, NUMA, frozenset(requests), scope=scope)
    return claim(demand, constraints=(constraint,))


def held(*sets: int) -> Scope:
    """The scope of the team, of which some devices are allocated already, each with one value."""
    values: tuple[frozenset[Scalar], ...] = tuple(
        numa(value)[NUMA] for value in sets
    )
    return Scope(0, "team", values)


BROKEN = {
    "match: another claim's device differs": broken(
        under(TRAIN, MATCH),
        under(EVERY, MATCH),
        rule="claims default/train, default/every: matchAttribute example.com/numa: violated by "
        "example.com/node-a/gpu-0 (0), example.com/node-a/gpu-1 (0), example.com/fabric/nic-0 (0, 1), "
        "example.com/node-b/gpu-0 (0), example.com/node-b/gpu-1 (1)",
    ),
    "match: lacking": broken(
        under(TRAIN, MATCH),
        under(WATCH, MATCH),
        device(1, attributes={}),
        rule="gpu-1: matchAttribute: lacks the attribute example.com/numa",
    ),
    "distinct: the same value with another claim": broken(
        under(WATCH, DISTINCT),
        under(EVERY, DISTINCT),
        rule="claims default/watch, default/every: distinctAttribute example.com/numa: violated by "
        "example.com/node-a/gpu-0 (0), example.com/node-b/gpu-0 (0), example.com/node-b/gpu-1 (1)",
    ),
    "match: allocated devices differ": broken(
        under(WATCH, MATCH, scope=held(1)),
        rule="matchAttribute example.com/numa: violated by example.com/node-a/gpu-0 (0) beside (1) of allocated claims",
    ),
    "distinct: an allocated device has the value": broken(
        under(WATCH, DISTINCT, scope=held(1, 0)),
        rule="violated by example.com/node-a/gpu-0 (0) beside (1), (0) of allocated claims",
    ),
    "of one demand": broken(
        under(EVERY, MATCH, scope=Scope(0)),
        rule="claims default/every: matchAttribute example.com/numa: violated",
    ),
}
VALID: dict[str, tuple[Edit, ...]] = {
    "match: all agree": (under(TRAIN, MATCH), under(LINK, MATCH)),
    "match: an allocated device agrees": (under(WATCH, MATCH, scope=held(0)),),
    "distinct: all differ": (
        without(TRAIN),
        device(0, attributes=numa(2)),
        under(WATCH, DISTINCT),
        under(EVERY, DISTINCT),
    ),
    "distinct: an allocated device differs": (
        under(WATCH, DISTINCT, scope=held(1)),
    ),
    "another number": (
        under(WATCH, DISTINCT),
        under(EVERY, DISTINCT, scope=Scope(1, "team")),
    ),
    "another group": (
        under(WATCH, DISTINCT),
        under(EVERY, DISTINCT, scope=Scope(0, "crew")),
    ),
    "of each demand by itself": (
        under(WATCH, DISTINCT, scope=Scope(0)),
        under(EVERY, DISTINCT, scope=Scope(0)),
    ),
    "about other requests": (
        under(TRAIN, MATCH, "nic"),
        under(LINK, MATCH),
        device(0, attributes=numa(3)),
        device(1, attributes={}),
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_scope_is_rejected(case: Broken) -> None:
    assert case.rule in only_violation(*case.edits)


@pytest.mark.parametrize("edits", VALID.values(), ids=VALID)
def test_valid_scope_is_accepted(edits: tuple[Edit, ...]) -> None:
    scene = BASE.edited(*edits)
    assert violations(scene.problem, scene.solution) == []
