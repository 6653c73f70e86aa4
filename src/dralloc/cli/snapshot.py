"""``dralloc snapshot`` and ``dralloc redact``: a live cluster into a file, and names out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dralloc.cli.console import Session, guarded
from dralloc.cli.options import Paths, Quiet

if TYPE_CHECKING:
    from dralloc.snapshot import Snapshot

__all__ = ["redact", "snapshot"]

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write: YAML, or JSON if it is called *.json, packed with .gz; - is standard output.",
    ),
]
_STDOUT = Path("-")
_SHOWN = 20


def snapshot(  # noqa: PLR0913 - one parameter per option
    output: Output = _STDOUT,
    context: Annotated[str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of the usual kubeconfig.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only this namespace; may be given several times."),
    ] = None,
    redacted: Annotated[bool, typer.Option("--redact", help="Replace names, so that it can be shared.")] = False,
    quiet: Quiet = False,
) -> None:
    """Read what dralloc uses from a live cluster into a file."""
    from dralloc.snapshot import connect, take_snapshot

    with guarded():
        session = Session(quiet=quiet)
        with session.busy("connecting"), connect(kubeconfig, context) as server:
            found = take_snapshot(
                server,
                namespaces=namespace or (),
                progress=lambda kind, count: session.update(f"reading {kind}: {count:,}"),
            )
        _warn(session, found.warnings)
        _write(session, found, output, redacted=redacted)
        _tell(session, _counts(found))


def redact(paths: Paths, output: Output = _STDOUT, quiet: Quiet = False) -> None:
    """Replace the names in a cluster's objects, so that they can be shared and still give the same answer."""
    from dralloc.load import load_objects
    from dralloc.snapshot import is_read

    with guarded():
        session = Session(quiet=quiet)
        with session.busy("reading"):
            objects = load_objects(*paths)
        known = [one for one in objects if is_read(one)]
        others = Counter(str(one.get("kind")) for one in objects if not is_read(one))
        if others:
            kinds = ", ".join(f"{kind} ({number})" for kind, number in sorted(others.items()))
            _warn(session, [f"{others.total()} objects of kinds that dralloc does not read are left out: {kinds}"])
        _write(session, known, output, redacted=True)


def _write(session: Session, objects: Snapshot | list[dict[str, Any]], output: Path, *, redacted: bool) -> None:
    from dralloc.redact import plan_redaction
    from dralloc.save import save, write_objects

    with session.busy("writing"):
        redaction = plan_redaction(objects) if redacted else None
        written = map(redaction.apply, objects) if redaction else iter(objects)
        if output == _STDOUT:
            write_objects(written, typer.get_binary_stream("stdout"))
        else:
            save(written, output)
    if redaction:
        _warn(session, list(redaction.warnings()))


def _warn(session: Session, warnings: list[str]) -> None:
    _tell(session, (f"warning: {one}" for one in warnings[:_SHOWN]), "yellow")
    if len(warnings) > _SHOWN:
        _tell(session, [f"warning: and {len(warnings) - _SHOWN} more like these"], "yellow")


def _tell(session: Session, lines: Iterable[str], style: str | None = None) -> None:
    for line in () if session.quiet else lines:
        session.err.print(line, style=style, markup=False, soft_wrap=True)


def _counts(found: Snapshot) -> list[str]:
    kinds = [
        f"{kind} {kept:,}" if kept == read else f"{kind} {kept:,} of {read:,} (the others use no devices)"
        for kind, (kept, read) in found.counts.items()
    ]
    return [f"{len(found):,} objects: {', '.join(kinds)}"]
