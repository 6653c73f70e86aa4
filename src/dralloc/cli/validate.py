"""``dralloc validate``: what the API server would refuse, and what it accepts and will hurt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from dralloc.cli.console import Exit, Session, features_from, guarded
from dralloc.cli.options import AsJson, FeatureSwitches, KubernetesVersion, Paths, Quiet
from dralloc.errors import Level
from dralloc.report import Line, Part, Table, show

if TYPE_CHECKING:
    from dralloc.validate import Violation

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
    from dralloc.validate import RULES, as_sarif, validate_reading

    with guarded():
        session = Session(quiet=quiet)
        features = features_from(feature, kubernetes)
        with session.busy("checking"):
            found = validate_reading(read(*paths), features)
        shown = [violation for violation in found if violation.level.reaches(level)]
        if as_sarif_log:
            typer.echo(json.dumps(as_sarif(shown, RULES), indent=2))
        elif as_json:
            typer.echo(json.dumps([violation.to_dict() for violation in shown], indent=2))
        else:
            show(session.out, [*_tables(shown), Line(f"\n{_summary(found)}", "bold")])
        failing = Level.WARNING if strict else Level.ERROR
        failed = any(violation.level.reaches(failing) for violation in found)
        raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def _tables(violations: Sequence[Violation]) -> Iterator[Part]:
    """A line and a table for each object; titles of tables would be wrapped at their width."""
    for (source, subject), found in groupby(violations, lambda one: (one.source, one.subject)):
        title = ": ".join(part for part in (source, subject) if part)
        rows = [(str(one.level), one.path, one.message, one.rule) for one in found]
        yield Line(f"\n{title}", "bold")
        yield Table("", ("level", "path", "message", "rule"), rows)


def _summary(violations: Sequence[Violation]) -> str:
    counts = Counter(violation.level for violation in violations)
    parts = [f"{counts[level]} {_NAMES[level][counts[level] != 1]}" for level in Level]
    return ", ".join(parts)


_NAMES = {Level.ERROR: ("error", "errors"), Level.WARNING: ("warning", "warnings"), Level.INFO: ("remark", "remarks")}
