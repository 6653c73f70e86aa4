"""``dralloc snapshot`` and ``dralloc redact``: a live cluster into a file, and names out of it."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dralloc.cli.console import Reader, Session
from dralloc.cli.live import ServerOptions
from dralloc.cli.options import STDOUT, Paths

if TYPE_CHECKING:
    from dralloc.live.snapshot import ClusterSnapshot

__all__ = ["redact_command", "snapshot_command"]

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write: YAML, or JSON if it is called *.json, packed with .gz; - is standard output.",
    ),
]


def snapshot_command(
    output: Output = STDOUT,
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
        bool, typer.Option("--redact", help="Replace names, so that it can be shared.")
    ] = False,
    *,
    live: ServerOptions,
    session: Session,
) -> None:
    """Read what dralloc uses from a live cluster into a file."""
    from dralloc.live.snapshot import take_snapshot

    with session.busy("connecting"), live.server() as server:
        found = take_snapshot(
            server,
            namespaces=namespace or (),
            progress=lambda kind, count: session.update(f"reading {kind}: {count:,}"),
        )
    session.warn(found.warnings)
    _write(session, found, output, redacted=redacted)
    session.tell(_counts(found))


def redact_command(paths: Paths, session: Reader, output: Output = STDOUT) -> None:
    """Replace the names in a cluster's objects, so that they can be shared and still give the same answer."""
    from dralloc.objects.api.reading import model_of
    from dralloc.objects.load import load_objects

    with session.busy("reading"):
        objects = load_objects(*paths, limits=session.limits)
    known = [one for one in objects if model_of(one) is not None]
    others = Counter(str(one.get("kind")) for one in objects if model_of(one) is None)
    if others:
        kinds = ", ".join(
            f"{kind} ({number})" for kind, number in sorted(others.items())
        )
        session.warn(
            [
                f"{others.total()} objects of kinds that dralloc does not read are left out: {kinds}"
            ]
        )
    _write(session, known, output, redacted=True)


def _write(
    session: Session,
    objects: ClusterSnapshot | list[dict[str, Any]],
    output: Path,
    *,
    redacted: bool,
) -> None:
    from dralloc.objects.redact import plan_redaction
    from dralloc.objects.save import save, write_objects

    with session.busy("writing"):
        redaction = plan_redaction(objects) if redacted else None
        written = map(redaction.apply, objects) if redaction else iter(objects)
        if output == STDOUT:
            whole = BytesIO()  # all of it or nothing, here too
            write_objects(written, whole)
            typer.get_binary_stream("stdout").write(whole.getbuffer())
        else:
            save(written, output)
    if redaction:
        session.warn(redaction.warnings())


def _counts(found: ClusterSnapshot) -> str:
    kinds = [
        f"{kind} {kept:,}"
        if kept == read
        else f"{kind} {kept:,} of {read:,} (the others use no devices)"
        for kind, (kept, read) in found.counts.items()
    ]
    return f"{len(found):,} objects: {', '.join(kinds)}"
