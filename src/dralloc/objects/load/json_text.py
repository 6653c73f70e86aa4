"""Text in JSON: one value, or several in a row. Every value goes through `json_value`."""

from __future__ import annotations

import json
import re
from json import JSONDecodeError
from typing import Any, Final

import orjson

from dralloc.objects.load.text import TOO_DEEP, decoded

__all__ = ["json_documents", "json_value"]

_SPACE: Final = re.compile(r"\s*")
_ESCAPED_QUOTE: Final = rb"\u0022"
_KEYS: Final = re.compile(r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|[{}]')
_SYNTAX: Final = json.JSONDecoder(parse_int=str, parse_float=str)
"""Knows where a value ends and what is wrong with its syntax, and never looks into numbers."""


def json_value(data: bytes, start: int = 0, end: int | None = None) -> Any:
    """The value that a part of the data is. Numbers have 64 bits: longer integers become floats, as in Kubernetes.

    orjson refuses lone surrogates and numbers without end, but lets the last of equal keys win. So the value is written
    again, which is cheap: both texts must have as many quotation marks. orjson also writes no deeper than is allowed.

    Raises
    ------
    json.JSONDecodeError
        This is no JSON, it is nested too deeply, or an object has a key twice.
    """
    end = len(data) if end is None else end
    value = orjson.loads(memoryview(data)[start:end])
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise JSONDecodeError(TOO_DEEP, "", 0) from None
    # Looking for one byte is far cheaper, and most texts have no backslash.
    escaped = (
        data.find(b"\\", start, end) >= 0 and data.find(_ESCAPED_QUOTE, start, end) >= 0
    )
    if escaped or written.count(b'"') != data.count(b'"', start, end):
        _refuse_repeated_keys(data[start:end].decode())
    return value


def _refuse_repeated_keys(text: str) -> None:
    """Look at every key of a text that is known to be JSON."""
    keys: list[set[str]] = []
    for token in _KEYS.finditer(text):
        if token[0] == "{":
            keys.append(set())
        elif token[0] == "}":
            keys.pop()
        elif token["colon"]:
            key = orjson.loads(token["text"])
            if key in keys[-1]:
                raise JSONDecodeError(
                    f'the key "{key}" is there twice', text, token.start()
                )
            keys[-1].add(key)


def json_documents(data: bytes) -> tuple[list[Any], str | None]:
    """The values in a JSON text, one or several in a row, and why there are not more."""
    try:
        return [json_value(data)], None
    except JSONDecodeError:
        text = decoded(data)
    documents: list[Any] = []
    position = _first_at(text, 0)
    while position < len(text):
        try:
            end = _end_of_value(text, position)
        except JSONDecodeError as error:
            return documents, _failure(text, error.pos, error.msg)
        try:
            documents.append(json_value(text[position:end].encode()))
        except JSONDecodeError as error:
            return documents, _failure(text, position + error.pos, error.msg)
        position = _first_at(text, end)
    return documents, None


def _first_at(text: str, position: int) -> int:
    """Where the next value starts."""
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _end_of_value(text: str, position: int) -> int:
    try:
        return _SYNTAX.raw_decode(text, position)[1]
    except RecursionError:
        raise JSONDecodeError(TOO_DEEP, text, position) from None


def _failure(text: str, position: int, problem: str) -> str:
    line, column = (
        text.count("\n", 0, position) + 1,
        position - text.rfind("\n", 0, position),
    )
    return f"is not JSON: line {line}, column {column}: {problem}"
