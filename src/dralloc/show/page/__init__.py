"""Answers as HTML that needs nothing else: a page with both, and cells of notebooks.

The page's pictures take matplotlib (extra ``plot``); a cell goes without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from dralloc.objects.answer import Answer
from dralloc.objects.limits import without_garbage_collection
from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan

if TYPE_CHECKING:
    from dralloc.show.page.render import Picture

__all__ = ["cell", "rendered"]

# ----------------------------------------------------------------------------
# The templates: every text that is put into one is escaped, unless it is HTML
# already.


def rendered(template: str, **content: Any) -> str:
    """Return a template of this room with content in it."""
    return _environment().get_template(template).render(content).strip()


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("dralloc.show.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


_ROWS: Final = 12
_PARTS: Final = 40

_number = count()
"""Ids must differ between all pictures of a notebook."""


@without_garbage_collection()
def cell(answer: Answer) -> str:
    """Return the answer as HTML that stands among other output, in the reader's colours."""
    parts = answer.parts()
    drawn = list(_pictures(answer)) if find_spec("matplotlib") else []
    shown = {
        "parts": parts[:_PARTS],
        "more": max(len(parts) - _PARTS, 0),
        "most": _ROWS,
        "pictures": drawn,
    }
    return rendered("cell.html", **shown)


def _pictures(answer: Answer) -> Iterator[Picture]:
    from dralloc.show.page.render import (  # noqa: PLC0415 - matplotlib is optional
        gains_picture,
        map_picture,
        utilisation_picture,
    )

    if isinstance(answer, Plan) and answer.compiled.problem.devices:
        yield map_picture(answer, None, _name("map"), "Devices")
    if isinstance(answer, Comparison):
        if answer.optimal.demands:
            yield gains_picture(answer, _name("gains"))
        if any(row.total for row in answer.optimal.metrics.utilisation):
            yield utilisation_picture(answer, _name("utilisation"))


def _name(title: str) -> str:
    return f"dralloc-{next(_number)}-{title}"
