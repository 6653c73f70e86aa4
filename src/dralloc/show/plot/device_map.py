"""The device map: nodes as rows, devices as boxes, with partitions and shares in them drawn to scale.

First the layout, in points from the upper left corner, then the drawing, then the picture as users ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import count, groupby
from typing import Final, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.problem import DeviceIndex, Problem
from dralloc.show.comparison import answer_words
from dralloc.show.plan import Plan
from dralloc.show.plot.blocks import Block, blocks
from dralloc.show.plot.canvas import POINTS, WIDTH, axes
from dralloc.show.plot.colours import Palette, Style, Theme, theme
from dralloc.show.plot.holdings import HeldDevice, held_devices
from dralloc.show.plot.physical_devices import MapRow, PhysicalDevice, rows
from dralloc.show.plot.profiles import RequestProfile, RequestProfiles
from dralloc.show.plot.texts import clean, enumerated, fitted, text_width
from dralloc.show.question import asked

__all__ = ["device_map"]

# ----------------------------------------------------------------------------
# Which rows and units a device map shows, and where, in points from the upper left
# corner.

_GAP: Final = 8.0
_TRACK: Final = 15.0
"""Height of a track, of which a label in one line needs that much."""
_ACROSS: Final = 8
"""How many units stand beside each other; a node has eight GPUs at most, as a rule."""
_MOST_UNITS: Final = 32
"""How many units of a row are drawn."""
_TITLE: Final = 12.0
"""Height of the title of a unit."""
_HEADER: Final = 22.0
"""Height of the name of a row."""


class MapText(NamedTuple):
    """A line of text: the name of a row or of a unit, or what is left out."""

    text: str
    x: float
    baseline: float
    level: int


class Spot(NamedTuple):
    """A unit in its place, with what is in it."""

    unit: PhysicalDevice
    x: float
    top: float
    width: float
    height: float
    blocks: list[Block]


@dataclass(frozen=True)
class MapLayout:
    """The texts and units of a map in their places. ``height`` is where the last row ends."""

    lines: tuple[MapText, ...]
    spots: tuple[Spot, ...]
    height: float


def _most_telling(
    rows: Sequence[MapRow], tellings: Sequence[Mapping[int, int]], maximum: int
) -> tuple[MapRow, ...]:
    """Return at most so many rows: those with the largest counts, the first count first; in their order.

    `tellings` has counts by device: how many holdings of one sort or another it has.
    """
    if len(rows) <= maximum:
        return tuple(rows)

    def rank(row_index: int) -> tuple[int, ...]:
        devices = [
            device for unit in rows[row_index].units for device in unit.devices
        ]
        totals = [_total(counts, devices) for counts in tellings]
        return (*(-total for total in totals), row_index)

    most_telling_first = sorted(range(len(rows)), key=rank)
    return tuple(
        rows[row_index] for row_index in sorted(most_telling_first[:maximum])
    )


def _total(counts: Mapping[int, int], devices: Iterable[DeviceIndex]) -> int:
    return sum(counts.get(device, 0) for device in devices)


def _held_in(
    problem: Problem, held: Sequence[HeldDevice]
) -> Mapping[int, Sequence[HeldDevice]]:
    """Group holdings by the slot of their device."""
    by_slot: dict[int, list[HeldDevice]] = {}
    for holding in held:
        by_slot.setdefault(problem.devices[holding.device].slot, []).append(
            holding
        )
    return by_slot


def _lay_out(
    problem: Problem,
    rows: Sequence[MapRow],
    held: Mapping[int, Sequence[HeldDevice]],
    left_out: int,
    top: float,
) -> MapLayout:
    """Put the rows below each other, the units of a row beside each other in lines."""
    lines: list[MapText] = []
    spots: list[Spot] = []
    for row in rows:
        top += _HEADER
        filled = {unit: _blocks(problem, unit, held) for unit in row.units}
        shown = _shown(row.units, filled)
        # Units that are left out count, too, and an owner with several devices once.
        placed = {
            block.holding.owner
            for unit_blocks in filled.values()
            for block in unit_blocks
            if block.holding.new
        }
        lines.append(
            MapText(
                f"{row.name}: {len(placed) or 'nothing'} placed here",
                0,
                top - 8,
                1,
            )
        )
        for line in _in_lines(shown):
            height = max(map(_height, line))
            for column, unit in enumerate(line):
                x = column * (_unit_width() + _GAP)
                lines.append(MapText(unit.title, x, top + _TITLE - 4, 2))
                spots.append(
                    Spot(
                        unit,
                        x,
                        top + _TITLE,
                        _unit_width(),
                        _height(unit),
                        filled[unit],
                    )
                )
            top += _TITLE + height + _GAP
        if len(shown) < len(row.units):
            lines.append(
                MapText(
                    f"and {len(row.units) - len(shown)} more devices",
                    0,
                    top + 8,
                    2,
                )
            )
            top += _HEADER - _GAP
    if left_out:
        lines.append(
            MapText(
                f"and {left_out} more nodes or groups of nodes", 0, top + 14, 1
            )
        )
        top += _HEADER
    return MapLayout(tuple(lines), tuple(spots), top)


def _blocks(
    problem: Problem,
    unit: PhysicalDevice,
    held: Mapping[int, Sequence[HeldDevice]],
) -> list[Block]:
    unit_holdings: list[HeldDevice] = []
    for device in unit.devices:
        counters = problem.devices[device].consumes
        for holding in held.get(problem.devices[device].slot, ()):
            # A holding may name another number of the same slot: the device as the pool
            # published it before.
            is_current = holding.device == device
            unit_holdings.append(
                holding
                if is_current
                else replace(holding, device=device, counters=counters)
            )
    # What was held before is drawn first, so that it stays where it was in all pictures.
    return blocks(
        problem, unit, sorted(unit_holdings, key=lambda holding: holding.new)
    )


def _shown(
    units: Sequence[PhysicalDevice],
    filled: Mapping[PhysicalDevice, Sequence[Block]],
) -> Sequence[PhysicalDevice]:
    """Return at most so many units, in order; those that hold nothing are the first to be left out."""
    if len(units) <= _MOST_UNITS:
        return units
    shown = sorted(
        range(len(units)),
        key=lambda unit_index: (not filled[units[unit_index]], unit_index),
    )[:_MOST_UNITS]
    return [units[unit_index] for unit_index in sorted(shown)]


def _in_lines(
    units: Sequence[PhysicalDevice],
) -> Iterator[Sequence[PhysicalDevice]]:
    """Yield the lines of a row: units of one driver and height, as many as there is room for."""
    order = Counter[tuple[str, float]]()
    for unit in units:
        order[unit.driver, _height(unit)] += 1
    positions = {key: position for position, key in enumerate(order)}

    def line_key(unit: PhysicalDevice) -> int:
        return positions[unit.driver, _height(unit)]

    for _, group in groupby(sorted(units, key=line_key), key=line_key):
        members = list(group)
        for start in range(0, len(members), _ACROSS):
            yield members[start : start + _ACROSS]


def _unit_width() -> float:
    return (WIDTH - (_ACROSS - 1) * _GAP) / _ACROSS


def _height(unit: PhysicalDevice) -> float:
    if unit.tracks:
        return _TRACK * min(len(unit.tracks), 16)
    return 8 * _TRACK if unit.counters or unit.shareable else 2 * _TRACK


# ----------------------------------------------------------------------------
# Draws the parts of a device map onto axes whose unit is a point.

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


_TITLE_HEIGHT = 20.0
_NAMES = {
    Mode.FIRST_FIT: "First fit",
    Mode.SCHEDULER: "kube-scheduler",
    Mode.OPTIMAL: "Optimum",
}


def device_map(
    plan: Plan,
    ax: Axes | None = None,
    *,
    beside: Plan | None = None,
    max_nodes: int = 12,
    title: str | None = None,
) -> Axes:
    """Draw where everything is under a plan.

    Each node is a row. A counter set (KEP-4815), mostly a GPU, is a box in which its partitions lie where the counters
    that they consume put them, e.g. on their memory slices. A device of its own is a box as well, with its shares
    stacked by the largest part that they take of any of its capacities (KEP-5075). What was allocated before is grey
    and hatched. Admin access to partitions takes nothing and is not drawn.

    Parameters
    ----------
    plan
        The answer to draw.
    ax
        Where to draw; a new figure if None. The picture keeps its proportions and scales with the axes.
    beside
        Another answer to the same problem. What it does not place has a bold outline and a star.
    max_nodes
        The most rows to draw: those where the plans differ most, then those with most placements.
    title
        The heading; the mode and how much it places if None. Empty for none.

    Returns
    -------
    Axes
        One unit of its data is one point.
    """
    problem = plan.compiled.problem
    profiles = RequestProfiles(plan.compiled.cluster)
    held = held_devices(plan, profiles)
    only_here = _only_here(plan, beside)
    all_rows = rows(problem)
    held_beside = () if beside is None else held_devices(beside, profiles)
    either = (
        only_here if beside is None else only_here | _only_here(beside, plan)
    )
    shown = _most_telling(
        all_rows, _tellings((*held, *held_beside), either), max_nodes
    )
    name = _NAMES[plan.mode] if isinstance(plan.mode, Mode) else plan.mode
    usual = f"{name}: {plan.metrics.placed} of {len(plan.demands)} placed"
    heading = usual if title is None else title
    top = _TITLE_HEIGHT if heading else 0.0
    starred = (
        f"not placed by {answer_words(beside.mode)}"
        if beside is not None and only_here
        else ""
    )
    legend = Legend.of(
        _entries(held, profiles, Palette(profiles), starred), top
    )
    layout = _lay_out(
        problem,
        shown,
        _held_in(problem, held),
        len(all_rows) - len(shown),
        legend.bottom,
    )
    says = _says(plan, starred, sorted(map(str, only_here)))
    drawing = Drawing.on(
        _prepared(ax, layout, says), layout.height, theme(), Palette(profiles)
    )
    drawing.heading(heading)
    drawing.legend(legend)
    drawing.units(
        layout, only_here, {holding: _tip(plan, holding) for holding in held}
    )
    return drawing.ax


def _prepared(ax: Axes | None, layout: MapLayout, says: Iterable[str]) -> Axes:
    if ax is not None:
        return ax
    ax = axes(None, layout.height, says=says)
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.set_layout_engine("none")
    ax.set_position((0, 0, 1, 1))
    return ax


def _says(plan: Plan, starred: str, only_here: Sequence[str]) -> Iterator[str]:
    yield f"{plan.metrics.placed} of {asked(plan.compiled)} are placed"
    nodes = Counter(
        plan.node_of(placement) for placement in plan.solution.placements
    )
    if nodes:
        yield "by node: " + enumerated(
            f"{name} {count}" for name, count in nodes.items()
        )
    before = sum(claim.is_allocated for claim in plan.compiled.cluster.claims)
    if before:
        yield f"{before} claims were allocated before"
    if only_here:
        yield f"{starred}: " + enumerated(only_here)


def _only_here(plan: Plan, beside: Plan | None) -> frozenset[ClaimKey]:
    if beside is None:
        return frozenset()
    missing = {demand.key for demand in beside.unplaced}
    return frozenset(missing - {demand.key for demand in plan.unplaced})


def _tellings(
    held: tuple[HeldDevice, ...], in_one_only: frozenset[ClaimKey]
) -> tuple[Mapping[int, int], ...]:
    """Return counts by device that say how much a row has to tell, the most important first."""
    return (
        Counter(
            holding.device for holding in held if holding.owner in in_one_only
        ),
        Counter(holding.device for holding in held if holding.new),
        Counter(holding.device for holding in held),
    )


def _entries(
    held: tuple[HeldDevice, ...],
    profiles: RequestProfiles,
    palette: Palette,
    starred: str,
) -> Iterator[Entry]:
    drawn: dict[RequestProfile, None] = {
        holding.profile: None for holding in held if holding.new
    }
    for profile in profiles.all:
        if profile in drawn:
            yield Entry(profile.label, palette.style(profile))
    if any(not holding.new for holding in held):
        yield Entry("allocated before", None)
    if starred:
        yield Entry(starred, None, starred=True)


def _tip(plan: Plan, holding: HeldDevice) -> str:
    """Return everything about a holding, for the pointer."""
    device = plan.compiled.problem.devices[holding.device].id
    state = "placed" if holding.new else "allocated before"
    if holding.admin:
        state = "admin access"
    owner = (
        str(holding.claim)
        if holding.owner == holding.claim
        else f"{holding.owner}, claim {holding.claim.name}"
    )
    return f"{owner}: {holding.profile.label} on {device} ({state})"
