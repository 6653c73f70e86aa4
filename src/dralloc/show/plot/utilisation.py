"""How full counters and capacities are: before, and under each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes

from dralloc.objects.report import percent
from dralloc.show.comparison import Comparison
from dralloc.show.metrics import Utilisation
from dralloc.show.plot.canvas import (
    BEFORE,
    SMALL,
    TEXT,
    UNDER,
    Bars,
    Theme,
    answers_drawn,
    axes,
    bars,
    enumerated,
    fitted,
    name_rows,
    swatch,
    theme,
    tidy,
)
from dralloc.show.plot.holdings import clean

__all__ = ["utilisation"]

_ROW: Final = 15.0
_MARGINS: Final = 70.0
_ROOM: Final = 0.72
"""What of a row the bars of all answers take."""


def utilisation(
    comparison: Comparison,
    ax: Axes | None = None,
    *,
    most: int = 24,
    title: str = "Utilisation",
) -> Axes:
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
    all_rows = zip(
        *(plan.metrics.utilisation for plan in comparison.answers.values()), strict=True
    )
    rows = [row for row in all_rows if row[0].total]
    # First fit and the optimum come last.
    order = sorted(
        range(len(rows)),
        key=lambda place: -abs(rows[place][-1].share - rows[place][-2].share),
    )
    told = enumerated(_told(rows[place], comparison) for place in order)
    shown, left_out = (
        [rows[place] for place in sorted(order[:most])],
        max(0, len(rows) - most),
    )
    height = _MARGINS + _ROW * len(drawn) * max(len(shown), 1)
    ax = axes(ax, height, says=["in use, the largest differences first: " + told])
    for place, (_, kind, shift) in enumerate(drawn):
        _draw(ax, colours, [row[place] for row in shown], kind, (shift, thickness))
    name_rows(ax, colours, _names([row[0] for row in shown]))
    ax.set_xlim(0, 1.09)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    kinds = [BEFORE, *(kind for _, kind, _ in drawn)]
    legend = [swatch(colours, kind) for kind in kinds]
    tidy(
        ax,
        colours,
        f"{title}{f' (and {left_out} more)' if left_out else ''}",
        legend=legend,
    )
    return ax


def _told(row: Sequence[Utilisation], comparison: Comparison) -> str:
    """Return what is in use of something under each of the answers."""
    under = (
        f"{percent(answer_row.share)} {UNDER[answer]}"
        for answer, answer_row in zip(comparison.answers, row, strict=True)
    )
    return f"{row[0].kind} {row[0].name} {percent(row[0].share_before)} before, {', '.join(under)}"


def _names(rows: Sequence[Utilisation]) -> list[str]:
    """Names of the rows; with the driver where there are several."""
    has_drivers = len({row.driver for row in rows}) > 1
    return [
        fitted(clean(row.title if has_drivers else f"{row.kind} {row.name}"), TEXT, 260)
        for row in rows
    ]


def _draw(
    ax: Axes,
    colours: Theme,
    rows: Sequence[Utilisation],
    kind: Bars,
    size: tuple[float, float],
) -> None:
    shift, thickness = size
    places = [place + shift for place in range(len(rows))]
    before = [row.share_before for row in rows]
    added = [max(0.0, row.share - row.share_before) for row in rows]
    bars(ax, places, before, thickness, BEFORE.style(colours))
    ax.barh(
        places,
        before,
        thickness,
        color="none",
        edgecolor=colours.muted,
        linewidth=0.7,
        zorder=2,
    )
    bars(ax, places, added, thickness, kind.style(colours), left=before)
    for place, row in zip(places, rows, strict=True):
        share = max(row.share, row.share_before)
        ax.text(
            share + 0.006,
            place,
            percent(row.share),
            size=SMALL,
            color=colours.ink,
            va="center_baseline",
        )
