"""How a notebook shows an answer: whoever draws answers says so here, and answers ask here to be drawn.

Answers are below the HTML and the pictures that show them, so they cannot import these. The package `dralloc`, which is
above all rooms, registers the drawing when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Cell", "cell_of", "register"]

Cell = Callable[[Any], str]
"""Gives the HTML of an `dralloc.objects.answer.Answer` in a notebook."""

_loaders: list[Callable[[], Cell]] = []


def register(load: Callable[[], Cell]) -> None:
    """Draw answers from now on by what `load` gives; it is called when a notebook first shows an answer."""
    _loaders.append(load)


def cell_of(answer: object) -> str:
    """Return the HTML of the answer, drawn by what was registered last."""
    cell = _loaders[-1]()
    return cell(answer)
