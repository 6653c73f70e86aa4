"""Simulations worked out by hand, and what users see of them."""

from __future__ import annotations

import csv
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner, Result

import dralloc
import wire
from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.lab.simulate import (
    Arrival,
    ArrivalState,
    PoissonArrivals,
    Simulated,
)
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.means import MeanInterval
from dralloc.lab.simulate.measures.fragmentation_meter import FragmentationCause
from dralloc.lab.traces import mig_month
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.names import ClaimKey
from dralloc.solve import optimum
from wire import Json

SMALLEST = ROOT / "models" / "h100-mig-smallest"
ONE, BOTH = ClaimKey("default", "one"), ClaimKey("default", "both")


def gpus(count: int) -> list[Json]:
    """A node with GPUs, and templates for one and for two of them."""
    return [
        wire.device_class(),
        wire.node("a"),
        wire.resource_slice(wire.gpus(count), name="a", pool="a", nodeName="a"),
        wire.claim("one", wire.request()),
        wire.claim("both", wire.request(count=2)),
    ]


def came(simulated: Simulated) -> list[tuple[Any, ...]]:
    """What became of everybody, in seconds."""
    [run] = simulated.runs
    return [
        (row["state"], row["arrived"], row["started"], row["ended"])
        for row in run.arrival_rows()
    ]


def test_who_waits_is_placed_when_somebody_leaves() -> None:
    arrivals = [
        Arrival(0, ONE, 10_000),
        Arrival(1000, BOTH, 5000),
        Arrival(2000, ONE, 3000),
    ]
    simulated = dralloc.simulate(wire.cluster(gpus(2)), arrivals)
    assert came(simulated) == [
        ("done", 0, 0, 10),
        ("done", 1, 10, 15),
        ("done", 2, 2, 5),
    ]
    [run] = simulated.runs
    assert (
        run.figures.waiting.mean,
        run.figures.waiting.p50,
        run.figures.waiting.p99,
    ) == (3, 0, 9)
    assert (run.figures.completion.mean, run.figures.completion.p99) == (
        (10 + 14 + 3) / 3,
        14,
    )
    assert run.figures.makespan == 15
    assert run.figures.device_hours == pytest.approx((10 + 10 + 3) / 3600)
    assert run.figures.acceptance == 1


def test_priority_comes_before_age() -> None:
    arrivals = [
        Arrival(0, BOTH, 10_000),
        Arrival(1000, BOTH, 1000),
        Arrival(2000, BOTH, 1000, priority=5),
    ]
    assert came(dralloc.simulate(wire.cluster(gpus(2)), arrivals)) == [
        ("done", 0, 0, 10),
        ("done", 1, 11, 12),
        ("done", 2, 10, 11),
    ]


def test_a_group_waits_for_all_of_its_members_and_for_places_for_all() -> None:
    arrivals = [
        Arrival(0, ONE, 4000),
        Arrival(1000, ONE, 2000, group="g"),
        Arrival(3000, ONE, 2000, group="g"),
    ]
    assert came(dralloc.simulate(wire.cluster(gpus(2)), arrivals)) == [
        ("done", 0, 0, 4),
        ("done", 1, 4, 6),
        ("done", 3, 4, 6),
    ]


def test_who_loses_patience_is_refused() -> None:
    arrivals = [
        Arrival(0, BOTH, 10_000),
        Arrival(1000, ONE, 1000),
        Arrival(9000, ONE, 1000),
    ]
    simulated = dralloc.simulate(wire.cluster(gpus(2)), arrivals, patience=3)
    assert came(simulated) == [
        ("done", 0, 0, 10),
        ("refused", 1, None, 4),
        ("done", 9, 10, 11),
    ]
    assert simulated.runs[0].figures.acceptance == pytest.approx(2 / 3)


def test_decisions_come_at_multiples_of_an_interval() -> None:
    arrivals = [Arrival(1000, ONE, 1000), Arrival(12_000, ONE, 1000)]
    simulated = dralloc.simulate(
        wire.cluster(gpus(2)), arrivals, "optimal", every=10
    )
    assert came(simulated) == [("done", 1, 10, 11), ("done", 12, 20, 21)]
    assert simulated.runs[0].figures.decisions == 2


def test_batches_are_placed_when_they_are_full_and_the_last_one_at_the_end() -> (
    None
):
    arrivals = [Arrival(1000 * second, ONE, 500) for second in range(5)]
    simulated = dralloc.simulate(wire.cluster(gpus(9)), arrivals, batch=2)
    assert [started for _, _, started, _ in came(simulated)] == [1, 1, 3, 3, 4]


