"""Pictures of answers, with matplotlib (extra ``plot``).

Charts of shares are drawn here (how many are placed at which demand, how the search came along, how full everything
is); the map of devices and the difference between two answers have modules of their own.

Every function draws onto the axes that it is given, or onto a new figure, and returns the axes. Equal profiles of
requests have equal colours in all pictures of a cluster. Under a dark matplotlib style the pictures are dark.

>>> from dralloc.show.plot import device_map
>>> device_map(comparison.optimal, beside=comparison.first_fit)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

from dralloc.objects.report import counts_amounts, percent, tier_text
from dralloc.show.comparison import Comparison
from dralloc.show.metrics import Utilisation
from dralloc.show.plot.canvas import WIDTH, axes
from dralloc.show.plot.charts import (
    BEFORE,
    SMALL,
    TEXT,
    Bars,
    answers_drawn,
    bars,
    name_rows,
    swatch,
    tidy,
    under,
)
from dralloc.show.plot.colours import Theme, theme
from dralloc.show.plot.device_map import device_map
from dralloc.show.plot.gained import gained, ranks
from dralloc.show.plot.over_time import (
    allocation_over_time,
    fragmentation_over_time,
    regret_over_time,
    waiting_distribution,
)
from dralloc.show.plot.texts import clean, enumerated, fitted
from dralloc.solve.optimum import Progress

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "allocation_over_time",
    "demand_curve",
    "device_map",
    "fragmentation_over_time",
    "gained",
    "progress",
    "ranks",
    "regret_over_time",
    "utilisation",
    "waiting_distribution",
]

# ----------------------------------------------------------------------------
# The placed share over demand, for several policies.

_DEMAND_HEIGHT: Final = 300.0
_LINES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS: Final = "osD^vPX*"
_OTHERS: Final = (
    "#44aa99",
    "#aa4499",
    "#999933",
    "#cc6677",
    "#88ccee",
    "#ddcc77",
)
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
        name: frame[frame[policy] == name].groupby(demand)[placed]
        for name in names
    }
    ax = axes(
        ax,
        _DEMAND_HEIGHT,
        WIDTH * 0.75,
        says=_says_of_policies(
            {str(name): runs.mean() for name, runs in groups.items()}
        ),
    )
    styles = _colours(colours, [str(name) for name in names])
    for policy_index, (name, runs) in enumerate(groups.items()):
        mean, lowest, highest = runs.mean(), runs.min(), runs.max()
        style, marker = (
            _LINES[policy_index % len(_LINES)],
            _MARKERS[policy_index % len(_MARKERS)],
        )
        ax.plot(
            mean.index,
            mean,
            color=styles[policy_index],
            ls=style,
            marker=marker,
            ms=5,
            lw=1.8,
            label=clean(str(name)),
        )
        ax.fill_between(
            mean.index,
            lowest,
            highest,
            color=styles[policy_index],
            alpha=0.15,
            lw=0,
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


def _says_of_policies(means: Mapping[str, pd.Series[float]]) -> Iterator[str]:
    """Yield where each policy's line begins and ends."""
    for name, mean in means.items():
        if len(mean):
            start, end = (
                f"{percent(mean.iloc[position])} at" for position in (0, -1)
            )
            yield f"{name} places {start} demand {mean.index[0]}, {end} {mean.index[-1]}"


def _colours(colours: Theme, names: list[str]) -> list[str]:
    known_colours = {"first-fit": colours.first_fit, "optimal": colours.optimum}
    other_names = [name for name in names if name not in known_colours]
    return [
        known_colours.get(name)
        or _OTHERS[other_names.index(name) % len(_OTHERS)]
        for name in names
    ]


# ----------------------------------------------------------------------------
# How the best answer and its bound came together over time.

