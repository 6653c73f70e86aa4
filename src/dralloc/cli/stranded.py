"""``dralloc stranded``: free capacity that is of no use, and why."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Paths, ReadOptions

__all__ = ["stranded_command"]


def stranded_command(
    paths: Paths,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or template of the mix; may be given several times. By default the pending claims.",
        ),
    ] = None,
    *,
    options: ReadOptions,
    session: Answers,
) -> None:
    """Say which free capacity a mix of claims cannot use, by pool and by kind of node, and what strands it."""
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking at what is free"):
        found = dralloc.stranded(cluster, claim or (), choices=choices)
    session.answer(found)
