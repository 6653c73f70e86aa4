"""The optimum goes on from an earlier answer: as good as from nothing, with less work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dralloc
from benchmarks.workloads.mixed import mixed
from dralloc.ask.scenario import Scenario
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.problem.solution import LevelPrices, Tier
from dralloc.solve.optimum import Earlier
from examples import examples
from mixed_strategies import mixed_clusters

SETTINGS = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class Mixture(NamedTuple):
    """A cluster that is not proven within a few steps, and the answer that these lead to."""

    cluster: Cluster
    start: dralloc.Plan


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    cluster = mixed(20, seed=2, without={"priorities"})
    return Mixture(cluster, dralloc.allocate(cluster, steps=4))


def without_some(cluster: Cluster, random: Random, share: float) -> Cluster:
    """Let some of those who wait be gone."""
    gone = {
        pod.key
        for pod in cluster.pods
        if not pod.spec.node_name and random.random() < share
    }
    return Scenario(cluster).without_pods(gone).cluster


@pytest.mark.minutes
@SETTINGS
@given(mixed_clusters(3), st.randoms(use_true_random=False))
def test_the_optimum_is_the_same_from_wherever_it_starts(
    cluster: Cluster, random: Random
) -> None:
    before = without_some(cluster, random, 0.2)
    now = without_some(cluster, random, 0.2)
    start = dralloc.allocate(before, time_limit=1)
    continued = dralloc.allocate(now, start=start, time_limit=1)
    fresh = dralloc.allocate(now, time_limit=1)
    assert continued.objective <= (fresh.bound or 0)
    assert fresh.objective <= (continued.bound or 0)


def test_who_still_fits_keeps_the_place() -> None:
    cluster = dralloc.load("models/h100-mig")
    start = dralloc.allocate(cluster)
    assert start.tiers[0].proven
    again = dralloc.allocate(cluster, start=start)
    assert again.tiers == start.tiers
    assert again.allocations == start.allocations


def test_it_is_never_worse_than_where_it_starts(mixture: Mixture) -> None:
    cluster, start = mixture
    again = dralloc.allocate(cluster, start=start, steps=4)
    assert again.objective >= start.objective


def test_the_search_ends_when_it_is_as_good_again(
    monkeypatch: pytest.MonkeyPatch, mixture: Mixture
) -> None:
    told: list[tuple[int, int]] = []

    class Looking(Earlier):
        """What is known, with a note of each tier that is asked about."""

        def __init__(
            self,
            prices: Sequence[LevelPrices],
            is_enough: Callable[[Tier], bool],
        ) -> None:
            def noted(tier: Tier) -> bool:
                told.append((tier.value, tier.bound))
                return is_enough(tier) or True

            super().__init__(prices, noted)

    cluster, start = mixture
    monkeypatch.setattr("dralloc.ask.continued_answer.Earlier", Looking)
    again = dralloc.allocate(cluster, start=start, steps=4)
    assert len(told) == 1
    assert again.objective == start.objective
    assert again.tiers[0].why.startswith("it is as good as")


def test_what_small_changes_cost_does_not_add_up(mixture: Mixture) -> None:
    """Each answer of a row is held against the gap of the first, or a smaller one since then."""
    cluster, first = mixture
    gaps = {tier.name: tier.gap for tier in first.tiers}
    assert max(gaps.values()) > 0
    random = Random(1)
    plan = first
    for _ in range(3):
        later = without_some(cluster, random, 0.02)
        plan = dralloc.allocate(later, start=plan, steps=4)
        assert plan.solution.aims.keys() == gaps.keys()
        assert all(
            aim <= gaps[name] for name, aim in plan.solution.aims.items()
        )
    other = without_some(cluster, random, 0.5)
    assert not dralloc.allocate(other, start=plan, steps=4).solution.aims


def test_a_node_that_is_gone_is_no_place() -> None:
    cluster = dralloc.load("models/h100-mig")
    start = dralloc.allocate(cluster)
    first, *_ = (placed.node for placed in start.placed)
    nodes = [
        node.metadata.name
        for node in cluster.nodes
        if node.metadata.name != first
    ]
    again = dralloc.allocate(cluster, start=start, nodes=nodes)
    fresh = dralloc.allocate(cluster, nodes=nodes)
    assert again.tiers[0] == fresh.tiers[0]
    assert first not in {placed.node for placed in again.placed}


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.SCHEDULER])
def test_other_modes_look_at_no_earlier_answer(mode: Mode) -> None:
    cluster = dralloc.load("models/h100-mig")
    start = dralloc.allocate(cluster)
    assert (
        dralloc.allocate(cluster, mode, start=start).allocations
        == dralloc.allocate(cluster, mode).allocations
    )
