"""How many more fit, against trying every way to place one more than that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import brute_force
import strategies
from crowd_strategies import crowds
from dralloc.ask.whatif.copies import (
    CopyCount,
    copies,
    count_copies,
    takes_nothing,
)
from dralloc.compile.compiler import compile_cluster
from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from examples import INDEPENDENT, examples
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    node,
    request,
    resource_slice,
)

EXAMPLES = examples(50)
MANY = 4
"""So many copies are too many to try every answer."""
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def most_of(problem: Problem, demand: Demand, copy_count: int) -> int:
    """How many of so many copies fit."""
    return brute_force.best(
        replace(problem, demands=tuple(copies(demand, copy_count)))
    )[0]


def asking_for(demand: Demand, request_count: int) -> Demand:
    """The demand with no more requests in each claim than so many."""
    return replace(
        demand,
        claims=tuple(
            replace(claim, requests=claim.requests[:request_count])
            for claim in demand.claims
        ),
    )


@THOROUGH
@given(
    strategies.problems(max_demands=1, max_devices=4),
    st.sampled_from((2, 2, 1, 0)),
)
def test_any_demand(problem: Problem, request_count: int) -> None:
    demand = asking_for(problem.demands[DemandIndex(0)], request_count)
    count = count_copies(problem, demand)
    if count.number is None:
        many = replace(problem, demands=tuple(copies(demand, MANY)))
        if not takes_nothing(problem, demand):
            assert len(solve(many).placements) == MANY
        return
    assert count.exact
    assume(count.number < MANY)
    assert count.number == most_of(problem, demand, count.number + 1)
    assert count.first_fit is not None
    assert count.first_fit <= count.number
    if count.per_device is not None:
        assert count.number <= count.per_device


def nics(**second: Any) -> Problem:
    """A claim that takes all devices: a NIC that anybody can share, and another one."""
    free = device("free", allowMultipleAllocations=True)
    whole = resource_slice(
        [free, device("other", allowMultipleAllocations=True, **second)]
    )
    return compile_cluster(
        cluster(
            node(),
            device_class(),
            whole,
            claim("all", request(allocationMode="All")),
        )
    ).problem


def test_all_of_what_is_left_can_go_on_for_ever() -> None:
    """Once the second NIC is full, all devices are the first one, which takes any number."""
    problem = nics(
        capacity={
            "bandwidth": {"value": "4", "requestPolicy": {"default": "1"}}
        }
    )
    assert count_copies(problem, problem.demands[DemandIndex(0)]) == CopyCount(
        None, None, None, None
    )


def test_many_copies_of_all_are_not_tried() -> None:
    problem = nics(
        capacity={
            "bandwidth": {"value": "1M", "requestPolicy": {"default": "1"}}
        }
    )
    count = count_copies(problem, problem.demands[DemandIndex(0)])
    assert (count.number, count.bound, count.first_fit) == (512, None, 512)


def gpu_to_divide(pool: str) -> list[Json]:
    """A GPU that one claim has as a whole, or two have in halves."""
    parts = [
        device(
            name, {"numa": 0}, consumesCounters=consumes("gpu", memory=amount)
        )
        for name, amount in (("whole", "2"), ("left", "1"), ("right", "1"))
    ]
    return [
        resource_slice(
            name=f"{pool}-counters",
            pool=pool,
            count=2,
            sharedCounters=[counters("gpu", memory="2")],
        ),
        resource_slice(parts, name=f"{pool}-devices", pool=pool, count=2),
    ]


def test_who_asks_for_nothing_has_no_end() -> None:
    """Not even on a node that has nothing."""
    problem = compile_cluster(
        cluster(node(), device_class(), claim("none"))
    ).problem
    assert count_copies(problem, problem.demands[DemandIndex(0)]) == CopyCount(
        None, None, None, None
    )


def test_no_bound_follows_from_how_many_were_tried() -> None:
    """Nothing tells how many there could be, 32 are tried first, and time is over before more than 20 are placed."""
    pools = [
        part
        for index in range(20)
        for part in gpu_to_divide(f"pool-{index:02}")
    ]
    # Anybody can share it, but it lacks the attribute.
    free = resource_slice(
        [device("free", allowMultipleAllocations=True)],
        name="free",
        pool="free",
    )
    aligned = claim(
        "any", request(), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]
    )
    problem = compile_cluster(
        cluster(node(), device_class(), pools, free, aligned)
    ).problem
    demand = problem.demands[DemandIndex(0)]
    assert count_copies(problem, demand).number == 40
    count = count_copies(problem, demand, Options(time_limit=1e-6))
    assert (count.number, count.bound) == (20, None)


@THOROUGH
@given(crowds(), st.data())
def test_equal_nodes_are_solved_once(
    problem: Problem, data: st.DataObject
) -> None:
    demand = data.draw(st.sampled_from(tuple(problem.demands)))
    count = count_copies(problem, demand)
    assert count.number == count.bound
    if count.number is None:
        # Any number can share a device without capacities: first fit is not asked, and others are placed, too.
        assert count.first_fit is None
        several = replace(problem, demands=tuple(copies(demand, 9)))
        assert len(first_fit(several).placements) == 9
        return
    placed = replace(problem, demands=tuple(copies(demand, count.number + 1)))
    assert count.first_fit == len(first_fit(placed).placements)
    assert (
        solve(placed, Options(per_device=True)).tiers[0].value == count.number
    )


@pytest.mark.parametrize("power", [("5", "10"), ("10", "5")])
def test_an_overdrawn_counter_tells_nodes_apart(power: tuple[str, str]) -> None:
    """What is in use takes more power than one of the nodes has, which closes the part there that takes none."""
    devices = [
        device(
            "part",
            {"kind": "part"},
            consumesCounters=consumes("card", slices="5"),
        ),
        device(
            "hot",
            {"kind": "hot"},
            consumesCounters=consumes("card", power="10"),
        ),
    ]
    objects = [device_class()]
    for node_index, watts in enumerate(power):
        where: dict[str, Any] = {
            "pool": f"pool-{node_index}",
            "count": 2,
            "nodeName": f"node-{node_index}",
        }
        objects += [
            node(f"node-{node_index}"),
            resource_slice(
                name=f"counters-{node_index}",
                sharedCounters=[counters("card", slices="10", power=watts)],
                **where,
            ),
            resource_slice(devices, name=f"devices-{node_index}", **where),
            allocated(
                f"held-{node_index}",
                {"pool": f"pool-{node_index}", "device": "hot"},
            ),
        ]
    is_part = 'device.attributes["gpu.example.com"].kind == "part"'
    problem = compile_cluster(
        cluster(
            *objects,
            claim("all", request("gpu", is_part, allocationMode="All")),
        )
    ).problem
    count = count_copies(problem, problem.demands[DemandIndex(0)])
    assert (count.number, count.bound, count.first_fit) == (1, 1, 1)


@settings(THOROUGH, max_examples=examples(2500), backend=INDEPENDENT)
@given(crowds(every=True, overdrawn=True))
def test_equal_nodes_are_closed_alike(problem: Problem) -> None:
    for_all = [demand for demand in problem.demands if demand.asks_for_all]
    assume(for_all)
    count = count_copies(problem, for_all[0])
    assume(count.number is not None)
    placed = copies(for_all[0], (count.number or 0) + 1)
    solution = first_fit(replace(problem, demands=tuple(placed)))
    assert count.first_fit == len(solution.placements)
