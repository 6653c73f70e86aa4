"""``dralloc batch``: a queue of pods, placed batch after batch."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dralloc.cli.console import Session
from dralloc.cli.live import Live, question_of
from dralloc.cli.options import SCHEDULER
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

if TYPE_CHECKING:
    from dralloc.live.batch import LeaderLease
    from dralloc.live.snapshot import LiveObjects

__all__ = ["batch_command"]


def batch_command(  # noqa: PLR0913 - one parameter per option
    mode: Annotated[Mode, typer.Option(help="How batches are planned.")] = Mode.OPTIMAL,
    interval: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Place what waits after this time, however little.",
        ),
    ] = 60,
    at_least: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Place at once when so many new pods wait."
        ),
    ] = 100,
    lease: Annotated[
        str,
        typer.Option(
            metavar="NS/NAME", help="The Lease that one of several replicas holds."
        ),
    ] = "dralloc-system/dralloc-batch",
    identity: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="This replica; by default the name of its host."
        ),
    ] = "",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            help="Where /metrics, /healthz and /readyz are; 0 for any.",
        ),
    ] = 8080,
    release_all: Annotated[
        bool,
        typer.Option(
            "--release-all",
            help="Only take the gate from all pods that carry it, and lift what the queue has fenced.",
        ),
    ] = False,
    *,
    live: Live,
    choices: Annotated[Choices, SCHEDULER],
    session: Session,
) -> None:
    """Place the pods that carry the gate, batch after batch, until it is stopped."""
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
        objects = LiveObjects(server.wire, {**versions, EVENTS: "v1", LEASES: "v1"})
        leader = LeaderLease(
            objects, ClaimKey.parse(lease), identity or socket.gethostname()
        )
        if release_all:
            _release_all(objects, leader, live.gate, session)
            return
        cache = WatchCache(
            LiveObjects(
                server.wire,
                {one: versions[one] for one in LISTED_KINDS if one in versions},
            )
        )
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
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: queue.stop())
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

    if not leader.renew():
        raise DrallocError(
            f"--release-all: a replica holds the Lease {leader.key}: end all of them first"
        )
    count = release_all(objects, gate, lambda run: run.startswith(runs_of(leader.key)))
    leader.release()
    session.tell(f"released {count.pods} pods, lifted {count.fences} parts of fences")


def _log(session: Session, level: str, line: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    session.tell(f"{now} {level} {line}")
