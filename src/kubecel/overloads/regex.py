"""Regular expressions, by RE2. No other module knows the library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from kubecel import cost
from kubecel.data import EvalError, Value
from kubecel.overloads.registry import function, method
from kubecel.runtime_types import size_of

__all__ = ["REGEX", "REGEX_NAMES", "check_pattern"]


_MAX_REMEMBERED: Final = 500
"""Answers about longer texts are not remembered."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - few selectors need it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = (
            error.args[0].decode("utf-8", "replace")
            if isinstance(error.args[0], bytes)
            else error
        )
        raise EvalError(f"error parsing regexp: {message}") from error


def check_pattern(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing is."""
    try:
        _compiled(pattern)
    except EvalError as error:
        return str(error)
    return ""


def _matches(text: str, pattern: str) -> bool:
    if len(text) + len(pattern) > _MAX_REMEMBERED:
        return _search(text, pattern)
    return _remembered(text, pattern)


def _search(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


_remembered = lru_cache(maxsize=16384)(_search)


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


def _searching(args: Sequence[Value]) -> int:
    """At worst, every state of the pattern's automaton is visited for every character."""
    text, pattern = args[:2]
    if type(text) is not str or type(pattern) is not str:
        return 0
    try:
        return (len(text) + 1) * int(_compiled(pattern).programsize) // 200 + len(
            pattern
        ) // 10
    except EvalError:
        return len(pattern) // 10


def _searching_all(args: Sequence[Value]) -> int:
    """As `_searching`, and every character may be a match."""
    return _searching(args) + size_of(args[0])


REGEX: Final = (
    function("matches", "string, string -> bool", _matches, effort=_searching),
    method("matches", "string, string -> bool", _matches, cost.regex, _searching),
    method("find", "string, string -> string", _find, cost.regex, _searching),
    method(
        "findAll",
        "string, string -> list(string)",
        _find_all,
        cost.regex,
        _searching_all,
    ),
    method(
        "findAll",
        "string, string, int -> list(string)",
        _find_all,
        cost.regex,
        _searching_all,
    ),
)

REGEX_NAMES: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose pattern is checked when the selector is compiled, if it is constant."""
