"""``dralloc plan``: the commands that ask what if."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import dralloc
from dralloc.cli.completion import names_of
from dralloc.cli.console import Answers
from dralloc.cli.option_sets import ANSWER, SCHEDULER, SEARCH
from dralloc.cli.options import AnyPaths, by_name
from dralloc.objects.choices import Choices
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.ask.whatif import MixEntry

__all__ = ["PLANS"]


@dataclass(frozen=True)
class MixOptions:
    """Claims, templates and pods, in this order; may be nothing."""

    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or a template; may be given several times.",
            autocompletion=names_of("claims", "templates"),
        ),
    ] = None
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A template; may be given several times.",
            autocompletion=names_of("templates"),
        ),
    ] = None
    pod: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A pod with its claims; may be given several times.",
            autocompletion=names_of("pods"),
        ),
    ] = None

    def entries(self) -> list[MixEntry]:
        """Return what the options name."""
        from dralloc.ask.whatif import MixEntry, Source

        named = (
            (Source.CLAIM, self.claim),
            (Source.TEMPLATE, self.template),
            (Source.POD, self.pod),
        )
        return [
            MixEntry.parse(text, source)
            for source, texts in named
            for text in texts or ()
        ]


_HEADROOM: Final = {**SEARCH, "node": ANSWER["node"]}


def headroom_command(
    paths: AnyPaths,
    mix: MixOptions,
    points: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="How many points of what fits together to show at most; 0 shows all.",
        ),
    ] = 25,
    *,
    choices: Annotated[Choices, _HEADROOM],
    session: Answers,
) -> None:
    """Count how many more of a claim fit; of two or three claims, also how many fit together."""
    entries = mix.entries()
    if not entries:
        raise DrallocError(
            "say what is wanted: --claim, --template or --pod NAMESPACE/NAME"
        )
    with session.asking(paths, choices, "looking for headroom") as cluster:
        answer = dralloc.headroom(
            cluster, *entries, points=points or None, choices=choices
        )
    session.answer(answer)


def fewest_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    mix: MixOptions,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NODE or NAME=LABEL=VALUE",
            help="A kind of node: a node to copy, or nodes with a label; several times. By default, all nodes.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=AMOUNT",
            help="What a node of a kind costs; by default 1.",
        ),
    ] = None,
    *,
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Find the fewest empty nodes that hold some claims, or all that is pending; with prices, the cheapest kinds."""
    from dralloc.ask.whatif.node_types import parse_price

    entries, kinds, prices = (
        mix.entries(),
        by_name("--kind", map(_kind, kind or ())),
        by_name("--price", map(parse_price, price or ())),
    )
    with session.asking(
        paths, choices, "looking for the fewest nodes"
    ) as cluster:
        answer = dralloc.fewest_nodes(
            cluster, *entries, kinds=kinds, prices=prices, choices=choices
        )
    session.answer(answer)


def _kind(text: str) -> tuple[str, str]:
    name, _, node_or_label = text.partition("=")
    if not name or not node_or_label:
        raise DrallocError(
            f"--kind {text}: expected NAME=NODE or NAME=LABEL=VALUE"
        )
    return name, node_or_label


def layout_command(
    paths: AnyPaths,
    mix: MixOptions,
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Find the fixed partitions of each GPU that serve some claims, or all that is pending, best, and what is lost."""
    with session.asking(paths, choices, "looking for layouts") as cluster:
        answer = dralloc.partition_layout(
            cluster, *mix.entries(), choices=choices
        )
    session.answer(answer)


_MOVES: Final = {**_HEADROOM, "gang": ANSWER["gang"]}
_PREEMPTED: Final = {
    **_MOVES,
    "scheduler_config": SCHEDULER["scheduler_config"],
}


def defragment_command(
    paths: AnyPaths,
    moves: Annotated[
        int,
        typer.Option(
            "--moves",
            min=0,
            metavar="K",
            help="How many claims to move at most.",
        ),
    ],
    choices: Annotated[Choices, _MOVES],
    session: Answers,
) -> None:
    """Find the few moves of allocated claims that admit the most of what is pending, in order."""
    with session.asking(paths, choices, "looking for moves") as cluster:
        answer = dralloc.defragment(cluster, moves, choices=choices)
    session.answer(answer)


def drain_command(
    nodes: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE",
            help="The nodes to drain.",
            show_default=False,
            autocompletion=names_of("nodes"),
        ),
    ],
    filename: Annotated[
        list[Path],
        typer.Option(
            "--filename",
            "-f",
            default_factory=list,
            metavar="PATH",
            help="File or directory with YAML or JSON; - reads standard input.",
            show_default=False,
        ),
    ],
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Say where the claims of some nodes can go, or why they cannot. Exit code 1 if not all of them can."""
    with session.asking(filename, choices, "draining") as cluster:
        answer = dralloc.drain(cluster, *nodes, choices=choices)
    session.answer(answer, failed=not answer.possible)


def preempt_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The claim to admit.",
            autocompletion=names_of("claims"),
        ),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The pod to admit, with its gang.",
            autocompletion=names_of("pods"),
        ),
    ] = None,
    cost: Annotated[
        str,
        typer.Option(
            metavar="pods|priority|ANNOTATION",
            help="Evict the fewest pods, the fewest of the highest priorities, or those with the smallest sum of an "
            "annotation.",
        ),
    ] = "pods",
    *,
    choices: Annotated[Choices, _PREEMPTED],
    session: Answers,
) -> None:
    """Say which pods of lower priority to evict for a claim or pod. Exit code 1 if that does not help."""
    with session.asking(paths, choices, "looking for victims") as cluster:
        answer = dralloc.preempt(
            cluster, claim, pod, cost=cost, choices=choices
        )
    session.answer(answer, failed=not answer.possible)


PLANS: Final[dict[str, Callable[..., None]]] = {
    "headroom": headroom_command,
    "fewest-nodes": fewest_command,
    "drain": drain_command,
    "defragment": defragment_command,
    "partition-layout": layout_command,
    "preempt": preempt_command,
}
"""The commands by name."""
