"""``dralloc validate``: what the API server would refuse, and what it accepts and will hurt."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dralloc.cli.console import Exit, Session, features_from, guarded
from dralloc.cli.options import AsJson, FeatureSwitches, KubernetesVersion, Paths, Quiet
from dralloc.errors import Level
from dralloc.report import Line, show

__all__ = ["validate"]

AsSarif = Annotated[bool, typer.Option("--sarif", help="Print SARIF 2.1.0, for code hosts and CI.")]
StrictLevel = Annotated[bool, typer.Option("--strict", help="Warnings count as failures, too.")]
Shown = Annotated[Level, typer.Option("--level", help="Leave out what is less bad than this.")]


def validate(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    as_json: AsJson = False,
    as_sarif_log: AsSarif = False,
    strict: StrictLevel = False,
    level: Shown = Level.INFO,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    quiet: Quiet = False,
) -> None:
    """Check objects as the API server does, and for what it cannot see."""
    from dralloc.load import read
    from dralloc.validate import RULES, Validation, as_sarif, validate_reading

    with guarded():
        session = Session(quiet=quiet)
        features = features_from(feature, kubernetes)
        with session.busy("checking"):
            found = validate_reading(read(*paths), features)
        shown = Validation(violation for violation in found if violation.level.reaches(level))
        if as_sarif_log:
            typer.echo(json.dumps(as_sarif(shown, RULES), indent=2))
        elif as_json:
            typer.echo(json.dumps([violation.to_dict() for violation in shown], indent=2))
        else:
            show(session.out, [*shown.tables(), Line(f"\n{found.headline}", "bold")])
        failing = Level.WARNING if strict else Level.ERROR
        failed = any(violation.level.reaches(failing) for violation in found)
        raise typer.Exit(Exit.FAILED if failed else Exit.DONE)
