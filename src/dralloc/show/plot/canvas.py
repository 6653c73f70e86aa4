"""Axes to draw on: those that are given, or those of a new figure that says what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Final, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["POINTS", "WIDTH", "axes", "off_screen"]

POINTS: Final = 72
"""Points in an inch."""
WIDTH: Final = 860
"""Points across a picture that stands alone."""

_OFF_SCREEN: ContextVar[bool] = ContextVar("_OFF_SCREEN", default=False)


@contextmanager
def off_screen() -> Iterator[None]:
    """Within it, new figures have no window: no window system is asked for, and nothing keeps them alive."""
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


class DescribedFigure(Figure):
    """A figure with a description of what it shows, for readers who do not see it.

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
    ax: Axes | None,
    height: float,
    width: float = WIDTH,
    *,
    says: Iterable[str] = (),
) -> Axes:
    """Return the given axes, or those of a new figure of that size in points that says in sentences what it shows."""
    if ax is not None:
        return ax
    size = (width / POINTS, height / POINTS)
    if _OFF_SCREEN.get():
        picture = DescribedFigure(figsize=size, layout="constrained")
    else:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only what shows pictures needs it

        picture = cast(
            DescribedFigure,
            plt.figure(
                figsize=size, layout="constrained", FigureClass=DescribedFigure
            ),
        )
    picture.description = " ".join(
        f"{part[:1].upper()}{part[1:]}." for part in says
    )
    return picture.add_subplot()
