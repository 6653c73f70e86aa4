"""A compressed trace on a real control plane: kube-scheduler binds what the simulation binds, attempt by attempt.

Many nodes may be equally good, and kube-scheduler draws one of them: the simulation goes where it went, if that is one
of the best by its own scores.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest

import wire
from control_plane import assets, path_of, program
from dralloc.lab.simulate import Arrival, placer_of
from dralloc.lab.simulate.arrivals.incoming import Incoming, incoming
from dralloc.lab.simulate.placing import SchedulerPlacer, check_state
from dralloc.lab.simulate.simulation import ArrivalState, Simulation
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.api.base import to_wire
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Attempt
from dralloc.solve.scheduler.node_info import NodeInfo
from examples import examples
from live_plane import SCHEDULER_GATES, LivePlane, live
from wire import Json

ARRIVALS: Final = examples(250)
"""Each of them departs, so that there are twice as many events."""

PATIENCE: Final = 120.0
QUIET: Final = 4.0
"""Seconds without an attempt after which none is to be expected: pods wait a second before they are tried again."""

CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: "kubeconfig", qps: 5000, burst: 10000}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
parallelism: 1
"""
_ATTEMPT: Final = re.compile(
    r'"(Attempting to schedule pod|Successfully bound pod to node|Unable to schedule pod; no fit; waiting)"'
    r'.*? pod="([^"]*)"(?:.*? node="([^"]*)")?'
)
DEVICES: Final = {
    "a": ("h100", 4),
    "b": ("h100", 2),
    "c": ("a100", 4),
    "d": ("a100", 2),
}
"""By node, the model of its GPUs and how many there are."""


def objects() -> Iterator[Json]:
    yield wire.device_class()
    for name, (model, count) in DEVICES.items():
        node = wire.node(name)
        node["status"] = {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "20"}
        }
        yield node
        devices = [
            wire.device(f"gpu-{index}", {"model": model})
            for index in range(count)
        ]
        yield wire.resource_slice(devices, name=name, pool=name, nodeName=name)
    h100 = "device.attributes['gpu.example.com'].model == 'h100'"
    either = wire.first_available(
        "gpu", wire.sub("two", count=2), wire.sub("one", h100)
    )
    for name, cpu, request in (
        ("small", "1", wire.request()),
        ("picky", "2", wire.request("gpu", h100)),
        ("pair", "3", wire.request(count=2)),
        ("either", "2", either),
        ("whole", "5", wire.request(count=4)),
    ):
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        yield wire.claim(name, request)
        yield wire.pod(name, name, containers=[container])


def trace(seed: int) -> list[Arrival]:
    """More than fits at a time, so that some wait."""
    random = Random(seed)
    names = ("small", "picky", "pair", "either", "whole")
    now, arrivals = 0, []
    for _ in range(ARRIVALS):
        now += random.randint(1, 10_000)
        [name] = random.choices(names, (6, 3, 3, 2, 1))
        length = random.randint(1, 60_000)
        arrivals.append(Arrival(now, ClaimKey("default", name), length))
    return arrivals


@dataclass(frozen=True)
class Tried:
    """An attempt of the real scheduler; no node if it failed."""

    pod: ClaimKey
    node: str


@dataclass
class RealScheduler:
    """kube-scheduler and what it has done so far, from its log."""

    plane: LivePlane
    seen: int = 0
    waiting: set[ClaimKey] = field(default_factory=set)

    def attempts(self) -> list[Tried]:
        """Attempts that have ended since the last time, in the order in which they began."""
        text = (self.plane.plane.folder / "kube-scheduler.log").read_text(
            errors="replace"
        )
        begun: list[ClaimKey] = []
        nodes: dict[int, str] = {}
        for what, pod, node in _ATTEMPT.findall(text):
            key = ClaimKey.parse(pod)
            if what.startswith("Attempting"):
                begun.append(key)
            else:
                # Binding ends while the next pods are tried.
                latest = len(begun) - 1 - begun[::-1].index(key)
                nodes[latest] = node
        new: list[Tried] = []
        while self.seen in nodes:
            new.append(Tried(begun[self.seen], nodes[self.seen]))
            self.seen += 1
        return new

    def until_quiet(self, *, expected: set[ClaimKey]) -> list[Tried]:
        """What was tried until everybody expected was, and nobody more for a while."""
        tried: list[Tried] = []
        end = time.monotonic() + PATIENCE
        since = time.monotonic()
        while time.monotonic() < end:
            new = self.attempts()
            if new:
                tried += new
                since = time.monotonic()
            done = expected <= {attempt.pod for attempt in tried}
            quiet = QUIET if self.waiting else 0.0
            if done and time.monotonic() - since >= quiet:
                return tried
            time.sleep(0.05)
        raise AssertionError(f"not tried: {expected}")

    def create(self, waiting: Incoming, arrival: int) -> None:
        """Make the pod of an arrival, with claims of its own."""
        cluster = waiting.compiled.cluster
        key = waiting.pods[arrival]
        pod = cluster.pods_by_key[key]
        entries = []
        for entry, claim_key in zip(
            pod.spec.resource_claims, cluster.pod_claims(pod), strict=True
        ):
            claim = cluster.claim(claim_key)
            assert claim is not None
            described = to_wire(claim)
            described.pop("status", None)
            assert self.plane.plane.create(described).accepted
            entries.append(
                {"name": entry.name, "resourceClaimName": claim_key.name}
            )
        described = to_wire(pod)
        described.pop("status", None)
        described["spec"]["resourceClaims"] = entries
        for container in described["spec"]["containers"]:
            container.setdefault("image", "x")
        answer = self.plane.plane.create(described)
        assert answer.accepted, answer.body

    def delete(self, waiting: Incoming, arrival: int) -> None:
        """Take the pod of an arrival away, and wait until nothing is left of its claims."""
        cluster = waiting.compiled.cluster
        key = waiting.pods[arrival]
        server = self.plane.plane
        pod = wire.pod(key.name)
        pod["metadata"]["namespace"] = key.namespace
        server.request("DELETE", path_of(pod), {"gracePeriodSeconds": 0})
        claims = [
            wire.claim(claim.name)
            for claim in cluster.pod_claims(cluster.pods_by_key[key])
        ]
        for claim in claims:
            server.delete(claim)
        end = time.monotonic() + PATIENCE
        while any(
            server.request("GET", path_of(claim)).status != 404
            for claim in claims
        ):
            assert time.monotonic() < end, f"{key}: its claims are still there"
            time.sleep(0.05)

    def devices(self, claim: ClaimKey) -> list[tuple[str, str]]:
        """What a claim has been given."""
        described = wire.claim(claim.name)
        body = self.plane.plane.request("GET", path_of(described)).body
        results = body["status"]["allocation"]["devices"]["results"]
        return [(result["pool"], result["device"]) for result in results]


