"""The whole page. Its sections are in ``templates/page.html``; those that have nothing to show are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version

from dralloc.objects.report import percent
from dralloc.show.comparison import Comparison
from dralloc.show.page import pictures, tables
from dralloc.show.page.cell import rendered
from dralloc.show.plot.canvas import DARK, LIGHT, Theme, colour_variables
from dralloc.show.question import kinds_asked
from dralloc.solve.optimum import Progress

__all__ = ["Circumstances", "render"]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the page says about how the answers were found.

    Parameters
    ----------
    source
        What was read, e.g. paths; part of the page's title.
    options
        Choices by name.
    progress
        What was reported while the optimum was searched for.
    remarks
        What is remarkable about the input.
    timed
        Whether to show seconds. Without them, equal answers give equal pages.
    """

    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    progress: Sequence[Progress] = ()
    remarks: Sequence[str] = ()
    timed: bool = True


def render(comparison: Comparison, about: Circumstances | None = None) -> str:
    """Write all answers as one HTML page that needs nothing else: no script, no style sheet, no font, no network."""
    about = about or Circumstances()
    first, best = comparison.first_fit, comparison.optimal
    scheduled = (
        [("kube-scheduler", "scheduler", comparison.scheduler.median)]
        if comparison.scheduler
        else []
    )
    source = {"input": about.source} if about.source else {}
    return rendered(
        "page.html",
        title=f"dralloc report: {about.source}" if about.source else "dralloc report",
        comparison=comparison,
        first=first,
        best=best,
        gain=comparison.gain,
        tiles=(
            *scheduled,
            ("First fit", "first-fit", first),
            ("Optimum", "optimum", best),
        ),
        mapped=(
            *(
                (plan, best, "map-scheduler", "kube-scheduler")
                for _, _, plan in scheduled
            ),
            (first, best, "map-first-fit", "first fit"),
            (best, comparison.baseline, "map-optimum", "the optimum"),
        ),
        kinds=kinds_asked(best.compiled),
        about=about,
        facts={**source, **about.options, "version": f"dralloc {version('dralloc')}"},
        titled=partial(tables.titled, comparison),
        tables=tables,
        pictures=pictures,
        percent=percent,
        rest="; dralloc compare --json lists all",
        light=_variables(LIGHT),
        dark=_variables(DARK),
        version=version("dralloc"),
    )


def _variables(theme: Theme) -> str:
    return "".join(f"{name}:{colour};" for name, colour in colour_variables(theme))
