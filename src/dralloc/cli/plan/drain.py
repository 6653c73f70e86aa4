"""``dralloc plan drain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.guard import Exit
from dralloc.cli.options import SearchOptions

__all__ = ["drain_command"]


def drain_command(
    nodes: Annotated[list[str], typer.Argument(metavar="NODE", help="The nodes to drain.", show_default=False)],
    filename: Annotated[
        list[Path],
        typer.Option(
            "--filename", "-f", metavar="PATH", help="File or directory with YAML or JSON; - reads standard input."
        ),
    ],
    options: SearchOptions,
    session: Answers,
) -> None:
    """Say where the claims of some nodes can go, or why they cannot. Exit code 1 if not all of them can."""
    choices = options.choices()
    cluster = session.read(filename, choices)
    with session.busy("draining"):
        found = dralloc.drain(cluster, *nodes, choices=choices)
    session.answer(found)
    if not found.possible:
        raise typer.Exit(Exit.FAILED)
