"""``dralloc capacity``: how much there is, and how much of it is left."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import READ, AnyPaths
from dralloc.objects.choices import Choices

__all__ = ["capacity_command"]


def capacity_command(
    paths: AnyPaths,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="An attribute that tells products apart, e.g. productName; may be given several times. By default "
            "what drivers usually call it.",
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Say how many devices there are, in use, free and held back, by product and node, and how much of counters."""
    with session.asking(paths, choices, "counting devices") as cluster:
        found = dralloc.capacity(cluster, by=by or (), choices=choices)
    session.answer(found)
