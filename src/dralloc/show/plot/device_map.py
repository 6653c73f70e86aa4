"""The device map: nodes as rows, devices as boxes, with partitions and shares in them drawn to scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes

from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.show.comparison import answer_words
from dralloc.show.plan import Plan
from dralloc.show.plot.canvas import axes
from dralloc.show.plot.colours import Palette, theme
from dralloc.show.plot.holdings import HeldDevice, held_devices
from dralloc.show.plot.map_drawing import Drawing, Entry, Legend
from dralloc.show.plot.map_layout import (
    MapLayout,
    held_by_slot,
    layout_of,
    most_telling,
)
from dralloc.show.plot.physical_devices import rows
from dralloc.show.plot.profiles import RequestProfile, RequestProfiles
from dralloc.show.plot.texts import enumerated
from dralloc.show.question import asked

__all__ = ["device_map"]

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
    # Both answers count alike, so that the maps of a pair have the same rows.
    shown = most_telling(
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
    # The legend comes before the layout, as the first row begins below it.
    legend = Legend.of(
        _entries(held, profiles, Palette(profiles), starred), top
    )
    layout = layout_of(
        problem,
        shown,
        held_by_slot(problem, held),
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
