"""Options for the entries of a workload mix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dralloc.whatif import MixEntry

__all__ = ["MixOptions"]


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
