"""The queue: pods collect behind a gate, and batch after batch is planned, written and released.

Before it stand the notes, which tell pods why they wait, and `release_all`, which lets everything go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final, NamedTuple

from dralloc.ask.explain import explain
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
from dralloc.live.apply.executor import CLAIMS, PODS, LeftAlone
from dralloc.live.apply.fence import NODES, RULES, lift_all, run_of
from dralloc.live.apply.marks import RUN, TOKEN
from dralloc.live.apply.run import PATIENCE
from dralloc.live.apply.run_names import has_ended, may_write, new_run
from dralloc.live.apply.selection import LiveView, gates_of
from dralloc.live.apply.units import WrittenClaim, allocation_to_wire
from dralloc.live.batch.cache import LeaderLease, WatchCache
from dralloc.live.batch.figures import Figures
from dralloc.live.snapshot import (
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    condition,
    is_current,
    key_of,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, SnapshotError
from dralloc.objects.names import ClaimKey
from dralloc.show.plan import Plan

__all__ = [
    "CONDITION",
    "EVENTS",
    "BatchQueue",
    "PodNotes",
    "release_all",
    "runs_of",
]

# ----------------------------------------------------------------------------
# Tells pods why they wait, in a line each: a condition of the pod, and an event about
# it.

EVENTS: Final = ListedKind("events", "Event", namespaced=True)
CONDITION: Final = "dralloc.dev/Placed"
"""Type of the condition."""
_EXPLAINED: Final = 20
"""How many pods are explained after a batch; pods of one owner share an explanation."""
_CAUSES: Final = 4
_LONGEST: Final = 1024
"""Bytes of an event's note that the API takes."""


@dataclass
class PodNotes:
    """Writes what is new about pods; what a pod was told already is not said again."""

    objects: LiveObjects
    component: str
    _told: dict[str, str] = field(default_factory=dict)

    def tell(
        self, pods: Mapping[ClaimKey, Json], reasons: Mapping[ClaimKey, str]
    ) -> int:
        """Say to each pod why it waits; returns how many heard something new.

        A pod that is gone or changes meanwhile hears it the next time.
        """
        told = 0
        waiting = {pod["metadata"]["uid"] for pod in pods.values()}
        self._told = {
            uid: why for uid, why in self._told.items() if uid in waiting
        }
        for key, why in reasons.items():
            pod = pods.get(key)
            if pod is None or self._told.get(pod["metadata"]["uid"]) == why:
                continue
            try:
                self._write(key, pod, why[:_LONGEST])
            except (Refused, SnapshotError):
                continue
            self._told[pod["metadata"]["uid"]] = why
            told += 1
        return told

    def take_back(
        self, pods: Mapping[ClaimKey, Json], released: Iterable[ClaimKey]
    ) -> None:
        """Say of released pods that they wait no more, where they were told otherwise."""
        for key in released:
            pod = pods.get(key, {})
            if any(
                entry.get("type") == CONDITION
                for entry in pod.get("status", {}).get("conditions") or ()
            ):
                with suppress(Refused, SnapshotError):
                    # The list goes by type; other conditions are the scheduler's, who writes now.
                    held = self.objects.get(PODS, key)
                    self._set(
                        key, held, "True", "Released", "its claims are written"
                    )

    def correct(self, pods: Iterable[Json], gate: str) -> None:
        """Say of pods that were told why they wait that they wait no more, whoever took the gate from them."""
        for pod in pods:
            if gate not in gates_of(pod) and _is_told_to_wait(pod):
                # It may be gone, or have changed: the next look tells.
                with suppress(Refused, SnapshotError):
                    self._set(
                        key_of(pod), pod, "True", "Released", "has no gate"
                    )

    def _set(
        self, key: ClaimKey, pod: Json, status: str, reason: str, why: str
    ) -> None:
        conditions = [
            entry
            for entry in pod.get("status", {}).get("conditions") or ()
            if entry.get("type") != CONDITION
        ]
        note = {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": why,
            "lastTransitionTime": _now(),
        }
        change = {
            "metadata": condition(pod),
            "status": {"conditions": [*conditions, note]},
        }
        self.objects.patch(PODS, key, change, "status")

    def _write(self, key: ClaimKey, pod: Json, why: str) -> None:
        self._set(key, pod, "False", "Waiting", why)
        timestamp = _now()
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": key.namespace,
            "name": key.name,
        }
        event = {
            "metadata": {
                "name": _event_name(pod, why),
                "namespace": key.namespace,
            },
            "involvedObject": {**about, "uid": pod["metadata"]["uid"]},
            "type": "Warning",
            "reason": "NotPlaced",
            "message": why,
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
            "count": 1,
            "source": {"component": self.component},
        }
        if not is_current(lambda: self.objects.create(EVENTS, event)):
            event_key = ClaimKey(key.namespace, _event_name(pod, why))
            times = (
                int(self.objects.get(EVENTS, event_key).get("count") or 1) + 1
            )
            self.objects.patch(
                EVENTS, event_key, {"count": times, "lastTimestamp": timestamp}
            )


def _is_told_to_wait(pod: Json) -> bool:
    return any(
        entry.get("type") == CONDITION and entry.get("status") == "False"
        for entry in pod.get("status", {}).get("conditions") or ()
    )


