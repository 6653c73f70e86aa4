"""The commands that speak with a live cluster: ``dralloc snapshot``, ``redact``, ``apply`` and ``batch``.

First what they share: their options, and the cluster.
"""

from __future__ import annotations

import gc
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dralloc.cli.console import Exit, Printing, Reader, Session
from dralloc.cli.options import SCHEDULER, STDOUT, Form, Paths
from dralloc.objects.choices import Choices, FenceKind, Mode
from dralloc.objects.errors import ApplyError, DrallocError
from dralloc.objects.names import ClaimKey

if TYPE_CHECKING:
    from dralloc.live.apply import (
        ApplyOutcome,
        ApplyRun,
        JournalFile,
        Question,
        Selection,
    )
    from dralloc.live.apply.choice import SchedulerProbe
    from dralloc.live.apply.fence_status import FenceStatus
    from dralloc.live.batch import LeaderLease
    from dralloc.live.snapshot import ClusterSnapshot, LiveObjects
    from dralloc.live.snapshot.client import ApiServer
    from dralloc.show.plan import Plan

__all__ = [
    "apply_command",
    "batch_command",
    "redact_command",
    "snapshot_command",
]


@dataclass(frozen=True)
class ServerOptions:
    """Which cluster, and how long it may take."""

    context: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Context of the kubeconfig."),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of the usual kubeconfig."),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            max=86_400,
            help="Give up after this time, whatever the server does.",
        ),
    ] = 1800

    @contextmanager
    def server(self) -> Iterator[ApiServer]:
        """The cluster of the kubeconfig; or, in a pod without one, that of the pod."""
        from dralloc.live.snapshot import ReadLimits, connect

        with connect(
            self.kubeconfig, self.context, ReadLimits(seconds=self.timeout)
        ) as server:
            yield server


@dataclass(frozen=True)
class Live(ServerOptions):
    """Which of its pods and claims, and what keeps others away meanwhile."""

    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            "--namespace",
            "-n",
            metavar="NAME",
            help="Only this namespace; may be given several times.",
        ),
    ] = None
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            "-l",
            metavar="LABELS",
            help="Only pods with these labels, as in kubectl.",
        ),
    ] = ""
    gate: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The scheduling gate of pods that wait for dralloc.",
        ),
    ] = "dralloc.dev/batch"
    fence: Annotated[
        FenceKind,
        typer.Option(
            help="How to keep others away: by a DeviceTaintRule for each pool, by a taint on each node "
            "that reaches it, or not at all, so that conflicts are only noticed. auto takes the first"
            " that works."
        ),
    ] = FenceKind.AUTO
    settle: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long a scheduler may take to notice a change.",
        ),
    ] = 1.0
    probe: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE",
            help="Namespace of a short-lived pod that can run nowhere, by which the scheduler shows that "
            "it knows of the fence; empty for none.",
        ),
    ] = "default"
    watch: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long to wait for released pods after the last one was bound; 0 does not wait.",
        ),
    ] = 10.0

    def selection(self, *, gated: bool = False) -> Selection:
        """The pods and claims that are meant."""
        from dralloc.live.apply import Selection
        from dralloc.live.apply.selection import parse_selector

        labels = parse_selector(self.selector) if self.selector else None
        return Selection(frozenset(self.only or ()), labels, gated, self.gate)

    def probe_of(self, objects: LiveObjects) -> SchedulerProbe | None:
        """Return what asks the scheduler about a fence."""
        from dralloc.live.apply.choice import SchedulerProbe

        return (
            SchedulerProbe(objects, self.probe, sleep)
            if self.probe and not objects.dry
            else None
        )

    def fence_of(self, objects: LiveObjects) -> FenceKind:
        """Return what is to keep others away; who writes nothing keeps nobody."""
        return FenceKind.NONE if objects.dry else self.fence


def _question_of(mode: Mode, choices: Choices) -> Question:
    """Return how the cluster is planned for.

    Raises
    ------
    DrallocError
        Pods are included that cannot be released.
    """
    from dralloc.live.apply import Question

    if choices.include:
        raise DrallocError(
            "--include: pods are released by their gate (--gate); no other pods can be included here"
        )
    return Question(mode, choices)


# ----------------------------------------------------------------------------
# ``dralloc snapshot`` and ``dralloc redact``: a live cluster into a file, and names
# out of it.

