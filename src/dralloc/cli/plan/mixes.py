"""``dralloc plan headroom``, ``fewest-nodes`` and ``partition-layout``: what a mix of claims fits on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Nodes, Paths, SearchOptions
from dralloc.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.whatif import MixEntry

__all__ = ["fewest_command", "headroom_command", "layout_command"]


@dataclass(frozen=True)
class MixOptions:
    """Claims, templates and pods, in this order; may be nothing."""

    claim: Annotated[
        list[str] | None,
        typer.Option(metavar="NS/NAME[=N]", help="A claim or a template; may be given several times."),
    ] = None
    template: Annotated[
        list[str] | None, typer.Option(metavar="NS/NAME[=N]", help="A template; may be given several times.")
    ] = None
    pod: Annotated[
        list[str] | None, typer.Option(metavar="NS/NAME[=N]", help="A pod with its claims; may be given several times.")
    ] = None

    def entries(self) -> list[MixEntry]:
        """What the options name."""
        from dralloc.whatif import MixEntry, Source

        given = ((Source.CLAIM, self.claim), (Source.TEMPLATE, self.template), (Source.POD, self.pod))
        return [MixEntry.parse(text, source) for source, texts in given for text in texts or ()]


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


def layout_command(paths: Paths, mix: MixOptions, options: SearchOptions, session: Answers) -> None:
    """Say which fixed partitions per GPU serve some claims best, or all that is pending, and what that loses."""
    entries, choices = mix.entries(), options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for layouts"):
        found = dralloc.partition_layout(cluster, *entries, choices=choices)
    session.answer(found)
