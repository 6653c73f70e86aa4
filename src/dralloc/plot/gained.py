"""What only the optimum places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dralloc.comparison import Comparison
from dralloc.plot.canvas import axes, fitted
from dralloc.plot.descriptions import of_gains
from dralloc.plot.gains import Gain, gains
from dralloc.plot.palette import Palette, Style, Theme, theme
from dralloc.plot.request_profiles import RequestProfiles, clean
from dralloc.plot.styling import SMALL, TEXT, name_rows, tidy

__all__ = ["gained"]

_ROW: Final = 24.0
_MARGINS: Final = 70.0
_LABEL: Final = 300.0


class _Segment(NamedTuple):
    """A part of a bar: which count it shows and how it is outlined."""

    field: str
    label: str
    style: Literal["-", "--", ":"]
    width: float


_SEGMENTS: Final = (
    _Segment("both", "both place it", "-", 0.7),
    _Segment("only_optimum", "only the optimum (\N{BLACK STAR})", "-", 2.0),
    _Segment("only_first_fit", "only first fit (\N{WHITE CIRCLE})", ":", 2.0),
    _Segment("neither", "not placed", "--", 0.9),
)
_SIGNS: Final = {"only_optimum": "\N{BLACK STAR}", "only_first_fit": "\N{WHITE CIRCLE}"}


def gained(
    comparison: Comparison, ax: Axes | None = None, *, most: int = 16, title: str = "What only the optimum places"
) -> Axes:
    """Draw how many demands of each request profile both answers place, only one of them, or none.

    Parameters
    ----------
    most
        The most rows to draw: those with most that only the optimum places, then those with most demands.
    """
    colours, palette = theme(), Palette(RequestProfiles(comparison.optimal.compiled.cluster))
    found = gains(comparison)
    order = sorted(range(len(found)), key=lambda place: (-found[place].only_optimum, -found[place].total))
    shown = [found[place] for place in sorted(order[:most])]
    ax = axes(ax, _MARGINS + _ROW * max(len(shown), 1), says=of_gains(found))
    for place, gain in enumerate(shown):
        _bar(ax, colours, place, gain, palette.style(gain.profile))
    name_rows(ax, colours, [fitted(clean(gain.wants), TEXT, _LABEL) for gain in shown])
    ax.set_xlim(0, max((gain.total for gain in shown), default=1) * 1.01)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set_xlabel("pods and claims", size=TEXT, color=colours.ink)
    tidy(
        ax,
        colours,
        title + (f" (and {len(found) - most} more kinds)" if len(found) > most else ""),
        legend=_legend(colours, shown),
    )
    return ax


def _bar(ax: Axes, colours: Theme, place: int, gain: Gain, style: Style) -> None:
    left = 0
    for part in _SEGMENTS:
        count = getattr(gain, part.field)
        if count:
            _patch(ax, colours, part, (left, place, count), style)
            text = f"{_SIGNS.get(part.field, '')} {count}".strip()
            ink = colours.label if _is_filled(part) else colours.ink
            weight = "bold" if part.field in _SIGNS else "normal"
            ax.text(
                left + count / 2, place, text, size=SMALL, color=ink, weight=weight, ha="center", va="center_baseline"
            )
        left += count


def _is_filled(part: _Segment) -> bool:
    return part.field in ("both", "only_optimum")


def _patch(ax: Axes, colours: Theme, part: _Segment, bar: tuple[float, float, float], style: Style) -> None:
    left, place, count = bar
    fill = style.colour if _is_filled(part) else "none"
    if style.hatch and _is_filled(part):
        ax.barh(place, count, 0.66, left=left, color=fill, hatch=style.hatch, edgecolor="#ffffff50", linewidth=0)
        fill = "none"
    edge = colours.muted if part.field in ("both", "neither") else colours.ink
    above = 3 if part.field in _SIGNS else 2
    ax.barh(
        place,
        count,
        0.66,
        left=left,
        facecolor=fill,
        edgecolor=edge,
        linewidth=part.width,
        linestyle=part.style,
        zorder=above,
    )


def _legend(colours: Theme, shown: Sequence[Gain]) -> list[Patch]:
    return [
        Patch(
            facecolor=colours.faint if _is_filled(part) else "none",
            edgecolor=colours.muted if part.field in ("both", "neither") else colours.ink,
            linewidth=part.width,
            linestyle=part.style,
            label=part.label,
        )
        for part in _SEGMENTS
        if any(getattr(gain, part.field) for gain in shown)
    ]
