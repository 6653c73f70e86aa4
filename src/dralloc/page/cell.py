"""An answer as a notebook shows it: its tables, bounded in rows, and the pictures of the report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Final

from dralloc.answer import Answer
from dralloc.comparison import Comparison
from dralloc.garbage import without_garbage_collection
from dralloc.page.templating import rendered
from dralloc.plan import Plan

if TYPE_CHECKING:
    from dralloc.page.pictures import Picture

__all__ = ["cell"]

_ROWS: Final = 12
_PARTS: Final = 40

_number = count()
"""Ids must differ between all pictures of a notebook."""


@without_garbage_collection()
def cell(answer: Answer) -> str:
    """The answer as HTML that stands among other output, in the reader's colours."""
    parts = answer.parts()
    drawn = list(_pictures(answer)) if find_spec("matplotlib") else []
    shown = {"parts": parts[:_PARTS], "more": max(len(parts) - _PARTS, 0), "most": _ROWS, "pictures": drawn}
    return rendered("cell.html", **shown)


@singledispatch
def _pictures(_answer: Answer) -> Iterator[Picture]:
    return iter(())


@_pictures.register(Plan)
def _of_plan(plan: Plan) -> Iterator[Picture]:
    from dralloc.page import pictures  # noqa: PLC0415 - matplotlib is optional

    if plan.compiled.problem.devices:
        yield pictures.map(plan, None, _name("map"), "Devices")


@_pictures.register(Comparison)
def _of_comparison(comparison: Comparison) -> Iterator[Picture]:
    from dralloc.page import pictures  # noqa: PLC0415 - matplotlib is optional

    if comparison.optimal.demands:
        yield pictures.gains(comparison, _name("gains"))
    if any(row.total for row in comparison.optimal.metrics.utilisation):
        yield pictures.utilisation(comparison, _name("utilisation"))


def _name(what: str) -> str:
    return f"dralloc-{next(_number)}-{what}"
