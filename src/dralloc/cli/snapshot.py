"""``dralloc snapshot`` and ``dralloc redact``: a live cluster into a file, and names out of it."""

from __future__ import annotations

import sys
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dralloc.cli.console import Reader, Session
from dralloc.cli.live_options import ServerOptions
from dralloc.cli.options import STDOUT, Paths

if TYPE_CHECKING:
    from dralloc.live.snapshot import ClusterSnapshot

__all__ = ["redact_command", "snapshot_command"]

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
    from dralloc.objects.save import require_writable

    if to != STDOUT:
        require_writable(to)
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
    from dralloc.objects.api.known_kinds import model_of
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
            # Whoever closes the standard output wants no output at all.
            if sys.stdout is not None:
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
