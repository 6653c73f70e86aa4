"""Writes units: claim by claim under conditions, each step in the journal before it is taken.

A unit that cannot be written as a whole is taken back, as far as nobody has reserved what was written of it.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from dralloc.live.apply.journal import JournalStep, WriteJournal
from dralloc.live.apply.marks import FINALIZER, GATE, RUN
from dralloc.live.apply.pods import (
    claims_of,
    gates_of,
    gates_without,
    on_node,
    tolerating,
)
from dralloc.live.apply.units import (
    AdoptedClaim,
    WriteUnit,
    WrittenClaim,
    WrittenDemand,
    same_allocation,
)
from dralloc.live.snapshot import (
    CLAIMS,
    PODS,
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    Unanswered,
    condition,
    key_of,
    version_of,
)
from dralloc.objects.names import ClaimKey

__all__ = ["Executor", "LeftAlone", "PodRelease"]

_ATTEMPTS: Final = 3
_GONE: Final = 404
_WORDS: Final[Mapping[int, str]] = {
    403: "denied",
    _GONE: "is gone",
    409: "was changed by somebody else",
    429: "the API server is too busy",
}


class LeftAlone(Exception):  # noqa: N818 - somebody else was first, which is nobody's mistake
    """Raised when something cannot be written, and is left as it is."""

    def __init__(self, subject: str, why: Exception | str) -> None:
        words = (
            f"{_WORDS[why.status]} ({why.reason})"
            if isinstance(why, Refused) and why.status in _WORDS
            else why
        )
        super().__init__(f"{subject}: {words}")


class Gone(LeftAlone):
    """Raised when the object is not there any more."""


class PodRelease(Enum):
    """Whether a run has taken the gate of a pod, which cannot be given back."""

    NONE = "it has its gate, or is gone"
    POSSIBLE = "the server does not say"
    DONE = "it has no gate any more"


@dataclass
class Executor:
    """Writes to one cluster.

    Parameters
    ----------
    gate
        The scheduling gate that is taken from pods whose claims are written.
    may_go_on
        Asked after each look at an object; once it says no, everything is left as it is. What was seen before is then
        written only if nobody has changed it since.
    queue
        How the names of the runs start whose claims are undone like those of the journal's; empty if there are none.
    """

    objects: LiveObjects
    journal: WriteJournal
    gate: str = GATE
    may_go_on: Callable[[], bool] = lambda: True
    queue: str = ""
    written: dict[ClaimKey, WrittenClaim] = field(default_factory=dict)
    released: list[ClaimKey] = field(default_factory=list)
    stuck: dict[ClaimKey, LeftAlone] = field(default_factory=dict)
    _foreign: set[ClaimKey] = field(default_factory=set, init=False)

    def write(self, unit: WriteUnit) -> None:
        """Write all claims of a unit.

        Raises
        ------
        LeftAlone
            Something of it cannot be written, or a pod waits no more; what was written is taken back, unless a pod of
            it was released already, by a run that was killed.
        """
        done: list[WrittenClaim] = []
        try:
            for claim in unit.claims:
                # Noted first: an answer that got lost may have been written all the same.
                done.append(claim)
                self.allocate(claim)
            # A pod that went meanwhile needs its claims no more, nor does its gang.
            for demand in unit.demands:
                self._check(demand, None)
        except LeftAlone:
            if not self.is_begun(unit):
                self._take_back(done)
            raise

    def release(self, unit: WriteUnit, toleration: Json | None) -> None:
        """Release the pods of a unit that is written; all of them still wait, or some are released already.

        What other runs wrote for them, those could still roll back, as long as nobody has reserved it. So it is adopted
        before: it gets this run's name, and from then on no other run takes it back (`retract`).

        Parameters
        ----------
        toleration
            What lets them come to nodes that are fenced.

        Raises
        ------
        LeftAlone
            A pod is gone before any was released, or a claim of it is not allocated; what was written is taken back,
            and what was adopted is given back.
        """
        written = {claim.key for claim in unit.claims} - self._foreign
        failures: dict[ClaimKey, LeftAlone] = {}
        held_claims: dict[ClaimKey, list[Json]] = {}
        for demand in unit.demands:
            try:
                held_claims[demand.key] = self._check(demand, written)
            except LeftAlone as why:
                failures[demand.key] = why
        # Nothing is adopted for a unit that is not going to be released.
        if not failures or self._is_released_in_part(unit):
            for key, claims in held_claims.items():
                try:
                    self._adopt(claims)
                except LeftAlone as why:
                    failures[key] = why
        # Once a pod of the unit runs, the others are released as well: a gang that has
        # begun is not taken apart.
        if failures and not self._is_released_in_part(unit):
            self._take_back(unit.claims)
            self.give_back(
                claim["metadata"]["uid"]
                for claims in held_claims.values()
                for claim in claims
            )
            raise next(iter(failures.values()))
        self.stuck |= failures
        for demand in unit.demands:
            if demand.key in failures:
                continue
            try:
                self._release(demand, toleration)
            except LeftAlone as why:
                self.stuck[demand.key] = why

    def _take_back(self, claims: Sequence[WrittenClaim]) -> None:
        # What cannot be taken back is in the journal, and the next run sees it.
        for claim in reversed(claims):
            with suppress(LeftAlone):
                self.retract(claim)

    def allocate(self, claim: WrittenClaim) -> None:
        """Write the finalizer, then the allocation, each on the claim as it was seen just before."""
        for _ in range(_ATTEMPTS):
            held = self._get(CLAIMS, claim.key, claim.uid)
            status = held.get("status") or {}
            if same_allocation(status.get("allocation"), claim.allocation):
                self.written[claim.key] = claim
                if not self._is_own(held):
                    self._foreign.add(claim.key)
                return
            if status.get("allocation"):
                raise LeftAlone(
                    f"claim {claim.key}", "somebody else allocated it"
                )
            if held["metadata"].get("deletionTimestamp"):
                raise LeftAlone(f"claim {claim.key}", "is being deleted")
            try:
                self._allocate(claim, self._protected(claim, held))
            except Unanswered:
                continue  # what was done shows
            except Refused as refusal:
                raise LeftAlone(f"claim {claim.key}", refusal) from None
            self.written[claim.key] = claim
            return
        raise LeftAlone(f"claim {claim.key}", "the API server does not answer")

    def _protected(self, claim: WrittenClaim, held: Json) -> Json:
        """Give a claim the finalizer without which it could be deleted while allocated, and the run as annotation."""
        # The finalizer is in the metadata and the allocation in the status, a subresource:
        # two writes, and the finalizer first, as an allocation without it could be lost.
        finalizers = held["metadata"].get("finalizers", [])
        if FINALIZER in finalizers and self._is_own(held):
            return held
        self._note(JournalStep.FINALIZER, claim, held)
        marks = {
            "finalizers": sorted({*finalizers, FINALIZER}),
            "annotations": {RUN: self.journal.run},
        }
        return self.objects.patch(
            CLAIMS, claim.key, {"metadata": {**condition(held), **marks}}
        )

    def _allocate(self, claim: WrittenClaim, held: Json) -> None:
        self._note(JournalStep.ALLOCATION, claim, held)
        change = {
            "metadata": condition(held),
            "status": {"allocation": claim.allocation},
        }
        self.objects.patch(CLAIMS, claim.key, change, "status")

    def _is_own(self, held: Json) -> bool:
        """Return whether a claim has the name of the journal's run, of one with which that goes on, or of the queue."""
        run = _run_of(held)
        is_queued = bool(self.queue) and run.startswith(self.queue)
        return is_queued or run in self.journal.runs

    def _adopt(self, claims: Iterable[Json]) -> None:
        """Give claims that other runs wrote the name of this one, on the claims as they were seen.

        A run that takes such a claim back at the same time does so on the claim as it was seen, too: one of the two
        writes is refused, and the claim is looked at again.
        """
        for seen in claims:
            self._adopt_claim(key_of(seen), seen)

    def _adopt_claim(self, key: ClaimKey, held: Json) -> None:
        for _ in range(_ATTEMPTS):
            if not (held.get("status") or {}).get("allocation"):
                raise LeftAlone(f"claim {key}", "is not allocated any more")
            # What a scheduler allocated no run takes back.
            if not _run_of(held) or self._is_own(held):
                return
            self.journal.add(
                JournalStep.ADOPT,
                claim=[*key],
                uid=held["metadata"]["uid"],
                version=version_of(held),
                earlier=_run_of(held),
            )
            with suppress(Refused, Unanswered):  # what was done shows
                self._rename(held, self.journal.run)
                return
            held = self._get(CLAIMS, key, held["metadata"]["uid"])
        raise LeftAlone(f"claim {key}", "is changed by somebody else")

    def _rename(self, held: Json, run: str) -> None:
        """Give a claim the name of a run, if it is still as it was seen."""
        marks = {"annotations": {RUN: run}}
        self.objects.patch(
            CLAIMS, key_of(held), {"metadata": {**condition(held), **marks}}
        )

    def give_back(self, uids: Iterable[str]) -> None:
        """Give adopted claims back to the runs that wrote them, which may then take them back, or release their pods.

        What a pod has that this run released is kept: it relies on nobody taking that back.
        """
        adopted = self.journal.adopted
        returned = [adopted[uid] for uid in uids if uid in adopted]
        try:
            kept = self._claims_of_released() if returned else frozenset()
        except LeftAlone:
            return  # nobody knows what they rely on
        for claim in returned:
            if claim.earlier and claim.key not in kept:
                # It is gone meanwhile, or another run has adopted it.
                with suppress(LeftAlone):
                    self._give_back(claim)

    def _give_back(self, claim: AdoptedClaim) -> None:
        for _ in range(_ATTEMPTS):
            held = self._get(CLAIMS, claim.key, claim.uid)
            if not self._is_own(held):
                return
            self.journal.add(
                JournalStep.GIVE_BACK,
                claim=[*claim.key],
                uid=claim.uid,
                version=version_of(held),
            )
            with suppress(Refused, Unanswered):  # what was done shows
                self._rename(held, claim.earlier)

    def _claims_of_released(self) -> frozenset[ClaimKey]:
        """Return the claims of the pods whose gates the run of the journal has taken."""
        claims: set[ClaimKey] = set()
        for entry in self.journal.of(JournalStep.RELEASE):
            try:
                pod = self._get(PODS, ClaimKey(*entry["pod"]), entry["uid"])
            except Gone:
                continue
            if not self._has_gate(pod):
                claims |= set(claims_of(pod))
        return frozenset(claims)

    def retract(self, claim: WrittenClaim) -> None:
        """Take an allocation back, and the finalizer; that somebody deleted the claim is as good.

        Raises
        ------
        LeftAlone
            Somebody has reserved the claim, or allocated it otherwise, or another run has adopted it for a pod that it
            releases, or this run has adopted it itself, or the server does not let it be changed.
        """
        failure: Exception = LeftAlone(
            f"claim {claim.key}", "the API server does not answer"
        )
        for _ in range(_ATTEMPTS):
            try:
                self._deallocate(claim, self._get(CLAIMS, claim.key, claim.uid))
            except Gone:
                return
            except Unanswered:
                continue  # what was done shows
            except Refused as refusal:
                failure = LeftAlone(f"claim {claim.key}", refusal)
                continue
            self.written.pop(claim.key, None)
            return
        raise failure

    def _deallocate(self, claim: WrittenClaim, held: Json) -> None:
        status = held.get("status") or {}
        # A scheduler reserves a claim for a pod that it binds: from then on it is in use.
        if status.get("reservedFor"):
            raise LeftAlone(f"claim {claim.key}", "somebody has reserved it")
        if not same_allocation(
            status.get("allocation") or claim.allocation, claim.allocation
        ):
            raise LeftAlone(f"claim {claim.key}", "somebody else allocated it")
        if not self._is_own(held):
            if not status.get("allocation"):
                return
            run = _run_of(held)
            raise LeftAlone(
                f"claim {claim.key}",
                f"run {run} uses it" if run else "somebody else allocated it",
            )
        # Another run's pods may rely on it.
        if claim.uid in self.journal.adopted:
            raise LeftAlone(f"claim {claim.key}", "another run wrote it")
        self._note(JournalStep.RETRACT, claim, held)
        if status.get("allocation"):
            change = {
                "metadata": condition(held),
                "status": {"allocation": None},
            }
            held = self.objects.patch(CLAIMS, claim.key, change, "status")
        finalizers = held["metadata"].get("finalizers", [])
        if FINALIZER in finalizers:
            marks = {
                "finalizers": [
                    finalizer
                    for finalizer in finalizers
                    if finalizer != FINALIZER
                ],
                "annotations": {RUN: None},
            }
            self.objects.patch(
                CLAIMS, claim.key, {"metadata": {**condition(held), **marks}}
            )

    def _check(
        self, demand: WrittenDemand, written: Collection[ClaimKey] | None
    ) -> list[Json]:
        """Make sure that a pod still waits, before any of its unit is released; its claims that others wrote.

        Parameters
        ----------
        written
            The claims that this run wrote: the others must be allocated, too. None where that does not matter yet.
        """
        if not demand.pod:
            return []
        pod = self._get(PODS, demand.key, demand.pod)
        if pod["metadata"].get("deletionTimestamp"):
            raise LeftAlone(f"pod {demand.key}", "is being deleted")
        if written is None:
            return []
        return [
            self._allocated_claim(key)
            for key in claims_of(pod)
            if key not in written
        ]

    def _allocated_claim(self, key: ClaimKey) -> Json:
        try:
            held = self.objects.get(CLAIMS, key)
        except Refused as refusal:
            raise LeftAlone(f"claim {key}", refusal) from None
        if not (held.get("status") or {}).get("allocation"):
            raise LeftAlone(f"claim {key}", "is not allocated any more")
        return held

    def is_begun(self, unit: WriteUnit) -> bool:
        """Return whether the run of the journal may have taken the gate of a pod of a unit.

        Where the server does not say, it has: who is released without its claims waits for ever.
        """
        return self.release_of(unit) is not PodRelease.NONE

    def release_of(self, unit: WriteUnit) -> PodRelease:
        """Return whether the run of the journal has taken the gate of any pod of a unit."""
        noted = {entry["uid"] for entry in self.journal.of(JournalStep.RELEASE)}
        releases = {
            self._release_of(demand)
            for demand in unit.demands
            if demand.pod in noted
        }
        for release in (PodRelease.DONE, PodRelease.POSSIBLE):
            if release in releases:
                return release
        return PodRelease.NONE

    def is_held(self, unit: WriteUnit) -> bool:
        """Return whether the server holds every claim of a unit as the unit has it."""
        return all(map(self._is_as_written, unit.claims))

    def _is_as_written(self, claim: WrittenClaim) -> bool:
        try:
            held = self._get(CLAIMS, claim.key, claim.uid)
        except LeftAlone:
            return False
        allocation = (held.get("status") or {}).get("allocation")
        return same_allocation(allocation, claim.allocation)

    def is_adopted(self, unit: WriteUnit) -> bool:
        """Return whether another run has adopted a claim of a unit that the journal's run wrote."""
        intended = {claim.uid for claim in self.journal.intended}
        return any(
            self._is_of_others(claim)
            for claim in unit.claims
            if claim.uid in intended
        )

    def _is_of_others(self, claim: WrittenClaim) -> bool:
        try:
            held = self._get(CLAIMS, claim.key, claim.uid)
        except LeftAlone:
            return False
        is_allocated = bool((held.get("status") or {}).get("allocation"))
        return is_allocated and bool(_run_of(held)) and not self._is_own(held)

    def _is_released_in_part(self, unit: WriteUnit) -> bool:
        return any(
            self._release_of(demand) is PodRelease.DONE
            for demand in unit.demands
        )

    def _release_of(self, demand: WrittenDemand) -> PodRelease:
        """Return whether a pod is there and has no gate any more."""
        if not demand.pod:
            return PodRelease.NONE
        try:
            pod = self._get(PODS, demand.key, demand.pod)
        except Gone:
            return PodRelease.NONE
        except LeftAlone:
            return PodRelease.POSSIBLE
        return PodRelease.NONE if self._has_gate(pod) else PodRelease.DONE

    def _has_gate(self, pod: Json) -> bool:
        return self.gate in gates_of(pod)

    def _release(self, demand: WrittenDemand, toleration: Json | None) -> None:
        """Take the gate from a pod, and keep it on its node.

        A scheduler that finds a pod's node closed looks at the others, where its allocations cannot be used, and takes
        them back for that (``PostFilter`` of the plugin DynamicResources). With the node as its only choice it looks at
        no other, and the plan stays.

        Raises
        ------
        LeftAlone
            It stays gated. That is no reason to take its claims back.
        """
        is_answer_lost = False
        for attempt in range(1, _ATTEMPTS + 1) if demand.pod else ():
            pod = self._get(PODS, demand.key, demand.pod)
            if not self._has_gate(pod):
                # An attempt whose answer got lost has taken the gate.
                if is_answer_lost:
                    self.released.append(demand.key)
                return
            self.journal.add(
                JournalStep.RELEASE,
                pod=[*demand.key],
                uid=demand.pod,
                version=version_of(pod),
            )
            spec = {
                "schedulingGates": gates_without(pod, self.gate),
                **on_node(pod, demand.node),
                **tolerating(pod, toleration),
            }
            try:
                self.objects.patch(
                    PODS, demand.key, {"metadata": condition(pod), "spec": spec}
                )
            except (Unanswered, Refused) as error:
                if attempt == _ATTEMPTS:
                    raise LeftAlone(f"pod {demand.key}", error) from None
                is_answer_lost |= isinstance(error, Unanswered)
                continue
            self.released.append(demand.key)
            return

    def _get(self, kind: ListedKind, key: ClaimKey, uid: str) -> Json:
        """Return the object with this UID."""
        subject = f"{'claim' if kind is CLAIMS else 'pod'} {key}"
        try:
            held = self.objects.get(kind, key)
        except Refused as refusal:
            raise (Gone if refusal.status == _GONE else LeftAlone)(
                subject, refusal
            ) from None
        if not self.may_go_on():
            raise LeftAlone(subject, "the time of this run is over")
        if held["metadata"]["uid"] != uid:
            raise Gone(subject, "is gone, and another one has its name")
        return held

    def _note(self, step: JournalStep, claim: WrittenClaim, held: Json) -> None:
        self.journal.add(
            step,
            claim=[*claim.key],
            uid=claim.uid,
            version=version_of(held),
            allocation=claim.allocation,
        )


def _run_of(claim: Json) -> str:
    """Return the run that wrote or adopted a claim last; empty if none did."""
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(RUN, ""))
