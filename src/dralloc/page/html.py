"""HTML that cannot be broken by what is in it: every text and every attribute is escaped, unless it is HTML already."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Html", "element", "joined", "raw"]


class Html(str):
    """Finished HTML. Only this module and `raw` make it."""

    __slots__ = ()


def raw(text: str) -> Html:
    """Text that is HTML or SVG already and came from a trusted place, never from the input."""
    return Html(text)


def joined(parts: Iterable[str]) -> Html:
    """The parts one after the other, with plain text escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(part, quote=False) for part in parts))


def element(tag: str, *children: str, **attributes: str) -> Html:
    """An element.

    Attributes are named as in Python: ``class_`` and ``for_`` end with an underscore, ``aria_label`` is ``aria-label``.
    """
    written = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{written}>{joined(children)}</{tag}>")
