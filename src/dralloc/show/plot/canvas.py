"""The common parts of all pictures: colours with one meaning everywhere, axes, texts that fit, the way into a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import lru_cache
from html import escape
from io import StringIO
from itertools import cycle
from typing import Any, Final, NamedTuple, cast
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.textpath import text_to_path

from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan
from dralloc.show.plot.holdings import RequestProfile, RequestProfiles

__all__ = [
    "BEFORE",
    "DARK",
    "LIGHT",
    "POINTS",
    "PROFILE_COLOURS",
    "SMALL",
    "TEXT",
    "WIDTH",
    "Bars",
    "Palette",
    "Style",
    "Theme",
    "answers_drawn",
    "axes",
    "bars",
    "colour_variables",
    "enumerated",
    "fitted",
    "name_rows",
    "off_screen",
    "svg",
    "swatch",
    "text_width",
    "theme",
    "tidy",
    "under",
]

# ----------------------------------------------------------------------------
# Axes to draw on, and texts that fit.

POINTS: Final = 72
"""Points in an inch."""
WIDTH: Final = 860
"""Points across a picture that stands alone."""
_MOST: Final = 8

_OFF_SCREEN: ContextVar[bool] = ContextVar("_OFF_SCREEN", default=False)


@contextmanager
def off_screen() -> Iterator[None]:
    """Within it, new figures have no window: no window system is asked for, and nothing keeps them alive."""
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


class DescribedFigure(Figure):
    """A figure with a description of what it shows, for readers who do not see it.

    A notebook shows it as an image with that as its alternative text, which matplotlib's own images do not have.
    """

    description = ""

    def _ipython_display_(self) -> None:
        from IPython.core.pylabtools import print_figure  # noqa: PLC0415 - who calls this has it
        from IPython.display import HTML, display  # noqa: PLC0415

        data = print_figure(self, base64=True, bbox_inches="tight")
        display(
            HTML(
                f'<img alt="{escape(self.description)}" src="data:image/png;base64,{data}">'
            )
        )


def axes(
    ax: Axes | None,
    height: float,
    width: float = WIDTH,
    *,
    says: Iterable[str] = (),
) -> Axes:
    """Return the given axes, or those of a new figure of that size in points that says in sentences what it shows."""
    if ax is not None:
        return ax
    size = (width / POINTS, height / POINTS)
    if _OFF_SCREEN.get():
        picture = DescribedFigure(figsize=size, layout="constrained")
    else:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only what shows pictures needs it

        picture = cast(
            DescribedFigure,
            plt.figure(
                figsize=size, layout="constrained", FigureClass=DescribedFigure
            ),
        )
    picture.description = " ".join(
        f"{part[:1].upper()}{part[1:]}." for part in says
    )
    return picture.add_subplot()


def enumerated(items: Iterable[str]) -> str:
    """Return the first of the items for a description, and how many more there are."""
    listed = list(items)
    further = [f"and {len(listed) - _MOST} more"] if len(listed) > _MOST else []
    return "; ".join([*listed[:_MOST], *further])


@lru_cache(maxsize=65536)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Points across a text in matplotlib's font."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(
        text, font, ismath=False
    )
    return float(width)


def fitted(
    text: str, size: float, room: float, *, bold: bool = False, least: int = 4
) -> str:
    """Return the text, shortened in its middle until it fits; empty if `least` characters and an ellipsis do not."""
    if text_width(text, size, bold=bold) <= room:
        return text
    for keep in range(len(text) - 1, least - 1, -1):
        tail = keep // 2
        shorter = f"{text[: keep - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"
        if text_width(shorter, size, bold=bold) <= room:
            return shorter
    return ""


# ----------------------------------------------------------------------------
# Colours that mean the same in every picture.
#
# Classes of requests have the colours of Paul Tol's "light" scheme (Colour Schemes,
# SRON/EPS/TN/09-002): it is made for filling labelled cells, its colours differ under
# colour vision deficiency too, and black labels stay readable on them. Where there
# are more profiles than colours, hatches tell them apart. No colour is the only
# carrier of what it says: labels, hatches and outlines say it as well.


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they stand for.

    Parameters
    ----------
    surface, ink, muted, faint
        Background, text, secondary text, grid lines and empty places.
    used
        What was allocated before.
    scheduler, first_fit, optimum, bound
        The modes, and what is proven.
    label, edge
        Text on the colours of profiles, and outlines.
    """

    surface: str
    ink: str
    muted: str
    faint: str
    used: str
    scheduler: str
    first_fit: str
    optimum: str
    bound: str
    label: str
    edge: str


LIGHT: Final = Theme(
    surface="#fdfdfc",
    ink="#1b1f24",
    muted="#57606a",
    faint="#d3d8de",
    used="#bcc2c9",
    scheduler="#2f7d4f",
    first_fit="#cc6d10",
    optimum="#1f5fa8",
    bound="#7a4a94",
    label="#111417",
    edge="#444c55",
)
DARK: Final = Theme(
    surface="#14181d",
    ink="#e8ebee",
    muted="#a3adb8",
    faint="#39414b",
    used="#8d96a1",
    scheduler="#79c795",
    first_fit="#f0a35c",
    optimum="#7db4ee",
    bound="#c9a0e0",
    label="#101317",
    edge="#0b0e11",
)

