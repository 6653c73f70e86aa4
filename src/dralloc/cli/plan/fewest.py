"""``dralloc plan fewest-nodes``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Paths, SearchOptions
from dralloc.cli.plan.mix_options import MixOptions
from dralloc.errors import DrallocError

__all__ = ["fewest_command"]


def fewest_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    mix: MixOptions,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NODE or NAME=LABEL=VALUE",
            help="A kind of node: a node to copy, or nodes with a label; several times. By default, all nodes.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None, typer.Option(metavar="KIND=AMOUNT", help="What a node of a kind costs; by default 1.")
    ] = None,
    *,
    options: SearchOptions,
    session: Answers,
) -> None:
    """Say how few empty nodes hold some claims, or all that is pending; with prices, which kinds are the cheapest."""
    from dralloc.whatif.node_types import parse_price

    entries, choices = mix.entries(), options.choices()
    kinds, prices = _kinds(kind or ()), dict(map(parse_price, price or ()))
    cluster = session.read(paths, choices)
    with session.busy("looking for the fewest nodes"):
        found = dralloc.fewest_nodes(cluster, *entries, kinds=kinds, prices=prices, choices=choices)
    session.answer(found)


def _kinds(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, _, what = text.partition("=")
        if not name or not what:
            raise DrallocError(f"--kind {text}: expected NAME=NODE or NAME=LABEL=VALUE")
        found[name] = what
    return found
