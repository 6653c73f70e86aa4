"""``dralloc validate``: what the API server would refuse, and what it accepts and will hurt.

Beside ``dralloc conformance``, the command that holds things against rules and records.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dralloc.cli.console import Checks, Exit
from dralloc.cli.option_sets import GATES
from dralloc.cli.options import Form, Paths
from dralloc.objects.choices import Choices
from dralloc.objects.errors import Level
from dralloc.objects.report import Line

__all__ = ["validate_command"]


def validate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    sarif: Annotated[
        bool,
        typer.Option(
            "--sarif", help="Print SARIF 2.1.0, for code hosts and CI."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings count as failures, too.")
    ] = False,
    level: Annotated[
        Level, typer.Option(help="Hide what is less severe than this.")
    ] = Level.INFO,
    *,
    choices: Annotated[Choices, GATES],
    session: Checks,
) -> None:
    """Check objects as the API server does, and for problems that it cannot see."""
    from dralloc.lint.validate import (
        RULES,
        Validation,
        as_sarif,
        validate_reading,
    )
    from dralloc.objects.load import read

    if sarif:
        session.require_own_form("--sarif")
    with session.busy("checking"):
        reading = read(*paths, limits=session.limits)
        validation = validate_reading(
            reading, choices.features, choices.kubernetes
        )
    session.warn(reading.left_out)
    shown = Validation(
        violation for violation in validation if violation.level.reaches(level)
    )
    if sarif:
        session.print_json(as_sarif(shown, RULES))
    elif session.form is Form.TABLE:
        session.print_lines(shown.lines())
        if not session.no_headers:
            session.show([Line(validation.headline, "bold")])
    elif session.form is Form.WIDE:
        _, *tables = shown.parts()
        # What is hidden counts, too, as without -o wide.
        session.show_tables([Line(validation.headline, "bold"), *tables])
    else:
        session.answer(shown)
    failing = Level.WARNING if strict else Level.ERROR
    if any(violation.level.reaches(failing) for violation in validation):
        raise typer.Exit(Exit.FAILED)
