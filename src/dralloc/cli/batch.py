"""``dralloc batch``: a queue of pods, placed batch after batch."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final
from uuid import uuid4

import typer

from dralloc.cli.console import Session
from dralloc.cli.live_options import Live, question_of
from dralloc.cli.option_sets import SCHEDULER
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

if TYPE_CHECKING:
    from dralloc.live.batch import LeaderLease
    from dralloc.live.snapshot import LiveObjects

__all__ = ["batch_command"]


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
            help="This replica; by default the name of its host, and a random part.",
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
        # Two processes of one host are two replicas, as those of kube-scheduler are.
        name = identity or f"{socket.gethostname()}_{uuid4()}"
        leader = LeaderLease(objects, ClaimKey.parse(lease), name)
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
            question=question_of(mode, choices),
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
