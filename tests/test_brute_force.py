from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice, product

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from brute_force import best, best_solution, feasible, solutions
from dralloc.check import violations
from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Counter,
    CounterID,
    CounterIndex,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    SlotIndex,
    Usage,
    indices,
    numbered,
)
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.first_fit import first_fit
from examples import examples
from strategies import TableEligibility, problems

quickly = settings(deadline=None, database=None, max_examples=examples(80))
POOL = PoolID("example.com", "pool")


def memory(nanos: int, alternative: int) -> dict[tuple[int, int], Charge]:
    """Let an alternative take so much of either of two devices."""
    return {
        (alternative, device): Charge((("memory", nanos),)) for device in (0, 1)
    }


def gpus(
    count: int, *, shareable: bool = False, slices: int = 0
) -> tuple[Device, ...]:
    capacity = {"memory": Capacity("memory", 4)} if shareable else {}
    consumes = ((CounterIndex(0), slices),) if slices else ()
    names = (DeviceID(*POOL, f"gpu-{index}") for index in range(count))
    return tuple(
        Device(
            name, SlotIndex(slot), 0, shareable, capacity, consumes, {}, None
        )
        for slot, name in enumerate(names)
    )


def pod(
    index: int,
    *counts: int | None,
    weight: int = 1,
    gang: str = "",
    admin: bool = False,
) -> Demand:
    """A pod with one request: ``firstAvailable`` of so many devices, or so many."""
    entries = tuple(
        Alternative(
            AlternativeIndex(10 * index + rank),
            RequestName("gpu", "abc"[rank]),
            rank,
            count,
            admin,
        )
        for rank, count in enumerate(counts)
    )
    claim = Claim(
        ClaimKey("default", f"claim-{index}"),
        f"uid-{index}",
        (Request("gpu", entries),),
    )
    return Demand(
        ClaimKey("default", f"pod-{index}"), (claim,), weight=weight, gang=gang
    )


def problem(
    devices: Sequence[Device],
    *demands: Demand,
    eligibility: TableEligibility | None = None,
    usage: Usage | None = None,
    slices: int = 0,
    nodes: int = 1,
) -> Problem:
    pool = PoolAccess(
        POOL, PoolState.USABLE, tuple(map(DeviceIndex, range(len(devices))))
    )
    return Problem(
        demands=demands,
        nodes=tuple(Node(f"node-{index}", (pool,)) for index in range(nodes)),
        devices=tuple(devices),
        counters=(
            Counter(CounterID(*POOL, "shared", "slices"), slices, slices, 0),
        )
        if slices
        else (),
        usage=usage or Usage(frozenset(), {}, {}),
        eligibility=eligibility or TableEligibility(),
    )


def test_weight_comes_before_rank() -> None:
    assert best(problem(gpus(3), pod(0, 3, 1), pod(1, 2))) == (2, 1)
    assert best(problem(gpus(3), pod(0, 3, 1), pod(1, 2, weight=2))) == (3, 1)
    assert best(problem(gpus(3), pod(0, 2, 1), pod(1, 2, 1))) == (2, 1)


def test_the_heavier_demand_wins() -> None:
    assert best(
        problem(gpus(2), pod(0, 2, weight=3), pod(1, 1), pod(2, 1))
    ) == (3, 0)
    assert best(
        problem(
            gpus(2),
            pod(0, 2, weight=3),
            pod(1, 1, weight=2),
            pod(2, 1, weight=2),
        )
    ) == (4, 0)


def test_a_gang_has_its_quorum_or_nothing() -> None:
    three = [replace(pod(index, 2, gang="g"), quorum=2) for index in range(3)]
    assert best(problem(gpus(6), *three)) == (3, 0)
    assert best(problem(gpus(5), *three)) == (2, 0)
    assert best(problem(gpus(3), *three)) == (0, 0)


def test_a_gang_is_placed_all_or_none() -> None:
    alone = pod(2, 1, weight=2)
    assert best(
        problem(gpus(3), pod(0, 2, gang="g"), pod(1, 2, gang="g"), alone)
    ) == (
        2,
        0,
    )
    assert best(
        problem(gpus(4), pod(0, 2, gang="g"), pod(1, 2, gang="g"), pod(2, 1))
    ) == (2, 0)


