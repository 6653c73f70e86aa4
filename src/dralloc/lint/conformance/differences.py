"""Where two pieces of plain data differ first, and which words of errors are compared."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["comparable", "first_difference"]

_SYNTAX_ERROR: Final = "Syntax error"
_NODE_BEFORE: Final = re.compile(r"^node \S+: ")
_DEFAULT_NAMESPACE: Final = "claim default/"


def first_difference(expected: Any, actual: Any, path: str = "") -> str:
    """Return path and values of the first difference, in the order of the expected data; empty if there is none."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys((*expected, *actual)):
            where = f"{path}.{key}" if path else str(key)
            if key not in actual:
                return f"{where}: expected {expected[key]!r}, got nothing"
            if key not in expected:
                return f"{where}: expected nothing, got {actual[key]!r}"
            if difference := first_difference(
                expected[key], actual[key], where
            ):
                return difference
        return ""
    if isinstance(expected, list) and isinstance(actual, list):
        # What differs in the first items says more than that there are not as many of them.
        for item_index, (expected_item, actual_item) in enumerate(
            zip(expected, actual, strict=False)
        ):
            if difference := first_difference(
                expected_item, actual_item, f"{path}[{item_index}]"
            ):
                return difference
        if len(expected) != len(actual):
            return (
                f"{path}: expected {len(expected)} entries, got {len(actual)}"
            )
        return ""
    return (
        ""
        if expected == actual
        else f"{path}: expected {expected!r}, got {actual!r}"
    )


def comparable(message: str) -> str:
    """Return an error without what depends on the recorder or on the parser.

    That is the node that recorded batches put before it, the default namespace, which upstream's own tables leave out,
    and the rest of a syntax error, where upstream lists the tokens of its parser generator.
    """
    head, syntax_error, _ = (
        _NODE_BEFORE.sub("", message)
        .replace(_DEFAULT_NAMESPACE, "claim ")
        .partition(_SYNTAX_ERROR)
    )
    return head + syntax_error