@pytest.mark.parametrize("patience", [None, 5.0])
def test_the_last_batch_waits_for_nobody_to_leave(
    patience: float | None,
) -> None:
    """There is room all the time: nor is anybody refused who has waited in vain for others to come."""
    arrivals = [
        Arrival(0, ONE, 100_000),
        Arrival(0, ONE, 100_000),
        Arrival(1000, ONE, 1000),
    ]
    simulated = dralloc.simulate(
        wire.cluster(gpus(9)), arrivals, batch=2, patience=patience
    )
    assert came(simulated)[-1] == ("done", 1, 1, 2)


def test_the_more_important_take_the_place_of_the_less_important() -> None:
    """Of two GPUs on each of two nodes: who came last of the least important goes, and does not come back."""
    more = [
        wire.node("b"),
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    ]
    arrivals = [
        Arrival(0, ONE, 9000),
        Arrival(1000, BOTH, 9000),
        Arrival(2000, ONE, 9000, priority=1),
        Arrival(3000, BOTH, 1000, priority=2),
        Arrival(4000, ONE, 1000, priority=1),
    ]
    cluster = wire.cluster(gpus(2), more)
    simulated = dralloc.simulate(cluster, arrivals, preemption=True)
    assert came(simulated) == [
        ("done", 0, 0, 9),
        ("preempted", 1, 1, 3),
        ("done", 2, 2, 11),
        ("done", 3, 3, 4),
        ("done", 4, 4, 5),
    ]
    [run] = simulated.runs
    assert run.figures.states[ArrivalState.PREEMPTED] == 1


def test_nobody_is_evicted_who_could_stay_or_by_who_does_not_want_to() -> None:
    never = wire.pod("never", "one", preemptionPolicy="Never", priority=9)
    arrivals = [
        Arrival(0, ONE, 5000),
        Arrival(0, ONE, 5000, priority=-1),
        Arrival(1000, ClaimKey("default", "never"), 1000),
        Arrival(2000, ONE, 1000, priority=1),
    ]
    simulated = dralloc.simulate(
        wire.cluster(gpus(2), never), arrivals, preemption=True
    )
    assert came(simulated) == [
        ("done", 0, 0, 5),
        ("preempted", 0, 0, 2),
        ("done", 1, 3, 4),
        ("done", 2, 2, 3),
    ]


def test_kube_scheduler_evicts_for_cpu_and_not_for_devices() -> None:
    small, large = (
        wire.pod(
            name,
            containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        )
        for name, cpu in (("small", "2"), ("large", "3"))
    )
    node = wire.node("a")
    node["status"] = {"allocatable": {"cpu": "4", "pods": "10"}}
    objects = [
        api_object for api_object in gpus(1) if api_object["kind"] != "Node"
    ]
    cluster = wire.cluster(objects, node, small, large)
    key = {name: ClaimKey("default", name) for name in ("small", "large")}
    arrivals = [
        Arrival(0, key["small"], 9000),
        Arrival(0, ONE, 9000),
        Arrival(1000, key["large"], 1000, priority=1),
        Arrival(1000, ONE, 1000, priority=1),
    ]
    off = ALL_FEATURES.switched({"DRAPreemption": False})
    simulated = dralloc.simulate(
        cluster, arrivals, "scheduler", preemption=True, features=off
    )
    assert came(simulated) == [
        ("preempted", 0, 0, 1),
        ("done", 0, 0, 9),
        ("done", 1, 1, 2),
        ("done", 1, 9, 10),
    ]
    # With the gate on, devices of single nodes are free once their pod is evicted.
    simulated = dralloc.simulate(
        cluster, arrivals, "scheduler", preemption=True
    )
    assert came(simulated) == [
        ("preempted", 0, 0, 1),
        ("preempted", 0, 0, 1),
        ("done", 1, 1, 2),
        ("done", 1, 1, 2),
    ]


