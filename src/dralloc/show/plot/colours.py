"""Colours that mean the same in every picture.

Classes of requests have the colours of Paul Tol's "light" scheme (Colour Schemes, SRON/EPS/TN/09-002): it is made for
filling labelled cells, its colours differ under colour vision deficiency too, and black labels stay readable on them.
Where there are more profiles than colours, hatches tell them apart. No colour is the only carrier of what it says:
labels, hatches and outlines say it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Final, NamedTuple

import matplotlib as mpl
from matplotlib.colors import to_rgb

from dralloc.show.plot.profiles import RequestProfile, RequestProfiles

__all__ = [
    "DARK",
    "LIGHT",
    "PROFILE_COLOURS",
    "Palette",
    "Style",
    "Theme",
    "theme",
]


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
