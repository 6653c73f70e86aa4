"""``dralloc report``: both answers as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dralloc
from dralloc.cli.console import Asking
from dralloc.cli.options import SCHEDULER, AnyPaths, Modes, Seeds
from dralloc.objects.choices import Choices
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.solve.optimum import Progress

__all__ = ["report_command"]


def report_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    title: Annotated[
        str,
        typer.Option(metavar="TEXT", help="What the page is about, in its heading."),
    ] = "",
    timings: Annotated[
        bool,
        typer.Option(
            "--timings/--no-timings",
            help="Show seconds; without them, equal answers give equal pages.",
        ),
    ] = True,
    modes: Modes = "first-fit,optimal",
    seeds: Seeds = 5,
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Asking,
    invocation: typer.Context,
) -> None:
    """Write both answers as one HTML page with pictures. It needs nothing else to be read."""
    from dralloc.objects.save import write_text

    page = _page()
    if not output.parent.is_dir():
        raise DrallocError(
            f"{output}: cannot be written: there is no directory {output.parent}"
        )
    records: list[Progress] = []

    def progress(record: Progress) -> None:
        records.append(record)
        session.progress(record)

    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster, modes=modes, seeds=seeds, progress=progress, choices=choices
        )
    session.warn(result.findings)
    remarks = [str(one) for one in (*cluster.findings, *result.findings)]
    with session.busy("drawing"):
        source = title or " ".join(map(str, paths)) or "the live cluster"
        about = page.Circumstances(
            source, dict(_chosen(invocation.params)), records, remarks, timings
        )
        text = page.render(result, about)
    write_text(text, output)
    session.tell(f"{output}: {result.headline}")


def _page() -> ModuleType:
    """The package that writes the page; it needs what not everybody has installed."""
    try:
        import dralloc.show.page.render as page
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise DrallocError(
            "report needs matplotlib: pip install 'dralloc[plot]'"
        ) from None
    return page


def _chosen(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was chosen, in words; without what was left at nothing."""
    for name in SCHEDULER:
        value = given[name]
        if value and name != "pruning":
            text = (
                "yes"
                if value is True
                else ", ".join(value)
                if isinstance(value, list | tuple)
                else str(value)
            )
            yield _SAID.get(name, name.replace("_", " ")), text


_SAID = {"node": "nodes", "feature": "features", "cap": "caps"}