def test_devices_of_evicted_pods_of_the_cluster_are_free() -> None:
    """One of two GPUs is held by a pod that ran before: nothing says any more that its device is in use."""
    held = wire.allocated("held", {"device": "gpu-0", "pool": "a"})
    user = {"resource": "pods", "name": "before", "uid": "u"}
    held["status"]["reservedFor"] = [user]
    before = wire.pod("before", "held", nodeName="a", priority=0)
    before["metadata"]["uid"] = "u"
    before["status"] = {"phase": "Running"}
    arrivals = [
        *[Arrival(0, ONE, 10_000, priority=5)] * 2,
        Arrival(1000, ONE, 10_000, priority=5),
        Arrival(10_000, ONE, 1000, priority=5),
    ]
    simulated = dralloc.simulate(
        wire.cluster(gpus(2), held, before),
        arrivals,
        "scheduler",
        preemption=True,
        regret=True,
    )
    assert came(simulated) == [
        ("done", 0, 0, 10),
        ("done", 0, 0, 10),
        ("done", 1, 10, 20),
        ("done", 10, 10, 11),
    ]
    regret = simulated.runs[0].regret
    assert regret is not None
    assert regret.reached == 20_000 <= regret.bound <= 21_000
    *_, last = regret.decisions
    assert last.placed == last.best == last.bound == 2


@pytest.mark.parametrize("apart", [False, True])
def test_what_evicted_pods_of_the_cluster_took_of_nodes_is_free(
    *, apart: bool
) -> None:
    """Later a pod of three CPUs comes first, where two of two CPUs would fit: that is known to be missed.

    It is so, too, where the evicted pod kept these from its zone.
    """

    def containers(cpu: str) -> list[Json]:
        return [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]

    before = wire.pod(
        "before", nodeName="a", priority=0, containers=containers("4")
    )
    before["status"] = {"phase": "Running"}
    if apart:
        term = {
            "labelSelector": {"matchLabels": {"app": "x"}},
            "topologyKey": "zone",
        }
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        before["spec"]["affinity"] = {"podAntiAffinity": required}
    node = wire.node("a", zone="z")
    node["status"] = {"allocatable": {"cpu": "4", "pods": "10"}}
    objects = [item for item in gpus(2) if item["kind"] != "Node"]
    pods = {
        name: wire.pod(name, name, containers=containers(cpu))
        for name, cpu in (("two", "2"), ("three", "3"), ("four", "4"))
    }
    for name in ("two", "three"):
        pods[name]["metadata"]["labels"] = {"app": "x"}
    claims = [wire.claim(name, wire.request()) for name in pods]
    arrivals = [
        Arrival(second * 1000, ClaimKey("default", name), 1000, priority=5)
        for second, name in ((0, "four"), (2, "three"), (2, "two"), (2, "two"))
    ]
    simulated = dralloc.simulate(
        wire.cluster(objects, node, before, *pods.values(), claims),
        arrivals,
        "scheduler",
        preemption=True,
        regret=True,
    )
    regret = simulated.runs[0].regret
    assert regret is not None
    missed = [(row.placed, row.best, row.bound) for row in regret.decisions]
    assert (1, 2, 2) in missed


def test_others_move_for_who_waits() -> None:
    """One GPU of each node is taken: after a move somebody gets two of one node."""
    more = [
        wire.node("b"),
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    ]

    def emptiest(
        _: object, nodes: Sequence[dralloc.OfferedNode]
    ) -> dralloc.OfferedNode:
        return max(nodes, key=lambda node: node.free_devices())

    arrivals = [
        Arrival(0, ONE, 20_000),
        Arrival(0, ONE, 20_000),
        Arrival(1000, BOTH, 2000),
    ]
    cluster = wire.cluster(gpus(2), more)
    simulated = dralloc.simulate(
        cluster, arrivals, emptiest, moves_every=5, moves=1
    )
    assert came(simulated) == [
        ("done", 0, 0, 20),
        ("done", 0, 0, 20),
        ("done", 1, 5, 7),
    ]
    [run] = simulated.runs
    assert (run.figures.moves, run.figures.restarts) == (1, 0)
    assert len(set(simulated.arrivals()["node"][:2])) == 1
    without = dralloc.simulate(
        cluster, arrivals, emptiest, moves_every=5, moves=0
    )
    assert came(without)[2] == ("done", 1, 20, 22)


def test_others_move_also_where_nobody_comes_or_leaves_any_more() -> None:
    """A decision finds no room before it is time to move, and nothing happens in between."""
    more = [
        wire.node("b"),
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    ]

    def emptiest(
        _: object, nodes: Sequence[dralloc.OfferedNode]
    ) -> dralloc.OfferedNode:
        return max(nodes, key=lambda node: node.free_devices())

    arrivals = [Arrival(0, ONE), Arrival(0, ONE), Arrival(1000, BOTH)]
    simulated = dralloc.simulate(
        wire.cluster(gpus(2), more), arrivals, emptiest, moves_every=5, moves=1
    )
    assert came(simulated) == [
        ("running", 0, 0, None),
        ("running", 0, 0, None),
        ("running", 1, 5, None),
    ]


