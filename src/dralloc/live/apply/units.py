"""What is about to be written: units of claims and pods, the marks that they get, and the journal of it on disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import Any, Final
from weakref import finalize

import networkx as nx
import orjson

from dralloc.live.snapshot import Json
from dralloc.objects.api import AllocationResult
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import ApplyError
from dralloc.objects.names import ClaimKey, PoolID
from dralloc.show.placed import Placed
from dralloc.show.plan import Plan

__all__ = [
    "FENCE",
    "FINALIZER",
    "GATE",
    "RUN",
    "TOKEN",
    "AdoptedClaim",
    "Aside",
    "JournalFile",
    "JournalStep",
    "WriteJournal",
    "WriteUnit",
    "WrittenClaim",
    "WrittenDemand",
    "allocation_to_wire",
    "default_path",
    "same_allocation",
    "sole_node",
    "units_of",
]

# ----------------------------------------------------------------------------
# By what dralloc's own marks on a cluster are known.

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted before it is deallocated (``Finalizer`` of resource.k8s.io)."""
GATE: Final = "dralloc.dev/batch"
"""The scheduling gate of pods that wait for dralloc."""
FENCE: Final = "dralloc.dev/fence"
"""Key of the taint of a fence; label of the DeviceTaintRules among them, with the run that they belong to."""
RUN: Final = "dralloc.dev/run"
"""Annotation of a claim with the run that allocated it, or adopted it for a pod that it releases."""
TOKEN: Final = "dralloc.dev/token"
"""Annotation of a claim with the number of the leader that has marked it, so that earlier ones are refused."""