Target = Annotated[
    Path,
    typer.Option(
        "--to",
        metavar="FILE",
        help="Where to write: YAML, or JSON for *.json, compressed for *.gz; - is standard output.",
    ),
]


def snapshot_command(
    to: Target = STDOUT,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="Only this namespace; may be given several times.",
        ),
    ] = None,
    redacted: Annotated[
        bool,
        typer.Option(
            "--redact", help="Replace names, so that it can be shared."
        ),
    ] = False,
    *,
    live: ServerOptions,
    session: Session,
) -> None:
    """Save what dralloc uses of a live cluster to a file."""
    from dralloc.live.snapshot import take_snapshot

    with session.busy("connecting"), live.server() as server:
        snapshot = take_snapshot(
            server,
            namespaces=namespace or (),
            progress=lambda kind, count: session.update(
                f"reading {kind}: {count:,}"
            ),
        )
    session.warn(snapshot.warnings)
    _write(session, snapshot, to, redacted=redacted)
    session.tell(_counts(snapshot))


def redact_command(paths: Paths, session: Reader, to: Target = STDOUT) -> None:
    """Replace the names in a cluster's objects, so that they can be shared and still give the same answer."""
    from dralloc.objects.api.reading import model_of
    from dralloc.objects.load import load_objects

    with session.busy("reading"):
        objects = load_objects(*paths, limits=session.limits)
    read_objects = []
    skipped: Counter[str] = Counter()
    for api_object in objects:
        if model_of(api_object) is None:
            skipped[str(api_object.get("kind"))] += 1
        else:
            read_objects.append(api_object)
    if skipped:
        kinds = ", ".join(
            f"{kind} ({count})" for kind, count in sorted(skipped.items())
        )
        session.warn(
            [
                f"{skipped.total()} objects of kinds that dralloc does not read are left out: {kinds}"
            ]
        )
    _write(session, read_objects, to, redacted=True)


def _write(
    session: Session,
    objects: ClusterSnapshot | list[dict[str, Any]],
    target: Path,
    *,
    redacted: bool,
) -> None:
    from dralloc.objects.redact import plan_redaction
    from dralloc.objects.save import save, write_objects

    with session.busy("writing"):
        redaction = plan_redaction(objects) if redacted else None
        written = map(redaction.apply, objects) if redaction else iter(objects)
        if target == STDOUT:
            buffer = BytesIO()  # all of it or nothing, here too
            write_objects(written, buffer)
            typer.get_binary_stream("stdout").write(buffer.getbuffer())
        else:
            save(written, target)
    if redaction:
        session.warn(redaction.warnings())


def _counts(snapshot: ClusterSnapshot) -> str:
    kinds = [
        f"{kind} {saved:,}"
        if saved == read
        else f"{kind} {saved:,} of {read:,} (the others use no devices)"
        for kind, (saved, read) in snapshot.counts.items()
    ]
    return f"{len(snapshot):,} objects: {', '.join(kinds)}"


# ----------------------------------------------------------------------------
# ``dralloc apply``: an answer into the cluster that it is about.


class DryRun(StrEnum):
    """How much of it is done."""

    CLIENT = "client"
    SERVER = "server"
    NONE = "none"


def apply_command(  # noqa: PLR0913 - one parameter per option
    mode: Annotated[
        Mode, typer.Option(help="Which mode makes the plan.")
    ] = Mode.OPTIMAL,
    dry_run: Annotated[
        DryRun | None,
        typer.Option(
            help="client: only plan; server: ask the server what it would do (the default); none: write."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Write without asking first.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a run that was interrupted, and lift its fence.",
        ),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Undo what a run wrote, unless it is reserved already, and lift its fence.",
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Only show what is fenced, by whom and since when, and what is unfinished.",
        ),
    ] = False,
    lift: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            help="Only lift the fence of this run, or of all runs; this needs no journal.",
        ),
    ] = "",
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to note each step before it is taken; by default below the home directory.",
        ),
    ] = None,
    *,
    live: Live,
    choices: Annotated[Choices, SCHEDULER],
    session: Printing,
) -> None:
    """Place the pending claims of a live cluster, and write the plan there."""
    from dralloc.live.apply import JournalFile
    from dralloc.live.apply.units import default_path

    dry = dry_run or (
        DryRun.NONE if yes or resume or rollback else DryRun.SERVER
    )
    if sum(map(bool, (resume, rollback, status, lift))) > 1:
        raise ApplyError(
            "--resume, --rollback, --status and --lift: one of them at a time"
        )
    with (
        live.server() as server,
        session.counting("reading") as progress,
        closing(JournalFile(journal or default_path(server.wire.host))) as file,
    ):
        session.warn(server.warnings)
        if status or lift:
            fence_status = _status(server, file, lift)
            session.answer(fence_status, failed=fence_status.failed)
            return
        run = _run(
            server,
            file,
            live,
            _question_of(mode, choices),
            dry,
            again=resume or rollback,
        )
        run.progress = progress
        if resume or rollback:
            outcome = run.resume() if resume else run.rollback()
        else:
            outcome = _planned(run, session, dry, yes=yes)
    session.answer(outcome, failed=outcome.failed)


