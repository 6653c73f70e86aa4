"""Pictures of what happened over time: allocation, waiting, fragmentation by cause, regret. All take data frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Final,
    NamedTuple,
    Protocol,
    runtime_checkable,
)

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from dralloc.objects.report import percent
from dralloc.show.plot.canvas import WIDTH, axes
from dralloc.show.plot.charts import TEXT, tidy
from dralloc.show.plot.colours import PROFILE_COLOURS, Theme, theme

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PICTURES",
    "OverTime",
    "TimePicture",
    "allocation_over_time",
    "fragmentation_over_time",
    "regret_over_time",
    "waiting_distribution",
]

_HEIGHT: Final = 260.0
_HOUR: Final = 3600
_LINES: Final = ("-", "--", "-.", ":")


@runtime_checkable
class OverTime(Protocol):
    """An answer about what happened over time, as `dralloc.simulate` gives it: data frames with times in seconds."""

    def allocation(self) -> pd.DataFrame:
        """Columns ``seed``, ``time``, ``held``, ``wanted``."""

    def arrivals(self) -> pd.DataFrame:
        """Columns ``seed``, ``arrived``, ``started`` and others."""

    def fragmentation(self) -> pd.DataFrame:
        """Columns ``seed``, ``time``, and one for each cause."""

    def regrets(self) -> pd.DataFrame:
        """Columns ``seed``, ``time``, ``placed``, ``best``, ``bound``, ``regret``."""


def allocation_over_time(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str = "Devices held and wanted",
) -> Axes:
    """Draw the number of devices held over time, and the number wanted by pods that ran or waited.

    Parameters
    ----------
    frame
        With columns ``time`` in seconds, ``held`` and ``wanted``; of several seeds the first is drawn.
    """
    colours, rows = theme(), _first_seed(frame)
    says = [
        f"at most {rows[column].max()} devices {column}"
        for column in ("held", "wanted")
        if len(rows)
    ]
    ax = axes(ax, _HEIGHT, WIDTH * 0.75, says=says)
    for column, colour, line in (
        ("wanted", colours.muted, "--"),
        ("held", colours.optimum, "-"),
    ):
        if len(rows):
            ax.step(
                rows["time"] / _HOUR,
                rows[column],
                where="post",
                color=colour,
                ls=line,
                lw=1.4,
                label=column,
            )
    _finish(ax, colours, title, "devices")
    return ax


def waiting_distribution(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str = "Waiting time",
) -> Axes:
    """Draw the part of all arrivals placed after so long; arrivals that never were keep the line below 100%.

    Parameters
    ----------
    frame
        With columns ``arrived`` and ``started`` in seconds, and ``policy`` if there are several to be compared.
    """
    colours = theme()
    groups = {"": frame}
    if "policy" in frame:
        groups = {str(name): rows for name, rows in frame.groupby("policy")}
    says: list[str] = []
    curves: list[tuple[str, list[float], list[float]]] = []
    for name, rows in groups.items():
        if not len(rows):
            continue
        waits = sorted((rows["started"] - rows["arrived"]).dropna())
        parts = [
            (wait_index + 1) / len(rows) for wait_index in range(len(waits))
        ]
        curves.append((name, [wait / _HOUR for wait in waits], parts))
        started = parts[-1] if parts else 0.0
        says.append(f"{name} {percent(started)} got a place".strip())
    ax = axes(ax, _HEIGHT, WIDTH * 0.75, says=says)
    for curve_index, (name, hours, parts) in enumerate(curves):
        ax.step(
            [0.0, *hours],
            [0.0, *parts],
            where="post",
            color=PROFILE_COLOURS[curve_index % len(PROFILE_COLOURS)]
            if name
            else colours.optimum,
            ls=_LINES[curve_index % len(_LINES)],
            lw=1.6,
            label=name,
        )
    _finish(ax, colours, title, "arrivals with a place", "hours waited")
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    ax.set_ylim(0, 1.02)
    return ax


def fragmentation_over_time(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str = "What is left and of no use, by cause",
) -> Axes:
    """Draw the part of what was left that the next pod was expected to be unable to use, one layer for each cause.

    Parameters
    ----------
    frame
        With a column ``time`` in seconds and one for each cause; of several seeds the first is drawn.
    """
    colours, rows = theme(), _first_seed(frame)
    causes = [
        column for column in rows.columns if column not in ("seed", "time")
    ]
    says = [
        f"{cause}: {percent(rows[cause].mean())} on average" for cause in causes
    ]
    ax = axes(ax, _HEIGHT, WIDTH * 0.75, says=says)
    if len(rows):
        ax.stackplot(
            rows["time"] / _HOUR,
            *(rows[cause] for cause in causes),
            labels=causes,
            colors=PROFILE_COLOURS[: len(causes)],
        )
    _finish(ax, colours, title, "of what is left")
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    return ax


def regret_over_time(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    title: str = "Regret of all decisions",
) -> Axes:
    """Draw the sum of what decisions missed until then: what a better answer is known to place, and the proven most.

    Parameters
    ----------
    frame
        With columns ``time`` in seconds, ``placed``, ``best`` and ``bound`` in devices; of several seeds the first is
        drawn.
    """
    colours, rows = theme(), _first_seed(frame)
    sums = {}
    if len(rows):
        sums = {
            "at most": (rows["bound"] - rows["placed"]).cumsum(),
            "known": (rows["best"] - rows["placed"]).cumsum(),
        }
    says = [f"{name} {line.iloc[-1]} devices" for name, line in sums.items()]
    ax = axes(ax, _HEIGHT, WIDTH * 0.75, says=says)
    for (name, line), colour in zip(
        sums.items(), (colours.bound, colours.optimum), strict=False
    ):
        ax.step(
            rows["time"] / _HOUR,
            line,
            where="post",
            color=colour,
            lw=1.6,
            ls="--" if name == "at most" else "-",
            label=name,
        )
    _finish(ax, colours, title, "devices")
    return ax


def _first_seed(frame: pd.DataFrame) -> pd.DataFrame:
    if "seed" not in frame or not len(frame):
        return frame
    rows: pd.DataFrame = frame[frame["seed"] == frame["seed"].iloc[0]]
    return rows


def _finish(
    ax: Axes, colours: Theme, title: str, what: str, over: str = "hours"
) -> None:
    tidy(ax, colours, title, grid="y")
    ax.set_xlabel(over, size=TEXT, color=colours.ink)
    ax.set_ylabel(what, size=TEXT, color=colours.ink)
    handles, labels = ax.get_legend_handles_labels()
    if any(labels):
        ax.legend(
            handles,
            labels,
            frameon=False,
            fontsize=TEXT,
            labelcolor=colours.ink,
            loc="best",
        )


class TimePicture(NamedTuple):
    """A picture of an answer: its name, what it shows, the frame that it shows, and who draws it."""

    name: str
    title: str
    frame: Callable[[OverTime], pd.DataFrame]
    draw: Callable[..., Axes]


PICTURES: Final = (
    TimePicture(
        "allocation",
        "Devices held and wanted over time",
        lambda answer: answer.allocation(),
        allocation_over_time,
    ),
    TimePicture(
        "waiting",
        "How long arrivals waited",
        lambda answer: answer.arrivals(),
        waiting_distribution,
    ),
    TimePicture(
        "fragmentation",
        "What was left and of no use for the next pod, by cause",
        lambda answer: answer.fragmentation(),
        fragmentation_over_time,
    ),
    TimePicture(
        "regret",
        "Regret of all decisions until then",
        lambda answer: answer.regrets(),
        regret_over_time,
    ),
)
"""The pictures of an answer."""
