from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice, product

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from brute_force import best, best_solution, feasible, solutions
from dralloc.check import violations
from dralloc.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    Capacity,
    Charge,
    Claim,
    Counter,
    CounterID,
    Demand,
    Device,
    Node,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Usage,
)
from dralloc.solution import Grant, Placement, Solution
from strategies import TableEligibility, problems

quickly = settings(derandomize=True, deadline=None, database=None, max_examples=80)
POOL = PoolID("example.com", "pool")


def gpus(number: int, *, shareable: bool = False, slices: int = 0) -> tuple[Device, ...]:
    capacity = {"memory": Capacity("memory", 4)} if shareable else {}
    consumes = ((0, slices),) if slices else ()
    names = (DeviceID(*POOL, f"gpu-{index}") for index in range(number))
    return tuple(Device(name, slot, 0, shareable, capacity, consumes, {}, None) for slot, name in enumerate(names))


def pod(index: int, *counts: int | None, weight: int = 1, gang: str = "") -> Demand:
    """A pod with one request: ``firstAvailable`` of so many devices, or so many."""
    entries = tuple(
        Alternative(10 * index + rank, RequestName("gpu", "abc"[rank]), rank, count)
        for rank, count in enumerate(counts)
    )
    claim = Claim(ClaimKey("default", f"claim-{index}"), f"uid-{index}", (Request("gpu", entries),))
    return Demand(ClaimKey("default", f"pod-{index}"), (claim,), weight=weight, gang=gang)


def problem(
    devices: Sequence[Device],
    *demands: Demand,
    eligibility: TableEligibility | None = None,
    usage: Usage | None = None,
    slices: int = 0,
) -> Problem:
    node = Node("node", (PoolAccess(POOL, PoolState.USABLE, tuple(range(len(devices)))),))
    return Problem(
        demands=demands,
        nodes=(node,),
        devices=tuple(devices),
        counters=(Counter(CounterID(*POOL, "shared", "slices"), slices, slices, 0),) if slices else (),
        usage=usage or Usage(frozenset(), {}, {}),
        eligibility=eligibility or TableEligibility(),
    )


def test_weight_comes_before_rank() -> None:
    assert best(problem(gpus(3), pod(0, 3, 1), pod(1, 2))) == (2, 1)
    assert best(problem(gpus(3), pod(0, 3, 1), pod(1, 2, weight=2))) == (3, 1)
    assert best(problem(gpus(3), pod(0, 2, 1), pod(1, 2, 1))) == (2, 1)


def test_the_heavier_demand_wins() -> None:
    assert best(problem(gpus(2), pod(0, 2, weight=3), pod(1, 1), pod(2, 1))) == (3, 0)
    assert best(problem(gpus(2), pod(0, 2, weight=3), pod(1, 1, weight=2), pod(2, 1, weight=2))) == (4, 0)


def test_a_gang_is_placed_all_or_none() -> None:
    alone = pod(2, 1, weight=2)
    assert best(problem(gpus(3), pod(0, 2, gang="g"), pod(1, 2, gang="g"), alone)) == (2, 0)
    assert best(problem(gpus(4), pod(0, 2, gang="g"), pod(1, 2, gang="g"), pod(2, 1))) == (2, 0)


def test_counters_bound_what_devices_alone_would_not() -> None:
    assert best(problem(gpus(4, slices=2), pod(0, 3), pod(1, 1), pod(2, 1), slices=5)) == (2, 0)


def test_shares_fill_a_capacity_exactly() -> None:
    half = {(10 * index, 0): Charge((("memory", 2),)) for index in range(3)}
    table = TableEligibility(charges=half)
    assert best(problem(gpus(1, shareable=True), pod(0, 1), pod(1, 1), pod(2, 1), eligibility=table)) == (2, 0)


def test_all_leaves_out_only_what_allocated_claims_have_filled() -> None:
    charges = {(0, gpu): Charge((("memory", 2),)) for gpu in (0, 1)} | {
        (10, 0): Charge((("memory", 3),)),
        (10, 1): None,
    }
    table, both = TableEligibility(charges=charges), gpus(2, shareable=True)
    assert best(problem(both, pod(0, None), pod(1, 1), eligibility=table)) == (1, 0)
    full = Usage(frozenset(), {1: 1}, {1: {"memory": 3}})
    only = problem(both, pod(0, None), eligibility=table, usage=full)
    assert best_solution(only).placements == (Placement(0, 0, ((Grant(0, 0, 0),),)),)


@quickly
@given(problems())
def test_every_solution_passes_the_checker(drawn: Problem) -> None:
    for solution in islice(solutions(drawn), 20):
        assert violations(drawn, solution) == []
        assert feasible(drawn, solution)


