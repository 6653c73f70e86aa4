"""Where two pieces of plain data differ first."""

from __future__ import annotations

from typing import Any

__all__ = ["first_difference"]


def first_difference(expected: Any, actual: Any, path: str = "") -> str:
    """The path and the values of the first difference in the order of the expected data; empty if there is none."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys((*expected, *actual)):
            where = f"{path}.{key}" if path else str(key)
            if found := _in_entry(expected, actual, key, where):
                return found
        return ""
    if isinstance(expected, list) and isinstance(actual, list):
        for number, (left, right) in enumerate(zip(expected, actual, strict=False)):
            if found := first_difference(left, right, f"{path}[{number}]"):
                return found
        if len(expected) != len(actual):
            return f"{path}: expected {len(expected)} entries, got {len(actual)}"
        return ""
    return "" if expected == actual else f"{path}: expected {expected!r}, got {actual!r}"


def _in_entry(expected: dict[str, Any], actual: dict[str, Any], key: str, where: str) -> str:
    if key not in actual:
        return f"{where}: expected {expected[key]!r}, got nothing"
    if key not in expected:
        return f"{where}: expected nothing, got {actual[key]!r}"
    return first_difference(expected[key], actual[key], where)
