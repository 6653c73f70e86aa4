"""Pictures in the documentation show what the report shows today."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from PIL import Image

import dralloc
from conftest import ROOT
from docs.pictures import (
    BROWSER,
    DESCRIPTION,
    IMAGES,
    MODEL,
    SCHEMES,
    described,
    take,
)


@cache
def comparison() -> dralloc.Comparison:
    return dralloc.compare(dralloc.load(ROOT / MODEL))


def said(picture: Path) -> str:
    with Image.open(picture) as image:
        image.load()
        return str(image.info[DESCRIPTION])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_picture_shows_the_answer_of_today(scheme: str) -> None:
    picture = IMAGES / f"h100-mig-report-{scheme}.png"
    assert said(picture) == described(comparison()), (
        "run python -m docs.pictures report"
    )


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_pictures_can_be_taken(tmp_path: Path) -> None:
    light, dark = take(comparison(), tmp_path)
    assert said(light) == said(dark) == described(comparison())
    with Image.open(light) as image, Image.open(dark) as other:
        assert image.size == other.size
        dark_parts = [
            sum(picture.convert("L").histogram()[:64])
            for picture in (image, other)
        ]
    assert dark_parts[0] < dark_parts[1]


def test_no_other_pictures_are_kept() -> None:
    reports = {f"h100-mig-report-{scheme}.png" for scheme in SCHEMES}
    assert {picture.name for picture in IMAGES.iterdir()} == {
        *reports,
        "mixed-search.svg",
    }
