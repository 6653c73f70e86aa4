"""Answers as HTML that needs nothing else: a page with both, and cells of notebooks.

The page's pictures take matplotlib (extra ``plot``); a cell goes without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from dralloc.objects.answer import Answer
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.value_kinds import PATH, TEXT, takes
from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan

if TYPE_CHECKING:
    from dralloc.show.page.render import Picture

__all__ = ["cell", "page_renderer", "rendered", "report"]

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
        time_pictures,
        utilisation_picture,
    )
    from dralloc.show.plot.over_time import OverTime  # noqa: PLC0415

    if isinstance(answer, Plan) and answer.compiled.problem.devices:
        yield map_picture(answer, None, _name("map"), "Devices")
    if isinstance(answer, OverTime):
        yield from time_pictures(answer, _name)
    if isinstance(answer, Comparison):
        if answer.best.demands:
            yield gains_picture(answer, _name("gains"))
        if any(row.total for row in answer.best.metrics.utilisation):
            yield utilisation_picture(answer, _name("utilisation"))


def _name(title: str) -> str:
    return f"dralloc-{next(_number)}-{title}"


# ----------------------------------------------------------------------------
# The page, as Python asks for it.


@takes(output=PATH, title=TEXT)
def report(answer: Answer, output: Path | str, *, title: str = "") -> None:
    """Write an answer as one HTML page with pictures.

    That is either all answers of a comparison, as ``dralloc report`` does, or what a simulation found, as
    ``dralloc simulate --report``.

    The page needs nothing else to be read, and equal answers give equal pages.

    Parameters
    ----------
    output
        The file to write.
    title
        What the page is about, in its heading.

    Raises
    ------
    DrallocError
        It is neither a comparison nor a simulation, the extra ``plot`` is not installed, or the file cannot be written.

    Examples
    --------
    >>> import dralloc, tempfile, pathlib
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> dralloc.report(dralloc.compare(dralloc.example()), page, title="Team A")
    >>> "Team A" in page.read_text()
    True
    """
    from dralloc.objects.save import write_text  # noqa: PLC0415 - only reports write

    page = page_renderer()
    if isinstance(answer, Comparison):
        about = page.Circumstances(timed=False, title=title)
        text = page.render(answer, about)
    elif isinstance(answer, page.OverTime):
        text = page.render_over_time(answer, title)
    else:
        name = type(answer).__name__
        raise DrallocError(
            f"report: {name}: expected a comparison or a simulation"
        )
    write_text(text, Path(output))


def page_renderer() -> ModuleType:
    """Return the module that draws the page; it needs libraries that are not always installed.

    Raises
    ------
    DrallocError
        matplotlib is not installed.
    """
    try:
        return import_module("dralloc.show.page.render")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise DrallocError(
            "report needs matplotlib: pip install 'dralloc[plot]'"
        ) from None