class FollowingPlacer(SchedulerPlacer):
    """Does what the real scheduler has done, and says where it would not have."""

    real: RealScheduler
    made: set[int]
    attempts: int
    ties: int

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        jobs = queue.in_order()
        arrivals = {self.incoming.jobs[job][0]: job for job in jobs}
        new = set()
        for arrival in arrivals.keys() - self.made:
            self.real.create(self.incoming, arrival)
            self.made.add(arrival)
            new.add(self.incoming.pods[arrival])
        job_of = {
            self.incoming.pods[arrival]: job
            for arrival, job in arrivals.items()
        }
        tried = self.real.until_quiet(expected=new)
        self.real.waiting = set(job_of)
        for attempt in tried:
            self.attempts += 1
            mine = self._run.scheduler.attempt(attempt.pod)
            assert bool(mine.feasible) == bool(attempt.node), (
                attempt,
                mine.message,
            )
            if attempt.node:
                self._follow(mine, attempt)
                self.real.waiting.discard(attempt.pod)
                yield job_of[attempt.pod]
        for pod in self.real.waiting:
            left_over = self._run.scheduler.attempt(pod)
            assert not left_over.feasible, pod

    def _follow(self, mine: Attempt, attempt: Tried) -> None:
        best = mine.totals.max(initial=0)
        tied = {
            node.name
            for node, total in zip(mine.feasible, mine.totals, strict=True)
            if total == best
        }
        assert attempt.node in tied, (attempt, tied)
        self.ties += len(tied) > 1
        node: NodeInfo = self._run.scheduler.snapshot.by_name[attempt.node]
        self._run._queued.add(attempt.pod)
        self._run._enter(mine, node)
        placement = self._run.scheduler.placement_of(attempt.pod)
        assert placement is not None
        problem = self.problem
        demand = problem.demands[placement.demand]
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            ids = [problem.devices[grant.device].id for grant in grants]
            assert self.real.devices(claim.key) == [
                (device.pool, device.device) for device in ids
            ]

    def release(self, arrival: int) -> None:
        super().release(arrival)
        self.real.delete(self.incoming, arrival)


@contextmanager
def running_scheduler(plane: LivePlane) -> Iterator[None]:
    folder = plane.plane.folder
    (folder / "scheduler.yaml").write_text(CONFIG)
    flags = (
        "--config=scheduler.yaml", "--secure-port=0", "--authentication-skip-lookup",
        plane.gates(SCHEDULER_GATES), "-v=5",
    )  # fmt: skip
    with program(folder, assets() / "kube-scheduler", *flags):
        yield


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlane]:
    with live(tmp_path_factory.mktemp("plane")) as started:
        yield started


def test_a_trace_is_bound_as_simulated(
    plane: LivePlane, record_property: Callable[[str, object], None]
) -> None:
    described = list(objects())
    kept = [
        api_object
        for api_object in described
        if api_object["kind"] not in ("Pod", "ResourceClaim")
    ]
    plane.add(kept)
    waiting = incoming(wire.cluster(described), trace(1), Choices())
    placer = placer_of(waiting, Mode.SCHEDULER, Choices())
    assert isinstance(placer, SchedulerPlacer)
    placer.__class__ = FollowingPlacer
    assert isinstance(placer, FollowingPlacer)
    placer.real, placer.made = RealScheduler(plane), set()
    placer.attempts = placer.ties = 0
    with running_scheduler(plane):
        history = Simulation(waiting, placer).run(
            lambda _, state: check_state(state)
        )
    states = {stay.state for stay in history.stays.values()}
    assert states == {ArrivalState.DONE}
    waited = sum(
        stay.started != stay.arrived for stay in history.stays.values()
    )
    for name, count in (
        ("attempts", placer.attempts),
        ("ties", placer.ties),
        ("waited", waited),
    ):
        record_property(name, count)
    assert waited
