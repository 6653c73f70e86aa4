"""Axes to draw on, and texts that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from html import escape
from typing import Final, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

__all__ = [
    "POINTS",
    "WIDTH",
    "DescribedFigure",
    "axes",
    "enumerated",
    "fitted",
    "off_screen",
    "text_width",
]

POINTS: Final = 72
"""Points in an inch."""
WIDTH: Final = 860
"""Points across a picture that stands alone."""
_MOST: Final = 8

_OFF_SCREEN: ContextVar[bool] = ContextVar("_OFF_SCREEN", default=False)


@contextmanager
def off_screen() -> Iterator[None]:
    """Within it, new figures belong to nobody: no window system is asked for, and nothing keeps them alive."""
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


class DescribedFigure(Figure):
    """A figure that says what there is to see in it, for those who do not see it.

    A notebook shows it as an image with that as its alternative text, which matplotlib's own images do not have.
    """

    description = ""

    def _ipython_display_(self) -> None:
        from IPython.core.pylabtools import print_figure  # noqa: PLC0415 - who calls this has it
        from IPython.display import HTML, display  # noqa: PLC0415

        data = print_figure(self, base64=True, bbox_inches="tight")
        display(
            HTML(
                f'<img alt="{escape(self.description)}" src="data:image/png;base64,{data}">'
            )
        )


def axes(
    ax: Axes | None, height: float, width: float = WIDTH, *, says: Iterable[str] = ()
) -> Axes:
    """The given axes, or those of a new figure of that size in points, which says in sentences what there is to see."""
    if ax is not None:
        return ax
    size = (width / POINTS, height / POINTS)
    if _OFF_SCREEN.get():
        picture = DescribedFigure(figsize=size, layout="constrained")
    else:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only what shows pictures needs it

        picture = cast(
            DescribedFigure,
            plt.figure(figsize=size, layout="constrained", FigureClass=DescribedFigure),
        )
    picture.description = " ".join(f"{part[:1].upper()}{part[1:]}." for part in says)
    return picture.add_subplot()


def enumerated(items: Iterable[str]) -> str:
    """The first of the items for a description, and how many more there are."""
    every = list(items)
    more = [f"and {len(every) - _MOST} more"] if len(every) > _MOST else []
    return "; ".join([*every[:_MOST], *more])


@lru_cache(maxsize=65536)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Points across a text in matplotlib's font."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def fitted(
    text: str, size: float, room: float, *, bold: bool = False, least: int = 4
) -> str:
    """The text, shortened in its middle until it fits; empty if not even `least` characters and an ellipsis do."""
    if text_width(text, size, bold=bold) <= room:
        return text
    for keep in range(len(text) - 1, least - 1, -1):
        tail = keep // 2
        shorter = (
            f"{text[: keep - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"
        )
        if text_width(shorter, size, bold=bold) <= room:
            return shorter
    return ""
