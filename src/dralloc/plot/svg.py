"""A picture as SVG to put into a page: it takes its colours from the page, and says what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from html import escape
from io import StringIO
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes

from dralloc.plot.canvas import off_screen
from dralloc.plot.palette import LIGHT, Theme

__all__ = ["colour_variables", "svg"]

_SETTINGS: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "axes.facecolor": LIGHT.surface,
    "figure.facecolor": LIGHT.surface,
    "font.family": ["DejaVu Sans"],
    "hatch.linewidth": 1.0,
    "path.simplify": False,
}
_VARIABLES: Final = {colour: f"var(--plot-{role.replace('_', '-')})" for role, colour in asdict(LIGHT).items()}
_METADATA: Final = ("Date", "Creator", "Format", "Type")
_NOT_NEEDED: Final = re.compile(
    r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>| transform=\"rotate\(-0 [^)]*\)\"", re.DOTALL
)
"""Metadata, turns by nothing, and a style sheet for all elements, which would be one for the whole page."""
_SPACE: Final = re.compile(r"\s*\n\s*")
_ID: Final = re.compile(r'(?<=\bid=")[^"]+|(?<=url\(#)[^)]+|(?<=href="#)[^"]+')
_OPENING: Final = re.compile(r'<svg\b[^>]*?\bviewBox="([^"]+)"[^>]*>', re.DOTALL)


def svg(draw: Callable[[], Axes], name: str, title: str, description: str = "") -> str:
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
        figure.savefig(text, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    _, box, body = _OPENING.split(text.getvalue(), maxsplit=1)
    body = _ID.sub(lambda match: f"{name}-{match[0]}", _themed(_NOT_NEEDED.sub("", body)))
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" role="img" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-description">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
        f"{_with_tips(_SPACE.sub(' ', body), name, _tips(ax)).strip()}"
    )


def colour_variables(theme: Theme) -> Iterator[tuple[str, str]]:
    """The variables that pictures take their colours from, with their values in a theme."""
    for role, colour in asdict(theme).items():
        yield f"--plot-{role.replace('_', '-')}", colour


def _themed(body: str) -> str:
    """Colours of the light theme in styles become variables; fonts become the page's."""
    body = re.sub(r'\bfill="(#[0-9a-f]{6})"', r'style="fill: \1"', body)

    def styled(match: re.Match[str]) -> str:
        style = re.sub(r"#[0-9a-f]{6}\b", lambda colour: _VARIABLES.get(colour[0], colour[0]), match[0])
        return re.sub(r"font-family: [^;\"]*;? ?|font: ([\d.]+)px [^;\"]*", _font, style)

    return re.sub(r'style="[^"]*"', styled, body)


def _font(match: re.Match[str]) -> str:
    return f"font-size: {match[1]}px" if match[1] else ""


def _tips(ax: Axes) -> Mapping[str, str]:
    return {str(patch.get_gid()): str(patch.get_label())[1:] for patch in ax.patches if patch.get_gid()}


def _with_tips(body: str, name: str, tips: Mapping[str, str]) -> str:
    def tipped(match: re.Match[str]) -> str:
        tip = tips.get(match[1].removeprefix(f"{name}-"), "")
        return f"{match[0]}<title>{escape(tip)}</title>" if tip else match[0]

    return re.sub(rf'<g id="({re.escape(name)}-tip-\d+)">', tipped, body)
