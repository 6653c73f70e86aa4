"""``dralloc conformance``: recorded answers, asked again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dralloc.cli.console import Exit, Printing
from dralloc.cli.options import Form, Pruning
from dralloc.objects.choices import AllocatorName
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Line, Part, Table

if TYPE_CHECKING:
    from dralloc.lint.conformance.cases import Json
    from dralloc.lint.conformance.outcomes import CaseOutcome

__all__ = ["conformance_command"]

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
        str,
        typer.Option(metavar="NAME", help="Run only the case of this name."),
    ] = "",
    mode: Annotated[
        AllocatorName,
        typer.Option(help="Which mode answers about the allocator."),
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
            if session.form is Form.JSON:
                typer.echo(json.dumps(outcome.to_dict()))
    if not outcomes:
        raise DrallocError(
            f"no case is named {only!r}" if only else _no_cases(cases, kind)
        )
    if session.form is not Form.JSON:
        session.answer(Outcomes(outcomes))
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(Exit.FAILED)


def _no_cases(paths: Sequence[Path], kind: CaseKind | None) -> str:
    """Return what is missing, and where it was looked for."""
    looked_at = ", ".join(map(str, paths))
    cases = f"cases of kind {kind}" if kind else "recorded cases"
    return f"no {cases} in {looked_at}; directories are searched for *.jsonl, *.jsonl.gz and *.json.gz"


@dataclass(frozen=True)
class Outcomes:
    """What recorded cases came to, in every form but JSON, of which each case has a line."""

    outcomes: list[CaseOutcome]

    def parts(self) -> list[Part]:
        """Return how many pass, and how the first of the others differ."""
        return _parts(self.outcomes)

    def names(self) -> Iterable[str]:
        """Return the cases that do not pass."""
        failed = (case for case in self.outcomes if not case.passed)
        return (case.name for case in failed)

    def to_dict(self) -> dict[str, Any]:
        """Return all of them as plain data."""
        return {"outcomes": [case.to_dict() for case in self.outcomes]}


def _named(paths: list[Path]) -> Iterator[tuple[str, Json]]:
    from dralloc.lint.conformance.cases import read_lines

    for path in paths:
        files = (
            sorted((*path.rglob("*.jsonl*"), *path.rglob("*.json.gz")))
            if path.is_dir()
            else [path]
        )
        for file in files:
            name = (
                file.relative_to(path).as_posix()
                if path.is_dir()
                else file.name
            )
            for case_number, case in enumerate(read_lines(file), 1):
                location = (
                    name
                    if _kind(case) is CaseKind.SCHEDULER
                    else f"{name.removesuffix(file.suffix)}:{case_number}"
                )
                yield str(case.get("id") or case.get("name") or location), case


def _kind(case: Json) -> CaseKind:
    return next(
        (kind for kind, field in _FIELDS.items() if field in case),
        CaseKind.ALLOCATE,
    )


def _run(case: Json, mode: AllocatorName, *, pruning: bool) -> CaseOutcome:
    from dralloc.lint.conformance.allocation_answers import (
        run_first_fit,
        run_optimal,
    )
    from dralloc.lint.conformance.cases import read_allocation_case
    from dralloc.lint.conformance.cel_answers import run_cel
    from dralloc.lint.conformance.scheduler_answers import run_scheduler

    kind = _kind(case)
    try:
        if kind is not CaseKind.ALLOCATE:
            return (
                run_cel(case) if kind is CaseKind.CEL else run_scheduler(case)
            )
        read = read_allocation_case(case)
    except (AttributeError, KeyError, TypeError) as error:
        problem = (
            f"lacks {error}"
            if isinstance(error, KeyError)
            else f"has not the form of such a case ({error})"
        )
        raise DrallocError(
            f"case {case['name']} of kind {kind}: {problem}"
        ) from error
    return (
        run_optimal(read)
        if mode == "optimal"
        else run_first_fit(read, pruning=pruning)
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
