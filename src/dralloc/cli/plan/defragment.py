"""``dralloc plan defragment``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Gang, Nodes, Paths, SearchOptions

__all__ = ["MoveOptions", "defragment_command"]


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
