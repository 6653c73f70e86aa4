"""A rulebook of arc-flow: bins with one capacity are paths through what can be left of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from dralloc.problem import Charge, DeviceIndex, NodeIndex
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.flow_supplies import (
    FlowSource,
    FlowSupply,
    flow_supplies,
)
from examples import examples
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    placed,
)
from strategies import TableEligibility


def source(
    free: int, sizes: Mapping[int, int], *devices: DeviceIndex
) -> FlowSource:
    """Bins of one device each, on a node of the same number; only sizes that fit are sizes of a source."""
    bins = [Bin(((device,),), (NodeIndex(device),)) for device in devices]
    return FlowSource(
        free,
        {
            requirement: size
            for requirement, size in sizes.items()
            if size <= free
        },
        bins,
    )


def solved(
    supply: FlowSupply, wanted: Mapping[int, int]
) -> tuple[int, dict[int, Counter[int]]]:
    """The most of these requirements that are served at once, and what each device serves."""
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    for requirement, terms in supply.build(model).items():
        model.add(
            sum(variable * factor for variable, factor in terms)
            <= wanted[requirement]
        )
    served = list(supply.served.values())
    model.maximize(sum(served))
    assert solver.solve(model) == cp_model.OPTIMAL
    values = [
        solver.value(model.get_int_var_from_proto_index(index))
        for index in range(len(model.proto.variables))
    ]
    by_device: dict[int, Counter[int]] = {}
    for requirement, serving in supply.realise(values):
        by_device.setdefault(serving.node, Counter())[requirement] += 1
    return round(solver.objective_value), by_device


def test_who_takes_nothing_of_a_capacity_is_no_size() -> None:
    """As a pod that asks for CPU alone takes nothing of a node that only memory is scarce on."""
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 4})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 4})))
    builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    charges = {(0, 0): Charge((("memory", 4),)), (1, 0): Charge()}
    assert placed(
        solve(replace(problem, eligibility=TableEligibility(charges=charges)))
    ) == [0, 1]


def test_a_device_walks_from_what_is_left_by_sizes_that_never_grow() -> None:
    [supply] = flow_supplies([source(10, {0: 6, 1: 4}, DeviceIndex(0))])
    supply.build(cp_model.CpModel())
    assert set(supply.arcs) == {(10, 6), (10, 4), (6, 4), (4, 4)}, (
        "after a 4 no 6 follows"
    )


def test_requirements_of_one_size_share_an_arc() -> None:
    [supply] = flow_supplies([source(10, {0: 5, 1: 5}, DeviceIndex(0))])
    supply.build(cp_model.CpModel())
    assert set(supply.arcs) == {(10, 5), (5, 5)}
    assert set(supply.served) == {0, 1}


def test_sources_of_equal_sizes_are_one_flow() -> None:
    sizes = {0: 6, 1: 4}
    [supply] = flow_supplies(
        [
            source(5, sizes, DeviceIndex(0)),
            source(10, sizes, DeviceIndex(1), DeviceIndex(2)),
        ]
    )
    assert [source.free for source in supply.sources] == [10, 5], (
        "the fullest first"
    )


def test_sources_that_give_other_amounts_are_two_flows() -> None:
    """Rounding can make one request take more of one kind of device than of another."""
    assert (
        len(
            flow_supplies(
                [
                    source(10, {0: 6}, DeviceIndex(0)),
                    source(10, {0: 5}, DeviceIndex(1)),
                ]
            )
        )
        == 2
    )


def test_a_requirement_that_finds_too_little_left_does_not_part_a_flow() -> (
    None
):
    assert (
        len(
            flow_supplies(
                [
                    source(10, {0: 6, 1: 4}, DeviceIndex(0)),
                    source(5, {0: 6, 1: 4}, DeviceIndex(1)),
                ]
            )
        )
        == 1
    )


def test_what_is_served_fits() -> None:
    sizes = {0: 6, 1: 4, 2: 3}
    [supply] = flow_supplies(
        [
            source(10, sizes, DeviceIndex(0), DeviceIndex(1)),
            source(7, sizes, DeviceIndex(2)),
        ]
    )
    count, by_device = solved(supply, {0: 2, 1: 2, 2: 1})
    assert count == 5
    for device, served in by_device.items():
        assert (
            sum(
                sizes[requirement] * times
                for requirement, times in served.items()
            )
            <= (10, 10, 7)[device]
        )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.dictionaries(
        st.integers(0, 2),
        st.tuples(st.integers(1, 5), st.integers(1, 3)),
        min_size=1,
        max_size=3,
    ),
)
def test_no_packing_serves_more(
    capacities: list[int], asked: dict[int, tuple[int, int]]
) -> None:
    sizes = {requirement: size for requirement, (size, _) in asked.items()}
    wanted = {requirement: count for requirement, (_, count) in asked.items()}
    sources = [
        source(free, sizes, DeviceIndex(device))
        for device, free in enumerate(capacities)
    ]
    sources = [flow_source for flow_source in sources if flow_source.sizes]
    total = (
        sum(solved(supply, wanted)[0] for supply in flow_supplies(sources))
        if sources
        else 0
    )
    items = tuple(
        size
        for requirement, size in sizes.items()
        for _ in range(wanted[requirement])
    )
    assert total == packed(tuple(sorted(capacities)), items)


@cache
def packed(capacities: tuple[int, ...], items: tuple[int, ...]) -> int:
    """The largest number of items that fit, by trying all there is."""
    if not items:
        return 0
    item, rest = items[0], items[1:]
    best = packed(capacities, rest)
    for bin_index in range(len(capacities)):
        if capacities[bin_index] >= item:
            shrunk = tuple(
                sorted(
                    (
                        *capacities[:bin_index],
                        capacities[bin_index] - item,
                        *capacities[bin_index + 1 :],
                    )
                )
            )
            best = max(best, 1 + packed(shrunk, rest))
    return best