def crowded(*, taken: str) -> list[Json]:
    """Two nodes with two GPUs and four cores, and pods: with a GPU, with both, and one that takes cores alone."""
    objects = [
        api_object for api_object in gpus(2) if api_object["kind"] != "Node"
    ]
    for name in ("a", "b"):
        node = wire.node(name)
        node["status"] = {"allocatable": {"cpu": "4", "pods": "10"}}
        objects.append(node)
    objects.append(
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b")
    )
    for name, claim, cpu in (
        ("small", "one", "1"),
        ("large", "both", "1"),
        ("cores", None, taken),
    ):
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        objects.append(
            wire.pod(name, *filter(None, [claim]), containers=[container])
        )
    return objects


@pytest.mark.parametrize(("taken", "moves"), [("2", 1), ("3", 0)])
def test_others_move_beside_kube_scheduler(taken: str, moves: int) -> None:
    """It spreads two pods over two nodes; its filters know of the cores that pods without devices have."""
    small, large, cores = (
        ClaimKey("default", name) for name in ("small", "large", "cores")
    )
    arrivals = [
        Arrival(0, small, 20_000),
        Arrival(0, small, 20_000),
        Arrival(1000, cores, 20_000),
        Arrival(1000, cores, 20_000),
        Arrival(2000, large, 2000),
    ]
    cluster = wire.cluster(crowded(taken=taken))
    simulated = dralloc.simulate(
        cluster, arrivals, "scheduler", moves_every=5, moves=1
    )
    [run] = simulated.runs
    assert run.figures.moves == moves
    assert came(simulated)[-1] == (
        ("done", 2, 5, 7) if moves else ("done", 2, 20, 22)
    )
    homes = simulated.arrivals()["node"].tolist()
    assert len(set(homes[:2])) == 2 - moves


def test_the_optimum_of_a_batch_places_more_than_first_fit() -> None:
    arrivals = [
        Arrival(0, BOTH, 1000, priority=0),
        Arrival(0, ONE, 1000),
        Arrival(0, ONE, 1000),
    ]
    first, best = (
        dralloc.simulate(wire.cluster(gpus(2)), arrivals, policy, until=0.5)
        for policy in ("first-fit", "optimal")
    )
    assert [state for state, *_ in came(first)] == [
        "running",
        "pending",
        "pending",
    ]
    assert [state for state, *_ in came(best)] == [
        "pending",
        "running",
        "running",
    ]


def test_loads_and_the_share_of_the_poorest() -> None:
    both = [
        Arrival(0, BOTH, 10_000, namespace="rich"),
        Arrival(0, ONE, 10_000, namespace="poor"),
    ]
    last = Arrival(10_000, ONE, 0, namespace="rich")
    simulated = dralloc.simulate(
        wire.cluster(gpus(2)), [*both, last], patience=5
    )
    [load] = simulated.runs[0].figures.loads
    assert (load.resource, load.offered, load.allocated) == (
        "gpu.example.com",
        1.5,
        1.0,
    )
    assert simulated.runs[0].figures.fairness == 0
    row = simulated.figures().iloc[0]
    assert (row["refused"], row["done"], row["max_min_share"]) == (1, 2, 0)


def test_loads_are_those_of_the_time_that_was_simulated() -> None:
    """Eight seconds of one GPU are asked for in four seconds of two, and six of them are held by then."""
    arrivals = [
        Arrival(0, ONE, 2000),
        Arrival(0, ONE, 6000),
        Arrival(9000, BOTH, 1000),
    ]
    [run] = dralloc.simulate(wire.cluster(gpus(2)), arrivals, until=4).runs
    [load] = run.figures.loads
    assert (load.offered, load.allocated) == (1.0, 0.75)


def test_who_comes_during_the_warm_up_does_not_count() -> None:
    arrivals = [Arrival(0, ONE, 1000), Arrival(5000, ONE, 2000)]
    [run] = dralloc.simulate(wire.cluster(gpus(2)), arrivals, warm_up=1).runs
    assert (run.figures.arrivals, run.figures.completion.mean) == (1, 2)


