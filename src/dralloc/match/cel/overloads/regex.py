"""Regular expressions, by RE2. No other module knows the library."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from dralloc.match.cel import cost
from dralloc.match.cel.data import EvalError
from dralloc.match.cel.overloads.registry import Overload, function, method

__all__ = ["REGEX", "REGEX_NAMES", "check_pattern"]


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise EvalError(f"error parsing regexp: {message}") from error


def check_pattern(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing is."""
    try:
        _compiled(pattern)
    except EvalError as error:
        return str(error)
    return ""


@lru_cache(maxsize=16384)
def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return "" if found is None else str(found.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """As Go, an empty match right behind another match does not count."""
    parts: list[str] = []
    end = -1
    for found in _compiled(pattern).finditer(text):
        if 0 <= limit <= len(parts):
            break
        if found.start() == found.end() == end:
            continue
        parts.append(found.group())
        end = found.end()
    return tuple(parts)


def _matching() -> tuple[Overload, ...]:
    declare = (function, method)
    return tuple(new("matches", "string, string -> bool", _matches, cost.regex, by_name=False) for new in declare)


REGEX: Final = (
    *_matching(),
    method("find", "string, string -> string", _find, cost.regex),
    method("findAll", "string, string -> list(string)", _find_all, cost.regex),
    method("findAll", "string, string, int -> list(string)", _find_all, cost.regex),
)

REGEX_NAMES: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose pattern is checked when the selector is compiled, if it is constant."""
