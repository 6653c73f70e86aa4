"""The parts of the page: sections, tables, figures, lists of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dralloc.page.html import Html, element, joined, raw
from dralloc.report import Table

__all__ = ["MOST_ROWS", "facts", "figure", "folding", "note", "section", "table"]

MOST_ROWS: Final = 1000
"""Longer tables end with how many rows are left out."""


def section(name: str, title: str, *content: Html) -> Html:
    """A section with its heading; ``name`` is its id."""
    heading = element("h2", title, id=name)
    return element("section", heading, *content, aria_labelledby=name)


def note(text: str) -> Html:
    """A paragraph."""
    return element("p", text)


def table(content: Table, name: str) -> Html:
    """A table with a caption; the first cell of a row is its heading. It scrolls by itself where it is too wide."""
    numeric = [column.startswith(">") for column in content.columns]
    head = [
        element("th", column.removeprefix(">"), scope="col", **_aligned(right)) if column else element("td")
        for column, right in zip(content.columns, numeric, strict=True)
    ]
    left_out = len(content.rows) - MOST_ROWS
    rows = [_row(row, numeric) for row in content.rows[:MOST_ROWS]]
    if left_out > 0:
        text = f"and {left_out} more; dralloc compare --json lists all"
        rows.append(element("tr", element("td", text, colspan=str(len(numeric)))))
    caption = element("caption", content.title, id=name)
    whole = element("table", caption, element("thead", element("tr", *head)), element("tbody", *rows))
    return _scrolling(whole, name)


def _row(cells: Sequence[str], numeric: Sequence[bool]) -> Html:
    first, *others = cells
    heading = element("th", first, scope="row")
    rest = (element("td", cell, **_aligned(right)) for cell, right in zip(others, numeric[1:], strict=True))
    return element("tr", heading, *rest)


def _aligned(right: bool) -> dict[str, str]:
    return {"class_": "number"} if right else {}


def _scrolling(content: Html, label: str) -> Html:
    return element("div", content, class_="scroll", role="region", aria_labelledby=label, tabindex="0")


def figure(svg: str, name: str, caption: str, *, wide: bool = True) -> Html:
    """A picture with its caption."""
    picture = element("div", raw(svg), class_="picture", role="region", aria_labelledby=f"{name}-caption", tabindex="0")
    text = element("figcaption", caption, id=f"{name}-caption")
    return element("figure", picture, text, class_="wide" if wide else "narrow")


def folding(summary: str, *content: Html) -> Html:
    """Content that unfolds when asked for."""
    return element("details", element("summary", summary), *content)


def facts(values: Mapping[str, str]) -> Html:
    """Names with what they stand for."""
    return element(
        "dl", joined(element("div", element("dt", name), element("dd", value)) for name, value in values.items())
    )
