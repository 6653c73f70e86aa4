"""``dralloc explain``: why a claim is pending, and what would change that."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.choices import ModeName
from dralloc.cli.console import Answers
from dralloc.cli.options import BindingOptions, Paths

__all__ = ["explain_command"]


def explain_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The claim to explain.")] = None,
    pod: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The pod to explain.")] = None,
    mode: Annotated[ModeName, typer.Option(help="Whose answer to explain.")] = "first-fit",
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Show the reasons of this node; may be given several times."),
    ] = None,
    no_changes: Annotated[
        bool, typer.Option("--no-changes", help="Only reasons: look for no conflict and no changes.")
    ] = False,
    *,
    options: BindingOptions,
    session: Answers,
) -> None:
    """Say why a claim is pending, with what it conflicts, and which changes would admit it."""
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy("explaining"):
        found = dralloc.explain(
            cluster, claim, pod, mode=mode, nodes=node or (), suggest=not no_changes, choices=choices
        )
    session.answer(found)
