"""``dralloc validate``: what the API server would refuse, and what it accepts and will hurt."""

from __future__ import annotations

from typing import Annotated

import typer

from dralloc.cli.console import Printing
from dralloc.cli.guard import Exit
from dralloc.cli.options import GATES, Paths
from dralloc.objects.choices import Choices
from dralloc.objects.errors import Level
from dralloc.objects.report import Line

__all__ = ["validate_command"]


def validate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    sarif: Annotated[
        bool, typer.Option("--sarif", help="Print SARIF 2.1.0, for code hosts and CI.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings count as failures, too.")
    ] = False,
    level: Annotated[
        Level, typer.Option(help="Leave out what is less bad than this.")
    ] = Level.INFO,
    *,
    choices: Annotated[Choices, GATES],
    session: Printing,
) -> None:
    """Check objects as the API server does, and for what it cannot see."""
    from dralloc.lint.validate import RULES, Validation, as_sarif, validate_reading
    from dralloc.objects.load import read

    with session.busy("checking"):
        found = validate_reading(
            read(*paths, limits=session.limits), choices.features, choices.kubernetes
        )
    shown = Validation(
        violation for violation in found if violation.level.reaches(level)
    )
    if sarif:
        session.print_json(as_sarif(shown, RULES))
    elif session.as_json:
        session.print_json(shown.to_dict())
    else:
        session.show([*shown.tables(), Line(f"\n{found.headline}", "bold")])
    failing = Level.WARNING if strict else Level.ERROR
    if any(violation.level.reaches(failing) for violation in found):
        raise typer.Exit(Exit.FAILED)
