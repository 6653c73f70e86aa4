"""Scaled demand: how many, which, and in what order."""

from __future__ import annotations

from collections import Counter as Tally

from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
from cluster_strategies import clusters
from company_strategies import companies
from dralloc.compile.compiler import compile_cluster
from dralloc.lab.study.demand import scaled
from dralloc.objects.cluster import Cluster
from dralloc.problem import Demand
from examples import examples
from wire import Json, cluster

shares = st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.25, 2.0, 2.6])
scenarios = st.one_of(clusters(), companies())


def demands_of(scenario: Cluster) -> tuple[Demand, ...]:
    return tuple(compile_cluster(scenario).problem.demands)


@settings(max_examples=examples(50))
@given(scenarios, shares, st.integers(0, 3))
def test_numbers_names_and_rules(
    objects: list[Json], share: float, seed: int
) -> None:
    given_cluster = cluster(*objects)
    before = demands_of(given_cluster)
    result = scaled(given_cluster, share, seed)
    demands = demands_of(result)
    groups = Tally(demand.placed_with for demand in before)
    del groups[""]
    largest = max(groups.values(), default=1)
    assert 0 <= round(share * len(before)) - len(demands) <= largest - 1
    assert len({demand.key for demand in demands}) == len(demands)
    for mode in ("first-fit", "scheduler"):
        # What it answers has been checked, also by the objects.
        dralloc.allocate(result, mode=mode)


@settings(max_examples=examples(50))
@given(scenarios, shares, st.integers(0, 3))
def test_copies_ask_for_the_same(
    objects: list[Json], share: float, seed: int
) -> None:
    given_cluster = cluster(*objects)
    before = {
        demand.key.name: demand.asked_devices
        for demand in demands_of(given_cluster)
    }
    demands = demands_of(scaled(given_cluster, share, seed))
    times = Tally(demand.key.name.split("+")[0] for demand in demands)
    assert all(share - 1 < times[name] < share + 1 for name in before)
    for demand in demands:
        original = demand.key.name.split("+")[0]
        assert demand.asked_devices == before[original]
    again = demands_of(scaled(cluster(*objects), share, seed))
    assert [demand.key for demand in again] == [
        demand.key for demand in demands
    ]


@settings(max_examples=examples(25))
@given(scenarios)
def test_once_is_the_cluster_itself(objects: list[Json]) -> None:
    given_cluster = cluster(*objects)
    assert scaled(given_cluster, 1.0, 5) is given_cluster


@settings(max_examples=examples(25))
@given(scenarios, st.integers(0, 3))
def test_what_is_left_keeps_its_order(objects: list[Json], seed: int) -> None:
    given_cluster = cluster(*objects)
    keys = [demand.key for demand in demands_of(given_cluster)]
    scaled_keys = [
        demand.key for demand in demands_of(scaled(given_cluster, 0.6, seed))
    ]
    assert [key for key in keys if key in scaled_keys] == scaled_keys
