"""What all charts share: axes without clutter, hatched bars, legends above, texts that are never formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.patches import Patch

from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan
from dralloc.show.plot.colours import Style, Theme

__all__ = [
    "BEFORE",
    "SMALL",
    "TEXT",
    "Bars",
    "answers_drawn",
    "bars",
    "name_rows",
    "swatch",
    "tidy",
    "under",
]

TEXT: Final = 8.5
"""Size of labels, in points."""
SMALL: Final = 7.5
"""Size of numbers at bars, in points."""


class Bars(NamedTuple):
    """The meaning of a group of bars: its label, the name of its colour in a theme, its hatch."""

    label: str
    role: str
    hatch: str

    def style(self, theme: Theme) -> Style:
        """Return how it is filled in a theme."""
        return Style(getattr(theme, self.role), self.hatch)


BEFORE: Final = Bars("before", "used", "////")
SCHEDULER: Final = Bars("kube-scheduler", "scheduler", "....")
FIRST_FIT: Final = Bars("first fit", "first_fit", "\\\\\\\\")
OPTIMUM: Final = Bars("optimum", "optimum", "")


_UNDER: Final = {
    "scheduler": "with kube-scheduler",
    "first fit": "with first fit",
    "optimum": "with the optimum",
}
_POLICY_HATCHES: Final = ("....", "xx", "||", "oo")
"""Of the answers of policies, which have one colour."""


def under(title: str) -> str:
    """Return the words for an answer by its title."""
    return _UNDER.get(title, f"by {title}")


def answers_drawn(
    comparison: Comparison, thickness: float
) -> list[tuple[Plan, Bars, float]]:
    """Return the answers of a comparison, each with its style and how far its bars are from the middle of a row."""
    styles = {
        "scheduler": SCHEDULER,
        "first fit": FIRST_FIT,
        "optimum": OPTIMUM,
    }
    for policy_index, plan in enumerate(comparison.policies):
        title = str(plan.mode)
        styles[title] = Bars(
            title, "bound", _POLICY_HATCHES[policy_index % len(_POLICY_HATCHES)]
        )
    middle = (len(comparison.answers) - 1) / 2
    return [
        (plan, styles[title], (answer_index - middle) * thickness)
        for answer_index, (title, plan) in enumerate(comparison.answers.items())
    ]


def bars(
    ax: Axes,
    positions: Sequence[float],
    lengths: Sequence[float],
    thickness: float,
    style: Style,
    **bar_words: Any,
) -> BarContainer:
    """Horizontal bars in a colour, with a hatch in white."""
    bar_words |= {
        "color": style.colour,
        "hatch": style.hatch,
        "edgecolor": style.edge,
        "linewidth": 0,
    }
    return ax.barh(positions, lengths, thickness, **bar_words)


def tidy(
    ax: Axes,
    theme: Theme,
    title: str,
    *,
    grid: str = "x",
    legend: Sequence[Artist] = (),
) -> None:
    """Set the title, the legend in one line below it, and leave no more lines than reading takes."""
    pad = 26 if legend else 12
    ax.set_title(
        title,
        loc="left",
        size=11,
        weight="bold",
        color=theme.ink,
        parse_math=False,
        pad=pad,
    )
    for side, spine in ax.spines.items():
        spine.set_visible(side == ("left" if grid == "x" else "bottom"))
        spine.set_color(theme.muted)
    ax.tick_params(
        colors=theme.muted, labelcolor=theme.ink, labelsize=TEXT, length=0
    )
    ax.grid(axis="x" if grid == "x" else "y", color=theme.faint, lw=0.7)
    ax.set_axisbelow(True)
    if legend:
        ax.legend(
            handles=list(legend),
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=len(legend),
            frameon=False,
            fontsize=TEXT,
            labelcolor=theme.ink,
            borderaxespad=0.2,
            handlelength=1.8,
            columnspacing=1.6,
        )


def name_rows(ax: Axes, theme: Theme, names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... from the top down."""
    ax.set_yticks(
        range(len(names)), names, size=TEXT, color=theme.ink, parse_math=False
    )
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)


def swatch(theme: Theme, kind: Bars) -> Patch:
    """Return the entry of bars in a legend."""
    style = kind.style(theme)
    return Patch(
        facecolor=style.colour,
        hatch=style.hatch,
        edgecolor=style.edge,
        linewidth=0,
        label=kind.label,
    )