PROFILE_COLOURS: Final = (
    "#77aadd",
    "#ee8866",
    "#eedd88",
    "#ffaabb",
    "#99ddff",
    "#44bb99",
    "#bbcc33",
    "#aaaa00",
)
_HATCHES: Final = ("", "\\\\\\\\", "xxx", "---", "|||", "+++")
"""No dots and circles: in SVG they are as long as everything else together."""


def theme() -> Theme:
    """Return the theme that goes with matplotlib's current background, e.g. the dark one under ``dark_background``."""
    red, green, blue = to_rgb(mpl.rcParams["axes.facecolor"])
    return (
        LIGHT if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else DARK
    )


class Style(NamedTuple):
    """The colour and hatch that fill something."""

    colour: str
    hatch: str

    @property
    def edge(self) -> str:
        """The colour of the hatch: white."""
        return "#ffffff50" if self.hatch else "none"


class Palette:
    """The style of every request profile of a cluster; the same for all plans of the cluster."""

    def __init__(self, profiles: RequestProfiles) -> None:
        styles = [
            Style(colour, hatch)
            for hatch in _HATCHES
            for colour in PROFILE_COLOURS
        ]
        self._styles: Mapping[RequestProfile, Style] = dict(
            zip(profiles.all, cycle(styles))
        )

    def style(self, profile: RequestProfile) -> Style:
        """Colour and hatch of a request profile."""
        return self._styles.get(profile, Style(LIGHT.used, ""))


# ----------------------------------------------------------------------------
# What all charts share: axes without clutter, hatched bars, legends above, texts that
# are never formulas.

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


# ----------------------------------------------------------------------------
# A picture as SVG to put into a page: it takes its colours from the page, and says
# what it shows.

_SETTINGS: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "axes.facecolor": LIGHT.surface,
    "figure.facecolor": LIGHT.surface,
    "font.family": ["DejaVu Sans"],
    "hatch.linewidth": 1.0,
    "path.simplify": False,
}
_METADATA: Final = ("Date", "Creator", "Format", "Type")
_NAMESPACE: Final = re.compile(r"\{[^}]*\}")
_REFERENCE: Final = re.compile(r"(?<=url\(#)|(?<=^#)")
_NO_TURN: Final = "rotate(-0 "


def svg(
    draw: Callable[[], Axes], name: str, title: str, description: str = ""
) -> str:
    """Draw a picture as one ``svg`` element.

    Its colours are the variables of `colour_variables`, its texts are text, its ids begin with `name`. The same picture
    gives the same text.

    Parameters
    ----------
    draw
        Draws onto new axes and returns them.
    name
        What tells it apart from other pictures in the page; a valid id.
    title, description
        What it is, and what there is to see, for those who do not see it; by default what the figure says.
    """
    text = StringIO()
    settings: Any = {**_SETTINGS, "svg.hashsalt": name}
    with mpl.rc_context(settings), off_screen():
        ax = draw()
        figure = ax.get_figure(root=True)
        if figure is None:
            raise ValueError(f"{name}: the axes have no figure")
        description = description or getattr(figure, "description", "")
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(_METADATA),
        )
    root = ET.fromstring(text.getvalue())
    tips = {
        str(patch.get_gid()): str(patch.get_label())[1:]
        for patch in ax.patches
        if patch.get_gid()
    }
    for element in root.iter():
        # Style sheets for all elements would be ones for the whole page.
        for page_wide in element.findall("./{*}defs[{*}style]"):
            element.remove(page_wide)
        if tip := tips.get(element.get("id", "")):
            element.insert(0, _element("title", tip))
        _embed(element, name)
    labels = {
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-description",
    }
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", **labels}
    root.insert(0, _element("title", title, id=f"{name}-title"))
    root.insert(1, _element("desc", description, id=f"{name}-description"))
    return ET.tostring(root, encoding="unicode")


def colour_variables(theme: Theme) -> Iterator[tuple[str, str]]:
    """Yield the variables that pictures take their colours from, with their values in a theme."""
    for role, colour in asdict(theme).items():
        yield f"--plot-{role.replace('_', '-')}", colour


_VARIABLES: Final = {
    colour: f"var({name})" for name, colour in colour_variables(LIGHT)
}


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(tag, attributes)
    element.text = text
    return element


def _embed(element: ET.Element, name: str) -> None:
    """Ids get a prefix, colours become variables, fonts the page's, and blanks between elements go."""
    element.tag = _NAMESPACE.sub("", element.tag)
    attributes = {
        _NAMESPACE.sub("", key): " ".join(value.split())
        for key, value in element.attrib.items()
    }
    if attributes.get("transform", "").startswith(_NO_TURN):
        del attributes["transform"]
    if attributes.get("fill", "").startswith("#"):
        attributes["style"] = (
            f"fill: {attributes.pop('fill')}; {attributes.get('style', '')}"
        )
    if "style" in attributes:
        attributes["style"] = "; ".join(_themed(attributes["style"]))
    if "id" in attributes:
        attributes["id"] = f"{name}-{attributes['id']}"
    element.attrib = {
        key: _REFERENCE.sub(f"{name}-", value)
        for key, value in attributes.items()
    }
    element.text, element.tail = (
        text if text and text.strip() else None
        for text in (element.text, element.tail)
    )


def _themed(style: str) -> Iterator[str]:
    """Yield the declarations of a style: colours of the light theme as variables, of fonts the size alone."""
    for declaration in filter(None, map(str.strip, style.split(";"))):
        key, _, value = declaration.partition(": ")
        if key == "font":
            yield f"font-size: {value.split()[0]}"
        elif key != "font-family":
            yield f"{key}: {_VARIABLES.get(value, value)}"