# ----------------------------------------------------------------------------
# The plan of writes: which claims get which allocation, and which pods are released
# after that.
#
# A `WriteUnit` is written as a whole or not: a pod with its claims; pods of a gang,
# or with a common claim, together.


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim, by its UID, and the ``status.allocation`` that it gets, in wire form."""

    key: ClaimKey
    uid: str
    allocation: Json

    @property
    def pools(self) -> frozenset[PoolID]:
        """The pools whose devices it gets."""
        return frozenset(
            PoolID(result["driver"], result["pool"])
            for result in self.allocation["devices"].get("results", ())
        )


@dataclass(frozen=True, slots=True)
class AdoptedClaim:
    """A claim that a run adopted for a pod that it was to release.

    Parameters
    ----------
    earlier
        The run whose name it had; empty in journals that do not say.
    """

    key: ClaimKey
    uid: str
    earlier: str


@dataclass(frozen=True, slots=True)
class WrittenDemand:
    """A pod, or a claim that no pod uses, on its node.

    Parameters
    ----------
    node
        Where it is to run; empty if that is left to the scheduler.
    pod
        The pod's UID; empty for a claim.
    late
        Whether the scheduler still has to make a claim for it (extended resources, KEP-5004), which it cannot as long
        as devices are fenced.
    """

    key: ClaimKey
    node: str
    pod: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class WriteUnit:
    """Demands that are written all or none, with their claims."""

    demands: tuple[WrittenDemand, ...]
    claims: tuple[WrittenClaim, ...]

    @property
    def pools(self) -> frozenset[PoolID]:
        """The pools whose devices its claims get."""
        return frozenset[PoolID]().union(
            *(claim.pools for claim in self.claims)
        )

    @property
    def keys(self) -> frozenset[ClaimKey]:
        """Its pods and claims."""
        return self.demand_keys.union(claim.key for claim in self.claims)

    @property
    def demand_keys(self) -> frozenset[ClaimKey]:
        """Its pods, or the claim that no pod uses."""
        return frozenset(demand.key for demand in self.demands)

    @property
    def pod_uids(self) -> frozenset[str]:
        """The UIDs of its pods."""
        return frozenset(demand.pod for demand in self.demands if demand.pod)

    @property
    def is_late(self) -> bool:
        """Whether the scheduler allocates something of it by itself, when nothing is fenced any more."""
        return any(demand.late for demand in self.demands)

    def to_dict(self) -> Json:
        """Return it as plain data for the journal, from which `of` reads it back."""
        demands = [
            [*demand.key, demand.node, demand.pod, demand.late]
            for demand in self.demands
        ]
        claims = [
            [*claim.key, claim.uid, claim.allocation] for claim in self.claims
        ]
        return {"demands": demands, "claims": claims}

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> WriteUnit:
        """Read a unit back from the journal."""
        return cls(
            tuple(
                WrittenDemand(ClaimKey(*fields[:2]), *fields[2:])
                for fields in entry["demands"]
            ),
            tuple(
                WrittenClaim(ClaimKey(*fields[:2]), *fields[2:])
                for fields in entry["claims"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Aside:
    """A pod or claim that is not written, and why."""

    key: ClaimKey
    reason: str


def allocation_to_wire(allocation: AllocationResult) -> Json:
    """Return an allocation as it is written now.

    The time in it a scheduler would add; it is written at once, as nobody can change it later.
    """
    timestamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**allocation.wire_form(), "allocationTimestamp": timestamp}


def same_allocation(first: Json | None, second: Json | None) -> bool:
    """Return whether two allocations give the same, whenever they were made."""
    if first is None or second is None:
        return first is second
    return _read(first) == _read(second)


def _read(allocation: Json) -> AllocationResult:
    return AllocationResult.model_validate(
        {
            key: value
            for key, value in allocation.items()
            if key != "allocationTimestamp"
        }
    )


def units_of(plan: Plan) -> tuple[list[WriteUnit], list[Aside]]:
    """Return what a plan writes, in its order; and the pods of which not everything is there that is to be written.

    A claim for extended resources is made and allocated by the scheduler (KEP-5004). Its pod is only released.
    """
    units: list[WriteUnit] = []
    asides: list[Aside] = []
    for group in _groups(plan):
        waiting = [
            (placed, key)
            for placed in group
            for key in placed.claims
            if _is_missing(plan, key)
        ]
        if waiting:
            reasons = {
                placed.demand: f"claim {key} has not been made of its template yet"
                for placed, key in waiting
            }
            asides += (
                Aside(
                    placed.demand,
                    reasons.get(placed.demand, "belongs to a pod that waits"),
                )
                for placed in group
            )
        else:
            units.append(_unit(plan.compiled.cluster, group))
    return units, asides


def _groups(plan: Plan) -> Iterator[list[Placed]]:
    """Yield the placed demands, those of a gang or with a claim in common together."""
    placed = list(plan.placed)
    # By index, as a pod and a claim that no pod uses may have the same key.
    together: nx.Graph[Hashable] = nx.Graph()
    together.add_nodes_from(range(len(placed)))
    for placement_index, placement in enumerate(plan.solution.placements):
        demand = plan.demands[placement.demand]
        together.add_edges_from(
            (placement_index, ("claim", claim.key)) for claim in demand.claims
        )
        if demand.placed_with:
            together.add_edge(placement_index, ("gang", demand.placed_with))
    for group in nx.connected_components(together):
        # Claims and gangs are nodes of the graph, too, but no demands.
        placement_indices = sorted(
            member for member in group if isinstance(member, int)
        )
        yield [placed[placement_index] for placement_index in placement_indices]


def _is_missing(plan: Plan, key: ClaimKey) -> bool:
    claim = plan.compiled.cluster.claim(key)
    return claim is None or (not claim.metadata.uid and not claim.is_extended)


def _unit(cluster: Cluster, group: Iterable[Placed]) -> WriteUnit:
    claims = {
        key: WrittenClaim(
            key, claim.metadata.uid, allocation_to_wire(allocation)
        )
        for placed in group
        for key, allocation in placed.claims.items()
        if (claim := cluster.claim(key)) is not None and not claim.is_extended
    }
    demands = [
        WrittenDemand(
            key=placed.demand,
            node=placed.node,
            pod=""
            if cluster.is_lone(placed.demand, placed.claims)
            else cluster.pods_by_key[placed.demand].metadata.uid,
            late=not placed.claims.keys() <= claims.keys(),
        )
        for placed in group
    ]
    return WriteUnit(tuple(demands), tuple(claims.values()))


def sole_node(allocation: Json) -> str:
    """Return the only node on which an allocation can be used; empty if there may be several."""
    terms = allocation.get("nodeSelector", {}).get("nodeSelectorTerms", ())
    named = [_named_nodes(term.get("matchFields", ())) for term in terms]
    return (
        next(iter(named[0]))
        if named
        and len(named[0]) == 1
        and all(names == named[0] for names in named)
        else ""
    )


def _named_nodes(fields: Iterable[Json]) -> frozenset[str]:
    names = (
        field["values"]
        for field in fields
        if field.get("key") == "metadata.name" and field.get("operator") == "In"
    )
    return frozenset(name for values in names for name in values)


# ----------------------------------------------------------------------------
# The journal: what a run is about to do, on disk before it does it. Lines of JSON,
# only ever added to.
#
# A run that ended without its last entry was killed. What it left behind on the
# cluster follows from the entries and from what the API server holds now; the journal
# itself claims nothing about what was done.

_END: Final = b"\n"


class JournalStep(StrEnum):
    """A step that is about to be taken."""

    BEGIN = "begin"
    RESUME = "resume"
    PLAN = "plan"
    FENCE = "fence"
    FINALIZER = "finalizer"
    ALLOCATION = "allocation"
    ADOPT = "adopt"
    GIVE_BACK = "give back"
    RELEASE = "release"
    RETRACT = "retract"
    LIFT = "lift"
    END = "end"


Entry = Mapping[str, Any]
_TELLING: Final = (
    JournalStep.GIVE_BACK,
    JournalStep.RETRACT,
    JournalStep.LIFT,
    JournalStep.END,
)
"""What is undone, and may be undone twice: where it cannot be noted, it is done all the same."""


class WriteJournal:
    """The entries of one run, in order. Lost with the process, it is for runs that write nothing."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_undone = False
        """Whether its run is taken back, which happens even where it cannot be noted."""

    def add(self, step: JournalStep, **about: Any) -> None:
        """Note what comes next; it is kept before this returns. With the beginning of a run, the last one is over."""
        if step is JournalStep.BEGIN:
            self.entries = []
        self.entries.append({"step": step.value, **about})

    def of(self, step: JournalStep) -> Iterator[Entry]:
        """The entries about one step."""
        return (entry for entry in self.entries if entry["step"] == step)

    @property
    def run(self) -> str:
        """The run that it is about; the last one that went on with it, if any did."""
        return self.runs[-1] if self.entries else ""

    @property
    def runs(self) -> list[str]:
        """The run that it is about, and those that went on with it."""
        return [str(entry["run"]) for entry in self.entries if "run" in entry]

    @property
    def unfinished(self) -> bool:
        """Whether the run did not come to its end."""
        return (
            bool(self.entries) and self.entries[-1]["step"] != JournalStep.END
        )

    @property
    def units(self) -> list[WriteUnit]:
        """The units that the last plan wants to write."""
        plans = [entry for entry in self.entries if "units" in entry]
        return (
            [WriteUnit.of(entry) for entry in plans[-1]["units"]]
            if plans
            else []
        )

    @property
    def all_units(self) -> list[WriteUnit]:
        """The units of all plans, the same one once for each plan that has it."""
        return [
            WriteUnit.of(unit)
            for entry in self.entries
            for unit in entry.get("units", ())
        ]

    @property
    def fenced(self) -> list[str]:
        """The parts of the fence that may have been taken."""
        return [
            str(part)
            for entry in self.of(JournalStep.FENCE)
            for part in entry["parts"]
        ]

    @property
    def intended(self) -> list[WrittenClaim]:
        """The claims that may have been written, each with the last allocation that it was to get."""
        noted = (
            entry
            for entry in self.entries
            if entry["step"] in (JournalStep.FINALIZER, JournalStep.ALLOCATION)
        )
        claims = (
            WrittenClaim(
                ClaimKey(*entry["claim"]), entry["uid"], entry["allocation"]
            )
            for entry in noted
        )
        return list({claim.uid: claim for claim in claims}.values())

    @property
    def adopted(self) -> Mapping[str, AdoptedClaim]:
        """The claims that may have been adopted, and were not written again after that, by UID."""
        claim_steps = (
            JournalStep.FINALIZER,
            JournalStep.ALLOCATION,
            JournalStep.ADOPT,
        )
        last_entries = {
            entry["uid"]: entry
            for entry in self.entries
            if entry["step"] in claim_steps
        }
        return {
            uid: AdoptedClaim(
                ClaimKey(*entry["claim"]), uid, entry.get("earlier", "")
            )
            for uid, entry in last_entries.items()
            if entry["step"] == JournalStep.ADOPT
        }