def test_what_runs_in_the_cluster_stays_and_what_waits_there_does_not_come() -> (
    None
):
    held = wire.allocated("held", {"device": "gpu-0", "pool": "a"})
    cluster = wire.cluster(gpus(2), held, wire.claim("waits", wire.request()))
    assert came(dralloc.simulate(cluster, [Arrival(0, BOTH, 1000)])) == [
        ("pending", 0, None, None)
    ]
    assert came(dralloc.simulate(cluster, [Arrival(0, ONE, 1000)])) == [
        ("done", 0, 0, 1)
    ]


def test_a_pod_of_a_job_is_found_by_the_name_of_the_job() -> None:
    cluster = dralloc.load(ROOT / "models" / "h100-mig")
    simulated = dralloc.simulate(
        cluster, [Arrival(0, ClaimKey("ml", "chat-8b"), 1000)], "scheduler"
    )
    assert came(simulated) == [("done", 0, 0, 1)]


def test_seeds_draw_other_arrivals() -> None:
    process = PoissonArrivals({"one": 1}, per_hour=100, hours=2, mean_hours=0.1)
    simulated = dralloc.simulate(wire.cluster(gpus(4)), process, seeds=3)
    assert [run.seed for run in simulated.runs] == [0, 1, 2]
    assert len({run.figures.arrivals for run in simulated.runs}) == 3
    assert set(simulated.arrivals()["seed"]) == {0, 1, 2}
    assert simulated.instants().groupby("seed")["pending"].last().tolist() == [
        0,
        0,
        0,
    ]
    assert "over 3 seeds" in repr(simulated)
    assert "seed 2" in str(simulated)


def test_policies_of_the_user() -> None:
    def last(
        _: object, nodes: Sequence[dralloc.OfferedNode]
    ) -> dralloc.OfferedNode:
        return nodes[-1]

    class LargestFirst:
        def order(
            self, pods: Sequence[dralloc.WaitingPod]
        ) -> list[dralloc.WaitingPod]:
            return sorted(pods, key=lambda pod: -pod.devices)

        def __call__(
            self, _: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
        ) -> dralloc.OfferedNode:
            return nodes[0]

    base = gpus(2)
    more = [
        wire.node("b"),
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    ]
    arrivals = [
        Arrival(0, ONE, 1000),
        Arrival(0, BOTH, 1000),
        Arrival(0, BOTH, 1000),
    ]
    simulated = dralloc.simulate(wire.cluster(base, more), arrivals, last)
    assert simulated.policy == "last"
    assert simulated.arrivals()["node"].tolist() == ["b", "a", "b"]
    largest = dralloc.simulate(
        wire.cluster(base, more), arrivals, LargestFirst()
    )
    assert largest.arrivals()["started"].tolist() == [1, 0, 0]


def test_means_over_seeds_have_intervals() -> None:
    """Of 1, 2 and 3 the standard deviation is 1, and Student's quantile for two degrees of freedom is 4.303."""
    interval = MeanInterval.of("x", [1, 2, 3])
    assert interval.mean == 2
    assert interval.half_width == pytest.approx(4.303 / 3**0.5)
    assert MeanInterval.of("x", [5]).half_width == 0
    process = PoissonArrivals({"one": 1}, per_hour=100, hours=2, mean_hours=0.1)
    simulated = dralloc.simulate(wire.cluster(gpus(4)), process, seeds=3)
    intervals = {interval.name: interval for interval in simulated.intervals()}
    assert intervals["arrivals"].mean == simulated.figures()["arrivals"].mean()
    assert "Means over 3 seeds" in str(simulated)


def test_jobs_change_nothing() -> None:
    process = PoissonArrivals(
        {"one": 1, "both": 1}, per_hour=60, hours=1, mean_hours=0.1
    )
    done: list[tuple[int, int]] = []
    alone, together = (
        dralloc.simulate(
            wire.cluster(gpus(3)),
            process,
            seeds=2,
            jobs=jobs,
            progress=lambda *counts: done.append(counts),
        )
        for jobs in (1, 2)
    )
    assert alone.runs == together.runs
    assert done == [(1, 2), (2, 2)] * 2


