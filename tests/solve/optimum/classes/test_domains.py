"""Gangs in one topology domain each, over classes: held to the per-device model, and to every answer there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from hypothesis import HealthCheck, given, settings

from brute_force import best
from crowd_strategies import crowds
from dralloc.check import check
from dralloc.problem import Demand, NodeIndex, Problem
from dralloc.problem.inter_pod import InterPodRule, OneDomain, Role
from dralloc.problem.solution import Status
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import divide
from examples import examples
from rack_strategies import racks
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

THOROUGH = settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
BRIEF = settings(THOROUGH, max_examples=examples(100))


def values(problem: Problem, *, per_device: bool = False) -> list[int]:
    solution = solve(problem, Options(per_device=per_device))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    return [tier.value for tier in solution.tiers]


@THOROUGH
@given(racks())
def test_racks_are_as_good_as_devices(problem: Problem) -> None:
    assert values(problem) == values(problem, per_device=True)


@THOROUGH
@given(
    crowds(gangs=True, domains=True)
    | crowds(gangs=True, domains=True, budgets=True)
    | crowds(gangs=True, domains=True, sharing=True)
)
def test_domains_of_all_kinds_are_as_good_as_devices(problem: Problem) -> None:
    assert values(problem) == values(problem, per_device=True)


@BRIEF
@given(racks(most_nodes=3, most_groups=3))
def test_no_answer_is_better(problem: Problem) -> None:
    assert values(problem)[0] == best_in_domains(problem)


def best_in_domains(problem: Problem) -> int:
    """Return the most that can be placed: of every choice of a domain for each rule, the best of all answers."""
    rules = dict.fromkeys(
        role.rule for demand in problem.demands for role in demand.roles
    )
    choices = product(*(domains_of(rule) for rule in rules))
    confined = (
        inside(problem, dict(zip(rules, chosen, strict=True)))
        for chosen in choices
    )
    return max(best(variant)[0] for variant in confined)


def domains_of(rule: InterPodRule) -> list[set[str]]:
    """Return the names of the nodes in each domain; an empty set, where nobody can be, if there is no domain."""
    assert isinstance(rule, OneDomain)
    nodes: dict[str, set[str]] = defaultdict(set)
    for node, domain in rule.domains.items():
        nodes[domain].add(node)
    return list(nodes.values()) or [set()]


def inside(
    problem: Problem, chosen: Mapping[InterPodRule, set[str]]
) -> Problem:
    """Return the problem with demands that only go where each of their rules wants them to be."""

    def nodes_of(demand: Demand) -> tuple[NodeIndex, ...]:
        return tuple(
            node
            for node in problem.candidate_nodes(demand)
            if all(
                problem.nodes[node].name in chosen[role.rule]
                for role in demand.roles
            )
        )

    demands = (
        replace(demand, nodes=nodes_of(demand)) for demand in problem.demands
    )
    return replace(problem, demands=tuple(demands))


def racks_of(
    nodes: Mapping[str, Sequence[int]],
    *gangs: Sequence[int],
    quorum: int | None = None,
) -> Problem:
    """By rack the devices of its nodes (none has the label in rack ""); by gang how many its pods take each."""
    homes = [
        (rack, devices)
        for rack, device_counts in nodes.items()
        for devices in device_counts
    ]
    builder = ProblemBuilder(len(homes))
    for node, (_, devices) in enumerate(homes):
        for _ in range(devices):
            builder.device(node)
    labels = {
        f"node-{node}": rack for node, (rack, _) in enumerate(homes) if rack
    }
    roles = []
    for gang_index, counts in enumerate(gangs):
        role = Role(OneDomain(labels), carries=True, counts=True)
        for count in counts:
            builder.pod(
                builder.claim(AlternativeSpec(count)),
                gang=f"gang-{gang_index}",
                quorum=quorum,
            )
            roles.append(role)
    problem = builder.problem()
    demands = (
        replace(demand, roles=(role,))
        for demand, role in zip(problem.demands, roles, strict=True)
    )
    return replace(problem, demands=tuple(demands))


def placed_over_classes(problem: Problem) -> int:
    division = divide(problem, lambda demands: survey(problem, demands))
    assert not division.per_device
    assert division.counted
    return values(problem)[0]


def test_a_gang_does_not_reach_over_two_racks() -> None:
    assert placed_over_classes(racks_of({"a": [2], "b": [2]}, [1, 1, 1])) == 0
    assert (
        placed_over_classes(racks_of({"a": [2], "b": [2, 1]}, [1, 1, 1])) == 3
    )


def test_what_is_left_on_several_nodes_is_not_enough_for_one_pod() -> None:
    assert placed_over_classes(racks_of({"a": [3, 3]}, [2, 2], [2])) == 2
    assert placed_over_classes(racks_of({"a": [3, 3]}, [2, 2], [1, 1])) == 4
    assert (
        placed_over_classes(
            racks_of({"a": [4, 1, 1], "b": [3, 3]}, [4], [2, 2], [1, 1])
        )
        == 5
    )


def test_nodes_without_the_label_are_in_no_domain() -> None:
    assert placed_over_classes(racks_of({"a": [1], "": [2, 2]}, [1], [1])) == 1


def test_a_quorum_is_met_in_one_rack() -> None:
    assert (
        placed_over_classes(
            racks_of({"a": [2], "b": [1]}, [1, 1, 1], [1, 1, 1], quorum=2)
        )
        == 2
    )
    assert (
        placed_over_classes(
            racks_of({"a": [3], "b": [2]}, [1, 1, 1], [1, 1, 1], quorum=2)
        )
        == 5
    )


def test_members_may_take_different_numbers() -> None:
    leader = [2, 1, 1]
    assert (
        placed_over_classes(
            racks_of({"a": [2, 1], "b": [1, 1, 1, 1]}, leader, leader)
        )
        == 0
    )
    assert (
        placed_over_classes(
            racks_of({"a": [2, 1], "b": [3, 1]}, leader, leader)
        )
        == 3
    )
    assert (
        placed_over_classes(
            racks_of({"a": [2, 2], "b": [3, 1]}, leader, leader)
        )
        == 6
    )


def test_numbers_that_do_not_divide_each_other_are_counted_by_pattern() -> None:
    assert (
        placed_over_classes(racks_of({"a": [5], "b": [3, 2]}, [3, 2], [2, 3]))
        == 4
    )
    assert (
        placed_over_classes(
            racks_of({"a": [4, 1], "b": [3, 2]}, [3, 2], [2, 3])
        )
        == 2
    )


def test_gangs_may_choose_among_racks_and_others_among_rows() -> None:
    """Two racks with a device each make a row, which is enough for a pair that may be on both."""
    problem = racks_of({"a": [1], "b": [1], "c": [1]}, [1, 1], [1, 1])
    row = Role(
        OneDomain({"node-0": "row", "node-1": "row"}), carries=True, counts=True
    )
    demands = (
        replace(demand, roles=(row,)) if demand.gang == "gang-1" else demand
        for demand in problem.demands
    )
    assert placed_over_classes(replace(problem, demands=tuple(demands))) == 2
