"""What pictures are made of: profiles and their colours, places to scale, texts that fit, SVG."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

import dralloc
from conftest import ROOT
from dralloc.objects.choices import ModeName
from dralloc.objects.cluster import Cluster
from dralloc.show.plot import device_map, gained
from dralloc.show.plot.blocks import Box, blocks
from dralloc.show.plot.canvas import off_screen
from dralloc.show.plot.colours import (
    DARK,
    LIGHT,
    PROFILE_COLOURS,
    Palette,
    Theme,
)
from dralloc.show.plot.holdings import held_devices
from dralloc.show.plot.physical_devices import rows
from dralloc.show.plot.profiles import UNKNOWN, RequestProfile, RequestProfiles
from dralloc.show.plot.svg import svg
from dralloc.show.plot.texts import clean, fitted, shortened, text_width
from wire import (
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)


@pytest.mark.parametrize(
    ("expression", "short"),
    [
        ("device.attributes['gpu.nvidia.com'].profile == '1g.10gb'", "1g.10gb"),
        (
            "device.driver == 'x' && device.attributes['x'].size == \"big\"",
            "size=big",
        ),
        ('device.capacity["tpu"].tpus == quantity("16")', "tpus=16"),
        ("device.attributes['dra.net'].numaNode >= 1", "numaNode>=1"),
        ("device.driver == 'gpu.nvidia.com'", "gpu.nvidia.com"),
        (
            "device.allowMultipleAllocations",
            "device.allowMultip\N{HORIZONTAL ELLIPSIS}locations",
        ),
    ],
)
def test_kinds_are_named_by_what_they_compare(
    expression: str, short: str
) -> None:
    label = RequestProfile("gpu.example.com", (expression,)).short
    assert label == short


def test_kinds_without_selectors_are_named_by_class_and_amounts() -> None:
    assert RequestProfile("gpu.example.com").short == "gpu"
    assert RequestProfile("gpu.example.com").label == "gpu.example.com"
    assert (
        RequestProfile("gpu.example.com", amounts=(("memory", "10Gi"),)).label
        == "gpu.example.com 10Gi memory"
    )


def test_what_fonts_lack_is_replaced() -> None:
    assert clean("a\x00b\u4e2dc") == "a?b?c"


@given(st.text(max_size=80))
def test_a_text_that_was_cleaned_and_shortened_stays_as_it_is(
    text: str,
) -> None:
    short = shortened(clean(text), 28)
    assert clean(short) == short


def test_a_long_profile_has_an_ellipsis_in_a_picture() -> None:
    expression = "!device.attributes['dra.net'].virtual && device.attributes['dra.net'].numaNode == 0"
    wanted = claim(
        "c",
        request(
            "nic",
            f"has(x) || {expression}",
            f"device.attributes['y'].{'long' * 9} == 0",
        ),
    )
    comparison = dralloc.compare(
        cluster(node(), device_class(), resource_slice(gpus(1)), wanted),
        strict_cel=False,
    )
    [label] = [text.get_text() for text in gained(comparison).get_yticklabels()]
    assert "\N{HORIZONTAL ELLIPSIS}" in label
    assert "?" not in label


def test_a_kind_looks_the_same_in_every_plan() -> None:
    both = dralloc.compare(dralloc.load(ROOT / "models" / "h100-mig"))
    palettes = [
        Palette(RequestProfiles(plan.compiled.cluster))
        for plan in (both.first_fit, both.optimal)
    ]
    profiles = RequestProfiles(both.optimal.compiled.cluster)
    assert len(profiles.all) == 7
    first, best = (
        [palette.style(profile) for profile in profiles.all]
        for palette in palettes
    )
    assert first == best
    assert len(set(first)) == 7


def test_more_kinds_than_colours_are_told_apart_by_hatches() -> None:
    wanted = [
        request(f"r{index}", f"device.attributes['x'].index == {index}")
        for index in range(20)
    ]
    profiles = RequestProfiles(cluster(device_class(), claim("many", *wanted)))
    styles = {Palette(profiles).style(profile) for profile in profiles.all}
    assert len(styles) == 20
    assert profiles.of(cluster(claim("x")).claims[0].key, "missing") is UNKNOWN


def contrast(foreground: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2."""

    def luminance(colour: str) -> float:
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in to_rgb(colour)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(foreground), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_contrast_suffices(theme: Theme) -> None:
    for text in (theme.ink, theme.muted, theme.optimum):
        assert contrast(text, theme.surface) >= 4.5
    for shape in (
        theme.first_fit,
        theme.optimum,
        theme.bound,
        theme.muted,
    ):  # what is grey has an outline
        assert contrast(shape, theme.surface) >= 3
    for colour in (*PROFILE_COLOURS, theme.used):
        assert contrast(theme.label, colour) >= 4.5


