"""Notebooks are kept without outputs, tell one story in order, and run from top to bottom with small sizes."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ROOT

ALL: Final = os.environ.get("DRALLOC_NOTEBOOKS") == "all"
"""Whether to run all of them, as CI does; else only the first."""

BOOKS: Final = sorted((ROOT / "models").glob("*/study.ipynb"))


def name_of(path: Path) -> str:
    return path.parent.name


@cache
def content(path: Path) -> dict[str, Any]:
    book: dict[str, Any] = json.loads(path.read_text())
    return book


def title(path: Path) -> str:
    return (
        str(content(path)["cells"][0]["source"][0]).removeprefix("# ").strip()
    )


def test_the_story_has_eight_chapters() -> None:
    assert sorted(title(path)[:2] for path in BOOKS) == [
        "1.",
        "2.",
        "3.",
        "4.",
        "5.",
        "6.",
        "7.",
        "8.",
    ]


@pytest.mark.parametrize("path", BOOKS, ids=name_of)
def test_no_outputs_are_kept(path: Path) -> None:
    code = [
        cell for cell in content(path)["cells"] if cell["cell_type"] == "code"
    ]
    assert code
    assert [
        cell
        for cell in code
        if cell["outputs"] or cell["execution_count"] is not None
    ] == []


@pytest.mark.parametrize("path", BOOKS, ids=name_of)
def test_the_documentation_lists_it(path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "notebooks.md").read_text()
    assert f"[{title(path)}](../models/{name_of(path)}/study.ipynb)" in page


@pytest.mark.minutes
@pytest.mark.parametrize("path", BOOKS, ids=name_of)
@pytest.mark.filterwarnings("ignore")  # those of Jupyter are not ours
def test_it_runs_from_top_to_bottom(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ALL and not title(path).startswith("1."):
        pytest.skip("DRALLOC_NOTEBOOKS=all runs it, as CI does")
    nbclient = pytest.importorskip(
        "nbclient", reason="needs the extra notebook"
    )
    nbformat = pytest.importorskip(
        "nbformat", reason="needs the extra notebook"
    )
    monkeypatch.setenv("DRALLOC_NOTEBOOK_SIZE", "small")
    nbclient.execute(
        nbformat.read(path, as_version=4), cwd=str(path.parent), timeout=300
    )


@pytest.mark.filterwarnings("ignore")  # those of Jupyter are not ours
def test_every_picture_and_answer_of_a_notebook_can_be_read_without_eyes(
    tmp_path: Path,
) -> None:
    nbclient = pytest.importorskip(
        "nbclient", reason="needs the extra notebook"
    )
    nbformat = pytest.importorskip(
        "nbformat", reason="needs the extra notebook"
    )
    smallest = ROOT / "models" / "h100-mig-smallest"
    sources = (
        f"import dralloc\nfrom dralloc import plot\nboth = dralloc.compare(dralloc.load({str(smallest)!r}))",
        "plot.device_map(both.optimal, beside=both.first_fit)\nplot.gained(both);",
        "both",
    )
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    nbclient.execute(book, cwd=str(tmp_path), timeout=300)
    _, pictures, answer = (cell["outputs"] for cell in book["cells"])
    shown = [
        picture["data"]["text/html"]
        for picture in pictures
        if "text/html" in picture["data"]
    ]
    assert len(shown) == 2
    assert shown[0].startswith(
        '<img alt="2 of 2 pods are placed. By node: h100 2. Not placed by first fit: default/large." '
    )
    assert not [
        picture for picture in pictures if "image/png" in picture["data"]
    ]
    (data,) = (output["data"] for output in answer)
    assert data["text/plain"].startswith("<Comparison: 2 pods: ")
    assert (
        data["text/html"].count("<svg")
        == data["text/html"].count('role="img"')
        == 2
    )
