"""Single arguments and options that several commands share; `dralloc.cli.option_sets` has those that are choices."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from dralloc.objects.errors import DrallocError

__all__ = [
    "STDOUT",
    "AnyPaths",
    "AsJson",
    "Context",
    "Form",
    "Kubeconfig",
    "Limit",
    "Live",
    "Modes",
    "NoHeaders",
    "Output",
    "Paths",
    "PlanFile",
    "Pruning",
    "Quiet",
    "Seeds",
    "by_name",
    "require_file",
]


T = TypeVar("T")


def require_file(option: str, path: Path | None) -> None:
    """Refuse standard output where only files are written: a file would get its name.

    Raises
    ------
    DrallocError
        The path stands for standard output.
    """
    if path == STDOUT:
        raise DrallocError(
            f"{option} -: this is written to a file, and not to standard output"
        )


def by_name(option: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return what an option that may be given several times says of each name.

    Raises
    ------
    DrallocError
        It is given twice for one name: one of the two would be lost without a word.
    """
    said: dict[str, T] = {}
    for name, value in pairs:
        if name in said:
            raise DrallocError(f"{option} {name}: is given twice")
        said[name] = value
    return said


class Form(StrEnum):
    """Forms of an answer."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


STDOUT: Final = Path("-")
"""As a file to write: standard output."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as -o json.")]
Output = Annotated[
    Form,
    typer.Option(
        "--output",
        "-o",
        help="A table; a wide one, with more; names alone; JSON; or YAML, of a plan the ResourceClaims with their new "
        "status.",
    ),
]
NoHeaders = Annotated[
    bool,
    typer.Option(
        "--no-headers", help="Print rows only, without titles and column heads."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Context of the kubeconfig; with --live."
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Instead of the usual kubeconfig; with --live."
    ),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Read the cluster of your kubeconfig, too; paths then override what it has.",
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Start from a plan, as if it were carried out: what dralloc allocate printed with -o json"
        " (or -o yaml).",
        show_default=False,
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=AMOUNT",
        help="Raise a limit on what small inputs expand to: pods made for owners (pods=200k), bytes of"
        " an unpacked file (unpacked=512Mi), characters that YAML aliases stand for "
        "(aliases=10M); may be given several times.",
        show_default=False,
    ),
]
Modes = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="What to compare, with commas: first-fit, scheduler, optimal, or policies such as best-fit.",
    ),
]
AnyPaths = Annotated[
    list[Path],
    typer.Argument(
        default_factory=list,
        metavar="PATH",
        help="Files or directories with YAML or JSON; - reads standard input. Later ones override earlier ones.",
        show_default=False,
    ),
]
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Files or directories with YAML or JSON; - reads standard input.",
        show_default=False,
    ),
]
Pruning = Annotated[
    bool,
    typer.Option(
        "--pruning/--no-pruning",
        help="Whether first fit skips what cannot change its answer; with --no-pruning, it takes all "
        "of upstream's steps.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress and no notices, only the answer."
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="How many seeds to ask the scheduler with."
    ),
]
