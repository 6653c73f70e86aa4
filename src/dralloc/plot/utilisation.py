"""How full counters and capacities are: before, under first fit, under the optimum."""

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
from dralloc.plot.styling import BEFORE, FIRST_FIT, OPTIMUM, SMALL, TEXT, Bars, bars, name_rows, swatch, tidy
from dralloc.report import percent

__all__ = ["utilisation"]

_ROW: Final = 30.0
_MARGINS: Final = 70.0
_THICKNESS: Final = 0.36

_Pair = tuple[Utilisation, Utilisation]


def utilisation(comparison: Comparison, ax: Axes | None = None, *, most: int = 24, title: str = "Utilisation") -> Axes:
    """Draw the part in use of each counter and of each capacity of shareable devices, summed by driver and name.

    Each has a bar for first fit and one for the optimum; both begin with what was in use before.

    Parameters
    ----------
    most
        The most counters and capacities to draw: those on which the answers differ most.
    """
    colours = theme()
    pairs, left_out = _telling(comparison, most)
    ax = axes(ax, _MARGINS + _ROW * max(len(pairs), 1), says=of_utilisation(comparison))
    _draw(ax, colours, [first for first, _ in pairs], FIRST_FIT, -_THICKNESS / 2)
    _draw(ax, colours, [best for _, best in pairs], OPTIMUM, _THICKNESS / 2)
    names = _names([first for first, _ in pairs])
    name_rows(ax, colours, names)
    ax.set_xlim(0, 1.09)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    tidy(
        ax,
        colours,
        f"{title}{f' (and {left_out} more)' if left_out else ''}",
        legend=[swatch(colours, style) for style in (BEFORE, FIRST_FIT, OPTIMUM)],
    )
    return ax


def _telling(comparison: Comparison, most: int) -> tuple[list[_Pair], int]:
    both = zip(comparison.first_fit.metrics.utilisation, comparison.optimal.metrics.utilisation, strict=True)
    pairs = [(first, best) for first, best in both if first.total]
    order = sorted(range(len(pairs)), key=lambda place: -abs(pairs[place][1].share - pairs[place][0].share))
    kept = sorted(order[:most])
    return [pairs[place] for place in kept], len(pairs) - len(kept)


def _names(rows: Sequence[Utilisation]) -> list[str]:
    """Names of the rows; with the driver where there are several."""
    several = len({row.driver for row in rows}) > 1
    return [fitted(clean(row.title if several else f"{row.kind} {row.name}"), TEXT, 260) for row in rows]


def _draw(ax: Axes, colours: Theme, rows: Sequence[Utilisation], style: Bars, shift: float) -> None:
    places = [place + shift for place in range(len(rows))]
    before = [row.share_before for row in rows]
    added = [max(0.0, row.share - row.share_before) for row in rows]
    bars(ax, places, before, _THICKNESS, (BEFORE.colour(colours), BEFORE.hatch))
    ax.barh(places, before, _THICKNESS, color="none", edgecolor=colours.muted, linewidth=0.7, zorder=2)
    bars(ax, places, added, _THICKNESS, (style.colour(colours), style.hatch), left=before)
    for place, row in zip(places, rows, strict=True):
        share = max(row.share, row.share_before)
        ax.text(share + 0.006, place, percent(row.share), size=SMALL, color=colours.ink, va="center_baseline")