def test_counters_bound_what_devices_alone_would_not() -> None:
    assert best(
        problem(gpus(4, slices=2), pod(0, 3), pod(1, 1), pod(2, 1), slices=5)
    ) == (2, 0)


def test_shares_fill_a_capacity_exactly() -> None:
    half = {(10 * index, 0): Charge((("memory", 2),)) for index in range(3)}
    table = TableEligibility(charges=half)
    assert best(
        problem(
            gpus(1, shareable=True),
            pod(0, 1),
            pod(1, 1),
            pod(2, 1),
            eligibility=table,
        )
    ) == (2, 0)


def test_all_leaves_out_only_what_is_full_in_the_end() -> None:
    both = gpus(2, shareable=True)
    only_0 = TableEligibility(
        {(10, 1): False}, charges=memory(2, 0) | memory(3, 10)
    )
    solution = best_solution(
        problem(both, pod(0, None), pod(1, 1), eligibility=only_0)
    )
    assert solution.placements == (
        Placement(
            DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(1)),),)
        ),
        Placement(
            DemandIndex(1), NodeIndex(0), ((Grant(0, 0, DeviceIndex(0)),),)
        ),
    )
    room = replace(only_0, charges=memory(2, 0) | memory(2, 10))
    solution = best_solution(
        problem(both, pod(0, None), pod(1, 1), eligibility=room)
    )
    assert [len(placement.grants[0]) for placement in solution.placements] == [
        2,
        1,
    ]
    everything = replace(
        only_0, charges=memory(2, 0) | memory(3, 10), selected={}
    )
    assert best(
        problem(both, pod(0, None), pod(1, 2), eligibility=everything)
    ) == (
        1,
        0,
    )
    full = Usage(frozenset(), {SlotIndex(1): 1}, {SlotIndex(1): {"memory": 3}})
    only = problem(both, pod(0, None), eligibility=everything, usage=full)
    assert best_solution(only).placements == (
        Placement(
            DemandIndex(0), NodeIndex(0), ((Grant(0, 0, DeviceIndex(0)),),)
        ),
    )


def test_admin_access_takes_capacity_from_its_own_demand_only() -> None:
    table = TableEligibility(charges=memory(3, 0) | memory(2, 10))
    admin, plain = pod(0, 1, admin=True), pod(1, 1)
    devices = gpus(1, shareable=True)
    assert best(problem(devices, admin, plain, eligibility=table)) == (2, 0)
    assert best(
        problem(
            devices,
            replace(admin, claims=admin.claims + plain.claims),
            eligibility=table,
        )
    ) == (0, 0)


def test_all_minds_no_admin_access() -> None:
    table = TableEligibility(
        {(0, 1): False}, charges=memory(2, 0) | memory(3, 10)
    )
    admin, everything = pod(0, 1, admin=True), pod(1, None)
    both = gpus(2, shareable=True)
    apart = best_solution(problem(both, admin, everything, eligibility=table))
    assert [len(placement.grants[0]) for placement in apart.placements] == [
        1,
        2,
    ]
    together = replace(admin, claims=admin.claims + everything.claims)
    assert (
        best_solution(problem(both, together, eligibility=table)).placements
        == ()
    )


def test_all_does_not_leave_out_what_its_own_demand_fills() -> None:
    table = TableEligibility(
        {(0, 1): False}, charges=memory(2, 0) | memory(3, 10)
    )
    plain, everything = pod(0, 1), pod(1, None)
    both = gpus(2, shareable=True)
    assert best(problem(both, plain, everything, eligibility=table)) == (2, 0)
    assert best(
        problem(
            both,
            replace(plain, claims=plain.claims + everything.claims),
            eligibility=table,
        )
    ) == (0, 0)


def test_a_shared_claim_is_allocated_once_wherever_all_can_use_it() -> None:
    first, second = pod(0, 1), pod(1, 1)
    both = replace(second, claims=first.claims + second.claims)
    assert best(problem(gpus(2), first, both)) == (2, 0)
    assert best(problem(gpus(1), first, both)) == (1, 0)
    apart = (
        replace(first, nodes=(NodeIndex(0),)),
        replace(first, nodes=(NodeIndex(1),)),
    )
    (net,) = gpus(1)
    assert best(problem((net,), *apart, nodes=2)) == (2, 0)
    assert best(
        problem((replace(net, binds_to_node=True),), *apart, nodes=2)
    ) == (1, 0)
    assert best(
        problem(
            (replace(net, nodes=frozenset({NodeIndex(0)})),), *apart, nodes=2
        )
    ) == (
        1,
        0,
    )


