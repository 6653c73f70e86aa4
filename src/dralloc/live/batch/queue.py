"""The queue: pods collect behind a gate, and batch after batch is planned, written and released."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final

from dralloc.live.apply import (
    ApplyOutcome,
    ApplyRun,
    Executor,
    Fence,
    Question,
    Selection,
    WriteJournal,
)
from dralloc.live.apply.choice import SchedulerProbe
from dralloc.live.apply.executor import LeftAlone
from dralloc.live.apply.fence import lift_all, run_of
from dralloc.live.apply.marks import RUN, TOKEN
from dralloc.live.apply.pods import gates_of
from dralloc.live.apply.run import PATIENCE
from dralloc.live.apply.run_names import has_ended, may_write, new_run
from dralloc.live.apply.selection import LiveView
from dralloc.live.apply.units import WrittenClaim, allocation_to_wire
from dralloc.live.batch.cache import LeaderLease, WatchCache
from dralloc.live.batch.figures import Figures
from dralloc.live.batch.pod_notes import PodNotes, reasons_for
from dralloc.live.snapshot import (
    CLAIMS,
    NODES,
    PODS,
    RULES,
    Json,
    LiveObjects,
    Refused,
    key_of,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.show.plan import Plan

__all__ = ["BatchQueue", "runs_of"]

_BLOCKED: Final = 3
"""Batches in a row after whose failure the queue counts as blocked."""
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
        What keeps others away, by the name of a run and by what tells which other runs are over.
    interval
        Seconds after which pods are placed that wait, however few.
    at_least
        How many new pods are placed at once.
    timeout
        Seconds after which nothing of a batch is written any more.
    say, complain
        Are told what happens, and what goes wrong.
    """

    objects: LiveObjects
    cache: WatchCache
    question: Question
    selection: Selection
    fence: Callable[[str, Callable[[str], bool]], Fence]
    lease: LeaderLease
    notes: PodNotes
    figures: Figures
    interval: float
    at_least: int
    say: Callable[[str], None]
    complain: Callable[[str], None]
    settle: float = 1.0
    probe: SchedulerProbe | None = None
    watch: float = PATIENCE
    timeout: float = 1800.0
    pause: Callable[[float], None] = sleep
    clock: Callable[[], float] = monotonic
    _tried: set[str] = field(default_factory=set, init=False)
    _due: float | None = field(default=None, init=False)
    _led_as: int | None = field(default=None, init=False)
    _alive: float = field(init=False)
    _lists: int = field(default=0, init=False)
    _failures: int = field(default=0, init=False)
    _plans: bool = field(default=False, init=False)
    _earlier: Plan | None = field(default=None, init=False)
    _stop: Event = field(default_factory=Event, init=False)
    _unliftable: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._alive = self.clock()
        self.lease.earlier = self._next_token

    @property
    def is_well(self) -> bool:
        """Whether the loop goes round."""
        return self.clock() - self._alive < _STUCK

    @property
    def is_ready(self) -> bool:
        """Whether batches get through: the loop goes round, and the last ones did not all fail."""
        return self.is_well and self._failures < _BLOCKED

    @property
    def runs(self) -> str:
        """The start of its runs' names: only who holds the Lease works, so that those of other replicas are over."""
        return runs_of(self.lease.key)

    def is_over(self, run: str) -> bool:
        """Return whether a run writes nothing any more: of this queue, one of an earlier leader or batch."""
        if run in self._unliftable.values():
            return False
        if has_ended(run) or not run.startswith(self.runs):
            return has_ended(run)
        token = self._token_of(run)
        return token is None or token <= self.lease.token

    def _token_of(self, run: str) -> int | None:
        """Return the number of the leader that began a run of this queue; None if its name has none."""
        token = run.removeprefix(self.runs).partition("-")[0]
        return int(token) if token.isdecimal() else None

    def _next_token(self) -> int:
        """Return the smallest number that no fence of this queue has."""
        runs = (run_of(part) for part in self._fenced_parts())
        tokens = (
            self._token_of(run) for run in runs if run.startswith(self.runs)
        )
        return max(
            (token + 1 for token in tokens if token is not None), default=0
        )

    def _fenced_parts(self) -> list[Json]:
        """Return what runs fence, as far as is known."""
        return [
            part
            for kind in (RULES, NODES, PODS)
            for part in self.cache.of(kind)
            if run_of(part)
        ]

    def run(self) -> None:
        """Work until it is stopped, whenever this replica holds the lease, which it keeps up to its last write."""
        closed = Event()
        keeper = Thread(target=self._keep, args=(closed,), daemon=True)
        keeper.start()
        try:
            while not self._stop.is_set():
                self.step()
                self.cache.wait(min(1.0, self.interval))
        except KeyboardInterrupt:
            if not self._stop.is_set():
                raise
        finally:
            closed.set()
            keeper.join(self.lease.seconds)
            self.lease.release()

    def stop(self) -> None:
        """Come to an end, from the handler of a signal: plans are given up, writes are finished."""
        self._stop.set()
        if self._plans:
            self._plans = (
                False  # whoever is impatient does not interrupt what cleans up
            )
            raise KeyboardInterrupt

    def step(self) -> ApplyOutcome | None:
        """Place a batch if this replica leads and one is due."""
        self._alive = self.clock()
        self.objects.wire.renew()
        self.figures.lists.inc(self.cache.lists - self._lists)
        self._lists = self.cache.lists
        waiting = self.waiting()
        self.figures.waiting.set(len(waiting))
        self.figures.leading.set(self.lease.held)
        self.figures.foreign.set(
            sum(
                not run_of(part).startswith(self.runs)
                for part in self._fenced_parts()
            )
        )
        if not self.lease.held:
            self._led_as = None
            self.figures.unplaced.set(0)  # who leads knows
            return None
        self.notes.correct(self.cache.of(PODS))
        try:
            if self._led_as != self.lease.token:
                self._take_over()
            self._lift_older()
            if self._led_as != self.lease.token or not self._is_due(waiting):
                return None
            return self._batch(waiting)
        except (DrallocError, Refused) as error:
            self.complain(f"batch failed: {error}")
            self.figures.batches.labels("failed").inc()
            self._failures += 1
            self._led_as = None  # what it left behind is looked for again
            return None

    def waiting(self) -> Mapping[ClaimKey, Json]:
        """Return the pods behind the gate that nothing else holds back."""
        gate = [self.selection.gate]
        pods = (pod for pod in self.cache.of(PODS) if gates_of(pod) == gate)
        return {
            key_of(pod): pod
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp")
        }

    @contextmanager
    def _planning(self) -> Iterator[None]:
        """Allow a plan to be given up at any moment while it is made."""
        self._plans = True
        try:
            if self._stop.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._plans = False

    def _keep(self, closed: Event) -> None:
        """Renew the lease, also while a batch is solved."""
        while not closed.is_set():
            self.lease.renew()
            closed.wait(self.lease.seconds / 3)

    def _view(self, selection: Selection | None = None) -> LiveView:
        """Return the cluster as it is now, without the fences of this queue, whichever leader has them.

        Parameters
        ----------
        selection
            Which pods and claims are in it; by default those of the queue.
        """
        return LiveView.of(
            self.cache.catch_up(),
            selection or self.selection,
            lambda run: run.startswith(self.runs) or self.is_over(run),
        )

    def _take_over(self) -> None:
        """Clean up after replicas that are gone, or after a batch that failed; the rest is planned or released.

        No journal outlives them. What is to be done follows from marks on the cluster: fences and claims name their
        run. What was not written whole is taken back. A replica that was paused between its last look and a write has
        seen claims as they were: they are marked anew, so that it is refused.
        """
        token = self.lease.token

        def leads() -> bool:
            return self.lease.held and self.lease.token == token

        self._unliftable.clear()  # somebody may have allowed it
        view = self._view()
        executor, taken_back = (
            Executor(
                self.objects,
                WriteJournal(),
                self.selection.gate,
                leads,
                queue=self.runs,
            ),
            0,
        )
        whole = self._view(Selection(gate=self.selection.gate)).cluster
        for claim in _half_written(view, whole, self.selection.gate, self.runs):
            with suppress(LeftAlone):
                executor.retract(claim)
                taken_back += 1
        if self.lease.is_usurped:
            self._mark(view)
        lifted = lift_all(self.objects, self.is_over, refused=self._refused)
        if not leads():
            return  # what is left is for who leads now
        self._led_as = token
        cleaned = (
            f"; lifted {lifted} parts of old fences, took back {taken_back} claims"
            if lifted or taken_back
            else ""
        )
        self.say(f"leading as {self.lease.identity}{cleaned}")

    def _mark(self, view: LiveView) -> None:
        """Change the claims that a replica before this one may be about to allocate, and nothing that matters."""
        waiting = {
            claim
            for pod in view.cluster.pods
            if pod.key in view.gates
            for claim in view.cluster.pod_claims(pod)
        }
        for claim in view.cluster.claims:
            if claim.key in waiting and not claim.is_allocated:
                with suppress(
                    Refused
                ):  # it is gone, or somebody else has changed it
                    marks = {"annotations": {TOKEN: str(self.lease.token)}}
                    self.objects.patch(
                        CLAIMS,
                        claim.key,
                        {"metadata": {"uid": claim.metadata.uid, **marks}},
                    )

    def _lift_older(self) -> None:
        """Lift what a replica has fenced that did not know yet that it leads no more."""
        parts = [
            part
            for part in self._fenced_parts()
            if _name_of(part) not in self._unliftable
        ]
        lifted = lift_all(
            self.objects, self.is_over, parts, refused=self._refused
        )
        if lifted:
            self.complain(
                f"lifted {lifted} parts of fences of runs that are over"
            )

    def _refused(self, part: Json, refusal: Refused) -> None:
        """Leave what may not be lifted: a run that fences it still is in the way, and the queue goes on beside it.

        A pod that asked the scheduler is in nobody's way.
        """
        name, run = _name_of(part), run_of(part)
        self._unliftable[name] = "" if part["kind"] == PODS.kind else run
        self.complain(
            f"{name}: the fence of run {run}, which is over, cannot be lifted: {refusal}"
        )

    def _is_due(self, waiting: Mapping[ClaimKey, Json]) -> bool:
        if not waiting:
            self._due = None
            return False
        if self._due is None:
            self._due = self.clock() + self.interval
        new = sum(
            pod["metadata"]["uid"] not in self._tried
            for pod in waiting.values()
        )
        return new >= self.at_least or self.clock() >= self._due

    def _batch(self, waiting: Mapping[ClaimKey, Json]) -> ApplyOutcome:
        begun, token = self.clock(), self.lease.token
        name = new_run(f"{self.runs}{token}-", self.timeout)
        self._tried = {pod["metadata"]["uid"] for pod in waiting.values()}
        self._due = None
        run = ApplyRun(
            objects=self.objects,
            source=self.cache.catch_up,
            question=self.question,
            selection=self.selection,
            fence=self.fence(
                name,
                lambda run_name: run_name != name and self.is_over(run_name),
            ),
            name=name,
            queue=self.runs,
            settle=self.settle,
            probe=self.probe,
            watch=self.watch,
            pods=lambda: self.cache.of(PODS),
            pause=self.pause,
            may_go_on=lambda: (
                self.lease.held
                # Who lost it meanwhile and has it again lost its fence.
                and self.lease.token == token
                and may_write(name)
            ),
            is_ending=self._stop.is_set,
            planning=self._planning,
            earlier=self._earlier,
        )
        plan, units, _ = run.plan()
        # An answer holds a whole cluster in memory: only one that saves the next batch linear programs is kept.
        self._earlier = plan if plan.solution.prices else None
        outcome = run.write(units)
        self._failures = self._failures + 1 if outcome.is_blocked else 0
        if not self._stop.is_set():
            self._tell(outcome, waiting)
        self.figures.seconds.observe(self.clock() - begun)
        self.say(
            f"{len(waiting)} waiting: {outcome.headline} ({self.clock() - begun:.1f} s)"
        )
        return outcome

    def _tell(
        self, outcome: ApplyOutcome, waiting: Mapping[ClaimKey, Json]
    ) -> None:
        self.figures.batches.labels(
            "broken" if outcome.findings else "done"
        ).inc()
        self.figures.claims.inc(len(outcome.claims))
        self.figures.findings.inc(len(outcome.findings))
        self.figures.pods.labels("released").inc(len(outcome.released))
        self.figures.pods.labels("aside").inc(len(outcome.asides))
        self.figures.unplaced.set(
            sum(aside.key in waiting for aside in outcome.unplaced)
        )
        if outcome.unasked:
            self.complain(
                f"whether the scheduler knew of the fence was not asked: {outcome.unasked}"
            )
        for finding in outcome.findings:
            self.complain(
                f"the API server now holds what breaks a rule: {finding}"
            )
        plan_reasons = {
            aside.key: aside.reason
            for aside in outcome.unplaced
            if aside.key in waiting
        }
        # Read again after the batch: explanations are about what it has left.
        still_waiting = self.waiting()
        cluster = self._view().cluster
        reasons = reasons_for(
            self.question, cluster, still_waiting, plan_reasons
        )
        # Released pods have no gate any more: only the list from before the batch has them.
        self.notes.take_back(waiting, outcome.released)
        self.notes.tell(
            still_waiting,
            {
                **reasons,
                **{aside.key: aside.reason for aside in outcome.asides},
            },
        )


