"""``dralloc report``: the answers side by side, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.option_sets import SCHEDULER
from dralloc.cli.options import AnyPaths, Modes, Seeds, require_file
from dralloc.objects.choices import Choices

if TYPE_CHECKING:
    from dralloc.solve.optimum import Progress

__all__ = ["report_command"]


def report_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="The page to write."),
    ] = Path("report.html"),
    title: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="What the page is about, in its heading."
        ),
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
    session: Answers,
    invocation: typer.Context,
) -> None:
    """Write the answers as one HTML page with pictures, and print what compare prints."""
    from dralloc.objects.save import require_writable, write_text
    from dralloc.show.page import page_renderer

    require_file("--to", to)
    page = page_renderer()
    require_writable(to)
    records: list[Progress] = []

    def progress(record: Progress) -> None:
        records.append(record)
        session.progress(record)

    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster,
            modes=modes,
            seeds=seeds,
            progress=progress,
            choices=choices,
        )
    session.warn(result.findings)
    remarks = [
        str(finding) for finding in (*cluster.findings, *result.findings)
    ]
    with session.busy("drawing"):
        live = ["the live cluster"] if session.is_live else []
        chosen = dict(_chosen(invocation.params))
        if session.plan is not None:
            chosen["plan"] = str(session.plan)
        about = page.Circumstances(
            " ".join([*live, *map(str, paths)]),
            chosen,
            records,
            remarks,
            timings,
            title,
        )
        text = page.render(result, about)
    write_text(text, to)
    session.tell(f"{to}: {result.headline}")
    session.answer(result)


def _chosen(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was chosen, in words; without what was left at nothing."""
    for name in SCHEDULER:
        value = parameters[name]
        if name == "pruning":
            value = "no" if value is False else None
        # Of steps, none at all is a choice, too.
        if value or (name == "steps" and value is not None):
            text = (
                "yes"
                if value is True
                else ", ".join(value)
                if isinstance(value, list | tuple)
                else str(value)
            )
            yield _SAID.get(name, name.replace("_", " ")), text


_SAID = {"node": "nodes", "feature": "features", "cap": "caps"}
