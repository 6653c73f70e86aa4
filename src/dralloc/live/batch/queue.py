"""The queue: pods collect behind a gate, and batch after batch is planned, written and released."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final
from uuid import uuid4

from dralloc.live.apply import (
    ApplyOutcome,
    ApplyRun,
    Executor,
    Fence,
    Question,
    Selection,
    WriteJournal,
)
from dralloc.live.apply.executor import PODS, LeftAlone
from dralloc.live.apply.fence import lift_all
from dralloc.live.apply.marks import RUN
from dralloc.live.apply.run import PATIENCE
from dralloc.live.apply.selection import LiveView, gates_of
from dralloc.live.apply.units import WrittenClaim, allocation_to_wire
from dralloc.live.batch.cache import WatchCache
from dralloc.live.batch.figures import Figures
from dralloc.live.batch.lease import LeaderLease
from dralloc.live.batch.notes import PodNotes, reasons_for
from dralloc.live.snapshot import Json, LiveObjects, Refused, key_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

__all__ = ["BatchQueue"]

_STUCK: Final = 3600.0
"""Seconds of one batch after which the process counts as stuck."""


@dataclass
class BatchQueue:
    """A replica of the queue.

    Parameters
    ----------
    cache
        The cluster, kept up to date.
    question, selection
        How batches are planned, and of which pods.
    fence
        What keeps others away, by the name of a run.
    interval
        Seconds after which pods are placed that wait, however few.
    at_least
        How many new pods are placed at once.
    say
        Is told what happens.
    """

    objects: LiveObjects
    cache: WatchCache
    question: Question
    selection: Selection
    fence: Callable[[str], Fence]
    lease: LeaderLease
    notes: PodNotes
    figures: Figures
    interval: float
    at_least: int
    say: Callable[[str], None]
    settle: float = 1.0
    watch: float = PATIENCE
    pause: Callable[[float], None] = sleep
    clock: Callable[[], float] = monotonic
    _tried: set[str] = field(default_factory=set, init=False)
    _due: float | None = field(default=None, init=False)
    _leads: bool = field(default=False, init=False)
    _alive: float = field(init=False)

    def __post_init__(self) -> None:
        self._alive = self.clock()

    @property
    def is_well(self) -> bool:
        """Whether the loop goes round."""
        return self.clock() - self._alive < _STUCK

    @property
    def runs(self) -> str:
        """How the names of its runs start: only who holds the Lease works, so that those of other replicas are over."""
        return f"batch-{sha256(str(self.lease.key).encode()).hexdigest()[:8]}-"

    def run(self, stop: Event) -> None:
        """Work until it is stopped, whenever this replica holds the lease."""
        keeper = Thread(target=self._keep, args=(stop,), daemon=True)
        keeper.start()
        try:
            while not stop.is_set():
                self.step()
                self.cache.wait(min(1.0, self.interval))
        finally:
            keeper.join(self.lease.seconds)
            self.lease.release()

    def step(self) -> ApplyOutcome | None:
        """Place a batch if this replica leads and one is due."""
        self._alive = self.clock()
        self.objects.wire.renew()
        self.figures.lists.set(self.cache.lists)
        waiting = self.waiting()
        self.figures.waiting.set(len(waiting))
        self.figures.leading.set(self.lease.held)
        if not self.lease.held:
            self._leads = False
            return None
        try:
            if not self._leads:
                self._take_over()
            return self._batch(waiting) if self._is_due(waiting) else None
        except (DrallocError, Refused) as error:
            self.say(f"batch failed: {error}")
            self.figures.batches.labels("failed").inc()
            self._leads = False  # what it left behind is looked for again
            return None

    def waiting(self) -> Mapping[ClaimKey, Json]:
        """The pods behind the gate that nothing else holds back."""
        gate = [self.selection.gate]
        pods = (pod for pod in self.cache.of(PODS) if gates_of(pod) == gate)
        return {
            key_of(pod): pod
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp")
        }

    def _keep(self, stop: Event) -> None:
        """Renew the lease, also while a batch is solved."""
        while not stop.is_set():
            self.lease.renew()
            stop.wait(self.lease.seconds / 3)

    def _take_over(self) -> None:
        """Clean up after replicas that are gone, or after a batch that failed; the rest is planned or released.

        No journal outlives them. What is to be done follows from marks on the cluster: fences and claims name their
        run. What was not written whole is taken back.
        """
        view = LiveView.of(self.cache.catch_up(), self.selection, self.runs)
        executor, taken = Executor(self.objects, WriteJournal(), self.selection.gate), 0
        for claim in _half_written(view, self.selection.gate, self.runs):
            with suppress(LeftAlone):
                executor.retract(claim)
                taken += 1
        lifted = lift_all(self.objects, self.runs)
        self._leads = True
        more = (
            f"; lifted {lifted} parts of old fences, took back {taken} claims"
            if lifted or taken
            else ""
        )
        self.say(f"leading as {self.lease.identity}{more}")

    def _is_due(self, waiting: Mapping[ClaimKey, Json]) -> bool:
        if not waiting:
            self._due = None
            return False
        if self._due is None:
            self._due = self.clock() + self.interval
        new = sum(pod["metadata"]["uid"] not in self._tried for pod in waiting.values())
        return new >= self.at_least or self.clock() >= self._due

    def _batch(self, waiting: Mapping[ClaimKey, Json]) -> ApplyOutcome:
        begun, name = self.clock(), f"{self.runs}{uuid4().hex[:12]}"
        self._tried |= {pod["metadata"]["uid"] for pod in waiting.values()}
        self._due = None
        run = ApplyRun(
            objects=self.objects,
            source=self.cache.catch_up,
            question=self.question,
            selection=self.selection,
            fence=self.fence(name),
            name=name,
            queue=self.runs,
            settle=self.settle,
            watch=self.watch,
            pods=lambda: self.cache.of(PODS),
            pause=self.pause,
            may_go_on=lambda: self.lease.held,
        )
        _, units, _ = run.plan()
        outcome = run.write(units)
        self._tell(outcome, waiting)
        self.figures.seconds.observe(self.clock() - begun)
        self.say(
            f"{len(waiting)} waiting: {outcome.headline} ({self.clock() - begun:.1f} s)"
        )
        return outcome

    def _tell(self, outcome: ApplyOutcome, waiting: Mapping[ClaimKey, Json]) -> None:
        self.figures.batches.labels("broken" if outcome.findings else "done").inc()
        self.figures.claims.inc(len(outcome.claims))
        self.figures.findings.inc(len(outcome.findings))
        for result, keys in (
            ("released", outcome.released),
            ("aside", outcome.asides),
            ("unplaced", outcome.unplaced),
        ):
            self.figures.pods.labels(result).inc(len(keys))
        for finding in outcome.findings:
            self.say(f"the API server now holds what breaks a rule: {finding}")
        known = {one.key: one.reason for one in outcome.unplaced if one.key in waiting}
        now = self.waiting()
        cluster = LiveView.of(self.cache.catch_up(), self.selection, self.runs).cluster
        reasons = reasons_for(self.question, cluster, now, known)
        self.notes.tell(
            now, {**reasons, **{one.key: one.reason for one in outcome.asides}}
        )


def _half_written(view: LiveView, gate: str, runs: str) -> Iterator[WrittenClaim]:
    """Claims that runs allocated, all of whose pods wait for other claims, or for pods of their group.

    A pod that waits for nothing more is released as it is.
    """
    ready = {one.key for unit in view.ready(gate) for one in unit.demands}
    halves = {key for key, names in view.gates.items() if names == [gate]} - ready
    users: dict[ClaimKey, set[ClaimKey]] = defaultdict(set)
    for pod in view.cluster.pods:
        for name in view.cluster.pod_claims(pod):
            users[name].add(pod.key)
    for claim in view.cluster.claims:
        allocation = claim.status.allocation
        mine = claim.metadata.annotations.get(RUN, "").startswith(runs)
        if mine and allocation is not None and set() < users[claim.key] <= halves:
            yield WrittenClaim(
                claim.key, claim.metadata.uid, allocation_to_wire(allocation)
            )
