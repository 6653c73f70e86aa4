"""LaTeX in pages becomes MathML in the site."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from latex2mathml.converter import convert

__all__ = ["to_mathml"]

_INLINE: Final = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK: Final = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def to_mathml(html: str) -> str:
    """Replace what the arithmatex extension marked as formulas."""
    html = _BLOCK.sub(lambda found: convert(unescape(found[1]), display="block"), html)
    return _INLINE.sub(lambda found: convert(unescape(found[1])), html)