def test_fragmentation_is_what_the_next_pod_cannot_use() -> None:
    """Two nodes with two GPUs each: one GPU on each node is of no use for who wants two."""
    more = [
        wire.node("b"),
        wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    ]

    def emptiest(
        _: object, nodes: Sequence[dralloc.OfferedNode]
    ) -> dralloc.OfferedNode:
        return max(nodes, key=lambda node: node.free_devices())

    arrivals = [
        Arrival(0, ONE),
        Arrival(0, ONE),
        Arrival(1000, BOTH),
        Arrival(48_000, BOTH),
    ]
    spread = dralloc.simulate(wire.cluster(gpus(2), more), arrivals, emptiest)
    packed = dralloc.simulate(
        wire.cluster(gpus(2), more), arrivals, "first-fit", until=0.5
    )
    [run] = spread.runs
    assert run.figures.fragmentation == pytest.approx(0.5)
    assert packed.runs[0].figures.fragmentation is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"policy": "worst"}, "no policy 'worst'"),
        (
            {"arrivals": [Arrival(0, ClaimKey("default", "none"))]},
            "template default/none: no pod, owner of pods",
        ),
        ({"batch": 0}, "batch: 0 is less than 1"),
        ({"moves": -1}, "moves: -1 is less than 0"),
        ({"every": 0.0}, "every: 0.0 is no number of seconds"),
        ({"patience": float("nan")}, "patience: nan is no number of seconds"),
        ({"fair": "memory"}, "fair: not a choice of this question"),
    ],
)
def test_errors_of_users(words: dict[str, Any], message: str) -> None:
    given = {"arrivals": [Arrival(0, ONE)], **words}
    with pytest.raises(DrallocError) as caught:
        dralloc.simulate(wire.cluster(gpus(2)), **given)
    assert message in str(caught.value)


def test_pods_without_devices_are_for_the_scheduler() -> None:
    cluster = wire.cluster(gpus(2), wire.pod("plain"))
    arrivals = [Arrival(0, ClaimKey("default", "plain"), 1000)]
    with pytest.raises(
        DrallocError, match="asks for no device; only the policy scheduler"
    ):
        dralloc.simulate(cluster, arrivals)
    assert came(dralloc.simulate(cluster, arrivals, "scheduler")) == [
        ("done", 0, 0, 1)
    ]


def test_loads_under_the_scheduler_where_pods_keep_apart() -> None:
    """A rule between pods makes a claim on the node, which is no part of what the scheduler says of devices."""
    apart = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    pod = wire.pod("apart", "one", affinity={"podAntiAffinity": required})
    pod["metadata"]["labels"] = {"app": "x"}
    arrivals = [
        Arrival(time, ClaimKey("default", "apart")) for time in (0, 1000)
    ]
    objects = [
        api_object for api_object in gpus(2) if api_object["kind"] != "Node"
    ]
    node = wire.node("a", **{"kubernetes.io/hostname": "a"})
    cluster = wire.cluster(objects, node, pod)
    [run] = dralloc.simulate(cluster, arrivals, "scheduler").runs
    [load] = run.figures.loads
    assert (load.offered, load.allocated) == (1.0, 0.5)


def test_all_devices_are_those_that_had_room_then() -> None:
    """Who wants a share of all devices goes without the one that is full, and keeps what it has when that is free."""
    share = {"requests": {"memory": "4"}}
    devices = [
        wire.device(
            f"gpu-{device_index}",
            capacity={"memory": {"value": "6"}},
            allowMultipleAllocations=True,
        )
        for device_index in range(2)
    ]
    objects = [
        wire.device_class(),
        wire.node("a"),
        wire.resource_slice(devices, name="a", pool="a", nodeName="a"),
        wire.claim("one", wire.request(capacity=share)),
        wire.claim("all", wire.request(allocationMode="All", capacity=share)),
    ]
    arrivals = [
        Arrival(0, ONE, 2000),
        Arrival(1000, ClaimKey("default", "all")),
    ]
    simulated = dralloc.simulate(wire.cluster(objects), arrivals)
    assert came(simulated) == [("done", 0, 0, 2), ("running", 1, 1, None)]