def _status(server: ApiServer, file: JournalFile, lift: str) -> FenceStatus:
    """Return what is fenced, once the fences of a run are lifted."""
    from dralloc.live.apply.fence import lift_all
    from dralloc.live.apply.fence_status import status_of
    from dralloc.live.snapshot import LiveObjects, served

    objects = LiveObjects(server.wire, served(server))
    if lift:
        lift_all(objects, lambda run: lift in (run, "all"))
    return status_of(objects, file, str(file.path))


def _run(  # noqa: PLR0913 - what the command was told
    server: ApiServer,
    file: JournalFile,
    live: Live,
    question: Question,
    dry: DryRun,
    *,
    again: bool,
) -> ApplyRun:
    from dralloc.live.apply import ApplyRun, WriteJournal
    from dralloc.live.apply.choice import fence_for
    from dralloc.live.apply.fence import fence_of
    from dralloc.live.apply.run_names import may_write, new_run
    from dralloc.live.snapshot import LiveObjects, served, take_snapshot

    if again or (dry is DryRun.NONE and file.unfinished):
        file.hold()  # nobody goes on with a run that is still at work
    if again and not file.unfinished:
        raise ApplyError(f"{file.path}: no run is to be resumed or rolled back")
    if not again and dry is DryRun.NONE and file.unfinished:
        raise ApplyError(
            f"{file.path}: run {file.run} was ended before its end: --resume or --rollback"
        )
    objects = LiveObjects(
        server.wire, served(server), dry=dry is not DryRun.NONE
    )
    name = new_run("", live.timeout)
    return ApplyRun(
        objects=objects,
        source=lambda: take_snapshot(server, untrimmed=True),
        question=question,
        selection=live.selection(),
        settle=0 if objects.dry else live.settle,
        probe=live.probe_of(objects),
        watch=live.watch,
        fence=fence_of(file, objects, name)
        if again
        else fence_for(live.fence_of(objects), objects, name).fence,
        name=name,
        journal=WriteJournal() if objects.dry else file,
        may_go_on=lambda: may_write(name),
    )


def _holes(run: ApplyRun, plan: Plan) -> Iterator[str]:
    """Yield what the fence does not keep away."""
    from dralloc.live.apply import TaintRuleFence
    from dralloc.live.apply.fence import unfenced

    for key in (
        unfenced(plan.compiled.cluster)
        if isinstance(run.fence, TaintRuleFence)
        else ()
    ):
        yield f"claim {key} tolerates every taint, also that of the fence: --fence node-taints keeps its pods away"


def _planned(
    run: ApplyRun, session: Printing, dry: DryRun, *, yes: bool
) -> ApplyOutcome:
    """Plan, show the plan, and write it, or ask the server what it would do."""
    from dralloc.live.apply import ApplyOutcome
    from dralloc.live.apply.run import planned_parts

    plan, units, asides = run.plan()
    session.warn([*plan.findings, *_holes(run, plan)])
    if dry is DryRun.CLIENT:
        return ApplyOutcome(
            plan=plan, units=tuple(units), asides=tuple(asides), dry=True
        )
    if session.form in (Form.TABLE, Form.WIDE):
        session.show_tables(planned_parts(plan, units, asides))
    if (
        dry is DryRun.NONE
        and not yes
        and not typer.confirm("Write this?", err=True)
    ):
        raise typer.Exit(Exit.DONE)
    return run.write(units)


# ----------------------------------------------------------------------------
# ``dralloc batch``: a queue of pods, placed batch after batch.


