"""``dralloc conformance``: recorded answers, asked again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dralloc.cli.console import Exit, Session, guarded
from dralloc.cli.options import AsJson, Pruning, Quiet
from dralloc.conformance import (
    Json,
    Outcome,
    read_allocation_case,
    read_lines,
    run_cel,
    run_first_fit,
    run_optimal,
)
from dralloc.plan import Mode
from dralloc.report import Line, Part, Table, show

__all__ = ["conformance"]

_SHOWN = 50


class Kind(StrEnum):
    """What the cases record."""

    ALLOCATE = "allocate"
    CEL = "cel"


def conformance(  # noqa: PLR0913 - one parameter per option
    cases: Annotated[list[Path], typer.Argument(help="Recorded cases, one JSON object per line; .gz is fine.")],
    kind: Annotated[Kind, typer.Option(help="What the cases record.")] = Kind.ALLOCATE,
    only: Annotated[str, typer.Option(metavar="NAME", help="Run only the case of this name.")] = "",
    mode: Annotated[Mode, typer.Option(help="Which mode answers.")] = Mode.FIRST_FIT,
    pruning: Pruning = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run recorded cases of upstream and report which answers are the same."""
    with guarded():
        session = Session(quiet=quiet)
        run = _runner(kind, mode, pruning=pruning)
        outcomes = []
        with session.busy("running cases"):
            for outcome in _outcomes(cases, only, run):
                outcomes.append(outcome)
                if as_json:
                    typer.echo(json.dumps(_as_dict(outcome)))
        if not outcomes:
            typer.echo(f"error: no case is named {only!r}" if only else "error: no cases", err=True)
            raise typer.Exit(Exit.INPUT)
        if not as_json:
            show(session.out, _parts(outcomes))
        raise typer.Exit(Exit.DONE if all(outcome.passed for outcome in outcomes) else Exit.FAILED)


def _runner(kind: Kind, mode: Mode, *, pruning: bool) -> Callable[[Json], Outcome]:
    if kind is Kind.CEL:
        return run_cel
    if mode is Mode.OPTIMAL:
        return lambda case: run_optimal(read_allocation_case(case))
    return lambda case: run_first_fit(read_allocation_case(case), pruning=pruning)


def _outcomes(paths: list[Path], only: str, run: Callable[[Json], Outcome]) -> Iterator[Outcome]:
    for path in paths:
        for number, case in enumerate(read_lines(path), 1):
            name = str(case.get("id") or case.get("name") or f"{path.stem}:{number}")
            if only in ("", name):
                yield run({"name": name, **case})


def _as_dict(outcome: Outcome) -> Json:
    return {
        "name": outcome.name,
        "profile": outcome.profile,
        "pass": outcome.passed,
        "actual": outcome.actual,
        "difference": outcome.difference or None,
    }


def _parts(outcomes: list[Outcome]) -> list[Part]:
    total = Counter(outcome.profile for outcome in outcomes)
    passed = Counter(outcome.profile for outcome in outcomes if outcome.passed)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    rows = [
        (profile, str(passed[profile]), str(count), f"{100 * passed[profile] / count:.1f}%")
        for profile, count in total.items()
    ]
    parts: list[Part] = [
        Line(f"{sum(passed.values())} of {len(outcomes)} cases pass", "bold"),
        Table("Profiles", ("profile", ">pass", ">of", ">share"), rows),
        Table("First differences", ("case", "difference"), [(one.name, one.difference) for one in failed[:_SHOWN]]),
    ]
    if len(failed) > _SHOWN:
        parts.append(Line(f"and {len(failed) - _SHOWN} more; --json lists all"))
    return parts
