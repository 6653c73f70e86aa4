"""Options for what is wished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dralloc.whatif import Wish

__all__ = ["Wished"]


@dataclass(frozen=True)
class Wished:
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

    def wishes(self) -> list[Wish]:
        """What the options wish for."""
        from dralloc.whatif import Source, Wish

        given = ((Source.CLAIM, self.claim), (Source.TEMPLATE, self.template), (Source.POD, self.pod))
        return [Wish.parse(text, source) for source, texts in given for text in texts or ()]