def test_a_shared_claim_can_be_granted_with_the_later_demand() -> None:
    first = pod(0, None)
    drawn = problem(
        gpus(1),
        replace(first, nodes=(NodeIndex(0),)),
        replace(first, nodes=(NodeIndex(1),)),
        nodes=2,
    )
    broken = PoolAccess(
        PoolID("example.com", "broken"), PoolState.INCOMPLETE, ()
    )
    partial = replace(
        drawn.nodes[NodeIndex(0)],
        pools=(*drawn.nodes[NodeIndex(0)].pools, broken),
    )
    solution = best_solution(
        replace(drawn, nodes=(partial, drawn.nodes[NodeIndex(1)]))
    )
    assert solution.placements == (
        Placement(DemandIndex(0), NodeIndex(0), ((),)),
        Placement(
            DemandIndex(1), NodeIndex(1), ((Grant(0, 0, DeviceIndex(0)),),)
        ),
    )


@quickly
@given(problems())
def test_every_solution_passes_the_checker(drawn: Problem) -> None:
    for solution in islice(solutions(drawn), 20):
        assert violations(drawn, solution) == []
        assert feasible(drawn, solution)


@quickly
@given(problems())
def test_the_best_is_the_best_of_all(drawn: Problem) -> None:
    worths = [
        worth(drawn, solution) for solution in islice(solutions(drawn), 3000)
    ]
    assume(len(worths) < 3000)
    weight, rank = best(drawn)
    assert (weight, -rank) == max(worths) == worth(drawn, best_solution(drawn))


@quickly
@given(problems(max_demands=2, max_devices=3))
def test_nothing_that_the_checker_accepts_is_better(drawn: Problem) -> None:
    every = list(islice(anything(drawn), 2000))
    assume(len(every) < 2000)
    weight, rank = best(drawn)
    assert (weight, -rank) == max(
        worth(drawn, solution)
        for solution in every
        if not violations(drawn, solution)
    )


@settings(quickly, suppress_health_check=[HealthCheck.filter_too_much])
@given(problems(max_demands=3), st.data())
def test_checker_and_brute_force_agree_about_changed_solutions(
    drawn: Problem, data: st.DataObject
) -> None:
    whole = [
        solution
        for solution in islice(solutions(drawn), 20)
        if solution.placements
    ]
    assume(whole)
    solution = changed(drawn, data.draw(st.sampled_from(whole)), data)
    assert feasible(drawn, solution) == (violations(drawn, solution) == [])


@settings(quickly, max_examples=examples(200))
@given(problems())
def test_first_fit_keeps_the_rules_and_is_not_better(drawn: Problem) -> None:
    solution = first_fit(drawn)
    assert violations(drawn, solution) == []
    weight, rank = best(drawn)
    assert worth(drawn, solution) <= (weight, -rank)


def worth(drawn: Problem, solution: Solution) -> tuple[int, int]:
    """Total weight and negative total rank, counted anew."""
    weight = rank = 0
    for placement in solution.placements:
        demand = drawn.demands[placement.demand]
        weight += demand.weight
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            served = {grant.request: grant.alternative for grant in grants}
            rank += sum(
                claim.requests[request].alternatives[chosen].rank
                for request, chosen in served.items()
            )
    return weight, -rank


def anything(drawn: Problem) -> Iterator[Solution]:
    """Every way to hand out as many devices as are asked for, whatever the rules."""
    options = [
        [
            None,
            *(
                Placement(index, node, grants)
                for node in drawn.all_nodes
                for grants in handed_out(drawn, demand, node)
            ),
        ]
        for index, demand in numbered(drawn.demands)
    ]
    for chosen in product(*options):
        yield Solution(
            tuple(placement for placement in chosen if placement is not None)
        )


