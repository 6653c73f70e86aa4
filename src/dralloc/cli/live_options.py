"""What commands that speak with a live cluster share: their options, and the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from dralloc.objects.choices import Choices, FenceKind, Mode
from dralloc.objects.errors import DrallocError, SnapshotError

if TYPE_CHECKING:
    from dralloc.live.apply import Question, Selection
    from dralloc.live.apply.choice import SchedulerProbe
    from dralloc.live.snapshot import LiveObjects
    from dralloc.live.snapshot.client import ApiServer

__all__ = ["Live", "ServerOptions", "question_of"]


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
        """The cluster of the kubeconfig; or, in a pod without one, that of the pod.

        Raises
        ------
        SnapshotError
            It cannot be read, or refuses what nobody goes on without.
        """
        from dralloc.live.snapshot import ReadLimits, Refused, connect

        with connect(
            self.kubeconfig, self.context, ReadLimits(seconds=self.timeout)
        ) as server:
            try:
                yield server
            except Refused as refusal:
                raise SnapshotError(f"{server.wire.host}: {refusal}") from None


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


def question_of(mode: Mode, choices: Choices) -> Question:
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