def batch_command(  # noqa: PLR0913 - one parameter per option
    mode: Annotated[
        Mode, typer.Option(help="Which mode plans batches.")
    ] = Mode.OPTIMAL,
    interval: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Place what is waiting after this time, however few pods.",
        ),
    ] = 60,
    at_least: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Place at once when this many new pods are waiting.",
        ),
    ] = 100,
    lease: Annotated[
        str,
        typer.Option(
            metavar="NS/NAME",
            help="The Lease that one of several replicas holds.",
        ),
    ] = "dralloc-system/dralloc-batch",
    identity: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="This replica; by default the name of its host.",
        ),
    ] = "",
    port: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            help="Port of /metrics, /healthz and /readyz; 0 for any.",
        ),
    ] = 8080,
    release_all: Annotated[
        bool,
        typer.Option(
            "--release-all",
            help="Only remove the gate from all pods that carry it, and lift the fences of the queue.",
        ),
    ] = False,
    *,
    live: Live,
    choices: Annotated[Choices, SCHEDULER],
    session: Session,
) -> None:
    """Place the pods that carry the gate, batch after batch, until stopped."""
    from dralloc.live.apply import Fence
    from dralloc.live.apply.choice import fence_for
    from dralloc.live.batch import (
        EVENTS,
        LEASES,
        BatchQueue,
        Figures,
        LeaderLease,
        PodNotes,
        WatchCache,
        serving,
    )
    from dralloc.live.snapshot import LISTED_KINDS, LiveObjects, served

    def fence(run: str, is_over: Callable[[str], bool]) -> Fence:
        return fence_for(live.fence_of(objects), objects, run, is_over).fence

    gc.enable()  # it is off for commands that end soon
    with live.server() as server:
        session.warn(server.warnings)
        versions = served(server)
        objects = LiveObjects(
            server.wire, {**versions, EVENTS: "v1", LEASES: "v1"}
        )
        leader = LeaderLease(
            objects, ClaimKey.parse(lease), identity or socket.gethostname()
        )
        if release_all:
            _release_all(objects, leader, live.gate, session)
            return
        listed = {
            kind: versions[kind] for kind in LISTED_KINDS if kind in versions
        }
        cache = WatchCache(LiveObjects(server.wire, listed))
        figures = Figures()
        queue = BatchQueue(
            objects=objects,
            cache=cache,
            question=_question_of(mode, choices),
            selection=live.selection(gated=True),
            fence=fence,
            lease=leader,
            notes=PodNotes(objects, "dralloc-batch"),
            figures=figures,
            interval=interval,
            at_least=at_least,
            say=lambda line: _log(session, "INFO", line),
            complain=lambda line: _log(session, "ERROR", line),
            settle=live.settle,
            probe=live.probe_of(objects),
            watch=live.watch,
            timeout=live.timeout,
        )
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda *_: queue.stop())
        _log(
            session,
            "INFO",
            f"fence: {fence_for(live.fence_of(objects), objects, '').reason}",
        )
        cache.start()
        with serving(
            figures, lambda: queue.is_well, lambda: queue.is_ready, port
        ) as bound:
            _log(session, "INFO", f"metrics and health on port {bound}")
            queue.run()
        cache.close()
        _log(session, "INFO", "ended")


def _release_all(
    objects: LiveObjects, leader: LeaderLease, gate: str, session: Session
) -> None:
    """Let everything go, unless a replica works."""
    from dralloc.live.batch import release_all
    from dralloc.live.batch.queue import runs_of

    if not leader.renew() and _is_there(objects, leader.key):
        raise DrallocError(
            f"--release-all: a replica holds the Lease {leader.key}: end all of them first"
        )
    count = release_all(
        objects, gate, lambda run: run.startswith(runs_of(leader.key))
    )
    leader.release()
    session.tell(
        f"released {count.pods} pods, lifted {count.fences} parts of fences"
    )


_NOT_FOUND: Final = 404


def _is_there(objects: LiveObjects, lease: ClaimKey) -> bool:
    """Return whether a Lease is there: with its namespace it may be gone, and held by nobody."""
    from dralloc.live.batch import LEASES
    from dralloc.live.snapshot import Refused

    try:
        objects.get(LEASES, lease)
    except Refused as refusal:
        return refusal.status != _NOT_FOUND
    return True


def _log(session: Session, level: str, line: str) -> None:
    time = (
        datetime.now(UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
    session.tell(f"{time} {level} {line}")
