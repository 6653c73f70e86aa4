"""The whole page."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

from dralloc.comparison import Comparison
from dralloc.page.html import element, raw
from dralloc.page.parts import note
from dralloc.page.sections import Circumstances, sections
from dralloc.plot.palette import DARK, LIGHT, Theme
from dralloc.plot.svg import colour_variables
from dralloc.report import Line

__all__ = ["headline", "render"]


def render(comparison: Comparison, about: Circumstances | None = None) -> str:
    """Write both answers as one HTML page that needs nothing else: no script, no style sheet, no font, no network."""
    about = about or Circumstances()
    found = list(sections(comparison, about))
    title = f"dralloc report: {about.source}" if about.source else "dralloc report"
    head = element(
        "head",
        raw('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        raw('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", raw(_style())),
    )
    links = (element("li", element("a", name, href=f"#{anchor}")) for anchor, name, _ in found)
    body = element(
        "body",
        element("a", "Skip to the answers", href="#main", class_="skip"),
        element("header", element("h1", title), element("p", headline(comparison), class_="headline")),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *(content for _, _, content in found), id="main", tabindex="-1"),
        element("footer", note(f"Written by dralloc {version('dralloc')}.")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def headline(comparison: Comparison) -> str:
    """Both answers in one line."""
    return next(part.text for part in comparison.parts() if isinstance(part, Line))


def _style() -> str:
    light, dark = _variables(LIGHT), _variables(DARK)
    sheet = files("dralloc.page").joinpath("style.css").read_text(encoding="utf-8")
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{sheet}"


def _variables(theme: Theme) -> str:
    return "".join(f"{name}:{colour};" for name, colour in colour_variables(theme))
