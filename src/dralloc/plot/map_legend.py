"""The legend of a device map: entries in lines, as many as it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from dralloc.plot.canvas import WIDTH, fitted, text_width
from dralloc.plot.palette import Style

__all__ = ["SWATCH", "TEXT", "Entry", "Legend"]

TEXT: Final = 8.0
"""Size of the texts in a device map, in points."""
SWATCH: Final = 20.0
"""Width of a swatch."""
_LINE: Final = 17.0
_SPACE: Final = 16.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What a style means; without one it is what was allocated before, or the mark of what only one answer places."""

    label: str
    style: Style | None
    starred: bool = False


class _Placed(NamedTuple):
    entry: Entry
    label: str
    left: float
    top: float


@dataclass(frozen=True, slots=True)
class Legend:
    """The entries in their places, and where the last line ends."""

    placed: tuple[_Placed, ...]
    bottom: float

    @classmethod
    def of(cls, entries: Iterable[Entry], top: float) -> Legend:
        """Put the entries into lines."""
        placed: list[_Placed] = []
        left = 0.0
        for entry in entries:
            label = fitted(entry.label, TEXT, WIDTH / 2)
            width = SWATCH + 5 + text_width(label, TEXT)
            if left and left + width > WIDTH:
                left, top = 0.0, top + _LINE
            placed.append(_Placed(entry, label, left, top))
            left += width + _SPACE
        return cls(tuple(placed), top + _LINE if placed else top)
