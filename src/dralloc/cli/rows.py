"""Rows of frames, of the commands that try out many answers: ``dralloc simulate`` and ``dralloc study``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dralloc.objects.report import Part

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """Rows of frames in every form.

    ``tables`` makes what people read; machines get the frames, by name.
    """

    tables: Callable[[], list[Part]]
    frames: Mapping[str, DataFrame]

    def parts(self) -> list[Part]:
        """Return it as tables and lines."""
        return self.tables()

    def names(self) -> Iterable[str]:
        """Return the values of the first column of words."""
        first = next(iter(self.frames.values()))
        words = list(first.select_dtypes(exclude="number"))
        return dict.fromkeys(map(str, first[words[0]])) if words else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain data; what is not a number is null."""
        return {name: _records(frame) for name, frame in self.frames.items()}


def _records(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame. What pandas writes as JSON itself has integers of 64 bits and ten digits only."""
    from numpy import inf

    known = frame.astype(object).replace([inf, -inf], None)
    known = known.where(known.notna(), None)
    rows: list[dict[str, Any]] = json.loads(
        json.dumps(known.to_dict(orient="records"))
    )
    return rows
