"""The page: whole without anything else, readable without eyes, unbreakable by what it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Final

import matplotlib.text
import pytest

import dralloc
from conftest import ROOT
from dralloc.objects.report import Table
from dralloc.show import plot
from dralloc.show.page import rendered
from dralloc.show.page.render import Circumstances, render, unplaced_table
from dralloc.show.plot.canvas import off_screen
from dralloc.show.plot.colours import DARK, LIGHT
from dralloc.solve.optimum import Progress
from wire import (
    claim,
    cluster,
    device_class,
    first_available,
    gpus,
    node,
    request,
    resource_slice,
    sub,
)

_VOID: Final = {"meta", "br", "hr", "img", "link", "input"}
_HOSTILE: Final = "<script>alert('x')</script>\" onload=\"alert(1) $x^{2}$ ]]> &amp; </style></svg>"
Attributes = dict[str, str]


@dataclass
class Page(HTMLParser):
    """A parsed page; parsing fails where elements are not closed in order."""

    text: str
    elements: list[tuple[str, Attributes]] = field(default_factory=list)
    inside: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        assert self.open == []

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append(
            (tag, {name: value or "" for name, value in attrs})
        )
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.elements.append(
            (tag, {name: value or "" for name, value in attrs})
        )

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open[-1:]:
            self.inside.setdefault(tag, []).append(data)

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self) -> list[str]:
        return [
            attributes["id"]
            for _, attributes in self.elements
            if "id" in attributes
        ]


@cache
def compared(model: str) -> dralloc.Comparison:
    return dralloc.compare(dralloc.load(ROOT / "models" / model))


@cache
def page_of(model: str) -> Page:
    records = (Progress("weight", 1, 5, 0.1), Progress("weight", 3, 5, 0.2))
    about = Circumstances(
        f"models/{model}", {"seed": "0"}, records, ("a remark",)
    )
    return Page(render(compared(model), about))


MODELS: Final = (
    "h100-mig",
    "gpu-nic",
    "keps/5075-eight-shares",
    "keps/4381-admin-access",
    "keps/4815-invalid-pools",
)


@pytest.mark.parametrize("model", MODELS)
def test_the_page_needs_nothing_else(model: str) -> None:
    page = page_of(model)
    assert page.text.startswith("<!DOCTYPE html>")
    tags = {tag for tag, _ in page.elements}
    assert not tags & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "image",
    }
    for tag, attributes in page.elements:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("src", "srcset")
        ], tag
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert re.findall(r"@import|url\((?!#)", page.text) == []
    assert set(re.findall(r"https?://[^\"'<\s]*", page.text)) <= {
        "http://www.w3.org/1999/xlink"
    }


@pytest.mark.parametrize("model", MODELS)
def test_ids_are_unique_and_references_lead_somewhere(model: str) -> None:
    page = page_of(model)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        names = f"{attributes.get('aria-labelledby', '')} {attributes.get('aria-describedby', '')}".split()
        links = [
            attributes[name][1:]
            for name in ("href", "xlink:href")
            if name in attributes
        ]
        assert {*names, *links} <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", page.text)) <= set(ids)


@pytest.mark.parametrize("model", MODELS)
def test_landmarks_headings_and_tables(model: str) -> None:
    page = page_of(model)
    assert page.all("html")[0]["lang"] == "en"
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert len(page.all(tag)) == 1
    assert (
        page.elements[[tag for tag, _ in page.elements].index("body") + 1][1][
            "href"
        ]
        == "#main"
    )
    levels = [
        int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)
    ]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) > 0
    assert {attributes.get("scope") for attributes in page.all("th")} == {
        "col",
        "row",
    }
    regions = [
        attributes
        for _, attributes in page.elements
        if attributes.get("role") == "region"
    ]
    assert all(region["tabindex"] == "0" for region in regions)


@pytest.mark.parametrize("model", MODELS)
def test_every_figure_has_a_title_a_description_and_a_caption(
    model: str,
) -> None:
    page = page_of(model)
    pictures = page.all("svg")
    assert (
        len(pictures)
        == len(page.all("figure"))
        == len(page.all("figcaption"))
        >= 3
    )
    for picture in pictures:
        assert picture["role"] == "img"
        for name, tag in (
            (picture["aria-labelledby"], "title"),
            (picture["aria-describedby"], "desc"),
        ):
            match = re.search(rf'<{tag} id="{name}">([^<]+)</{tag}>', page.text)
            assert match
            assert len(match[1]) > 10


def test_the_page_has_both_themes() -> None:
    text = page_of("h100-mig").text
    assert "@media screen and (prefers-color-scheme: dark)" in text
    style, body = text.split("</style>", 1)
    for theme in (LIGHT, DARK):
        assert f"--plot-ink:{theme.ink};" in style
        assert theme.ink not in body
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(
        re.findall(r"(--[\w-]+):", style)
    )


def test_the_page_says_what_the_answers_are() -> None:
    text = page_of("h100-mig").text
    assert (
        "48 pods: first fit places 44, the optimum 48 (proven optimal)" in text
    )
    for said in (
        "ml/distill-0",
        "fits on no node",
        "placed on h100-2",
        "proven",
        "Time by phase",
        "a remark",
    ):
        assert said in text


def hostile() -> dralloc.Comparison:
    wanted = request(
        _HOSTILE,
        f'device.attributes["x"].name == "{_HOSTILE[:27]}"',
        device_class=_HOSTILE,
    )
    choice = first_available(
        "either", sub(_HOSTILE), sub("other", device_class=_HOSTILE)
    )
    devices = gpus(3)
    devices[0]["name"] = _HOSTILE
    return dralloc.compare(
        cluster(
            node("node-0"),
            device_class(_HOSTILE),
            device_class(),
            resource_slice(devices, pool=_HOSTILE, name=_HOSTILE),
            [
                claim(_HOSTILE, request(device_class=_HOSTILE)),
                claim("b" + _HOSTILE, wanted),
                claim("c", choice),
            ],
        )
    )


def test_nothing_of_the_input_is_ever_markup() -> None:
    about = Circumstances(_HOSTILE, {_HOSTILE: _HOSTILE}, remarks=(_HOSTILE,))
    page = Page(render(hostile(), about))
    tags = {tag for tag, _ in page.elements}
    assert "script" not in tags
    assert not [
        name
        for _, attributes in page.elements
        for name in attributes
        if name.startswith("on")
    ]
    assert len(page.all("svg")) == len(page.all("figure"))
    assert any(_HOSTILE in text for text in page.inside["th"])


def test_equal_answers_give_equal_pages_apart_from_times() -> None:
    source = dralloc.load(ROOT / "models" / "gpu-nic")
    about = Circumstances("models/gpu-nic", timed=False)
    pages = [render(dralloc.compare(source), about) for _ in range(2)]
    assert pages[0] == pages[1]
    assert "Time by phase" not in pages[0]


def test_an_empty_cluster_has_a_page() -> None:
    page = Page(render(dralloc.compare(cluster(node()))))
    assert "nothing to place" in page.text
    assert "proven optimal" not in page.text


def test_long_tables_say_how_much_is_left_out() -> None:
    rows = [(f"row {index}", "1") for index in range(17)]
    shown = {
        "parts": [Table("Long", ("what", ">count"), rows)],
        "pictures": (),
        "most": 12,
        "more": 0,
    }
    written = rendered("cell.html", **shown)
    assert written.count('scope="row"') == 12
    assert "and 5 more" in written


def test_a_page_of_all_answers_shows_kube_scheduler_beside_them() -> None:
    smallest = dralloc.load(ROOT / "models" / "h100-mig-smallest")
    comparison = dralloc.compare(
        smallest, modes="scheduler,first-fit,optimal", seeds=2
    )
    text = render(comparison)
    page = Page(text)
    tiles = [
        attributes["class"]
        for tag, attributes in page.elements
        if tag == "div" and attributes.get("class", "").startswith("tile ")
    ]
    assert tiles == ["tile scheduler", "tile first-fit", "tile optimum"]
    assert "All answers in figures" in text
    for told in (
        "with kube-scheduler, ",
        "Placements of kube-scheduler",
        "Devices under kube-scheduler: ",
    ):
        assert told in text


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        ("first-fit,optimal", "First fit proves nothing."),
        ("scheduler,optimal", "kube-scheduler proves nothing."),
        ("scheduler,first-fit,optimal", "The other answers prove nothing."),
    ],
)
def test_the_page_says_who_proves_nothing(modes: str, words: str) -> None:
    page = render(dralloc.compare(dralloc.example(), modes=modes))
    assert f"<p>{words} The optimum is OPTIMAL" in page


def test_reasons_have_a_column_for_each_answer() -> None:
    smallest = dralloc.load(ROOT / "models" / "h100-mig-smallest")
    every = dralloc.compare(
        smallest, modes="scheduler,first-fit,optimal", seeds=1
    )
    both = dralloc.compare(smallest)
    assert unplaced_table(every).columns[1:] == (
        "scheduler",
        "first fit",
        "optimum",
    )
    assert unplaced_table(both).columns[1:] == ("first fit", "optimum")


def roomiest(
    _: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
) -> dralloc.OfferedNode:
    return max(nodes, key=lambda offer: offer.free_devices())


def test_policies_of_the_user_are_on_the_page_and_in_pictures(
    tmp_path: Path,
) -> None:
    comparison = dralloc.compare(dralloc.example(), modes=[roomiest, "optimal"])
    file = tmp_path / "report.html"
    dralloc.report(comparison, file)
    page = Page(file.read_text())
    assert "roomiest places 1" in page.text
    with off_screen():
        figure = plot.utilisation(comparison).get_figure()
        assert figure is not None
        texts = {
            artist.get_text() for artist in figure.findobj(matplotlib.text.Text)
        }
        assert "roomiest" in texts
        plot.gained(comparison)
        plot.device_map(comparison.plans[0])
