"""``dralloc study``: many seeds, demands and modes, as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

import dralloc
from dralloc.cli.console import Checks
from dralloc.cli.option_sets import STUDY
from dralloc.cli.options import STDOUT, Paths
from dralloc.cli.rows import Rows
from dralloc.objects.choices import MAX_SEED, Choices
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Part, Table, counted

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["study_command"]

T = TypeVar("T")

_MODES: Final = ("first-fit", "best-fit", "optimal")

Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        help="Where to write the rows as CSV. Finished rows are kept in FILE.jsonl, from which an "
        "interrupted study goes on. - is standard output, and keeps nothing.",
        show_default=False,
    ),
]


def study_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_SEED, metavar="N", help="How many seeds: 0, 1, ..."
        ),
    ] = 1,
    modes: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="What to compare: scheduler, optimal, and policies; another name lists them all.",
        ),
    ] = ",".join(_MODES),
    demand: Annotated[
        str,
        typer.Option(
            metavar="X,Y",
            help="By which factors to multiply pods and claims, e.g. 0.9,1.0,1.1.",
        ),
    ] = "1.0",
    to: Target = None,
    *,
    choices: Annotated[Choices, STUDY],
    session: Checks,
) -> None:
    """Compare modes over many seeds and levels of demand, as a table."""
    from dralloc.objects.save import require_writable, write_text

    file = None if to == STDOUT else to
    if to == STDOUT:
        session.require_own_form("--to -")
    if file:
        require_writable(file)
    with session.counting("study") as progress:
        table = dralloc.study(
            paths,
            seeds=seeds,
            modes=_split(modes, str),
            demand=_split(demand, float),
            store=file.with_name(f"{file.name}.jsonl") if file else None,
            limits=session.limits,
            progress=partial(progress, "study"),
            choices=choices,
        )
    if to == STDOUT:
        typer.echo(table.to_csv(index=False), nl=False)
        return
    if file:
        write_text(table.to_csv(index=False), file)
        session.tell(f"{file}: {counted(len(table), 'answer')}")
        return
    session.answer(Rows(lambda: _tables(table), {"answers": table}))


def _tables(rows: DataFrame) -> list[Part]:
    """Return what was placed by seed, demand and mode; for those who want to see more, with all figures."""
    details = ("seconds.", "utilisation.")
    columns = [name for name in rows if not str(name).startswith(details)]
    return [
        replace(_table(rows[columns]), title="Placed"),
        replace(_table(rows), title="All figures", wide=True),
    ]


def _table(frame: DataFrame) -> Table:
    """Return rows as a table, with numbers as short as they can be told apart."""
    from pandas.api.types import is_numeric_dtype

    columns = [
        f">{name}" if is_numeric_dtype(kind) else str(name)
        for name, kind in frame.dtypes.items()
    ]
    rows = [
        list(map(_cell, row))
        for row in frame.itertuples(index=False, name=None)
    ]
    return Table("", columns, rows)


def _cell(value: Any) -> str:
    from pandas import isna

    if isna(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _split(text: str, kind: Callable[[str], T]) -> Sequence[T]:
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise DrallocError(
            f"{text}: expected numbers with commas between them"
        ) from None
