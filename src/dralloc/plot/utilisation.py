"""How full counters and capacities are: before, and under each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes

from dralloc.comparison import Comparison
from dralloc.metrics import Utilisation
from dralloc.plot.canvas import axes, fitted
from dralloc.plot.descriptions import of_utilisation
from dralloc.plot.palette import Theme, theme
from dralloc.plot.request_profiles import clean
from dralloc.plot.styling import BEFORE, SMALL, TEXT, Bars, answers_drawn, bars, name_rows, swatch, tidy
from dralloc.report import percent

__all__ = ["utilisation"]

_ROW: Final = 15.0
_MARGINS: Final = 70.0
_ROOM: Final = 0.72
"""What of a row the bars of all answers take."""

_Row = tuple[Utilisation, ...]
"""A counter or capacity under each answer."""


def utilisation(comparison: Comparison, ax: Axes | None = None, *, most: int = 24, title: str = "Utilisation") -> Axes:
    """Draw the part in use of each counter and of each capacity of shareable devices, summed by driver and name.

    Each has a bar for each answer; all begin with what was in use before.

    Parameters
    ----------
    most
        The most counters and capacities to draw: those on which first fit and the optimum differ most.
    """
    colours = theme()
    thickness = _ROOM / len(comparison.answers)
    drawn = answers_drawn(comparison, thickness)
    rows, left_out = _telling(comparison, most)
    ax = axes(ax, _MARGINS + _ROW * len(drawn) * max(len(rows), 1), says=of_utilisation(comparison))
    for place, (_, style, shift) in enumerate(drawn):
        _draw(ax, colours, [row[place] for row in rows], style, (shift, thickness))
    names = _names([row[0] for row in rows])
    name_rows(ax, colours, names)
    ax.set_xlim(0, 1.09)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    tidy(
        ax,
        colours,
        f"{title}{f' (and {left_out} more)' if left_out else ''}",
        legend=[swatch(colours, style) for style in (BEFORE, *(style for _, style, _ in drawn))],
    )
    return ax


def _telling(comparison: Comparison, most: int) -> tuple[list[_Row], int]:
    """The rows to draw, and how many are left out. First fit and the optimum come last in each of them."""
    every = zip(*(plan.metrics.utilisation for plan in comparison.answers.values()), strict=True)
    rows = [row for row in every if row[0].total]
    order = sorted(range(len(rows)), key=lambda place: -abs(rows[place][-1].share - rows[place][-2].share))
    kept = sorted(order[:most])
    return [rows[place] for place in kept], len(rows) - len(kept)


def _names(rows: Sequence[Utilisation]) -> list[str]:
    """Names of the rows; with the driver where there are several."""
    several = len({row.driver for row in rows}) > 1
    return [fitted(clean(row.title if several else f"{row.kind} {row.name}"), TEXT, 260) for row in rows]


def _draw(ax: Axes, colours: Theme, rows: Sequence[Utilisation], style: Bars, size: tuple[float, float]) -> None:
    shift, thickness = size
    places = [place + shift for place in range(len(rows))]
    before = [row.share_before for row in rows]
    added = [max(0.0, row.share - row.share_before) for row in rows]
    bars(ax, places, before, thickness, (BEFORE.colour(colours), BEFORE.hatch))
    ax.barh(places, before, thickness, color="none", edgecolor=colours.muted, linewidth=0.7, zorder=2)
    bars(ax, places, added, thickness, (style.colour(colours), style.hatch), left=before)
    for place, row in zip(places, rows, strict=True):
        share = max(row.share, row.share_before)
        ax.text(share + 0.006, place, percent(row.share), size=SMALL, color=colours.ink, va="center_baseline")