def handed_out(
    drawn: Problem, demand: Demand, node: NodeIndex
) -> Iterator[tuple[tuple[Grant, ...], ...]]:
    devices = tuple(drawn.nodes[node].devices())
    claims = []
    for claim in demand.claims:
        served = [
            [
                tuple(
                    Grant(request_index, position, device) for device in chosen
                )
                for position, alternative in enumerate(request.alternatives)
                for number_of in (
                    [alternative.count]
                    if alternative.count
                    else range(1, len(devices) + 1)
                )
                for chosen in combinations(devices, number_of)
            ]
            for request_index, request in enumerate(claim.requests)
        ]
        shared = [()] if is_shared(drawn, claim) else []
        claims.append(
            [
                *shared,
                *(
                    tuple(chain.from_iterable(grants))
                    for grants in product(*served)
                ),
            ]
        )
    yield from product(*claims)


def is_shared(drawn: Problem, claim: Claim) -> bool:
    return sum(claim in demand.claims for demand in drawn.demands) > 1


def changed(
    drawn: Problem, solution: Solution, data: st.DataObject
) -> Solution:
    """The solution with one thing changed: a placement, its node, or what a claim got with it."""
    placements = list(solution.placements)
    position = data.draw(st.integers(0, len(placements) - 1))
    placement = placements[position]
    kind = data.draw(
        st.sampled_from(
            [
                "device",
                "device",
                "grant",
                "more",
                "node",
                "placement",
                "alternative",
                "home",
            ]
        )
    )
    if kind == "placement":
        return Solution((*placements[:position], *placements[position + 1 :]))
    if kind == "node":
        placements[position] = replace(
            placement, node=data.draw(st.sampled_from(drawn.all_nodes))
        )
        return Solution(tuple(placements))
    claim_index = data.draw(st.integers(0, len(placement.grants) - 1))
    claim = drawn.demands[placement.demand].claims[claim_index]
    if kind == "home":
        listing = [
            index
            for index, other in enumerate(placements)
            if claim in drawn.demands[other.demand].claims
        ]
        return moved(
            drawn, solution, claim, data.draw(st.sampled_from(listing))
        )
    grants = changed_grants(
        drawn, claim, placement.grants[claim_index], kind, data
    )
    claims = (
        *placement.grants[:claim_index],
        grants,
        *placement.grants[claim_index + 1 :],
    )
    placements[position] = replace(placement, grants=claims)
    return Solution(tuple(placements))


def moved(
    drawn: Problem, solution: Solution, claim: Claim, home: int
) -> Solution:
    """The solution with all that a claim got granted with the placement at that position."""
    placements, got = (
        [],
        tuple(
            chain.from_iterable(
                listed(drawn, other, claim) for other in solution.placements
            )
        ),
    )
    for position, placement in enumerate(solution.placements):
        claims = zip(
            drawn.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        )
        moved_to = got if position == home else ()
        placements.append(
            replace(
                placement,
                grants=tuple(
                    moved_to if known == claim else grants
                    for known, grants in claims
                ),
            )
        )
    return Solution(tuple(placements))


def listed(
    drawn: Problem, placement: Placement, claim: Claim
) -> tuple[Grant, ...]:
    claims = zip(
        drawn.demands[placement.demand].claims, placement.grants, strict=True
    )
    return tuple(
        grant for known, grants in claims if known == claim for grant in grants
    )


def changed_grants(
    drawn: Problem,
    claim: Claim,
    known: tuple[Grant, ...],
    kind: str,
    data: st.DataObject,
) -> tuple[Grant, ...]:
    """What the claim got, with another device or alternative, one grant less, or one more for the same request."""
    if not known:
        return known
    grants = list(known)
    which = data.draw(st.integers(0, len(grants) - 1))
    request = grants[which].request
    device = data.draw(st.sampled_from(indices(drawn.devices)))
    if kind == "grant":
        del grants[which]
    elif kind == "more":
        grants.insert(which, grants[which]._replace(device=device))
    elif kind == "device":
        grants[which] = grants[which]._replace(device=device)
    else:
        other = data.draw(
            st.integers(0, len(claim.requests[request].alternatives) - 1)
        )
        grants = [
            grant._replace(alternative=other)
            if grant.request == request
            else grant
            for grant in grants
        ]
    return tuple(grants)
