"""Bounds of decisions and of whole runs, against everything that could have been done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

import dralloc
import wire
from arrival_strategies import Scene, scenes
from dralloc.lab.simulate import Arrival, placer_of
from dralloc.lab.simulate.arrivals.incoming import incoming
from dralloc.lab.simulate.figures import reached_value
from dralloc.lab.simulate.measures.clairvoyant_bound import clairvoyant_bound
from dralloc.lab.simulate.simulation import Simulation
from dralloc.objects.choices import Choices
from dralloc.objects.names import ClaimKey
from examples import examples
from wire import Json

SECOND = 1000
POLICIES = ("first-fit", "best-fit", "scheduler", "optimal")


@dataclass(frozen=True)
class SmallTrace:
    """Nodes with so many GPUs each, and who asks for how many of them: when, for how long, how many."""

    nodes: tuple[int, ...]
    asked: tuple[tuple[int, int, int], ...]

    def objects(self) -> Iterator[Json]:
        yield wire.device_class()
        for node_index, size in enumerate(self.nodes):
            yield wire.node(f"n{node_index}")
            yield wire.resource_slice(
                wire.gpus(size),
                name=f"n{node_index}",
                pool=f"n{node_index}",
                nodeName=f"n{node_index}",
            )
        for size in (1, 2, 3):
            yield wire.claim(f"gpus-{size}", wire.request(count=size))

    def arrivals(self) -> list[Arrival]:
        return [
            Arrival(
                time * SECOND,
                ClaimKey("default", f"gpus-{size}"),
                length * SECOND,
            )
            for time, length, size in self.asked
        ]

    def best(self, horizon: int) -> int:
        """The most device seconds until the horizon, over all whole seconds at which somebody could begin."""
        return self._best(
            sorted(self.asked),
            horizon,
            [[size] * horizon for size in self.nodes],
        )

    def _best(
        self,
        asked: Sequence[tuple[int, int, int]],
        horizon: int,
        free: list[list[int]],
    ) -> int:
        if not asked:
            return 0
        (time, length, size), *others = asked
        best = self._best(others, horizon, free)
        for begin in range(time, horizon):
            span = range(begin, min(horizon, begin + length))
            for node in free:
                if span and all(node[second] >= size for second in span):
                    for second in span:
                        node[second] -= size
                    best = max(
                        best,
                        size * len(span) + self._best(others, horizon, free),
                    )
                    for second in span:
                        node[second] += size
        return best


@st.composite
def small_traces(draw: st.DrawFn) -> SmallTrace:
    sizes = st.lists(st.integers(1, 3), min_size=1, max_size=2)
    arrival = st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
    return SmallTrace(
        tuple(draw(sizes)),
        tuple(draw(st.lists(arrival, min_size=1, max_size=4))),
    )


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(small_traces(), st.integers(1, 6))
def test_nobody_exceeds_the_clairvoyant_bound(
    trace: SmallTrace, horizon: int
) -> None:
    waiting = incoming(
        wire.cluster(list(trace.objects())), trace.arrivals(), Choices()
    )
    best = trace.best(horizon) * SECOND
    bound = clairvoyant_bound(waiting, horizon * SECOND, epochs=horizon).value
    assert bound >= best
    event("met" if bound == best else "not met")
    placer = placer_of(waiting, "first-fit", Choices())
    assert (
        reached_value(
            waiting, Simulation(waiting, placer).run(), horizon * SECOND
        )
        <= best
    )


def test_prices_tell_what_is_scarce() -> None:
    """Two GPUs for ten seconds are all that anybody gets, however many ask."""
    trace = SmallTrace((2,), ((0, 10, 1),) * 7)
    waiting = incoming(
        wire.cluster(list(trace.objects())), trace.arrivals(), Choices()
    )
    bound = clairvoyant_bound(waiting, 10 * SECOND, reached=20 * SECOND).value
    assert 20 * SECOND <= bound <= 20.2 * SECOND


def test_what_runs_already_is_not_there_for_anybody() -> None:
    trace = SmallTrace((2,), ((0, 10, 1),) * 7)
    held = wire.allocated("held", {"device": "gpu-0", "pool": "n0"})
    waiting = incoming(
        wire.cluster(list(trace.objects()), held), trace.arrivals(), Choices()
    )
    bound = clairvoyant_bound(waiting, 10 * SECOND, reached=10 * SECOND).value
    assert 10 * SECOND <= bound <= 10.2 * SECOND


def test_what_can_be_had_for_nothing_is_not_scarce() -> None:
    """One GPU and a shared adapter without capacities serve everybody who wants any of them."""
    adapter = {"name": "nic-0", "allowMultipleAllocations": True}
    cluster = wire.cluster(
        wire.device_class("any"),
        wire.node("n0"),
        wire.resource_slice(
            [*wire.gpus(1), adapter], name="n0", pool="n0", nodeName="n0"
        ),
        wire.claim("either", wire.request(device_class="any")),
    )
    arrivals = [Arrival(0, ClaimKey("default", "either"), 1000)] * 3
    waiting = incoming(cluster, arrivals, Choices())
    assert clairvoyant_bound(waiting, SECOND).value == 3 * SECOND


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(scenes(), st.sampled_from(POLICIES), st.booleans())
def test_regret_is_never_negative(
    scene: Scene, policy: str, makes_room: bool
) -> None:
    assume(scene.arrivals)
    simulated = dralloc.simulate(
        scene.cluster,
        scene.arrivals,
        policy,
        regret=True,
        preemption=makes_room,
        moves_every=1.5 if makes_room else None,
    )
    [run] = simulated.runs
    assert run.regret is not None
    assert len(run.regret.decisions) == len(run.history.decided)
    for decision in run.regret.decisions:
        assert 0 <= decision.placed <= decision.best <= decision.bound
    assert run.regret.reached <= run.regret.bound
    event(f"regret {any(decision.regret for decision in run.regret.decisions)}")


@pytest.mark.parametrize(
    ("policy", "missed"), [("first-fit", 1), ("optimal", 0)]
)
def test_first_fit_regrets_and_the_optimum_does_not(
    policy: str, missed: int
) -> None:
    """A pod of two GPUs comes first, and the next one wants all three."""
    objects = list(SmallTrace((3,), ()).objects())
    arrivals = [
        Arrival(0, ClaimKey("default", name), 1000)
        for name in ("gpus-2", "gpus-3")
    ]
    simulated = dralloc.simulate(
        wire.cluster(objects),
        arrivals,
        policy,
        objective="devices",
        regret=True,
    )
    row = simulated.figures().iloc[0]
    assert simulated.regrets()["regret"].tolist()[0] == missed
    assert row["decision_regret"] == row["decision_regret_known"] == missed
    assert "Regret" in str(simulated)
