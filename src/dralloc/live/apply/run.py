"""A run: look, plan, fence, look again, write, and plan the rest anew where others were first; then lift and check.

What it did is an `dralloc.live.apply.outcome.ApplyOutcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from time import sleep
from typing import Final

from dralloc.live.apply.choice import SchedulerProbe
from dralloc.live.apply.executor import Executor, LeftAlone, PodRelease
from dralloc.live.apply.fence import Fence, lift_all
from dralloc.live.apply.fence_status import HeldFence
from dralloc.live.apply.journal import JournalStep, WriteJournal
from dralloc.live.apply.outcome import CHANGED, ApplyOutcome, fenced_by
from dralloc.live.apply.pods import BindingWatch
from dralloc.live.apply.run_names import has_ended
from dralloc.live.apply.selection import LiveView, Question, Selection, Source
from dralloc.live.apply.units import Aside, WriteUnit, units_of
from dralloc.live.snapshot import PODS, Json, LiveObjects, Refused
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import ApplyError, SnapshotError
from dralloc.objects.names import ClaimKey, PoolID
from dralloc.show.plan import Plan

__all__ = ["PATIENCE", "ApplyRun"]

ROUNDS: Final = 5
"""How often what is left is planned anew."""
SETTLE: Final = 1.0
"""Seconds after which a scheduler has heard of a fence, or of an allocation, and what it had begun is written."""
PATIENCE: Final = 10.0
"""Seconds without news of released pods that a scheduler gets: its longest pause before it tries a pod again."""
_AGAIN: Final = 2
"""How often what a scheduler took back is planned anew."""
_HOMELESS: Final = "its claims are allocated, and no node has room for it"
_RELEASED: Final[Mapping[PodRelease, str]] = {
    PodRelease.DONE: "a pod that uses it is released already",
    PodRelease.POSSIBLE: "a pod that uses it may be released already, which the server does not say",
}
_ADOPTED: Final = "another run uses it, or what belongs to it"
_LIFTS: Final = 4
"""How often a fence is tried to be lifted."""
_PATIENCE: Final = 0.5
"""Seconds between two looks for claims that are about to be made."""

ENDED: Final = "the run was ended before it was written"

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much of it is done, and how much there is."""


