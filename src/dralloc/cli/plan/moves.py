"""``dralloc plan defragment``, ``drain`` and ``preempt``: who moves or goes, so that others can come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.guard import Exit
from dralloc.cli.options import Gang, Nodes, Paths, SearchOptions

__all__ = ["defragment_command", "drain_command", "preempt_command"]


@dataclass(frozen=True)
class MoveOptions(SearchOptions):
    """What matters for moves."""

    node: Nodes = None
    gang: Gang = ""


def defragment_command(
    paths: Paths,
    moves: Annotated[int, typer.Option("--moves", min=0, metavar="K", help="Move at most so many claims.")],
    options: MoveOptions,
    session: Answers,
) -> None:
    """Find the few moves of allocated claims that admit the most of what is pending, in order."""
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for moves"):
        found = dralloc.defragment(cluster, moves, choices=choices)
    session.answer(found)


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


def preempt_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The claim to admit.")] = None,
    pod: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The pod to admit, with its gang.")] = None,
    cost: Annotated[
        str,
        typer.Option(
            metavar="pods|priority|ANNOTATION",
            help="Evict the fewest pods, the fewest of the highest priorities, or those with the smallest sum of an "
            "annotation.",
        ),
    ] = "pods",
    *,
    options: MoveOptions,
    session: Answers,
) -> None:
    """Say which pods of lower priority to evict for a claim or pod. Exit code 1 if that does not help."""
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for victims"):
        found = dralloc.preempt(cluster, claim, pod, cost=cost, choices=choices)
    session.answer(found)
    if not found.possible:
        raise typer.Exit(Exit.FAILED)
