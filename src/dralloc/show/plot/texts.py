"""Texts in pictures: enumerations for descriptions, and labels that fit and that fonts can draw."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

__all__ = ["clean", "enumerated", "fitted", "shortened", "text_width"]

_MOST: Final = 8
_ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"


def enumerated(items: Iterable[str]) -> str:
    """Return the first of the items for a description, and how many more there are."""
    listed = list(items)
    further = [f"and {len(listed) - _MOST} more"] if len(listed) > _MOST else []
    return "; ".join([*listed[:_MOST], *further])


@lru_cache(maxsize=65536)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Points across a text in matplotlib's font."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(
        text, font, ismath=False
    )
    return float(width)


def fitted(
    text: str, size: float, room: float, *, bold: bool = False, least: int = 4
) -> str:
    """Return the text, shortened in its middle until it fits; empty if `least` characters and an ellipsis do not."""
    if text_width(text, size, bold=bold) <= room:
        return text
    for keep in range(len(text) - 1, least - 1, -1):
        tail = keep // 2
        shorter = f"{text[: keep - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"
        if text_width(shorter, size, bold=bold) <= room:
            return shorter
    return ""


def clean(text: str) -> str:
    """Return the text with everything that fonts or SVG may lack replaced by a question mark; ellipses stay."""
    drawn = (
        char.isprintable() and (ord(char) < 0x250 or char == _ELLIPSIS)
        for char in text
    )
    return "".join(
        char if is_drawn else "?"
        for char, is_drawn in zip(text, drawn, strict=True)
    )


def shortened(text: str, longest: int) -> str:
    """Return the text, with an ellipsis in place of its middle if it is too long: names often differ at their ends."""
    if len(text) <= longest:
        return text
    tail = max(1, (longest - 1) // 3)
    return f"{text[: longest - 1 - tail]}{_ELLIPSIS}{text[-tail:]}"
