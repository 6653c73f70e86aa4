"""Users of one claim are together where its devices are, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dralloc.problem import NodeIndex, Problem
from dralloc.solve.optimum.objective import placed_weight
from dralloc.solve.optimum.relax import claim_users, relaxed_bounds
from dralloc.solve.optimum.relax.claim_users import users_of_claims
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def domains(problem: Problem) -> list[tuple[Sequence[int], list[str]]]:
    """By claim: its users, and for each node the domain that it is in."""
    return [
        (users.members, list(users.domains.values()))
        for users in users_of_claims(problem)
    ]


def with_users(
    builder: ProblemBuilder, *requests: AlternativeSpec, count: int = 2
) -> ProblemBuilder:
    claim = builder.claim(*requests)
    for _ in range(count):
        builder.pod(claim)
    return builder


def test_a_device_of_one_node_is_used_there_alone() -> None:
    builder = ProblemBuilder(nodes=3)
    for node in range(3):
        builder.device(node)
    problem = with_users(builder, AlternativeSpec()).problem()
    assert domains(problem) == [((0, 1), ["node-0", "node-1", "node-2"])]


def test_a_device_that_all_nodes_reach_is_used_anywhere() -> None:
    builder = ProblemBuilder(nodes=3)
    builder.device(node=None)
    problem = with_users(builder, AlternativeSpec()).problem()
    assert domains(problem) == []


def test_a_request_for_a_device_of_one_node_ties_the_claim_to_it() -> None:
    builder = ProblemBuilder(nodes=2)
    common = builder.device(node=None)
    own = [builder.device(node) for node in range(2)]
    requests = AlternativeSpec(only=[common]), AlternativeSpec(only=own)
    problem = with_users(builder, *requests).problem()
    assert domains(problem) == [((0, 1), ["node-0", "node-1"])]


def test_who_uses_several_claims_is_with_users_of_the_first() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 1, 1):
        builder.device(node)
    first, second = (builder.claim(AlternativeSpec()) for _ in range(2))
    for claims in ([first], [first, second], [second], [second]):
        builder.pod(*claims)
    members = [members for members, _ in domains(builder.problem())]
    assert members == [(0, 1), (2, 3)]


def test_gangs_have_a_rule_of_their_own() -> None:
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    claim = builder.claim(AlternativeSpec())
    for _ in range(2):
        builder.pod(claim, gang="users")
    assert domains(builder.problem()) == []


def test_a_claim_for_nothing_is_used_anywhere() -> None:
    assert domains(with_users(ProblemBuilder(nodes=2)).problem()) == []


def test_of_many_nodes_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_users, "_MOST_NODES", 1)
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    assert domains(with_users(builder, AlternativeSpec()).problem()) == []


def test_users_on_two_nodes_are_not_both_placed() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in range(2):
        builder.device(node)
    claim = builder.claim(AlternativeSpec())
    for node in range(2):
        builder.pod(claim, nodes=(NodeIndex(node),))
    problem = builder.problem()
    *_, bound = relaxed_bounds(problem, placed_weight(problem), Stop())
    assert bound.costs[0] == 1
