"""How the best answer and its bound came together over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from dralloc.objects.report import counts_amounts, tier_text
from dralloc.show.plot.canvas import TEXT, WIDTH, axes, theme, tidy
from dralloc.solve.optimum import Progress

__all__ = ["progress"]

_HEIGHT: Final = 240.0


def progress(
    records: Sequence[Progress],
    ax: Axes | None = None,
    *,
    phase: str | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the best value and the bound of one tier of the objective over seconds.

    Parameters
    ----------
    records
        What ``progress=`` of `dralloc.allocate` or `dralloc.compare` was called with, e.g. by ``records.append``.
    phase
        The tier to draw, e.g. ``"weight"``; the first one in the records if None.
    title
        The heading; names the tier if None.
    """
    colours = theme()
    name = (
        phase if phase is not None else next((record.phase for record in records), "")
    )
    of_phase = [record for record in records if record.phase == name]
    ax = axes(ax, _HEIGHT, WIDTH / 2 - 10, says=_says(of_phase))
    seconds = [record.seconds for record in of_phase]
    # Amounts are larger than what matplotlib takes for integers.
    best, bound = (
        [float(record.best) for record in of_phase],
        [float(record.bound) for record in of_phase],
    )
    steps = ax.step(
        seconds,
        bound,
        where="post",
        color=colours.bound,
        lw=1.6,
        ls="--",
        marker="s",
        ms=4,
        label="bound",
    )
    steps += ax.step(
        seconds,
        best,
        where="post",
        color=colours.optimum,
        lw=2,
        marker="o",
        ms=4.5,
        label="best",
    )
    if of_phase:
        ax.fill_between(
            seconds, best, bound, step="post", color=colours.optimum, alpha=0.12, lw=0
        )
        _name_ends(ax, of_phase[-1], colours.ink)
    heading = (
        f"Best and bound over time: {name}".rstrip(": ") if title is None else title
    )
    tidy(ax, colours, heading, grid="y", legend=steps)
    ax.set_xlabel("seconds", size=TEXT, color=colours.ink)
    ax.margins(x=0.06, y=0.18)
    ax.yaxis.set_major_locator(
        NullLocator() if counts_amounts(name) else MaxNLocator("auto", integer=True)
    )
    return ax


def _says(records: Sequence[Progress]) -> Iterator[str]:
    """Yield how best and bound met."""
    if records:
        start, end = records[0], records[-1]
        text = partial(tier_text, start.phase)
        yield f"the best value goes from {text(start.best)} to {text(end.best)}"
        yield f"the bound from {text(start.bound)} to {text(end.bound)}"
        yield f"between {start.seconds:.2f} and {end.seconds:.2f} seconds"


def _name_ends(ax: Axes, last: Progress, ink: str) -> None:
    """Write the last values at the ends of the lines: above each other if they differ, once if not."""
    values = {max(last.best, last.bound): "bottom", min(last.best, last.bound): "top"}
    for value, side in values.items() if len(values) > 1 else [(last.best, "center")]:
        ax.annotate(
            tier_text(last.phase, value),
            (last.seconds, float(value)),
            xytext=(6, 0),
            textcoords="offset points",
            size=TEXT,
            color=ink,
            va=side,
        )