_PROGRESS_HEIGHT: Final = 240.0


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
        phase
        if phase is not None
        else next((record.phase for record in records), "")
    )
    of_phase = [record for record in records if record.phase == name]
    ax = axes(
        ax, _PROGRESS_HEIGHT, WIDTH / 2 - 10, says=_says_of_search(of_phase)
    )
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
            seconds,
            best,
            bound,
            step="post",
            color=colours.optimum,
            alpha=0.12,
            lw=0,
        )
        _name_ends(ax, of_phase[-1], colours.ink)
    heading = (
        f"Best and bound over time: {name}".rstrip(": ")
        if title is None
        else title
    )
    tidy(ax, colours, heading, grid="y", legend=steps)
    ax.set_xlabel("seconds", size=TEXT, color=colours.ink)
    ax.margins(x=0.06, y=0.18)
    ax.yaxis.set_major_locator(
        NullLocator()
        if counts_amounts(name)
        else MaxNLocator("auto", integer=True)
    )
    return ax


def _says_of_search(records: Sequence[Progress]) -> Iterator[str]:
    """Yield how best and bound met."""
    if records:
        start, end = records[0], records[-1]
        text = partial(tier_text, start.phase)
        yield f"the best value goes from {text(start.best)} to {text(end.best)}"
        yield f"the bound from {text(start.bound)} to {text(end.bound)}"
        yield f"between {start.seconds:.2f} and {end.seconds:.2f} seconds"


def _name_ends(ax: Axes, last: Progress, ink: str) -> None:
    """Write the last values at the ends of the lines: above each other if they differ, once if not."""
    values = {
        max(last.best, last.bound): "bottom",
        min(last.best, last.bound): "top",
    }
    for value, side in (
        values.items() if len(values) > 1 else [(last.best, "center")]
    ):
        ax.annotate(
            tier_text(last.phase, value),
            (last.seconds, float(value)),
            xytext=(6, 0),
            textcoords="offset points",
            size=TEXT,
            color=ink,
            va=side,
        )


# ----------------------------------------------------------------------------
# How full counters and capacities are: before, and under each answer.

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
        *(plan.metrics.utilisation for plan in comparison.answers.values()),
        strict=True,
    )
    rows = [row for row in all_rows if row[0].total]
    # First fit and the optimum come last.
    order = sorted(
        range(len(rows)),
        key=lambda row_index: (
            -abs(rows[row_index][-1].share - rows[row_index][-2].share)
        ),
    )
    told = enumerated(_told(rows[row_index], comparison) for row_index in order)
    shown, left_out = (
        [rows[row_index] for row_index in sorted(order[:most])],
        max(0, len(rows) - most),
    )
    height = _MARGINS + _ROW * len(drawn) * max(len(shown), 1)
    ax = axes(
        ax, height, says=["in use, the largest differences first: " + told]
    )
    for answer_index, (_, kind, shift) in enumerate(drawn):
        _draw(
            ax,
            colours,
            [row[answer_index] for row in shown],
            kind,
            (shift, thickness),
        )
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
    """Return the part of a resource that is in use under each of the answers, in words."""
    shares = (
        f"{percent(answer_row.share)} {under(answer)}"
        for answer, answer_row in zip(comparison.answers, row, strict=True)
    )
    return f"{row[0].kind} {row[0].name} {percent(row[0].share_before)} before, {', '.join(shares)}"


def _names(rows: Sequence[Utilisation]) -> list[str]:
    """Names of the rows; with the driver where there are several."""
    has_drivers = len({row.driver for row in rows}) > 1
    return [
        fitted(
            clean(row.title if has_drivers else f"{row.kind} {row.name}"),
            TEXT,
            260,
        )
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
    positions = [row_index + shift for row_index in range(len(rows))]
    before = [row.share_before for row in rows]
    added = [max(0.0, row.share - row.share_before) for row in rows]
    bars(ax, positions, before, thickness, BEFORE.style(colours))
    # matplotlib draws hatches in the colour of the edge, so that the outline is a second, empty bar.
    ax.barh(
        positions,
        before,
        thickness,
        color="none",
        edgecolor=colours.muted,
        linewidth=0.7,
        zorder=2,
    )
    bars(ax, positions, added, thickness, kind.style(colours), left=before)
    for position, row in zip(positions, rows, strict=True):
        share = max(row.share, row.share_before)
        ax.text(
            share + 0.006,
            position,
            percent(row.share),
            size=SMALL,
            color=colours.ink,
            va="center_baseline",
        )