def boxes(source: Cluster, mode: ModeName = "optimal") -> dict[str, Box]:
    """The place of every device that is held, by ``unit: device``; of the last holder if there are several."""
    plan = dralloc.allocate(source, mode)
    problem = plan.compiled.problem
    held = held_devices(plan, RequestProfiles(source))
    return {
        f"{unit.title}: {problem.devices[block.holding.device].id.device}": block.box
        for row in rows(problem)
        for unit in row.units
        for block in blocks(
            problem,
            unit,
            [holding for holding in held if holding.device in unit.devices],
        )
    }


def test_partitions_lie_where_their_counters_put_them() -> None:
    named_boxes = boxes(dralloc.load(ROOT / "models" / "h100-mig-smallest"))
    assert all(box.x == 0 and box.width == 1 for box in named_boxes.values())
    (half,) = (box for name, box in named_boxes.items() if "4g40gb-5-0" in name)
    assert half == Box(0, 0, 1, 0.5)
    for name, box in named_boxes.items():
        if match := re.fullmatch(r"gpu-0: gpu-0-mig-1g\d+gb-\d+-(\d)", name):
            assert box.top == int(match[1]) / 8


def test_shares_are_stacked_to_scale() -> None:
    source = dralloc.load(ROOT / "models" / "keps" / "5075-eight-shares")
    plan = dralloc.allocate(source)
    (row,) = rows(plan.compiled.problem)
    shares = blocks(
        plan.compiled.problem,
        row.units[0],
        held_devices(plan, RequestProfiles(source)),
    )
    assert [block.box for block in shares] == [
        Box(0, index / 8, 1, 1 / 8) for index in range(8)
    ]


def test_a_share_of_a_capacity_that_is_not_published_any_more_is_drawn() -> (
    None
):
    memory = {"memory": {"value": "8Gi"}}
    share = {
        "device": "gpu-0",
        "shareID": "8a4b5c0e-0000-4000-8000-000000000000",
        "consumedCapacity": {"cores": "2", "memory": "2Gi"},
    }
    source = cluster(
        node(),
        device_class(),
        resource_slice(gpus(1, allowMultipleAllocations=True, capacity=memory)),
        allocated("old", share),
    )
    assert boxes(source) == {"gpu-0: gpu-0": Box(0, 0, 1, 1 / 4)}


def test_partitions_without_places_are_stacked_to_scale() -> None:
    named_boxes = boxes(
        dralloc.load(ROOT / "models" / "keps" / "4815-five-devices")
    )
    assert sum(box.height for box in named_boxes.values()) == pytest.approx(1)


def test_what_was_allocated_before_is_held() -> None:
    source = cluster(
        node(),
        device_class(),
        resource_slice(gpus(2)),
        allocated("old", {"device": "gpu-1"}),
    )
    (holding,) = held_devices(dralloc.allocate(source), RequestProfiles(source))
    assert (holding.claim.name, holding.new, holding.device) == (
        "old",
        False,
        1,
    )


def test_texts_are_shortened_until_they_fit() -> None:
    assert fitted("notebooks-course-3", 8, 1000) == "notebooks-course-3"
    short = fitted("notebooks-course-3", 8, 60)
    assert short.endswith("-3")
    assert text_width(short, 8) <= 60
    assert fitted("notebooks-course-3", 8, 5) == ""


class Titles(HTMLParser):
    """Collects titles and tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        del attrs
        self.tags.append(tag)


def test_svg_says_what_it_shows_and_is_the_same_every_time() -> None:
    before = plt.get_fignums()
    both = dralloc.compare(dralloc.load(ROOT / "models" / "gpu-nic"))
    written = [
        svg(
            lambda: device_map(both.optimal), "map", "A <title>", "What & where"
        )
        for _ in range(2)
    ]
    assert written[0] == written[1]
    assert '<title id="map-title">A &lt;title&gt;</title>' in written[0]
    assert '<desc id="map-description">What &amp; where</desc>' in written[0]
    assert "var(--plot-ink)" in written[0]
    assert not [colour for colour in vars_of(LIGHT) if colour in written[0]]
    assert Titles(written[0]).tags.count("title") == 1 + 42
    assert plt.get_fignums() == before


def vars_of(theme: Theme) -> list[str]:
    return [getattr(theme, name) for name in Theme.__dataclass_fields__]


def test_new_figures_belong_to_nobody_off_screen() -> None:
    before = plt.get_fignums()
    with off_screen():
        device_map(dralloc.allocate(cluster(node())))
    assert plt.get_fignums() == before
