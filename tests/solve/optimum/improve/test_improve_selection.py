"""Neighbourhoods are chosen where something is to be gained, and side by side they have nothing in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_problem import weighted
from benchmarks.workloads.mixed import mixed
from common_pools import common_pools
from dralloc.check.problem import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, NodeIndex, Problem, SlotIndex, indices
from dralloc.problem.solution import APPRAISAL_UNIT, Appraisal, Solution
from dralloc.solve.backends import Parcel
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.neighbourhood import (
    Neighbourhood,
    neighbourhood,
)
from dralloc.solve.optimum.improve.selection import (
    NeighbourhoodSelection,
    Proposal,
)
from dralloc.solve.optimum.improve.task import NeighbourhoodTask
from dralloc.solve.optimum.objective import (
    Objective,
    placed_weight,
)
from dralloc.solve.optimum.relax import RelaxationLadder
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    rack_with_a_waiting_gang,
)

THOROUGH = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

PART = 0.4
"""Of nodes and demands, so many are free at random."""


def selection_of(
    problem: Problem, appraisal: Appraisal | None
) -> NeighbourhoodSelection:
    incumbent = Incumbent(problem, first_fit(problem).placements)
    return NeighbourhoodSelection(
        incumbent,
        Bonds(problem),
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=appraisal,
    )


def task_of(
    area: Neighbourhood, tiers: Sequence[Objective]
) -> NeighbourhoodTask:
    """What decides a neighbourhood exactly."""
    return NeighbourhoodTask(
        area.cutting,
        area.present,
        tiers,
        aim=len(tiers),
        extra=None,
        options=Options(),
        effort=inf,
        end=inf,
    )


def ten_proposals(
    selection: NeighbourhoodSelection, way: str
) -> list[Proposal]:
    drawn = (selection.propose((), 8) for _ in range(100))
    by_way = [
        proposal
        for proposal in drawn
        if proposal and proposal.approach.way == way
    ]
    return by_way[:10]


def test_neighbourhoods_for_a_gang_free_one_of_its_racks_and_try_it() -> None:
    problem = rack_with_a_waiting_gang()
    selection = selection_of(problem, None)
    proposals = ten_proposals(selection, "for a waiting block")
    assert proposals
    gang = selection.bonds.block_of[DemandIndex(6)]
    for proposal in proposals:
        assert gang in proposal.blocks
        assert set(proposal.nodes) in ({0, 1}, {2, 3})


def test_neighbourhoods_for_users_of_one_device_begin_where_it_can_be_used() -> (
    None
):
    builder = ProblemBuilder(nodes=6)
    links = [builder.device(None) for _ in range(3)]
    for link in links:
        builder.pod(builder.claim(AlternativeSpec(only=[link])))
    shared = builder.claim(AlternativeSpec(only=links))
    for _ in range(2):
        builder.pod(shared)
    problem = builder.problem()
    # Each is for two nodes: their slices offer no other.
    reaches = [(0, 1), (2, 3), (4, 5)]
    nodes = []
    for node_index, node in enumerate(problem.nodes):
        own, common = node.pools
        within = tuple(
            link
            for link, reach in zip(links, reaches, strict=True)
            if node_index in reach
        )
        nodes.append(
            replace(node, pools=(own, replace(common, devices=within)))
        )
    problem = replace(problem, nodes=tuple(nodes))
    selection = selection_of(problem, None)
    proposals = ten_proposals(selection, "for a waiting block")
    assert len(proposals) == 10
    first_two = {tuple(sorted(proposal.nodes[:2])) for proposal in proposals}
    assert first_two == set(reaches)


def test_neighbourhoods_far_from_the_bound_are_where_nodes_are_not_paid_for() -> (
    None
):
    problem = rack_with_a_waiting_gang()
    selection = selection_of(problem, None)
    assert not ten_proposals(selection, "far from the bound")
    sizes = dict.fromkeys(indices(problem.demands), 10)
    # What stands on a node pays 20: of the last node that is hardly anything.
    appraisal = Appraisal(sizes, sizes, (20, 20, 20, 10**9))
    selection = selection_of(problem, appraisal)
    proposals = ten_proposals(selection, "far from the bound")
    assert proposals
    assert all(proposal.nodes[0] == 3 for proposal in proposals)


@THOROUGH
@given(weighted(), st.randoms(use_true_random=False))
def test_where_the_bound_leaves_no_room_nothing_is_gained(
    problem: Problem, random: Random
) -> None:
    """Neighbourhoods that are not tried for that are solved here, exactly."""
    tiers = placed_weight(problem)
    ladder = RelaxationLadder(problem, tiers, Stop())
    list(ladder.bounds())
    start = []
    if random.random() < PART:
        start = within_caps(problem, first_fit(problem).placements)
    incumbent, bonds = Incumbent(problem, start), Bonds(problem)
    selection = NeighbourhoodSelection(
        incumbent,
        bonds,
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=ladder.appraisal(),
        counts_weight_alone=True,
    )
    nodes = [node for node in problem.all_nodes if random.random() < PART]
    blocks = [
        block for block in indices(bonds.blocks) if random.random() < PART
    ]
    assembly = selection.assembly()
    for node in nodes:
        assembly.add_node(node)
    for block in blocks:
        assembly.add_block(block)
    if selection.may_gain(assembly):
        return
    area = neighbourhood(Parcel(problem), incumbent, bonds, blocks, nodes)
    assert task_of(area, tiers).run().placements is None


def test_room_for_one_that_is_worth_more_is_made_whatever_the_prices_say() -> (
    None
):
    """Two demands stand where one waits that is worth forty: at these prices no more than two."""
    builder = ProblemBuilder()
    builder.device()
    builder.device()
    for _ in range(2):
        builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(builder.claim(AlternativeSpec(2)), weight=40)
    problem = builder.problem()
    sizes = {
        demand: APPRAISAL_UNIT * count
        for demand, count in zip(
            indices(problem.demands), (1, 1, 2), strict=True
        )
    }
    nothing = dict.fromkeys(sizes, 0)
    incumbent = Incumbent(problem, first_fit(problem).placements)
    selection = NeighbourhoodSelection(
        incumbent,
        Bonds(problem),
        indices(problem.demands),
        seed=0,
        largest_block=40,
        appraisal=Appraisal(sizes, nothing, (2 * APPRAISAL_UNIT,)),
        counts_weight_alone=True,
    )
    assembly = selection.assembly()
    for node in problem.all_nodes:
        assembly.add_node(node)
    for block in (0, 1):
        assembly.add_block(block)
    assert not selection.may_gain(assembly)
    assembly.add_block(2)
    assert selection.may_gain(assembly)


def test_neighbourhoods_side_by_side_have_nothing_in_common() -> None:
    selection = selection_of(compile_cluster(mixed(12, 1)).whole, None)
    proposals: list[Proposal] = []
    for _ in range(30):
        proposal = selection.propose(proposals, 8)
        if proposal is not None:
            proposals.append(proposal)
    assert len(proposals) > 1
    placements = selection.incumbent.placements
    nodes: list[NodeIndex] = []
    freed: list[DemandIndex] = []
    for proposal in proposals:
        demands = [
            demand
            for block in proposal.blocks
            for demand in selection.bonds.blocks[block]
        ]
        homes = {
            placements[demand].node
            for demand in demands
            if demand in placements
        }
        freed += demands
        nodes += {*proposal.nodes, *homes}
    assert len(freed) == len(set(freed))
    assert len(nodes) == len(set(nodes))


@THOROUGH
@given(common_pools(), st.integers(0, 1000), st.data())
def test_neighbourhoods_beside_common_devices_can_all_be_taken_over(
    problem: Problem, seed: int, data: st.DataObject
) -> None:
    """Each is decided without a look at the others."""
    start = [
        placement
        for placement in first_fit(problem).placements
        if data.draw(st.integers(0, 2)) == 0
    ]
    incumbent, bonds = Incumbent(problem, start), Bonds(problem)
    selection = NeighbourhoodSelection(
        incumbent, bonds, indices(problem.demands), seed, largest_block=40
    )
    proposals: list[Proposal] = []
    answers = {placement.demand: placement for placement in start}
    for _ in range(8):
        proposal = selection.propose(proposals, size=4)
        if proposal is None:
            continue
        proposals.append(proposal)
        area = neighbourhood(
            Parcel(problem),
            incumbent,
            bonds,
            proposal.blocks,
            proposal.nodes,
            proposal.withheld,
        )
        placements = task_of(area, placed_weight(problem)).run().placements
        if placements is not None:
            for demand in area.freed:
                answers.pop(demand, None)
            answers.update((it.demand, it) for it in placements)
    together = Solution(tuple(answers[demand] for demand in sorted(answers)))
    assert violations(problem, together) == []
    assert len(answers) >= len(start)


ADAPTER = AlternativeSpec(only=[2])
GPU = AlternativeSpec(only=[0, 1])


def beside_a_common_pool(waiting: AlternativeSpec) -> NeighbourhoodSelection:
    """Two nodes with a GPU each that is in use; the pod on node 0 has the adapter for both. Another pod waits."""
    builder = ProblemBuilder(nodes=2)
    gpus = [builder.device(0), builder.device(1)]
    builder.device(None)
    for gpu in gpus:
        requests = [AlternativeSpec(only=[gpu])]
        if gpu == gpus[0]:
            requests.append(ADAPTER)
        builder.pod(builder.claim(*requests))
    builder.pod(builder.claim(waiting))
    return selection_of(builder.problem(), None)


def test_common_devices_are_for_one_neighbourhood_at_a_time() -> None:
    selection = beside_a_common_pool(ADAPTER)
    first = selection.assembly()
    assert first.add_node(NodeIndex(0))
    first.add_block(0)
    assert not first.withheld
    [stock] = first.opened
    assert stock.slots == {2}
    second = selection.assembly(first.reserved)
    assert second.add_node(NodeIndex(1))
    second.add_block(1)
    # This one has nothing to do with adapters, and the next one has.
    assert not second.withheld
    second.add_block(2)
    assert second.withheld == {2}
    assert first.reserved.isdisjoint(second.reserved)


def test_whoever_has_something_of_busy_devices_stays() -> None:
    selection = beside_a_common_pool(ADAPTER)
    first = selection.assembly()
    first.add_node(NodeIndex(1))
    first.add_block(2)
    assert first.opened
    second = selection.assembly(first.reserved)
    assert second.add_node(NodeIndex(0))
    second.add_block(0)
    assert not second.blocks


def test_what_is_withheld_is_given_to_nobody() -> None:
    """Also if it is free in the answer that is changed."""
    builder = ProblemBuilder(nodes=2)
    builder.device(0)
    builder.device(1)
    builder.device(None)
    builder.pod(builder.claim(ADAPTER))
    problem = builder.problem()
    incumbent, bonds = Incumbent(problem, ()), Bonds(problem)
    answers = []
    for withheld in (frozenset(), frozenset({SlotIndex(2)})):
        area = neighbourhood(
            Parcel(problem), incumbent, bonds, [0], problem.all_nodes, withheld
        )
        answers.append(task_of(area, placed_weight(problem)).run().placements)
    assert answers[0]
    assert answers[1] is None


def test_devices_that_no_freed_demand_could_use_are_left_to_others() -> None:
    selection = beside_a_common_pool(GPU)
    assembly = selection.assembly()
    assembly.add_node(NodeIndex(1))
    assembly.add_block(1)
    assembly.add_block(2)
    assert not assembly.opened
    assert not assembly.withheld


def test_a_node_without_other_devices_waits_for_busy_ones() -> None:
    builder = ProblemBuilder(nodes=3)
    builder.device(0)
    builder.device(None)
    builder.pod(builder.claim(AlternativeSpec()))
    selection = selection_of(builder.problem(), None)
    first = selection.assembly()
    first.add_node(NodeIndex(1))
    first.add_block(0)
    second = selection.assembly(first.reserved)
    assert not second.add_node(NodeIndex(2))


def test_a_proposal_says_how_much_it_frees() -> None:
    selection = selection_of(rack_with_a_waiting_gang(), None)
    drawn = [selection.propose((), 8) for _ in range(100)]
    proposals = [proposal for proposal in drawn if proposal]
    assert proposals
    for proposal in proposals:
        freed = [
            demand
            for block in proposal.blocks
            for demand in selection.bonds.blocks[block]
        ]
        work = len(freed) * len(proposal.nodes) * proposal.effort
        assert proposal.work == work


def test_ways_that_gain_more_for_their_work_come_up_more_often() -> None:
    selection = selection_of(rack_with_a_waiting_gang(), None)
    [good, *others] = {
        proposal.approach: proposal
        for _ in range(100)
        if (proposal := selection.propose((), 8))
    }.values()
    for _ in range(100):
        selection.learn(good._replace(work=100.0), better=True)
        for proposal in others:
            selection.learn(proposal._replace(work=1000.0), better=False)
    drawn = [selection.propose((), 8) for _ in range(100)]
    good_ones = [
        proposal
        for proposal in drawn
        if proposal and proposal.approach == good.approach
    ]
    assert len(good_ones) > 80
