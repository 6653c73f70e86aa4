"""The documentation names what exists: modules in the rules' pages, formulas for all constraints, all models."""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
import sys

import pytest

from conftest import ROOT
from dralloc.show import plot
from dralloc.solve.optimum.component import RULES

DOCS = ROOT / "docs"
SEMANTICS = (DOCS / "explanation" / "semantics.md").read_text()


def code_column() -> list[str]:
    """What the last column of the rules' tables names."""
    rows = re.findall(r"^\|.*\|([^|]*)\|$", SEMANTICS, re.MULTILINE)
    return sorted(
        {
            name.removeprefix("dralloc.")
            for cell in rows
            for name in re.findall(r"`([\w.]+)`", cell)
        }
    )


@pytest.mark.parametrize("name", code_column())
def test_rules_name_modules_that_exist(name: str) -> None:
    assert (
        importlib.util.find_spec(
            name if name.startswith("kubecel") else f"dralloc.{name}"
        )
        is not None
    )


def files_for_contributors() -> list[str]:
    """What the page for contributors names as a file, in full or as seen from its room."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return sorted(set(re.findall(r"`([\w./-]+\.py)`", text)))


@pytest.mark.parametrize("name", files_for_contributors())
def test_contributors_are_sent_to_files_that_exist(name: str) -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")]
    assert any(
        f"/{path.relative_to(ROOT)}".endswith(f"/{name}") for path in files
    )


def test_there_are_files_for_contributors() -> None:
    assert len(files_for_contributors()) > 10


def test_every_picture_is_on_its_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The page asks for each where it is made, as a function is not found behind a module of its name."""
    page = (DOCS / "reference" / "plot.md").read_text()
    [block] = re.findall(r'```python exec="1".*?\n(.*?)```', page, re.DOTALL)
    exec(block, {})
    asked_for = re.findall(
        r"^::: ([\w.]+)\.(\w+)$", capsys.readouterr().out, re.M
    )
    assert [name for _, name in asked_for] == plot.__all__
    for module, name in asked_for:
        assert inspect.isfunction(getattr(sys.modules[module], name))


def test_there_are_rules_with_code() -> None:
    assert len(code_column()) > 20


def test_every_constraint_has_its_formula() -> None:
    text = (DOCS / "explanation" / "formulation.md").read_text()
    assert len(RULES) > 10
    assert [
        rule.__name__ for rule in RULES if f".{rule.__name__}`]" not in text
    ] == []


@pytest.mark.parametrize(
    "model",
    sorted(path.parent.name for path in (ROOT / "models").glob("*/README.md")),
)
def test_every_model_is_listed(model: str) -> None:
    assert f"({model}/README.md)" in (ROOT / "models" / "README.md").read_text()
    assert f"- models/{model}/README.md" in (ROOT / "mkdocs.yml").read_text()


def references() -> list[str]:
    """The names in code that the pages of explanations link to."""
    pages = sorted((DOCS / "explanation").glob("*.md"))
    return sorted(
        {
            name
            for page in pages
            for name in re.findall(r"\]\[(dralloc\.[\w.]+)\]", page.read_text())
        }
    )


@pytest.mark.parametrize("name", references())
def test_links_into_the_code_lead_to_what_is_listed_on_the_page_of_the_source(
    name: str,
) -> None:
    rooms = re.findall(
        r'"(dralloc\.[\w.]+)"', (DOCS / "reference" / "model.md").read_text()
    )
    assert pkgutil.resolve_name(name) is not None
    assert name.startswith(tuple(f"{room}." for room in rooms))
