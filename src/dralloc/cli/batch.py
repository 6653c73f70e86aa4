"""``dralloc batch``: a queue of pods, placed batch after batch."""

from __future__ import annotations

import signal
import socket
from threading import Event
from typing import Annotated

import typer

from dralloc.cli.console import Session
from dralloc.cli.live import Live, question_of
from dralloc.cli.options import SCHEDULER
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.names import ClaimKey

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
            min=0, max=65_535, help="Where /metrics and /healthz are; 0 for any."
        ),
    ] = 8080,
    *,
    live: Live,
    choices: Annotated[Choices, SCHEDULER],
    session: Session,
) -> None:
    """Place the pods that carry the gate, batch after batch, until it is stopped."""
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

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with live.server() as server:
        session.warn(server.warnings)
        versions = served(server)
        objects = LiveObjects(server.wire, {**versions, EVENTS: "v1", LEASES: "v1"})
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
            fence=lambda run: live.fence_for(objects, run),
            lease=LeaderLease(
                objects, ClaimKey.parse(lease), identity or socket.gethostname()
            ),
            notes=PodNotes(objects, "dralloc-batch"),
            figures=figures,
            interval=interval,
            at_least=at_least,
            say=session.tell,
            settle=live.settle,
            watch=live.watch,
        )
        cache.start()
        with serving(figures, lambda: queue.is_well, port) as bound:
            session.tell(f"metrics and health on port {bound}")
            queue.run(stop)
        cache.close()
