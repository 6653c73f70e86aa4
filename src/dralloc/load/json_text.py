"""Text in JSON: one value, or several in a row."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from dralloc.load.text import decoded

__all__ = ["json_documents"]

_SPACE: Final = re.compile(r"\s*")


def json_documents(data: bytes) -> tuple[list[Any], str | None]:
    """The values in a JSON text, one or several in a row, and why there are not more."""
    try:
        return [orjson.loads(data)], None
    except orjson.JSONDecodeError:
        text = decoded(data)
    documents: list[Any] = []
    position = _first_at(text, 0)
    while position < len(text):
        try:
            document, end = json.JSONDecoder().raw_decode(text, position)
        except json.JSONDecodeError as error:
            return documents, f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        documents.append(document)
        position = _first_at(text, end)
    return documents, None


def _first_at(text: str, position: int) -> int:
    """Where the next value starts."""
    space = _SPACE.match(text, position)
    return space.end() if space else position