@dataclass
class ApplyRun:
    """Brings answers into a cluster.

    Parameters
    ----------
    objects
        The cluster, to write to.
    source
        Reads it.
    question
        How it is planned for.
    selection
        Which pods and claims the run is about.
    fence
        What keeps others away from the pools that are written to.
    journal
        Where every step is noted before it is taken.
    name
        The run, as fences and the journal name it.
    queue
        How the names of the runs start of which one is at work at a time: what another one fenced is about to be free.
    wait
        Seconds to wait for claims that a controller makes of templates.
    settle
        Seconds to wait after a fence is taken and before it is lifted.
    probe
        Asks the scheduler whether it knows that nodes are tainted, before anything is written; None does not ask.
    watch
        Seconds without a newly bound pod after which released pods are waited for no more; 0 waits for none.
    pods
        All pods as they are now, for who has them at hand; by default they are listed.
    may_go_on
        Asked before each write; once it says no, the rest is left as it is.
    earlier
        An answer for this cluster from which the search for the optimum goes on.
    planning
        Entered while a plan is made, for who may interrupt that.
    is_ending
        Asked before anything new is begun; once it says yes, what was begun is brought to its end, and no more.
    """

    objects: LiveObjects
    source: Source
    question: Question
    selection: Selection
    fence: Fence
    name: str
    journal: WriteJournal = field(default_factory=WriteJournal)
    progress: Progress = lambda *_: None
    wait: float = 10
    settle: float = SETTLE
    probe: SchedulerProbe | None = None
    watch: float = PATIENCE
    pods: Callable[[], Iterable[Json]] | None = None
    pause: Callable[[float], None] = sleep
    may_go_on: Callable[[], bool] = lambda: True
    is_ending: Callable[[], bool] = lambda: False
    planning: Callable[[], AbstractContextManager[None]] = nullcontext
    queue: str = ""
    earlier: Plan | None = None
    _reasons: dict[ClaimKey, str] = field(default_factory=dict, init=False)
    _held: set[str] = field(default_factory=set, init=False)
    _done: list[WriteUnit] = field(default_factory=list, init=False)
    _asides: list[Aside] = field(default_factory=list, init=False)
    _plan: Plan | None = field(default=None, init=False)
    _unasked: str = field(default="", init=False)
    _foreign: tuple[HeldFence, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._executor = Executor(
            self.objects, self.journal, self.selection.gate, self.may_go_on
        )

    def plan(self) -> tuple[Plan, list[WriteUnit], list[Aside]]:
        """Return what would be written now; claims that a controller is about to make are waited for."""
        view = self._view(self.selection)
        waited = 0.0
        while waited < self.wait and view.awaited:
            self.pause(_PATIENCE)
            waited += _PATIENCE
            view = self._view(self.selection)
        # What other runs have fenced looks tainted to the plan; it is told with the outcome.
        self._foreign = view.foreign
        with self.planning():
            start = self._plan or self.earlier
            self._plan = plan = self.question.plan(view.cluster, start)
        units, asides = units_of(plan)
        ready, homeless = self._with_homes(
            view, self._new(view.ready(self.selection.gate))
        )
        self._asides = [*asides, *homeless]
        return plan, [*units, *ready], self._asides

    def _with_homes(
        self, view: LiveView, ready: Sequence[WriteUnit]
    ) -> tuple[list[WriteUnit], list[Aside]]:
        """Split units that only wait for their release from those that would find no node after it.

        The plan says nothing of them: a pod that shares its claim may have no place where that is allocated.
        """
        waiting = {key for unit in ready for key in unit.demand_keys}
        homes = (
            self.question.homes(view.cluster, waiting, view.begun)
            if waiting
            else {}
        )
        placed = [unit for unit in ready if unit.demand_keys <= homes.keys()]
        with_home = {key for unit in placed for key in unit.demand_keys}
        why = f"{_HOMELESS}{fenced_by(view.foreign)}"
        return placed, [Aside(key, why) for key in sorted(waiting - with_home)]

    def _new(self, ready: Iterable[WriteUnit]) -> list[WriteUnit]:
        """Leave out the units that this run has written itself."""
        written = frozenset[ClaimKey]().union(
            *(unit.keys for unit in self._done)
        )
        return [unit for unit in ready if unit.keys.isdisjoint(written)]

    def write(self, units: Sequence[WriteUnit]) -> ApplyOutcome:
        """Write units, and what is planned in their place where they no longer fit.

        Raises
        ------
        ApplyError
            The fence cannot be taken or lifted.
        """
        plan = [unit.to_dict() for unit in units]
        self.journal.add(
            JournalStep.BEGIN,
            run=self.name,
            fence=self.fence.kind,
            gate=self.selection.gate,
            units=plan,
        )
        return self.resume()

    def _take_on(self) -> None:
        """Lift what runs have fenced that are over: those of the journal, with which this one goes on, and others."""
        if self.objects.dry or self.queue:
            return  # a queue lifts what is over before each of its runs
        earlier = frozenset(self.journal.runs) - {self.name}
        try:
            lift_all(self.objects, lambda run: run in earlier or has_ended(run))
        except Refused as refusal:
            if not earlier:
                self.journal.add(JournalStep.END)  # it has not begun
            raise ApplyError(
                f"the fence of a run that is over cannot be lifted: {refusal}"
            ) from None
        if earlier:
            self.journal.add(JournalStep.RESUME, run=self.name)

    def resume(self) -> ApplyOutcome:
        """Write what the journal's last plan wants, as far as it is not written yet; otherwise as `write`."""
        self._take_on()
        unwritten = self._written_and_released(self.journal.units)
        for _ in range(_AGAIN):
            lost = self._lost()
            if not lost or self.is_ending():
                break
            self._done = [unit for unit in self._done if unit not in lost]
            # They are planned anew, so that what was said of them is out of date.
            lost_keys = {key for unit in lost for key in unit.keys}
            self._reasons = {
                key: why
                for key, why in self._reasons.items()
                if key not in lost_keys
            }
            # The new plan is about all that waits, also about what was not written before.
            unwritten = self._written_and_released(self._planned_anew())
        self.journal.add(JournalStep.END)
        why = ENDED if self.is_ending() else CHANGED
        for unit in unwritten:
            self._reasons |= dict.fromkeys(unit.demand_keys, why)
        return ApplyOutcome(
            plan=self._plan,
            units=tuple(self._done),
            released=tuple(self._executor.released),
            asides=(
                *self._asides,
                *(Aside(key, why) for key, why in self._reasons.items()),
            ),
            findings=() if self.objects.dry else tuple(self._read_back()),
            fence=self.fence.kind,
            foreign=self._foreign,
            unasked=self._unasked,
            dry=self.objects.dry,
        )

    def _written_and_released(
        self, units: Sequence[WriteUnit]
    ) -> Sequence[WriteUnit]:
        """Write units under the fence and release their pods; what could not be written is returned."""
        with self._fence_lifted():
            unwritten = self._rounds(units)
            self._release(late=False)
        # What is released now the scheduler allocates by itself, which a fence would prevent.
        self._held = set()
        self._release(late=True)
        return unwritten

    def _lost(self) -> list[WriteUnit]:
        """Return units whose claims a scheduler has taken back, and whose pods still wait: they can be planned anew.

        That happens to pods that had no gate: they are tried while nodes are fenced. Who plans gated pods alone sees no
        others.
        """
        if self.objects.dry or self.selection.gated or not self.watch:
            return []
        cluster = self._whole()
        waiting = {pod.key for pod in cluster.pods if not pod.spec.node_name}
        lost: list[WriteUnit] = []
        for unit in self._done:
            pods = {demand.key for demand in unit.demands if demand.pod}
            if self.question.is_lost(cluster, unit) and pods <= waiting:
                lost.append(unit)
        return lost

    def _release(self, *, late: bool) -> None:
        """Release the pods whose claims are written, and wait until they are bound.

        Those for which the scheduler allocates something itself come late, when nothing is fenced any more; so do those
        that had no gate, and are not waited for under the fence.
        """
        units = [unit for unit in self._done if unit.is_late is late]
        for unit_index, unit in enumerate(units):
            self.progress("releasing", unit_index, len(units))
            try:
                self._executor.release(unit, self.fence.toleration)
            except LeftAlone as why:
                self._reasons |= {
                    demand.key: str(why) for demand in unit.demands
                }
                self._done.remove(unit)
        self._reasons |= {
            key: str(why) for key, why in self._executor.stuck.items()
        }
        if self.objects.dry:
            return
        # By the journal, as a run with which this one goes on may have taken gates already.
        gated = {
            ClaimKey(*entry["pod"])
            for entry in self.journal.of(JournalStep.RELEASE)
        }
        demands = [demand for unit in self._done for demand in unit.demands]
        awaited = [
            demand
            for demand in demands
            if demand.key not in self._executor.stuck
            and (late or demand.key in gated)
        ]
        self.progress("waiting for the scheduler", 0, len(awaited))
        limit = 0.0 if self.is_ending() else self.watch
        differences = BindingWatch(
            self.pods or self._listed_pods, limit, self.pause
        ).differences(awaited)
        # What is not bound under the fence may be bound after it: the last look tells.
        if late:
            self._reasons |= differences

    def _listed_pods(self) -> list[Json]:
        pods: list[Json] = self.objects.listed(PODS)["items"]
        return pods

    def rollback(self) -> ApplyOutcome:
        """Take back what the journal says may have been written and nobody has reserved, and lift the fence.

        Gates cannot be given back. Where a pod of a unit has lost its own, the others are released, too, and keep what
        was written for them: without it, they would wait for ever on the nodes that they are kept on. A unit of which
        another run has adopted a claim is left as a whole, too, as half of a gang may have no place. What this run has
        adopted and released no pod with belongs to the run that wrote it again.
        """
        self.journal.is_undone = True
        self._take_on()
        left_alone: list[Aside] = []
        taken_back: list[ClaimKey] = []
        begun: list[WriteUnit] = []
        kept_claims: dict[str, str] = {}
        for unit in self.journal.all_units:
            release = self._executor.release_of(unit)
            if release in _RELEASED:
                begun.append(unit)
                reason = _RELEASED[release]
            elif self._executor.is_adopted(unit):
                reason = _ADOPTED
            else:
                continue
            kept_claims |= dict.fromkeys(
                (claim.uid for claim in unit.claims), reason
            )
        with self._fence_lifted():
            # The last plan first: earlier ones may have had other nodes for the same pods.
            for unit in filter(self._executor.is_held, reversed(begun)):
                # Its pods may all be gone by now.
                with suppress(LeftAlone):
                    self._executor.release(unit, self.fence.toleration)
            for claim in self.journal.intended:
                self.progress(
                    "taking back",
                    len(left_alone) + len(taken_back),
                    len(self.journal.intended),
                )
                if reason := kept_claims.get(claim.uid, ""):
                    left_alone.append(Aside(claim.key, reason))
                    continue
                try:
                    self._executor.retract(claim)
                    taken_back.append(claim.key)
                except LeftAlone as why:
                    left_alone.append(Aside(claim.key, str(why)))
            self._executor.give_back(self.journal.adopted)
        self.journal.add(JournalStep.END)
        return ApplyOutcome(
            asides=tuple(left_alone),
            taken_back=tuple(taken_back),
            fence=self.fence.kind,
        )

    def _rounds(self, units: Sequence[WriteUnit]) -> Sequence[WriteUnit]:
        """Write, and plan the rest anew; what is left at the end is returned."""
        for _ in range(ROUNDS):
            if not units or self.is_ending():
                break
            if self._take_fence(units) and not self._broken(units):
                failed = [
                    unit
                    for unit_index, unit in enumerate(units)
                    if not self._is_written(unit, unit_index, len(units))
                ]
                if not failed:
                    return ()
            else:
                self._take_back_halves(units)
            units = self._planned_anew()
        return units

    def _take_back_halves(self, units: Iterable[WriteUnit]) -> None:
        """Take back what a killed run wrote of units by halves: the rest of a gang may have no place beside it."""
        intended = {claim.uid for claim in self.journal.intended}
        if not intended:
            return
        held = {
            claim_held.metadata.uid
            for claim_held in self._whole().claims
            if claim_held.is_allocated
        }
        for unit in units:
            written = [
                claim for claim in unit.claims if claim.uid in held & intended
            ]
            is_half = len(written) < len(unit.claims)
            if is_half and not self._executor.is_begun(unit):
                for claim in reversed(written):
                    with suppress(LeftAlone):
                        self._executor.retract(claim)

    def _is_written(self, unit: WriteUnit, unit_index: int, total: int) -> bool:
        self.progress("writing", unit_index, total)
        if self.is_ending():
            self._reasons |= {demand.key: ENDED for demand in unit.demands}
            return False
        try:
            self._executor.write(unit)
        except LeftAlone as why:
            self._reasons |= {demand.key: str(why) for demand in unit.demands}
            self.selection = self.selection.but(unit.keys)
            return False
        self._done.append(unit)
        return True

    def _planned_anew(self) -> Sequence[WriteUnit]:
        self.progress("planning the rest", 0, 0)
        _, units, _ = self.plan()
        self.journal.add(
            JournalStep.PLAN,
            units=[unit.to_dict() for unit in (*self._done, *units)],
        )
        return units

    def _view(self, selection: Selection) -> LiveView:
        return LiveView.of(self.source(), selection, self._is_aside)

    def _is_aside(self, run: str) -> bool:
        """Return whether a run's fence is none to this one: its own, or of a run that is over."""
        is_queued = bool(self.queue) and run.startswith(self.queue)
        return run == self.name or is_queued or self.fence.is_over(run)

    def _whole(self) -> Cluster:
        """Return everything that the cluster holds now, whatever the run is about."""
        return self._view(Selection(gate=self.selection.gate)).cluster

    def _broken(self, units: Sequence[WriteUnit]) -> list[str]:
        self.progress("checking", 0, len(units))
        cluster = self._whole()
        broken = self.question.broken_rules(cluster, units)
        return broken or self.question.broken_by_pods(cluster, units)

    def _read_back(self) -> Iterator[str]:
        """Yield what is wrong with what the server holds of what was written, units that are gone meanwhile aside."""
        self.progress("reading back", 0, len(self._done))
        # By UID, as another object may have got the name of one that is gone.
        cluster = self._whole()
        pods = {pod.metadata.uid for pod in cluster.pods}
        claims = {
            claim.metadata.uid
            for claim in cluster.claims
            if claim.metadata.deletion_timestamp is None
        }
        # Units that are gone meanwhile: somebody deleted a pod or a claim of theirs.
        present: list[WriteUnit] = []
        for unit in self._done:
            uids = {claim.uid for claim in unit.claims}
            if unit.pod_uids <= pods and uids <= claims:
                present.append(unit)
        # What a scheduler took back and allocated otherwise is said of its pod already.
        reported = self._reasons.keys()
        as_written = [
            unit
            for unit in present
            if unit.keys.isdisjoint(reported)
            or not self.question.is_lost(cluster, unit)
        ]
        yield from self.question.broken_rules(cluster, as_written)

    def _take_fence(self, units: Iterable[WriteUnit]) -> bool:
        """Fence the pools of units; false if another run is at work on some."""
        pools = frozenset[PoolID]().union(*(unit.pools for unit in units))
        missing = [
            part
            for part in self.fence.parts(pools, self._whole)
            if part not in self._held
        ]
        if not missing:
            return True
        # What a killed run noted last it may not have taken: it is taken again, and noted once.
        fenced = self.journal.fenced
        self.journal.add(
            JournalStep.FENCE,
            parts=[part for part in missing if part not in fenced],
        )
        self.progress("fencing", 0, len(missing))
        try:
            fresh = {
                part
                for part in sorted(missing)
                if self.may_go_on() and self.fence.take(part)
            }
        except Refused as refusal:
            raise ApplyError(
                f"nothing keeps others away while this is written: {self.fence.kind}: {refusal}; "
                "--fence names another one"
            ) from None
        self._held |= fresh
        if fresh and self.probe is not None and self.fence.is_any:
            closed_node = self.fence.node_of(max(fresh))
            self._unasked = self.probe.confirm(closed_node, self.name)
        self.pause(self.settle)
        return fresh.issuperset(missing)

    @contextmanager
    def _fence_lifted(self) -> Iterator[None]:
        """Lift the fence at the end, however it comes, once a scheduler has heard of everything that was written.

        The run is over then if an error came before anything was written.
        """
        is_complete = False
        try:
            yield
            is_complete = True
        finally:
            if fenced := self.journal.fenced:
                if self._executor.written:
                    self.pause(self.settle)
                self.progress("lifting the fence", 0, len(fenced))
                self.journal.add(JournalStep.LIFT, parts=fenced)
                self._lift(fenced)
            if not is_complete and not self.journal.intended:
                self.journal.add(JournalStep.END)

    def _lift(self, parts: Iterable[str]) -> None:
        """Lift all parts that can be lifted, those whose answer was lost, or that are refused, a few times."""
        lifts = [partial(self.fence.lift, part) for part in parts]
        # Without a probe, nothing was made that asks about the fence.
        sweeps = [self.fence.sweep] if self.probe is not None else []
        held: list[Callable[[], None]] = [*lifts, *sweeps]
        failure = ""
        for attempt in range(_LIFTS):
            stuck = []
            for lift in held:
                try:
                    lift()
                except (Refused, SnapshotError) as error:
                    stuck.append(lift)
                    failure = str(error)
            held = stuck
            if not held:
                return
            self.pause(self.settle * 2**attempt)
        raise ApplyError(
            f"the fence is still there ({self.fence.kind}, {len(held)} parts): {failure}; "
            f"--resume lifts it, or --lift {self.name}"
        )