def _name_of(part: Json) -> str:
    key = key_of(part)
    return f"{part['kind']} {key if key.namespace else key.name}"


def runs_of(lease: ClaimKey) -> str:
    """Return how the names of the runs start whose leaders hold a Lease."""
    return f"batch-{sha256(str(lease).encode()).hexdigest()[:8]}-"


def _half_written(
    view: LiveView, whole: Cluster, gate: str, runs: str
) -> Iterator[WrittenClaim]:
    """Claims that runs allocated, all of whose pods wait for other claims, or for pods of their group.

    A pod that waits for nothing more is released as it is.

    Parameters
    ----------
    whole
        The cluster with all pods: those that are released and not bound yet need their claims, too.
    """
    ready = {demand.key for unit in view.ready(gate) for demand in unit.demands}
    halves = {
        key for key, names in view.gates.items() if names == [gate]
    } - ready
    users: dict[ClaimKey, set[ClaimKey]] = defaultdict(set)
    for pod in whole.pods:
        for name in whole.pod_claims(pod):
            users[name].add(pod.key)
    selected = view.cluster.pods_by_key.keys()
    for claim in view.cluster.claims:
        allocation = claim.status.allocation
        is_written = claim.metadata.annotations.get(RUN, "").startswith(runs)
        if (
            is_written
            and allocation is not None
            and users[claim.key] <= halves
            and not users[claim.key].isdisjoint(selected)
        ):
            yield WrittenClaim(
                claim.key, claim.metadata.uid, allocation_to_wire(allocation)
            )