def test_fragmentation_has_causes() -> None:
    """Of node a, a pair of GPUs, one GPU is left; node b has a network card, and node c no CPU for anybody."""
    objects = [
        *gpus(2),
        wire.node("b"),
        wire.resource_slice(
            [wire.device("nic-0", {"type": "nic"})],
            name="b",
            pool="b",
            nodeName="b",
        ),
    ]
    arrivals = [Arrival(0, ONE), Arrival(48_000, BOTH)]
    simulated = dralloc.simulate(wire.cluster(objects), arrivals)
    last = simulated.fragmentation().iloc[-1]
    assert set(last.index) == {
        "seed",
        "time",
        *(cause.value for cause in FragmentationCause),
    }
    [run] = simulated.runs
    assert run.figures.fragmentation == pytest.approx(
        simulated.fragmentation()[[*FragmentationCause]].sum(axis=1).mean()
    )
    row = simulated.figures().iloc[0]
    parts = [row[f"fragmentation.{cause}"] for cause in FragmentationCause]
    assert sum(parts) == pytest.approx(row["fragmentation"])
    assert row["fragmentation.devices"] > 0
    assert row["fragmentation.other hardware"] > 0


def test_devices_held_and_wanted_over_time() -> None:
    arrivals = [Arrival(0, BOTH, 2000), Arrival(1000, ONE, 1000)]
    simulated = dralloc.simulate(wire.cluster(gpus(2)), arrivals)
    frame = simulated.allocation()[["time", "held", "wanted"]]
    assert frame.to_numpy().tolist() == [
        [0, 2, 2],
        [1, 2, 3],
        [2, 1, 1],
        [3, 0, 0],
    ]


def test_finished_seeds_are_not_worked_out_again(tmp_path: Path) -> None:
    process = PoissonArrivals(
        {"one": 1, "both": 1}, per_hour=60, hours=1, mean_hours=0.1
    )
    words: dict[str, Any] = {"state": tmp_path / "state", "regret": True}
    cluster = wire.cluster(gpus(3))
    first = dralloc.simulate(cluster, process, seeds=1, **words)
    done: list[tuple[int, int]] = []
    both = dralloc.simulate(
        cluster,
        process,
        seeds=2,
        progress=lambda *counts: done.append(counts),
        **words,
    )
    assert done == [(2, 2)]
    assert both.runs[0] == first.runs[0]
    assert (
        both.runs
        == dralloc.simulate(cluster, process, seeds=2, regret=True).runs
    )
    with pytest.raises(DrallocError, match="is about another simulation"):
        dralloc.simulate(cluster, process, "best-fit", **words)
    (tmp_path / "state" / "seed-0.json").write_text("{")
    with pytest.raises(DrallocError, match="is no finished seed"):
        dralloc.simulate(cluster, process, **words)


@pytest.mark.parametrize(
    "words",
    [
        {"policy": "optimal", "every": 600},
        {"policy": "best-fit", "regret": True, "moves_every": 1800},
        {"policy": "scheduler", "regret": True, "moves_every": 1800},
        {"policy": "density", "preemption": True},
    ],
)
@pytest.mark.parametrize("cut", [0, 40, 1000, -1])
def test_a_seed_that_was_killed_goes_on(
    words: dict[str, Any], cut: int, tmp_path: Path
) -> None:
    """Its file ends anywhere, also within a line; what is kept is not asked for again, and the run is the same."""
    month = mig_month(1, 1, load=1.2, days=0.5, mean_hours=1)
    whole = dralloc.simulate(month.cluster, month.arrivals, **words)

    class KilledError(Exception):
        """In place of a signal."""

    asked = 0

    def answered(kept: KeptAnswers, adapter: Any, ask: Any) -> Any:
        nonlocal asked

        def counting() -> Any:
            nonlocal asked
            asked += 1
            if asked == limit:
                raise KilledError
            return ask()

        return once(kept, adapter, counting)

    once = KeptAnswers.once
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KeptAnswers, "once", answered)
        limit = 12
        with pytest.raises(KilledError):
            dralloc.simulate(
                month.cluster, month.arrivals, state=tmp_path, **words
            )
        [begun] = tmp_path.iterdir()
        assert begun.name == "seed-0.begun.jsonl"
        written = begun.read_bytes()
        assert written.count(b"\n") == limit
        begun.write_bytes(written[:cut] if cut >= 0 else written)
        known = max(0, begun.read_bytes().count(b"\n") - 1)
        asked, limit = 0, 10**6
        resumed = dralloc.simulate(
            month.cluster, month.arrivals, state=tmp_path, **words
        )
    assert resumed.runs == whole.runs
    assert [path.name for path in tmp_path.iterdir()] == ["seed-0.json"]
    total = len(whole.runs[0].history.decided)
    if words["policy"] == "density":
        assert asked == total - known


