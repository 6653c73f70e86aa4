"""LaTeX in pages becomes MathML in the site, which browsers draw by themselves: no script, nothing to fetch."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from latex2mathml.converter import convert

__all__ = ["on_page_content"]

_INLINE: Final = re.compile(
    r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL
)
_BLOCK: Final = re.compile(
    r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL
)


def on_page_content(html: str, **_: object) -> str:
    """Replace what the extension arithmatex marked as formulas (an event of MkDocs)."""
    html = _BLOCK.sub(
        lambda found: convert(unescape(found[1]), display="block"), html
    )
    return _INLINE.sub(lambda found: convert(unescape(found[1])), html)
