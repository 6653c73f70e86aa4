"""The templates: every text that is put into one is escaped, unless it is HTML already."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["rendered"]


def rendered(template: str, **content: Any) -> str:
    """A template of this room with content in it."""
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