def test_what_is_kept_is_about_one_run(tmp_path: Path) -> None:
    path = tmp_path / "seed-0.begun.jsonl"
    adapter = TypeAdapter(int)
    first = KeptAnswers(path, "a run")
    assert [first.once(adapter, lambda: 7), first.once(adapter, lambda: 8)] == [
        7,
        8,
    ]
    again = KeptAnswers(path, "a run")
    assert [again.once(adapter, lambda: 0) for _ in range(3)] == [7, 8, 0]
    another = KeptAnswers(path, "another run")
    assert another.once(adapter, lambda: 9) == 9
    with pytest.raises(DrallocError, match="is about another run"):
        KeptAnswers(path, "another run").once(
            TypeAdapter(tuple[str]), lambda: ("",)
        )


def test_a_page_and_a_cell_with_pictures(tmp_path: Path) -> None:
    process = PoissonArrivals({"one": 1}, per_hour=20, hours=1, mean_hours=0.1)
    simulated = dralloc.simulate(wire.cluster(gpus(3)), process, regret=True)
    page = tmp_path / "page.html"
    dralloc.report(simulated, page, title="a day")
    text = page.read_text()
    assert "dralloc simulate: a day" in text
    for name in ("allocation", "waiting", "fragmentation", "regret"):
        assert f'id="{name}-picture-caption"' in text
    assert text.count("<svg") == 4
    assert simulated._repr_html_().count("<svg") == 4
    with pytest.raises(DrallocError, match="expected a comparison or"):
        dralloc.report(dralloc.capacity(wire.cluster(gpus(1))), page)


def test_pictures_of_nothing() -> None:
    simulated = dralloc.simulate(wire.cluster(gpus(1)), [])
    assert "<svg" not in simulated._repr_html_()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one decision of it, with whose best answer so far it would go on."""
    begun: list[object] = []
    begin = optimum._set_aside

    def pressed(*arguments: Any) -> Any:
        begun.append(arguments)
        signal.raise_signal(signal.SIGINT)
        return begin(*arguments)

    monkeypatch.setattr(optimum, "_set_aside", pressed)
    large = ClaimKey("default", "large")
    arrivals = [dralloc.Arrival(second, large, 60) for second in (0, 9, 99)]
    with pytest.raises(KeyboardInterrupt):
        dralloc.simulate(dralloc.load(SMALLEST), arrivals, "optimal")
    assert len(begun) == 1


def simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def test_the_command_reads_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time,duration,template\n0,60,large\n10,60,small\n")
    table = tmp_path / "table.csv"
    result = simulate(
        SMALLEST, "--trace", trace, "--policy", "optimal", "--to", table
    )
    assert result.exit_code == Exit.DONE, result.stderr
    assert "optimal: 2 of 2 arrivals got a place" in result.stdout
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [
        (row["template"], row["state"], row["arrived"]) for row in rows
    ] == [
        ("default/large", "done", "0.0"),
        ("default/small", "done", "10.0"),
    ]


def test_the_command_draws_arrivals() -> None:
    result = simulate(
        SMALLEST,
        "--mix",
        "large=1",
        "--mix",
        "small",
        "--per-hour",
        "5",
        "--hours",
        "4",
        "--to",
        "-",
    )
    assert result.exit_code == Exit.DONE, result.stderr
    assert {
        row["template"] for row in csv.DictReader(result.stdout.splitlines())
    } == {
        "default/large",
        "default/small",
    }


def test_the_command_wants_one_source_of_arrivals() -> None:
    assert (
        simulate(SMALLEST).stderr
        == "error: who arrives: give one of --trace, --mix and --recorded\n"
    )
    assert simulate(SMALLEST, "--mix", "any=much").stderr == (
        "error: --mix any=much: expected TEMPLATE=SHARE, with a number for a share\n"
    )
    twice = simulate(SMALLEST, "--mix", "large=1", "--mix", "large=3")
    assert twice.stderr == "error: --mix large: is given twice\n"


@pytest.mark.parametrize("option", ["--to", "--report"])
def test_where_nothing_can_be_written_nothing_is_simulated(
    tmp_path: Path, option: str
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time,duration,template\n0,60,large\n")
    state = tmp_path / "state"
    for target in (tmp_path, tmp_path / "missing" / "x"):
        result = simulate(
            SMALLEST, "--trace", trace, "--state", state, option, target
        )
        assert result.exit_code == Exit.INPUT
        assert result.stderr.startswith(f"error: {target}: cannot be written: ")
        assert not state.exists()
