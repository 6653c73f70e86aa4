"""The commands that hold things against rules and records: ``dralloc validate`` and ``dralloc conformance``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dralloc.cli.console import Exit, Printing
from dralloc.cli.options import GATES, Paths, Pruning
from dralloc.objects.choices import AllocatorName, Choices
from dralloc.objects.errors import DrallocError, Level
from dralloc.objects.report import Line, Part, Table

if TYPE_CHECKING:
    from dralloc.lint.conformance import CaseOutcome, Json

__all__ = ["conformance_command", "validate_command"]

# ----------------------------------------------------------------------------
# ``dralloc validate``: what the API server would refuse, and what it accepts and will
# hurt.


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
        validation = validate_reading(
            read(*paths, limits=session.limits), choices.features, choices.kubernetes
        )
    shown = Validation(
        violation for violation in validation if violation.level.reaches(level)
    )
    if sarif:
        session.print_json(as_sarif(shown, RULES))
    elif session.as_json:
        session.print_json(shown.to_dict())
    else:
        session.show([*shown.tables(), Line(f"\n{validation.headline}", "bold")])
    failing = Level.WARNING if strict else Level.ERROR
    if any(violation.level.reaches(failing) for violation in validation):
        raise typer.Exit(Exit.FAILED)


# ----------------------------------------------------------------------------
# ``dralloc conformance``: recorded answers, asked again.

_SHOWN = 50


class CaseKind(StrEnum):
    """What the cases record."""

    ALLOCATE = "allocate"
    CEL = "cel"
    SCHEDULER = "scheduler"


_FIELDS: Final = {CaseKind.CEL: "expression", CaseKind.SCHEDULER: "attempts"}
"""Fields by which cases are told apart."""


def conformance_command(  # noqa: PLR0913 - one parameter per option
    cases: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files with recorded cases or runs of kube-scheduler, one JSON object per line, also .gz; or "
            "directories with such files, at any depth.",
        ),
    ],
    kind: Annotated[
        CaseKind | None, typer.Option(help="Run only cases of this kind.")
    ] = None,
    only: Annotated[
        str, typer.Option(metavar="NAME", help="Run only the case of this name.")
    ] = "",
    mode: Annotated[
        AllocatorName, typer.Option(help="Which mode answers about the allocator.")
    ] = "first-fit",
    pruning: Pruning = True,
    *,
    session: Printing,
) -> None:
    """Run recorded cases of upstream and report which answers are the same."""
    outcomes = []
    with session.busy("running cases"):
        for name, case in _named(cases):
            if only not in ("", name) or kind not in (None, _kind(case)):
                continue
            outcome = _run({"name": name, **case}, mode, pruning=pruning)
            outcomes.append(outcome)
            if session.as_json:
                typer.echo(json.dumps(outcome.to_dict()))
    if not outcomes:
        raise DrallocError(
            f"no case is named {only!r}" if only else "there are no cases"
        )
    if not session.as_json:
        session.show(_parts(outcomes))
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(Exit.FAILED)


def _named(paths: list[Path]) -> Iterator[tuple[str, Json]]:
    from dralloc.lint.conformance import read_lines

    for path in paths:
        files = (
            sorted((*path.rglob("*.jsonl*"), *path.rglob("*.json.gz")))
            if path.is_dir()
            else [path]
        )
        for file in files:
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            for number, case in enumerate(read_lines(file), 1):
                place = (
                    name
                    if _kind(case) is CaseKind.SCHEDULER
                    else f"{name.removesuffix(file.suffix)}:{number}"
                )
                yield str(case.get("id") or case.get("name") or place), case


def _kind(case: Json) -> CaseKind:
    return next(
        (kind for kind, field in _FIELDS.items() if field in case), CaseKind.ALLOCATE
    )


def _run(case: Json, mode: AllocatorName, *, pruning: bool) -> CaseOutcome:
    from dralloc.lint.conformance import (
        read_allocation_case,
        run_cel,
        run_first_fit,
        run_optimal,
        run_scheduler,
    )

    kind = _kind(case)
    try:
        if kind is not CaseKind.ALLOCATE:
            return run_cel(case) if kind is CaseKind.CEL else run_scheduler(case)
        read = read_allocation_case(case)
    except (AttributeError, KeyError, TypeError) as error:
        problem = (
            f"lacks {error}"
            if isinstance(error, KeyError)
            else f"has not the form of such a case ({error})"
        )
        raise DrallocError(f"case {case['name']} of kind {kind}: {problem}") from error
    return (
        run_optimal(read) if mode == "optimal" else run_first_fit(read, pruning=pruning)
    )


def _parts(outcomes: list[CaseOutcome]) -> list[Part]:
    total = Counter(outcome.profile for outcome in outcomes)
    passed = Counter(outcome.profile for outcome in outcomes if outcome.passed)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    rows = [
        (
            profile,
            str(passed[profile]),
            str(count),
            f"{100 * passed[profile] / count:.1f}%",
        )
        for profile, count in total.items()
    ]
    parts: list[Part] = [
        Line(f"{sum(passed.values())} of {len(outcomes)} cases pass", "bold"),
        Table("Profiles", ("profile", ">pass", ">of", ">share"), rows),
        Table(
            "First differences",
            ("case", "difference"),
            [(outcome.name, outcome.difference) for outcome in failed[:_SHOWN]],
        ),
    ]
    if len(failed) > _SHOWN:
        parts.append(Line(f"and {len(failed) - _SHOWN} more; --json lists all"))
    return parts
