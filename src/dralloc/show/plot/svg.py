"""A picture as SVG to put into a page: it takes its colours from the page, and says what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from io import StringIO
from typing import Any, Final
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.axes import Axes

from dralloc.show.plot.canvas import off_screen
from dralloc.show.plot.colours import LIGHT, Theme

__all__ = ["colour_variables", "svg"]

_SETTINGS: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "axes.facecolor": LIGHT.surface,
    "figure.facecolor": LIGHT.surface,
    "font.family": ["DejaVu Sans"],
    "hatch.linewidth": 1.0,
    "path.simplify": False,
}
_METADATA: Final = ("Date", "Creator", "Format", "Type")
_NAMESPACE: Final = re.compile(r"\{[^}]*\}")
_REFERENCE: Final = re.compile(r"(?<=url\(#)|(?<=^#)")
_NO_TURN: Final = "rotate(-0 "


def svg(
    draw: Callable[[], Axes], name: str, title: str, description: str = ""
) -> str:
    """Draw a picture as one ``svg`` element.

    Its colours are the variables of `colour_variables`, its texts are text, its ids begin with `name`. The same picture
    gives the same text.

    Parameters
    ----------
    draw
        Draws onto new axes and returns them.
    name
        What tells it apart from other pictures in the page; a valid id.
    title, description
        What it is, and what there is to see, for those who do not see it; by default what the figure says.
    """
    text = StringIO()
    settings: Any = {**_SETTINGS, "svg.hashsalt": name}
    with mpl.rc_context(settings), off_screen():
        ax = draw()
        figure = ax.get_figure(root=True)
        if figure is None:
            raise ValueError(f"{name}: the axes have no figure")
        description = description or getattr(figure, "description", "")
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(_METADATA),
        )
    root = ET.fromstring(text.getvalue())
    tips = {
        str(patch.get_gid()): str(patch.get_label())[1:]
        for patch in ax.patches
        if patch.get_gid()
    }
    for element in root.iter():
        # Style sheets for all elements would be ones for the whole page.
        for page_wide in element.findall("./{*}defs[{*}style]"):
            element.remove(page_wide)
        if tip := tips.get(element.get("id", "")):
            element.insert(0, _element("title", tip))
        _embed(element, name)
    labels = {
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-description",
    }
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", **labels}
    root.insert(0, _element("title", title, id=f"{name}-title"))
    root.insert(1, _element("desc", description, id=f"{name}-description"))
    return ET.tostring(root, encoding="unicode")


def colour_variables(theme: Theme) -> Iterator[tuple[str, str]]:
    """Yield the variables that pictures take their colours from, with their values in a theme."""
    for role, colour in asdict(theme).items():
        yield f"--plot-{role.replace('_', '-')}", colour


_VARIABLES: Final = {
    colour: f"var({name})" for name, colour in colour_variables(LIGHT)
}


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(tag, attributes)
    element.text = text
    return element


def _embed(element: ET.Element, name: str) -> None:
    """Ids get a prefix, colours become variables, fonts the page's, and blanks between elements go."""
    element.tag = _NAMESPACE.sub("", element.tag)
    attributes = {
        _NAMESPACE.sub("", key): " ".join(value.split())
        for key, value in element.attrib.items()
    }
    # matplotlib writes a turn by 0 at each text that is not turned.
    if attributes.get("transform", "").startswith(_NO_TURN):
        del attributes["transform"]
    # A colour becomes a variable in a style only (`_themed`), and what begins with # is a reference from then on.
    if attributes.get("fill", "").startswith("#"):
        attributes["style"] = (
            f"fill: {attributes.pop('fill')}; {attributes.get('style', '')}"
        )
    if "style" in attributes:
        attributes["style"] = "; ".join(_themed(attributes["style"]))
    if "id" in attributes:
        attributes["id"] = f"{name}-{attributes['id']}"
    element.attrib = {
        key: _REFERENCE.sub(f"{name}-", value)
        for key, value in attributes.items()
    }
    element.text, element.tail = (
        text if text and text.strip() else None
        for text in (element.text, element.tail)
    )


def _themed(style: str) -> Iterator[str]:
    """Yield the declarations of a style: colours of the light theme as variables, of fonts the size alone."""
    for declaration in filter(None, map(str.strip, style.split(";"))):
        key, _, value = declaration.partition(": ")
        if key == "font":
            yield f"font-size: {value.split()[0]}"
        elif key != "font-family":
            yield f"{key}: {_VARIABLES.get(value, value)}"