def _event_name(pod: Json, why: str) -> str:
    """Return a name that is the same for what is said to a pod again, as kubelets aggregate their events."""
    digest = sha256(f"{pod['metadata']['uid']} {why}".encode()).hexdigest()[:16]
    return f"{pod['metadata']['name'][:200]}.{digest}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reasons_for(
    question: Question,
    cluster: Cluster,
    pods: Mapping[ClaimKey, Json],
    plan_reasons: Mapping[ClaimKey, str],
) -> Mapping[ClaimKey, str]:
    """Return what explain says about each pod, node by node; where it is not asked, what is known.

    Parameters
    ----------
    cluster
        As it is once the others are placed.
    plan_reasons
        The pods, each with what its plan says.
    """
    said: dict[str, str] = {}
    reasons = {}
    for key, why in plan_reasons.items():
        owner = _owner(pods.get(key, {}))
        if owner not in said and len(said) < _EXPLAINED:
            said[owner] = _explained(question, cluster, key) or why
        reasons[key] = said.get(owner, why)
    return reasons


def _owner(pod: Json) -> str:
    metadata = pod.get("metadata", {})
    return str(
        next(
            (
                reference["uid"]
                for reference in metadata.get("ownerReferences") or ()
            ),
            metadata.get("uid"),
        )
    )


def _explained(question: Question, cluster: Cluster, key: ClaimKey) -> str:
    try:
        explanation = explain(
            cluster,
            pod=str(key),
            mode="first-fit",
            suggest=False,
            choices=question.choices,
        )
    except DrallocError as error:
        return str(error)
    texts: list[str] = []
    for group in explanation.groups[:_CAUSES]:
        causes = ", ".join(map(str, group.causes))
        texts.append(f"{len(group.nodes)} nodes: {causes}")
    return "; ".join(texts)


# ----------------------------------------------------------------------------
# Lets everything go that waits for a queue, so that it can be taken away from a
# cluster.

_GONE: Final = 404


class ReleaseCount(NamedTuple):
    """The numbers of pods that were released, and of parts of fences that were lifted."""

    pods: int
    fences: int


def release_all(
    objects: LiveObjects, gate: str, is_over: Callable[[str], bool]
) -> ReleaseCount:
    """Lift the fences of runs that are over, and take a gate from every pod, wherever the scheduler then puts it.

    Raises
    ------
    Refused, SnapshotError
        Something may not be changed.
    """
    fences = lift_all(objects, is_over)
    gated = [
        pod for pod in objects.listed(PODS)["items"] if gate in gates_of(pod)
    ]
    released = sum(_is_released(objects, pod, gate) for pod in gated)
    PodNotes(objects, "").correct(objects.listed(PODS)["items"], gate)
    return ReleaseCount(released, fences)


def _is_released(objects: LiveObjects, pod: Json, gate: str) -> bool:
    """Take the gate from a pod; false if it is gone."""
    gates = [
        pod_gate
        for pod_gate in pod["spec"]["schedulingGates"]
        if pod_gate.get("name") != gate
    ]
    change = {"metadata": condition(pod), "spec": {"schedulingGates": gates}}
    try:
        if is_current(lambda: objects.patch(PODS, key_of(pod), change)):
            return True
        changed_pod = objects.get(PODS, key_of(pod))
    except Refused as refusal:
        if refusal.status != _GONE:
            raise
        return False
    return gate in gates_of(changed_pod) and _is_released(
        objects, changed_pod, gate
    )


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
        self.notes.correct(self.cache.of(PODS), self.selection.gate)
        try:
            if self._led_as != self.lease.token:
                self._take_over()
            self._lift_older()
            return self._batch(waiting) if self._is_due(waiting) else None
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

    def _view(self) -> LiveView:
        """Return the cluster as it is now, without the fences of this queue, whichever leader has them."""
        return LiveView.of(
            self.cache.catch_up(),
            self.selection,
            lambda run: run.startswith(self.runs) or self.is_over(run),
        )

    def _take_over(self) -> None:
        """Clean up after replicas that are gone, or after a batch that failed; the rest is planned or released.

        No journal outlives them. What is to be done follows from marks on the cluster: fences and claims name their
        run. What was not written whole is taken back. A replica that was paused between its last look and a write has
        seen claims as they were: they are marked anew, so that it is refused.
        """
        token = self.lease.token
        self._unliftable.clear()  # somebody may have allowed it
        view = self._view()
        executor, taken_back = (
            Executor(
                self.objects,
                WriteJournal(),
                self.selection.gate,
                queue=self.runs,
            ),
            0,
        )
        for claim in _half_written(view, self.selection.gate, self.runs):
            with suppress(LeftAlone):
                executor.retract(claim)
                taken_back += 1
        if self.lease.is_usurped:
            self._mark(view)
        lifted = lift_all(self.objects, self.is_over, refused=self._refused)
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
        still_waiting = self.waiting()
        cluster = self._view().cluster
        reasons = _reasons_for(
            self.question, cluster, still_waiting, plan_reasons
        )
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
    view: LiveView, gate: str, runs: str
) -> Iterator[WrittenClaim]:
    """Claims that runs allocated, all of whose pods wait for other claims, or for pods of their group.

    A pod that waits for nothing more is released as it is.
    """
    ready = {demand.key for unit in view.ready(gate) for demand in unit.demands}
    halves = {
        key for key, names in view.gates.items() if names == [gate]
    } - ready
    users: dict[ClaimKey, set[ClaimKey]] = defaultdict(set)
    for pod in view.cluster.pods:
        for name in view.cluster.pod_claims(pod):
            users[name].add(pod.key)
    for claim in view.cluster.claims:
        allocation = claim.status.allocation
        is_written = claim.metadata.annotations.get(RUN, "").startswith(runs)
        if (
            is_written
            and allocation is not None
            and set() < users[claim.key] <= halves
        ):
            yield WrittenClaim(
                claim.key, claim.metadata.uid, allocation_to_wire(allocation)
            )
