"""The parts of a device map, drawn onto axes whose unit is a point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from dralloc.objects.names import ClaimKey
from dralloc.show.plot.blocks import Block
from dralloc.show.plot.canvas import POINTS, WIDTH
from dralloc.show.plot.colours import Palette, Style, Theme
from dralloc.show.plot.holdings import HeldDevice
from dralloc.show.plot.map_layout import MapLayout, MapText, Spot
from dralloc.show.plot.texts import clean, fitted, text_width

__all__ = ["Drawing", "Entry", "Legend"]

_TEXT: Final = 8.0
"""Size of the texts in a device map, in points."""
_SWATCH: Final = 20.0
"""Width of a swatch."""
_LINE: Final = 17.0
_SPACE: Final = 16.0
_STAR: Final = "\N{BLACK STAR}"
_PADDING: Final = 4.0
_SIZES: Final = {0: 11.0, 1: 9.5, 2: 7.5}


@dataclass(frozen=True, slots=True)
class Entry:
    """The meaning of a style; without one, what was allocated before or what only one answer places."""

    label: str
    style: Style | None
    starred: bool = False


class _Placed(NamedTuple):
    entry: Entry
    label: str
    x: float
    top: float


@dataclass(frozen=True, slots=True)
class Legend:
    """The entries in their places, and where the last line ends."""

    placed: tuple[_Placed, ...]
    bottom: float

    @classmethod
    def of(cls, entries: Iterable[Entry], top: float) -> Legend:
        """Put the entries into lines."""
        placed: list[_Placed] = []
        x = 0.0
        for entry in entries:
            label = fitted(entry.label, _TEXT, WIDTH / 2)
            width = _SWATCH + 5 + text_width(label, _TEXT)
            if x and x + width > WIDTH:
                x, top = 0.0, top + _LINE
            placed.append(_Placed(entry, label, x, top))
            x += width + _SPACE
        return cls(tuple(placed), top + _LINE if placed else top)


class Font(NamedTuple):
    """The look of a text, and its position around its point."""

    colour: str
    size: float = _TEXT
    bold: bool = False
    align: Literal["left", "center", "right"] = "left"
    upright: Literal["baseline", "center_baseline"] = "center_baseline"


@dataclass(frozen=True)
class Drawing:
    """Axes in points, with the scale that makes texts as large as their surroundings."""

    ax: Axes
    scale: float
    theme: Theme
    palette: Palette

    @classmethod
    def on(
        cls, ax: Axes, height: float, theme: Theme, palette: Palette
    ) -> Drawing:
        """Prepare axes: one unit of data is one point of the natural size."""
        # The figure may be larger or smaller than the map's natural size, and so is its text.
        bounds, figure = ax.get_position(), ax.get_figure(root=True)
        across, down = (
            figure.get_size_inches() * POINTS
            if figure is not None
            else (WIDTH, height)
        )
        margin = 2.0
        ax.set(
            xlim=(-margin, WIDTH + margin),
            ylim=(height + margin, -margin),
            aspect="equal",
        )
        ax.axis("off")
        return cls(
            ax,
            min(bounds.width * across / WIDTH, bounds.height * down / height),
            theme,
            palette,
        )

    def heading(self, text: str) -> None:
        """Write the title of the whole map."""
        self._text(MapText(text, 0, 11, 0))

    def legend(self, legend: Legend) -> None:
        """Draw swatches with their labels."""
        for entry, label, x, top in legend.placed:
            style = entry.style or (
                Style(self.theme.surface, "") if entry.starred else self._used()
            )
            self._filled(x, top, _SWATCH, 11, style)
            self._outline(x, top, _SWATCH, 11, strong=entry.starred)
            if entry.starred:
                self._write(
                    _STAR,
                    x + _SWATCH / 2,
                    top + 5.5,
                    Font(self.theme.ink, align="center"),
                )
            self._write(label, x + _SWATCH + 5, top + 5.5, Font(self.theme.ink))

    def units(
        self,
        layout: MapLayout,
        starred: Set[ClaimKey],
        tips: Mapping[HeldDevice, str],
    ) -> None:
        """Draw all units with what is in them."""
        for line in layout.lines:
            self._text(line)
        tip_numbers = count()
        for spot in layout.spots:
            self._empty(spot)
            for block in spot.blocks:
                self._block(
                    spot,
                    block,
                    f"tip-{next(tip_numbers)}",
                    tips,
                    starred=block.holding.owner in starred,
                )

    def _text(self, line: MapText) -> None:
        size = _SIZES[line.level]
        colour = self.theme.muted if line.level == 2 else self.theme.ink
        room = WIDTH if line.level < 2 else WIDTH / 8 - _PADDING
        text = fitted(clean(line.text), size, room, bold=line.level < 2)
        self._write(
            text,
            line.x,
            line.baseline,
            Font(colour, size, bold=line.level < 2, upright="baseline"),
        )

    def _empty(self, spot: Spot) -> None:
        self._outline(spot.x, spot.top, spot.width, spot.height)
        tracks = len(spot.unit.tracks)
        for track in range(1, tracks):
            y = spot.top + spot.height * track / tracks
            ends = (spot.x, spot.x + spot.width)
            self.ax.plot(
                ends,
                (y, y),
                color=self.theme.faint,
                lw=0.6 * self.scale,
                zorder=0.5,
                clip_on=False,
            )

    def _block(
        self,
        spot: Spot,
        block: Block,
        gid: str,
        tips: Mapping[HeldDevice, str],
        *,
        starred: bool,
    ) -> None:
        # A gap around each block keeps the outlines of neighbours apart.
        box, holding = block.box, block.holding
        x, top = (
            spot.x + box.x * spot.width + 0.8,
            spot.top + box.top * spot.height + 0.8,
        )
        width, height = (
            box.width * spot.width - 1.6,
            box.height * spot.height - 1.6,
        )
        if width <= 0 or height <= 0:
            return
        style = (
            self.palette.style(holding.profile) if holding.new else self._used()
        )
        patch = self._filled(x, top, width, height, style)
        # The page makes a tooltip of id and label; the underscore keeps it out of legends.
        patch.set_gid(gid)
        patch.set_label("_" + clean(tips.get(holding, "")))
        self._outline(x, top, width, height, strong=starred)
        self._label(
            holding,
            (x, top, width, height),
            mark=_STAR + " " if starred else "",
        )

    def _label(
        self,
        holding: HeldDevice,
        box: tuple[float, float, float, float],
        mark: str,
    ) -> None:
        x, top, width, height = box
        room, name = width - 2 * _PADDING, clean(holding.owner.name)
        if height < _TEXT + 2:
            return
        profile = fitted(
            mark + holding.profile.short, _TEXT, room, bold=True, least=2
        )
        middle, plain = top + height / 2, Font(self.theme.label)
        two = height >= 2 * _TEXT + 6
        self._write(
            profile,
            x + _PADDING,
            middle - 5.5 if two else middle,
            plain._replace(bold=True),
        )
        # The owner's name is below the profile, or behind it where there is one line.
        if two:
            self._write(
                fitted(name, _TEXT, room), x + _PADDING, middle + 5.5, plain
            )
        else:
            name = fitted(
                name,
                _TEXT,
                room - text_width(profile, _TEXT, bold=True) - _PADDING,
                least=6,
            )
            self._write(
                name,
                x + width - _PADDING,
                middle,
                plain._replace(align="right"),
            )

    def _used(self) -> Style:
        return Style(self.theme.used, "////")

    def _filled(
        self, x: float, top: float, width: float, height: float, style: Style
    ) -> Rectangle:
        """Return a rectangle in a colour, with its hatch in white."""
        patch = Rectangle(
            (x, top),
            width,
            height,
            facecolor=style.colour,
            hatch=style.hatch,
            lw=0,
            clip_on=False,
        )
        patch.set_edgecolor(style.edge)
        self.ax.add_patch(patch)
        return patch

    def _outline(
        self,
        x: float,
        top: float,
        width: float,
        height: float,
        *,
        strong: bool = False,
    ) -> None:
        colour = self.theme.ink if strong else self.theme.muted
        line = (2.2 if strong else 0.7) * self.scale
        self.ax.add_patch(
            Rectangle(
                (x, top),
                width,
                height,
                fill=False,
                edgecolor=colour,
                lw=line,
                clip_on=False,
            )
        )

    def _write(self, text: str, x: float, y: float, font: Font) -> None:
        if text:
            self.ax.text(
                x,
                y,
                text,
                size=font.size * self.scale,
                color=font.colour,
                weight="bold" if font.bold else "normal",
                ha=font.align,
                va=font.upright,
                parse_math=False,
            )
