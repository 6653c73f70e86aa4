"""The display of answers at a prompt (short), and in a notebook (with tables and pictures)."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import fields
from enum import Enum
from typing import Any, ClassVar, Final

__all__ = ["Brief", "Cell", "cell_of", "register", "shortened"]

# ----------------------------------------------------------------------------
# Short representations of what can hold a whole cluster, so that a prompt stays
# usable.

_TEXT: Final = 60


class Brief:
    """A dataclass (with ``repr=False``) whose representation says how much its fields hold, not what.

    ``Solution(placements=<50000>, status='OPTIMAL', tiers=<3>)``; empty fields are left out.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __repr__(self) -> str:
        held = (
            (field.name, _brief(getattr(self, field.name)))
            for field in fields(self)
        )
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in held if value)})"


def _brief(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        plain = value.value if isinstance(value, Enum) else value
        return "" if plain in (None, "") else shortened(repr(plain), _TEXT)
    if isinstance(value, Sized):
        return f"<{len(value)}>" if len(value) else ""
    return f"{type(value).__name__}(...)"


def shortened(text: str, length: int) -> str:
    """Return the text, cut to a number of characters."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


# ----------------------------------------------------------------------------
# How a notebook shows an answer: whoever draws answers says so here, and answers ask
# here to be drawn.
#
# Answers are below the HTML and the pictures that show them, so they cannot import
# these. The package `dralloc`, which is above all rooms, registers the drawing when
# it is imported.

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
