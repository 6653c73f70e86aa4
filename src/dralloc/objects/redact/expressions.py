"""String literals in CEL expressions, found without parsing them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from kubecel import string_literal

__all__ = ["code_words", "looks_inside", "with_literals"]

_TOKEN: Final = re.compile(
    r"(?P<comment>//[^\n]*)"
    r"|(?P<bytes>[bB])?(?P<string>"
    r"(?<![_a-zA-Z0-9])[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    r"|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|\"(?:\\.|[^\\\"\n\r])*\""
    r"|'''(?:\\[\s\S]|[^\\])*?'''|'(?:\\.|[^\\'\n\r])*')"
)
_WORD: Final = re.compile(r"[^\W_]+")
_INSIDE: Final = re.compile(
    r"\.\s*(?:startsWith|endsWith|contains|matches|find|findAll|split|substring|indexOf|lastIndexOf|charAt|replace"
    r"|lowerAscii|upperAscii|reverse|size|isGreaterThan|isLessThan|compareTo)\s*\(|\b(?:size|ip|cidr|isIP|isCIDR|semver|isSemver|quantity)\s*\("
)


def with_literals(expression: str, replaced: Callable[[str], str | None]) -> str:
    """The expression with another value for each string literal, unless that is None; and with comments emptied."""

    def new(token: re.Match[str]) -> str:
        if token["comment"]:
            return "//"
        value = _value(token)
        other = None if value is None else replaced(value)
        return (
            token[0]
            if other in (None, value)
            else (token["bytes"] or "") + json.dumps(other, ensure_ascii=False)
        )

    return _TOKEN.sub(new, expression)


def code_words(expression: str) -> frozenset[str]:
    """The words outside of literals; none if a literal has no end, so that what is code is not known."""
    code = _TOKEN.sub(" ", expression)
    return frozenset() if set("'\"") & set(code) else frozenset(_WORD.findall(code))


def looks_inside(expression: str) -> bool:
    """Whether it does more with text than to compare it as a whole."""
    return _INSIDE.search(_TOKEN.sub("''", expression)) is not None


def _value(token: re.Match[str]) -> str | None:
    if token["string"] is None:
        return None
    try:
        return string_literal(token["string"])
    except ValueError:
        return None
