"""``dralloc plan headroom``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Nodes, Paths, SearchOptions
from dralloc.cli.plan.mix_options import MixOptions
from dralloc.errors import DrallocError

__all__ = ["headroom_command"]


@dataclass(frozen=True)
class HeadroomOptions(SearchOptions):
    """What matters for headroom."""

    node: Nodes = None


def headroom_command(
    paths: Paths,
    mix: MixOptions,
    points: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most points to show of what fits together; 0 shows all.")
    ] = 25,
    *,
    options: HeadroomOptions,
    session: Answers,
) -> None:
    """Say how many more of a claim fit beside what is allocated; of two or three claims, also together."""
    entries = mix.entries()
    if not entries:
        raise DrallocError("say what is wanted: --claim, --template or --pod NAMESPACE/NAME")
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for headroom"):
        found = dralloc.headroom(cluster, *entries, points=points or None, choices=choices)
    session.answer(found)
