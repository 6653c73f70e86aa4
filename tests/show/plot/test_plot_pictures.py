"""Every picture on real clusters: labels that do not overlap, axes as given, no window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import dralloc
from conftest import ROOT
from dralloc.show.plot import (
    demand_curve,
    device_map,
    gained,
    progress,
    ranks,
    utilisation,
)
from dralloc.show.plot.colours import DARK, LIGHT
from dralloc.solve.optimum import Progress
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

mpl.use("agg")

MODELS = (
    "h100-mig",
    "gpu-nic",
    "keps/4381-admin-access",
    "keps/4381-network-attached",
    "keps/4815-mig-profile-counts",
    "keps/4815-tpu-8x8",
    "keps/4816-older-models",
    "keps/5075-eight-shares",
    "keps/5941-vf-tiers",
)
RECORDS = [
    Progress("weight", best, bound, seconds)
    for best, bound, seconds in ((44, 60, 0.1), (47, 50, 0.4))
]
PICTURES: dict[str, Callable[[dralloc.Comparison, Axes | None], Axes]] = {
    "map of first fit": lambda both, ax: device_map(
        both.first_fit, ax, beside=both.optimal
    ),
    "map of the optimum": lambda both, ax: device_map(
        both.optimal, ax, beside=both.first_fit
    ),
    "utilisation": utilisation,
    "gained": gained,
    "ranks": ranks,
    "progress": lambda _, ax: progress(RECORDS, ax),
    "demand curve": lambda _, ax: demand_curve(study(), ax),
}


@cache
def compared(model: str) -> dralloc.Comparison:
    return dralloc.compare(dralloc.load(ROOT / "models" / model))


def study() -> pd.DataFrame:
    rows = [
        {
            "policy": policy,
            "demand": demand,
            "placed_share": min(1.0, reach / demand + seed / 50),
        }
        for policy, reach in (
            ("first-fit", 0.8),
            ("best-fit", 0.9),
            ("optimal", 1.0),
        )
        for demand in (1.0, 1.5, 2.0)
        for seed in range(2)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")


def texts(ax: Axes) -> list[Text]:
    return [
        artist
        for artist in ax.findobj(Text)
        if isinstance(artist, Text)
        and artist.get_visible()
        and artist.get_text().strip()
    ]


def overlaps(ax: Axes) -> list[tuple[str, str]]:
    """Pairs of texts that share more than a hair's breadth."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [
        (artist.get_text(), artist.get_window_extent(canvas.get_renderer()))
        for artist in texts(ax)
    ]
    return [
        (name, other)
        for (name, box), (other, its) in combinations(boxes, 2)
        if min(box.x1, its.x1) - max(box.x0, its.x0) > 1
        and min(box.y1, its.y1) - max(box.y0, its.y0) > 2
    ]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("picture", PICTURES)
def test_labels_do_not_overlap(model: str, picture: str) -> None:
    assert overlaps(PICTURES[picture](compared(model), None)) == []


@pytest.mark.parametrize("picture", PICTURES)
def test_given_axes_are_drawn_on_and_returned(picture: str) -> None:
    ax = Figure(figsize=(9, 6), layout="constrained").add_subplot()
    assert PICTURES[picture](compared("h100-mig"), ax) is ax
    assert plt.get_fignums() == []
    assert overlaps(ax) == []


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_are_dark_under_a_dark_style(picture: str) -> None:
    with plt.style.context("dark_background"):
        inks = {
            to_hex(artist.get_color())
            for artist in texts(PICTURES[picture](compared("h100-mig"), None))
        }
    assert inks <= {DARK.ink, DARK.muted, DARK.label}
    assert LIGHT.ink not in inks


def test_large_clusters_are_summarised() -> None:
    names = [f"node-{index:02}" for index in range(20)]
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in names
    ]
    claims = [claim(f"c{index}", request()) for index in range(5)]
    plan = dralloc.allocate(
        cluster([node(name) for name in names], device_class(), slices, claims),
        "first-fit",
    )
    shown = [
        artist.get_text() for artist in texts(device_map(plan, max_nodes=4))
    ]
    assert [text for text in shown if text.startswith("node-")] == [
        f"node-0{n}: 1 placed here" for n in range(4)
    ]
    assert "and 16 more nodes or groups of nodes" in shown


def test_both_maps_of_a_large_cluster_show_the_same_nodes() -> None:
    both = compared("gpu-nic")
    pairs = (both.first_fit, both.optimal), (both.optimal, both.first_fit)
    maps = [
        device_map(plan, beside=beside, max_nodes=2) for plan, beside in pairs
    ]
    shown = [
        {
            artist.get_text()[:5]
            for artist in texts(ax)
            if " placed here" in artist.get_text()
        }
        for ax in maps
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 2


def test_long_charts_are_summarised() -> None:
    both = compared("h100-mig")
    assert "(and 10 more)" in utilisation(both, most=4).get_title(loc="left")
    assert "more kinds)" in gained(both, most=3).get_title(loc="left")


def test_nothing_to_draw_is_no_error() -> None:
    nothing = dralloc.compare(cluster(node()))
    for picture in ("map of the optimum", "utilisation", "gained", "ranks"):
        assert not any(
            bar.get_extents().width
            for bar in PICTURES[picture](nothing, None).patches
        )
    assert not any(len(line.get_path()) for line in progress([]).lines)
    assert not demand_curve(
        pd.DataFrame({"policy": [], "demand": [], "placed_share": []})
    ).lines


def test_the_gain_is_counted_by_kind() -> None:
    ax = gained(compared("h100-mig"))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert "4g.40gb or 3g.40gb or 2\N{MULTIPLICATION SIGN} 2g.20gb" in names
    written = [artist.get_text() for artist in ax.texts]
    assert [text for text in written if text.startswith("\N{BLACK STAR}")] == [
        "\N{BLACK STAR} 3",
        "\N{BLACK STAR} 1",
    ]
