"""The placed share over demand, for several policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from dralloc.objects.report import percent
from dralloc.show.plot.canvas import TEXT, WIDTH, Theme, axes, theme, tidy
from dralloc.show.plot.holdings import clean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["demand_curve"]

_HEIGHT: Final = 300.0
_LINES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS: Final = "osD^vPX*"
_OTHERS: Final = ("#44aa99", "#aa4499", "#999933", "#cc6677", "#88ccee", "#ddcc77")
"""Of Paul Tol's "muted" scheme; the two modes have the colours that they have everywhere."""


def demand_curve(  # noqa: PLR0913 - the columns have names of their own
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    demand: str = "demand",
    placed: str = "placed_share",
    policy: str = "policy",
    title: str = "Placed share over demand",
) -> Axes:
    """Draw a line per policy: the mean over all rows of equal demand, in a band from the least to the most.

    Parameters
    ----------
    frame
        One row per run.
    demand, placed, policy
        The columns with the demand (any unit), the placed share (0 to 1) and the name of the policy.
    """
    colours = theme()
    names = list(dict.fromkeys(frame[policy]))
    groups = {
        name: frame[frame[policy] == name].groupby(demand)[placed] for name in names
    }
    ax = axes(
        ax,
        _HEIGHT,
        WIDTH * 0.75,
        says=_says({str(name): runs.mean() for name, runs in groups.items()}),
    )
    styles = _colours(colours, [str(name) for name in names])
    for place, (name, runs) in enumerate(groups.items()):
        mean, lowest, highest = runs.mean(), runs.min(), runs.max()
        style, marker = _LINES[place % len(_LINES)], _MARKERS[place % len(_MARKERS)]
        ax.plot(
            mean.index,
            mean,
            color=styles[place],
            ls=style,
            marker=marker,
            ms=5,
            lw=1.8,
            label=clean(str(name)),
        )
        ax.fill_between(
            mean.index, lowest, highest, color=styles[place], alpha=0.15, lw=0
        )
    tidy(ax, colours, title, grid="y")
    ax.set_xlabel(clean(demand), size=TEXT, color=colours.ink)
    ax.set_ylabel("placed", size=TEXT, color=colours.ink)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    if names:
        ax.legend(
            frameon=False,
            fontsize=TEXT,
            labelcolor=colours.ink,
            handlelength=3.2,
            loc="best",
        )
    return ax


def _says(means: Mapping[str, pd.Series[float]]) -> Iterator[str]:
    """Yield where each policy's line begins and ends."""
    for name, mean in means.items():
        if len(mean):
            start, end = (f"{percent(mean.iloc[place])} at" for place in (0, -1))
            yield f"{name} places {start} demand {mean.index[0]}, {end} {mean.index[-1]}"


def _colours(colours: Theme, names: list[str]) -> list[str]:
    known_colours = {"first-fit": colours.first_fit, "optimal": colours.optimum}
    other_names = [name for name in names if name not in known_colours]
    return [
        known_colours.get(name) or _OTHERS[other_names.index(name) % len(_OTHERS)]
        for name in names
    ]
