"""What the studies share: options for what is wished, reading the cluster, showing the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from dralloc.cli.console import Session
from dralloc.cluster import Cluster
from dralloc.load import load
from dralloc.report import Part, show
from dralloc.whatif import Source, Wish

__all__ = ["Claims", "Pods", "Templates", "read", "show_answer", "wishes_from"]

Claims = Annotated[
    list[str] | None,
    typer.Option("--claim", metavar="NS/NAME[=N]", help="A claim or a template; may be given several times."),
]
Templates = Annotated[
    list[str] | None,
    typer.Option("--template", metavar="NS/NAME[=N]", help="A template; may be given several times."),
]
Pods = Annotated[
    list[str] | None,
    typer.Option("--pod", metavar="NS/NAME[=N]", help="A pod with its claims; may be given several times."),
]


class _Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

    def parts(self) -> list[Part]: ...


def wishes_from(
    claims: Sequence[str] | None, templates: Sequence[str] | None, pods: Sequence[str] | None
) -> list[Wish]:
    """What the options wish for, in that order; may be nothing."""
    given = ((Source.CLAIM, claims), (Source.TEMPLATE, templates), (Source.POD, pods))
    return [Wish.parse(text, source) for source, texts in given for text in texts or ()]


def read(session: Session, paths: list[Path], *, strict: bool) -> Cluster:
    """Load the cluster, and say what is remarkable about it."""
    with session.busy("reading"):
        cluster = load(*paths, strict=strict)
    session.notices(cluster.findings)
    return cluster


def show_answer(session: Session, answer: _Answer, *, as_json: bool) -> None:
    """Print the answer as tables, or as JSON."""
    if as_json:
        typer.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        show(session.out, answer.parts())
