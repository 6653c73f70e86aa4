"""What is cut out of a problem answers as the whole would, and equal keys mean equal answers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from across_strategies import bound_claims
from dralloc.objects.names import DeviceID
from dralloc.problem import Charge, Demand, Device, Problem, indices, numbered
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.solution import Grant, Placement, holdings_of
from dralloc.problem.subproblem import Subproblem, cut, separated, with_versions
from dralloc.solve.first_fit import first_fit
from examples import INDEPENDENT, examples
from pod_strategies import bound_pods
from strategies import problems


def outward(
    part: Subproblem, placements: tuple[Placement, ...]
) -> list[Placement]:
    """The placements in the numbers of the whole."""

    def grants(claim: tuple[Grant, ...]) -> tuple[Grant, ...]:
        return tuple(
            grant._replace(device=part.devices[grant.device]) for grant in claim
        )

    return [
        Placement(
            placement.demand,
            part.nodes[placement.node],
            tuple(map(grants, placement.grants)),
        )
        for placement in placements
    ]


def alone(demand: Demand) -> Demand:
    return demand.by_itself(nodes=None, roles=())


BOUND = bound_pods(max_rules=0, footprints=st.just(True)).map(
    lambda pods: pods.whole
)
"""Problems in which requests of pods as a whole are counters that no device belongs to."""


@given(problems() | BOUND, st.data())
def test_a_node_cut_out_gives_what_the_whole_gives_there(
    problem: Problem, data: st.DataObject
) -> None:
    node = data.draw(st.sampled_from(problem.all_nodes))
    demands = tuple(
        replace(alone(demand), nodes=(node,)) for demand in problem.demands
    )
    whole = first_fit(replace(problem, demands=demands))
    part = cut(problem, [node], demands=map(alone, problem.demands))
    solution = first_fit(part.problem)
    assert outward(part, solution.placements) == list(whole.placements)
    assert {
        demand_index: str(error)
        for demand_index, error in solution.errors.items()
    } == {
        demand_index: str(error) for demand_index, error in whole.errors.items()
    }


@given(problems())
def test_a_part_counts_what_a_ledger_says_is_in_use(problem: Problem) -> None:
    first, *others = problem.demands
    placed = first_fit(replace(problem, demands=(first,))).placements
    ledger = ClaimLedger(problem)
    for placement in placed:
        ledger.hold(holdings_of(problem, placement))
    by_ledger = cut(
        problem, problem.all_nodes, demands=map(alone, others), ledger=ledger
    )
    by_usage = cut(
        ledger.applied(), problem.all_nodes, demands=map(alone, others)
    )
    assert by_ledger.problem.usage == by_usage.problem.usage
    assert by_ledger.problem.counters == by_usage.problem.counters


@given(problems())
def test_versions_of_a_device_stay_together(problem: Problem) -> None:
    for device_index, device in numbered(problem.devices):
        assert set(with_versions(problem, [device_index])) == set(
            problem.versions[device.slot]
        )


def renamed(device: Device) -> Device:
    return replace(
        device,
        id=DeviceID(
            device.id.driver, device.id.pool, f"other-{device.id.device}"
        ),
    )


@given(problems())
def test_names_do_not_matter_to_the_key_and_what_is_in_use_does(
    problem: Problem,
) -> None:
    other = replace(problem, devices=tuple(map(renamed, problem.devices)))
    assert inventory_key(other) == inventory_key(problem)
    ledger = ClaimLedger(problem)
    free = next(
        (device for device in problem.devices if ledger.is_free(device)), None
    )
    if free is not None:
        ledger.enter(free, Charge(), share=free.shareable)
        assert inventory_key(ledger.applied()) != inventory_key(problem)


@settings(max_examples=examples(2000), backend=INDEPENDENT, deadline=None)
@given(bound_claims(max_pods=1, max_devices=1, allocated=True))
def test_equal_keys_mean_equal_answers_beside_what_is_allocated(
    problem: Problem,
) -> None:
    """Constraints compare devices with those that are allocated already, and so does the key."""
    demands = tuple(map(alone, problem.demands))
    parts = [
        cut(problem, [node], demands=demands).problem
        for node in problem.all_nodes
    ]
    answers = {
        inventory_key(part): first_fit(part).placements for part in parts
    }
    for part in parts:
        assert answers[inventory_key(part)] == first_fit(part).placements


@given(problems())
def test_separated_devices_have_no_resource_in_common(problem: Problem) -> None:
    devices = indices(problem.devices)
    groups = separated(problem, devices)
    assert sorted(device for group in groups for device in group) == list(
        devices
    )
    shared = [
        {
            resource
            for device in group
            for resource in problem.devices[device].resources
        }
        for group in groups
    ]
    assert sum(map(len, shared)) == len(set().union(*shared))


@given(problems())
def test_counters_charged_by_request_keep_devices_together(
    problem: Problem,
) -> None:
    devices = indices(problem.devices)
    assert len(separated(problem, devices, lambda _: [0])) == min(
        len(devices), 1
    )