@dataclass
class JournalFile(WriteJournal):
    """A journal in a file, which belongs to one cluster and to one run at a time.

    Raises
    ------
    ApplyError
        The file cannot be written, or holds something else.
    """

    path: Path

    def __post_init__(self) -> None:
        super().__init__()
        self._let_go: Callable[[], object] = _nothing
        self.entries, self._rest = self._read()

    def _read(self) -> tuple[list[Entry], bytes]:
        """Return the entries of the file as it is now, and what is behind the last whole line."""
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ApplyError(
                f"{self.path}: {error.strerror or error}"
            ) from None
        # The last line may be cut off by what ended the run: it was not kept, so nothing was done about it.
        *lines, rest = text.split(_END)
        try:
            return [orjson.loads(line) for line in lines], rest
        except orjson.JSONDecodeError:
            raise ApplyError(f"{self.path}: is no journal of dralloc") from None

    def add(self, step: JournalStep, **about: Any) -> None:
        """Note what comes next; the line is on the disk before this returns.

        The beginning of a run takes the place of the last run's entries. Who is killed in between leaves an empty file,
        in which nothing is lost: the last run had come to its end, and the new one has not done anything.
        """
        if step is JournalStep.BEGIN:
            self.hold()
            # Planning, and asking whether the plan is to be written, take time enough for another run to begin.
            if self.unfinished:
                raise ApplyError(
                    f"{self.path}: run {self.run} has begun meanwhile, and is unfinished; nothing is written"
                )
        super().add(step, **about)
        mode = "w" if step is JournalStep.BEGIN else "a"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._rest and step is not JournalStep.BEGIN:
                os.truncate(
                    self.path, self.path.stat().st_size - len(self._rest)
                )
            self._rest = b""
            line = orjson.dumps(self.entries[-1]) + _END
            with FileIO(self.path, mode) as file:
                _write_line(file, line)
        except OSError as error:
            if step not in _TELLING and not self.is_undone:
                raise ApplyError(
                    f"{self.path}: cannot be written: {error.strerror or error}"
                ) from None
        finally:
            if step is JournalStep.END:
                self.close()

    def close(self) -> None:
        """Let other processes have the journal."""
        self._let_go()

    def hold(self) -> None:
        """Keep other processes of this machine from the journal until the run ends, or this process, however it does.

        What others noted until now is read. A file that cannot be locked, as on some file systems, is held by nobody.

        Raises
        ------
        ApplyError
            Another process holds it: its run is at work.
        """
        self.close()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only where there is none it is made: a full disk prevents no rollback.
            flags = (
                os.O_RDONLY if self.path.exists() else os.O_RDWR | os.O_CREAT
            )
            descriptor = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise ApplyError(
                f"{self.path}: cannot be opened: {error.strerror or error}"
            ) from None
        self._let_go = finalize(self, os.close, descriptor)
        is_held = _is_locked_by_others(descriptor)
        self.entries, self._rest = self._read()
        if is_held:
            self.close()
            raise ApplyError(
                f"{self.path}: run {self.run} is at work: its process holds this file"
            )


def _nothing() -> None:
    """Do nothing, in place of closing a file that was not opened."""


def _is_locked_by_others(descriptor: int) -> bool:
    """Lock a file for the time that it is open; returns whether another process has done so before."""
    if sys.platform == "win32":
        return False
    import fcntl  # noqa: PLC0415 - not everywhere

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _write_line(file: FileIO, line: bytes) -> None:
    """Add a line as a whole, or nothing: a part of it would be in the way of the next one."""
    start = file.seek(0, os.SEEK_END)
    try:
        if file.write(line) < len(line):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(start)
        raise


def default_path(host: str) -> Path:
    """Return where the journal of a cluster is, by the address of its API server."""
    state = Path(
        os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    )
    name = "".join(
        character if character.isalnum() else "-"
        for character in host.partition("//")[2] or host
    )
    return state / "dralloc" / f"{name}.journal"
