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
    r"|lowerAscii|upperAscii|reverse|join|size|isGreaterThan|isLessThan|compareTo)\s*\("
    r"|\b(?:size|ip|cidr|isIP|isCIDR|semver|isSemver|quantity|int|uint|double|bytes|timestamp|duration)\s*\("
    # A text that is put together, or that has an order, beside a literal, of which quotes are left.
    r"|''\s*[<>+]|[<>+]=?\s*''"
)


def with_literals(
    expression: str, replaced: Callable[[str], str | None]
) -> str:
    """Return an expression with other values for its string literals, where that is not None; comments go."""

    def new(token: re.Match[str]) -> str:
        if token["comment"]:
            return "//"
        value = _value(token)
        replacement = None if value is None else replaced(value)
        return (
            token[0]
            if replacement in (None, value)
            else (token["bytes"] or "")
            + json.dumps(replacement, ensure_ascii=False)
        )

    return _TOKEN.sub(new, expression)


def code_words(expression: str) -> frozenset[str]:
    """Return the words outside of literals; none if a literal has no end, so that what is code is not known."""
    code = _TOKEN.sub(" ", expression)
    return (
        frozenset()
        if set("'\"") & set(code)
        else frozenset(_WORD.findall(code))
    )


def looks_inside(expression: str) -> bool:
    """Return whether it does more with text than to compare it as a whole."""
    code = _TOKEN.sub(
        lambda token: " " if token["comment"] else "''", expression
    )
    return _INSIDE.search(code) is not None


def _value(token: re.Match[str]) -> str | None:
    if token["string"] is None:
        return None
    try:
        return string_literal(token["string"])
    except ValueError:
        return None
