"""``dralloc plan defragment``."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Gang, Nodes, Paths, Search

__all__ = ["defragment_command"]


def defragment_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    moves: Annotated[int, typer.Option("--moves", min=0, metavar="K", help="Move at most so many claims.")],
    node: Nodes = None,
    gang: Gang = "",
    *,
    search: Search,
    session: Answers,
) -> None:
    """Find the few moves of allocated claims that admit the most of what is pending, in order."""
    rules, options = search.keywords(), search.options
    cluster = session.read(paths, search)
    with session.busy("looking for moves"):
        found = dralloc.defragment(cluster, moves, nodes=node or (), gang=gang, options=options, **rules)
    session.answer(found)
