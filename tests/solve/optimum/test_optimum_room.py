"""Who has too little room even alone: no answer places more of them, whatever it costs others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings

import wire
from any_problem import PROBLEMS
from company_strategies import companies
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Thresholds
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DemandIndex,
    Problem,
    indices,
)
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    Role,
    Spread,
)
from dralloc.solve.optimum import Options, solve, stage
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import Component
from dralloc.solve.optimum.objective import DemandSubset, placed_weight
from dralloc.solve.optimum.relax.ladder import RelaxationLadder
from dralloc.solve.optimum.room import CrampedGroup, cramped_groups
from dralloc.solve.optimum.stage import Split, Stage, Surveys
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    placed,
)
from wire import Json

HOSTS = {"node-0": "a", "node-1": "b"}


def cramped(
    problem: Problem, already_placed: Set[DemandIndex] = frozenset()
) -> list[CrampedGroup]:
    sites = survey(problem).sites
    return list(
        cramped_groups(problem, sites, already_placed, Options(), Stop())
    )


def without_room(problem: Problem) -> set[int]:
    return {
        member
        for group in cramped(problem)
        if group.most == 0
        for member in group.members
    }


def pairs_of_devices(devices: int, *, beside: int = 0) -> Problem:
    """Two nodes, and a gang of three pods for two devices each; beside it so many pods for one."""
    builder = ProblemBuilder(nodes=2)
    for node in range(2):
        for _ in range(devices):
            builder.device(node)
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec(count=2)), gang="trio")
    for _ in range(beside):
        builder.pod(builder.claim(AlternativeSpec()))
    return builder.problem()


def test_a_gang_whose_members_fit_in_fractions_only() -> None:
    assert without_room(pairs_of_devices(3)) == {0, 1, 2}
    assert without_room(pairs_of_devices(4)) == set()


def test_who_is_placed_is_not_asked_about() -> None:
    problem = pairs_of_devices(3)
    assert cramped(problem)
    assert not cramped(problem, set(indices(problem.demands)))


def four_pairs() -> Problem:
    """Nodes with three and five devices, and a gang of four pods for two each, of which one would be enough."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 0, 1, 1, 1, 1, 1):
        builder.device(node)
    for _ in range(4):
        builder.pod(
            builder.claim(AlternativeSpec(count=2)), gang="four", quorum=1
        )
    return builder.problem()


def test_a_gang_of_which_some_have_room() -> None:
    problem = four_pairs()
    [group] = cramped(problem)
    assert (len(group.members), group.most) == (4, 3)
    assert len(solve(problem, Options(per_device=True)).placements) == 3


def test_a_relaxation_knows_how_many_of_a_gang_have_room() -> None:
    """In fractions, all of them have: two halves of a pod are on each node."""
    problem = four_pairs()
    tiers = placed_weight(problem)

    def least_missing(most_of_gang: Mapping[str, int]) -> int:
        ladder = RelaxationLadder(problem, tiers, Stop(), most_of_gang)
        *_, bound = ladder.bounds()
        return bound.costs[0]

    assert least_missing({}) == 0
    assert least_missing({"four": 3}) == 1


def test_a_pod_whose_claims_do_not_fit_on_one_node() -> None:
    """Each of its claims has room on each of the nodes, but not both."""
    builder = ProblemBuilder(nodes=6)
    for node in range(6):
        for _ in range(3):
            builder.device(node)
    pair = AlternativeSpec(count=2)
    builder.pod(builder.claim(pair), builder.claim(pair))
    assert without_room(builder.problem()) == {0}
    builder.device(5)
    assert without_room(builder.problem()) == set()


def searched(problem: Problem, thresholds: Thresholds) -> set[int]:
    """Return the demands that are searched for, where classes count none."""
    options = Options(thresholds=thresholds)
    tiers = placed_weight(problem)
    everything = DemandSubset(problem, indices(problem.demands))
    split = Split(
        Stage(problem, tiers, len(tiers)),
        [Component(everything, tiers, ())],
        options,
        Surveys(options),
        Stop(),
    )
    split.run({})
    return {
        demand
        for component in split.components
        for demand in component.subset.demands
    }


@pytest.mark.parametrize(("devices", "expected"), [(3, {3}), (4, {0, 1, 2, 3})])
@pytest.mark.parametrize("surveyed", [0, 1000])
def test_gangs_of_a_large_cluster_are_looked_at_by_themselves(
    devices: int,
    expected: set[int],
    surveyed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Split, "_by_class", lambda split: split._demands)
    problem = pairs_of_devices(devices, beside=1)
    assert searched(problem, Thresholds(surveyed=surveyed)) == expected