@quickly
@given(problems())
def test_the_best_is_the_best_of_all(drawn: Problem) -> None:
    found = [worth(drawn, solution) for solution in islice(solutions(drawn), 3000)]
    assume(len(found) < 3000)
    weight, rank = best(drawn)
    assert (weight, -rank) == max(found) == worth(drawn, best_solution(drawn))


@quickly
@given(problems(max_demands=2, max_devices=3))
def test_nothing_that_the_checker_accepts_is_better(drawn: Problem) -> None:
    """Except for ``All``, where the checker lets a later demand fill a device that is then missing."""
    assume(not wants_all(drawn))
    every = list(islice(anything(drawn), 2000))
    assume(len(every) < 2000)
    weight, rank = best(drawn)
    assert (weight, -rank) == max(worth(drawn, solution) for solution in every if not violations(drawn, solution))


@settings(quickly, suppress_health_check=[HealthCheck.filter_too_much])
@given(problems(max_demands=3), st.data())
def test_checker_and_brute_force_agree_about_changed_solutions(drawn: Problem, data: st.DataObject) -> None:
    whole = [solution for solution in islice(solutions(drawn), 20) if solution.placements]
    assume(whole)
    solution = changed(drawn, data.draw(st.sampled_from(whole)), data)
    accepted = violations(drawn, solution) == []
    assert accepted or not feasible(drawn, solution)
    assert feasible(drawn, solution) or wants_all(drawn) or not accepted


def worth(drawn: Problem, solution: Solution) -> tuple[int, int]:
    """Total weight and negative total rank, counted anew."""
    weight = rank = 0
    for placement in solution.placements:
        demand = drawn.demands[placement.demand]
        weight += demand.weight
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            served = {grant.request: grant.alternative for grant in grants}
            rank += sum(claim.requests[request].alternatives[chosen].rank for request, chosen in served.items())
    return weight, -rank


def wants_all(drawn: Problem) -> bool:
    requests = (request for demand in drawn.demands for claim in demand.claims for request in claim.requests)
    return any(alternative.count is None for request in requests for alternative in request.alternatives)


def anything(drawn: Problem) -> Iterator[Solution]:
    """Every way to hand out as many devices as are asked for, whatever the rules."""
    options = [
        [
            None,
            *(Placement(index, node, grants) for node in drawn.all_nodes for grants in handed_out(drawn, demand, node)),
        ]
        for index, demand in enumerate(drawn.demands)
    ]
    for chosen in product(*options):
        yield Solution(tuple(placement for placement in chosen if placement is not None))


def handed_out(drawn: Problem, demand: Demand, node: int) -> Iterator[tuple[tuple[Grant, ...], ...]]:
    devices = tuple(drawn.nodes[node].devices())
    claims = []
    for claim in demand.claims:
        served = [
            [
                tuple(Grant(number, position, device) for device in chosen)
                for position, alternative in enumerate(request.alternatives)
                for chosen in combinations(devices, alternative.count or 0)
            ]
            for number, request in enumerate(claim.requests)
        ]
        claims.append([tuple(chain.from_iterable(grants)) for grants in product(*served)])
    yield from product(*claims)


def changed(drawn: Problem, solution: Solution, data: st.DataObject) -> Solution:
    """The solution with one thing changed: a device, a grant, a node, a placement or an alternative."""
    placements = list(solution.placements)
    position = data.draw(st.integers(0, len(placements) - 1))
    placement = placements[position]
    kind = data.draw(st.sampled_from(["device", "device", "grant", "node", "placement", "alternative"]))
    if kind == "placement":
        return Solution((*placements[:position], *placements[position + 1 :]))
    if kind == "node":
        placements[position] = replace(placement, node=data.draw(st.sampled_from(drawn.all_nodes)))
        return Solution(tuple(placements))
    number = data.draw(st.integers(0, len(placement.grants) - 1))
    claim, grants = drawn.demands[placement.demand].claims[number], list(placement.grants[number])
    which = data.draw(st.integers(0, len(grants) - 1))
    if kind == "grant":
        del grants[which]
    elif kind == "device":
        grants[which] = grants[which]._replace(device=data.draw(st.integers(0, len(drawn.devices) - 1)))
    else:
        other = data.draw(st.integers(0, len(claim.requests[grants[which].request].alternatives) - 1))
        request = grants[which].request
        grants = [grant._replace(alternative=other) if grant.request == request else grant for grant in grants]
    claims = (*placement.grants[:number], tuple(grants), *placement.grants[number + 1 :])
    placements[position] = replace(placement, grants=claims)
    return Solution(tuple(placements))
