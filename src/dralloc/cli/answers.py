"""How nearly every command begins and ends: the cluster is read, and the answer shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

import dralloc
from dralloc.cli.console import Session
from dralloc.report import Part, show

if TYPE_CHECKING:
    from dralloc.cluster import Cluster

__all__ = ["read", "show_answer"]


class _Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

    def parts(self) -> list[Part]: ...


def read(session: Session, paths: list[Path], *, strict: bool) -> Cluster:
    """Load the cluster, and say what is remarkable about it."""
    with session.busy("reading"):
        cluster = dralloc.load(*paths, strict=strict)
    session.notices(cluster.findings)
    return cluster


def show_answer(session: Session, answer: _Answer, *, as_json: bool) -> None:
    """Print the answer as tables, or as JSON."""
    if as_json:
        typer.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        show(session.out, answer.parts())
