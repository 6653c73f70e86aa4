"""Options for what is wished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dralloc.whatif import Wish

__all__ = ["Claims", "Pods", "Templates", "wishes_from"]

Claims = Annotated[
    list[str] | None,
    typer.Option("--claim", metavar="NS/NAME[=N]", help="A claim or a template; may be given several times."),
]
Templates = Annotated[
    list[str] | None,
    typer.Option("--template", metavar="NS/NAME[=N]", help="A template; may be given several times."),
]
Pods = Annotated[
    list[str] | None,
    typer.Option("--pod", metavar="NS/NAME[=N]", help="A pod with its claims; may be given several times."),
]


def wishes_from(
    claims: Sequence[str] | None, templates: Sequence[str] | None, pods: Sequence[str] | None
) -> list[Wish]:
    """What the options wish for, in that order; may be nothing."""
    from dralloc.whatif import Source, Wish

    given = ((Source.CLAIM, claims), (Source.TEMPLATE, templates), (Source.POD, pods))
    return [Wish.parse(text, source) for source, texts in given for text in texts or ()]
