"""Rules between pods hold after every change, also where others stand that the search does not know."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dralloc.check.problem import violations
from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, NodeIndex, Problem
from dralloc.problem.inter_pod import (
    Affinity,
    Role,
    Spread,
    can_come_in_turn,
)
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.recreate import search
from dralloc.solve.recreate.answer import WorkingAnswer
from dralloc.solve.recreate.change import ChangeSearch
from dralloc.solve.recreate.parts import PartDealer
from dralloc.solve.recreate.rule_groups import RuleGroups
from dralloc.solve.recreate.rules import RulesBetweenPods
from dralloc.solve.recreate.search import _Effort, recreated
from dralloc.solve.recreate.units import movable_units
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from tied_strategies import tied_pods

THOROUGH = settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def worth(problem: Problem, placements: Iterable[Placement]) -> int:
    return sum(
        problem.demands[placement.demand].weight for placement in placements
    )


@THOROUGH
@given(tied_pods(), st.integers(0, 1000))
def test_pods_that_are_tied_to_each_other_keep_all_rules_after_every_change(
    problem: Problem, seed: int
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    changes = ChangeSearch(problem, start, seed)
    reached = []
    for _ in range(40):
        changes.step()
        placements = changes.answer.placements()
        assert violations(problem, Solution(tuple(placements))) == []
        reached.append(worth(problem, placements))
    assert all(before <= after for before, after in pairwise(reached))


@THOROUGH
@given(tied_pods(), st.randoms(use_true_random=False))
def test_who_leaves_for_good_takes_nobody_along_unseen(
    problem: Problem, random: Random
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    answer = WorkingAnswer(problem, start, random)
    for unit in dict.fromkeys(answer.unit_of.values()):
        sites = {
            member: answer.leave(member)
            for member in unit.members
            if member in answer
        }
        if not answer.keeps_rules():
            for member, site in sites.items():
                answer.restore(member, site)
        placements = tuple(answer.placements())
        assert violations(problem, Solution(placements)) == []


@THOROUGH
@given(tied_pods(), st.integers(0, 1000))
def test_rules_hold_among_parts_that_are_searched_at_the_same_time(
    problem: Problem, seed: int
) -> None:
    start = within_caps(problem, first_fit(problem).placements)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 1)
        patch.setattr(search, "_EVERYWHERE", _Effort(by_node=40, least=0))
        patch.setattr(search, "_PATIENCE", 3)
        for answer in recreated(
            problem, start, Options(seed=seed, steps=20), lambda: 60.0
        ):
            assert violations(problem, Solution(answer)) == []
            assert worth(problem, start) <= worth(problem, answer)


@THOROUGH
@given(tied_pods(), st.data())
def test_rules_hold_where_there_is_an_order_in_which_all_come(
    problem: Problem, data: st.DataObject
) -> None:
    """Whoever is let in comes; then some leave. Of one rule of spread the end alone tells whether there is an order."""
    rules = RulesBetweenPods(problem)
    homes: dict[DemandIndex, NodeIndex] = {}
    for index in range(len(problem.demands)):
        demand = DemandIndex(index)
        node = data.draw(st.sampled_from(list(problem.all_nodes)))
        if rules.allow(demand, node):
            rules.enter(demand, node)
            homes[demand] = node
    rules.settle()
    for demand in list(homes):
        if data.draw(st.booleans()):
            rules.leave(demand, homes.pop(demand))
    arrivals = [
        (problem.demands[demand], problem.nodes[node].name)
        for demand, node in homes.items()
    ]
    assert rules.hold() == can_come_in_turn(arrivals)


def test_bystanders_have_their_say() -> None:
    """A pod that is not asked about stands in the domain of the first node, and must not be lonely there."""
    near = Affinity(({"node-0": "a", "node-1": "b"},), (frozenset(),))
    builder = ProblemBuilder(nodes=2)
    builder.pod(builder.claim(AlternativeSpec()))
    [pod] = builder.demands
    bystander = pod.by_itself(
        claims=(), roles=(Role(near, carries=True, counts=False),)
    )
    companion = pod.by_itself(roles=(Role(near, carries=False, counts=True),))
    builder.demands = [companion]
    rules = RulesBetweenPods(builder.problem(), [(bystander, "node-0")])
    rules.enter(DemandIndex(0), NodeIndex(0))
    assert rules.hold()
    rules.leave(DemandIndex(0), NodeIndex(0))
    rules.enter(DemandIndex(0), NodeIndex(1))
    assert not rules.hold()


def test_rules_are_in_one_group_if_anybody_has_a_role_in_both() -> None:
    builder = ProblemBuilder()
    by_zone, by_node, alone = (Spread({"node-0": "a"}, {}, 1) for _ in range(3))
    for rules in ([by_zone], [by_zone, by_node], [by_node], [alone], []):
        builder.pod(builder.claim(AlternativeSpec()))
        demand = builder.demands[-1]
        roles = tuple(Role(rule, carries=True, counts=True) for rule in rules)
        builder.demands[-1] = demand.by_itself(roles=roles)
    problem = builder.problem()
    units = movable_units(problem, ())
    groups = RuleGroups(problem, units)
    zone, both, node, other, none = map(groups.of_unit, units)
    assert zone == both == node
    assert other not in {None, zone}
    assert none is None
    assert groups.beside(problem, [DemandIndex(0)]) == [1, 2]
    assert groups.beside(problem, [DemandIndex(3), DemandIndex(4)]) == []


@pytest.mark.parametrize("seed", range(5))
def test_pods_with_a_role_in_the_same_rule_move_in_one_part_alone(
    seed: int,
) -> None:
    """Eight pods on as many nodes, which are dealt out to four parts; each part knows those who stay elsewhere."""
    builder = ProblemBuilder(nodes=8)
    even = Spread({f"node-{node}": "ab"[node % 2] for node in range(8)}, {}, 9)
    for node in range(8):
        builder.device(node)
        builder.pod(builder.claim(AlternativeSpec()))
        pod = builder.demands[-1]
        role = Role(even, carries=True, counts=True)
        builder.demands[-1] = pod.by_itself(roles=(role,))
    problem = builder.problem()
    placements = first_fit(problem).placements
    units = movable_units(problem, placements)
    dealer = PartDealer(problem, units, np.random.default_rng(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dralloc.solve.recreate.parts._FEW_NODES", 2)
        nodes_of_parts = dealer.deal_nodes()
    homes = {placement.demand: placement for placement in placements}
    parts = dealer.deal_demands(homes, nodes_of_parts)
    moving = [part for part in parts if part.members]
    assert [len(part.nodes) for part in parts] == [2, 2, 2, 2]
    assert [len(part.members) for part in moving] == [2]
    assert len(moving[0].bystanders) == 6
