"""``dralloc study``: many seeds, demands and modes, as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

import dralloc
from dralloc.cli.console import Reader
from dralloc.cli.options import STDOUT, STUDY, Paths
from dralloc.objects.choices import MAX_SEED, Choices
from dralloc.objects.errors import DrallocError

__all__ = ["study_command"]

T = TypeVar("T")

_MODES: Final = ("first-fit", "best-fit", "optimal")

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write the CSV; finished rows are kept in FILE.jsonl, and a study that was killed goes on. "
        "- is standard output, and nothing is kept.",
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
            help="What to compare: optimal, and policies; another name lists them all.",
        ),
    ] = ",".join(_MODES),
    demand: Annotated[
        str,
        typer.Option(
            metavar="X,Y",
            help="How many times as many pods and claims to place, e.g. 0.9,1.0,1.1.",
        ),
    ] = "1.0",
    output: Output = STDOUT,
    *,
    choices: Annotated[Choices, STUDY],
    session: Reader,
) -> None:
    """Answer for many seeds, demands and modes, and write a table."""
    from dralloc.objects.save import write_text

    to_file = output != STDOUT
    with session.counting("study") as progress:
        table = dralloc.study(
            paths,
            seeds=seeds,
            modes=_split(modes, str),
            demand=_split(demand, float),
            store=output.with_name(f"{output.name}.jsonl") if to_file else None,
            limits=session.limits,
            progress=partial(progress, "study"),
            choices=choices,
        )
    text = table.to_csv(index=False)
    if to_file:
        write_text(text, output)
    else:
        typer.echo(text, nl=False)


def _split(text: str, kind: Callable[[str], T]) -> Sequence[T]:
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise DrallocError(
            f"{text}: expected numbers with commas between them"
        ) from None