def test_gangs_with_too_many_candidates_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Split, "_by_class", lambda split: split._demands)
    # Three members may go to two nodes with three devices each.
    monkeypatch.setattr(stage, "_CANDIDATES_OF_SUSPECTS", 17)
    problem = pairs_of_devices(3)
    assert searched(problem, Thresholds(surveyed=0)) == {0, 1, 2}
    monkeypatch.setattr(stage, "_CANDIDATES_OF_SUSPECTS", 18)
    assert searched(problem, Thresholds(surveyed=0)) == set()


SPREAD = Spread(HOSTS, {}, max_skew=1)
APART = AntiAffinity(HOSTS)
IN_COMPANY = Affinity(({"node-0": "zone", "node-1": "zone"},), (frozenset(),))


def under_a_rule(
    rule: InterPodRule, *, is_guest_meant: bool, counts: bool
) -> Problem:
    """A gang of two with devices on the first of two nodes only, and a guest for the second node."""
    builder = ProblemBuilder(nodes=2)
    pair = [builder.device(0), builder.device(0)]
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec(only=pair)), gang="pair")
    guest_device = builder.device(1)
    builder.pod(builder.claim(AlternativeSpec(only=[guest_device])))
    problem = builder.problem()
    roles = {
        "pair": (Role(rule, carries=True, counts=counts),),
        "": (Role(rule, carries=False, counts=True),) if is_guest_meant else (),
    }
    demands = [
        replace(demand, roles=roles[demand.gang]) for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


@pytest.mark.parametrize(
    ("rule", "is_guest_meant", "counts", "hopeless"),
    [
        # Two are one more than on the other node, unless the guest is there.
        (SPREAD, False, True, True),
        (SPREAD, True, True, False),
        # Whoever else comes, the two are in each other's way.
        (APART, False, True, True),
        (APART, True, True, True),
        # They want company, and may begin alone if they mean themselves.
        (IN_COMPANY, False, False, True),
        (IN_COMPANY, True, False, False),
        (IN_COMPANY, False, True, False),
    ],
)
def test_rules_count_as_far_as_others_cannot_help(
    rule: InterPodRule, is_guest_meant: bool, counts: bool, hopeless: bool
) -> None:
    problem = under_a_rule(rule, is_guest_meant=is_guest_meant, counts=counts)
    assert without_room(problem) == ({0, 1} if hopeless else set())
    best = solve(problem, Options(per_device=True))
    assert len(best.placements) == (1 if hopeless else 3)


def test_a_claim_that_others_use_too_is_not_asked_about() -> None:
    """The two have no room in any case, but the gang alone does not say so: others could allocate the claim."""
    builder = ProblemBuilder(nodes=2)
    shared = builder.claim(AlternativeSpec(only=[builder.device(None)]))
    for _ in range(2):
        builder.pod(
            builder.claim(AlternativeSpec(count=2)), shared, gang="pair"
        )
    builder.pod(shared)
    builder.device(0)
    assert without_room(builder.problem()) == set()


def test_all_devices_may_be_fewer_where_others_fill_some() -> None:
    """They are not alike, so nobody gets all of them; one that the guest fills is none of them."""
    builder = ProblemBuilder(nodes=1)
    full, spare = (
        builder.device(capacity={"memory": 10}, attributes={"model": [model]})
        for model in range(2)
    )
    alike = Constraint(ConstraintKind.MATCH, "model")
    every = AlternativeSpec(
        count=None, only=[full, spare], capacity={"memory": 6}
    )
    builder.pod(builder.claim(every, constraints=[alike]), gang="solo")
    share = AlternativeSpec(only=[full], capacity={"memory": 6})
    builder.pod(builder.claim(share))
    problem = builder.problem()
    assert without_room(problem) == set()
    assert placed(solve(problem, Options(per_device=True))) == [0, 1]


def problem_of(objects: Sequence[Json]) -> Problem:
    return compile_cluster(wire.cluster(objects)).whole


def alone_in_worth(problem: Problem, chosen: Set[int]) -> Problem:
    """The same problem where nobody else is worth anything: they are placed if that helps."""
    demands = [
        replace(demand, weight=int(demand_index in chosen))
        for demand_index, demand in enumerate(problem.demands)
    ]
    return replace(problem, demands=tuple(demands))


@settings(
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)
@given(PROBLEMS | companies(max_waiting=8).map(problem_of))
def test_nobody_places_more_of_them_whatever_it_costs_others(
    problem: Problem,
) -> None:
    groups = cramped(problem)
    event(f"gangs: {any(demand.gang for demand in problem.demands)}")
    for group in groups:
        event(f"{'a gang' if len(group.members) > 1 else 'one'} cramped")
        event(f"some have room: {group.most > 0}")
        members = set(group.members)
        best = solve(alone_in_worth(problem, members), Options(per_device=True))
        placed_members = members.intersection(
            placement.demand for placement in best.placements
        )
        assert len(placed_members) <= group.most
