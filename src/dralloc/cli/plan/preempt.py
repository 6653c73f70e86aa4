"""``dralloc plan preempt``."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.guard import Exit
from dralloc.cli.options import Paths
from dralloc.cli.plan.defragment import MoveOptions

__all__ = ["preempt_command"]


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
