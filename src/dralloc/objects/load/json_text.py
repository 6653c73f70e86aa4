"""From bytes to the values of texts in JSON: unpacked, decoded, parsed; and the items of long lists, one by one."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from io import BytesIO
from json import JSONDecodeError
from pathlib import Path
from stat import S_ISCHR
from typing import Any, Final

import orjson

__all__ = [
    "DEPTH",
    "SPLIT_FROM",
    "TOO_DEEP",
    "ItemAt",
    "TextError",
    "content",
    "is_list",
    "item_of",
    "json_documents",
    "json_value",
    "require_utf8",
    "split_list",
    "unpacked",
]

# ----------------------------------------------------------------------------
# From bytes to text.

DEPTH: Final = 254
"""How many levels a document may have; objects of Kubernetes have some 30. It is how deep orjson writes."""

TOO_DEEP: Final = f"is nested too deeply, more than {DEPTH} levels"

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 20


class TextError(Exception):
    """A text that cannot be read at all."""


def content(path: Path, limit: int) -> bytes:
    """Return all bytes of a file or a pipe; of a device, which may never end, no more than the limit.

    Raises
    ------
    OSError
        It cannot be read.
    TextError
        It is a device that goes on behind the limit.
    """
    with path.open("rb") as file:
        if not S_ISCHR(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TextError(f"is a device that gives more than {limit} bytes")
    return data


def unpacked(data: bytes, limit: int) -> bytes:
    """Without compression and byte order mark.

    Parameters
    ----------
    limit
        The most bytes that compressed data may become.
    """
    return (
        _decompressed(data, limit) if data.startswith(_GZIP) else data
    ).removeprefix(_BOM)


def _decompressed(data: bytes, limit: int) -> bytes:
    unpacked_text = BytesIO()
    try:
        with gzip.open(BytesIO(data)) as packed:
            while chunk := packed.read(_CHUNK):
                if unpacked_text.tell() + len(chunk) > limit:
                    raise TextError(
                        f"unpacks to more than {limit} bytes; --limit unpacked=AMOUNT allows more"
                    )
                unpacked_text.write(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"is not valid gzip data: {error}") from None
    return unpacked_text.getvalue()


def _decoded(data: bytes) -> str:
    """Return the text that the bytes are in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error.start) from None


def require_utf8(data: bytes) -> None:
    """Refuse what `_decoded` would refuse, without a second copy of the text."""
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _CHUNK):
        undecoded = len(decoder.getstate()[0])
        end = start + _CHUNK
        try:
            decoder.decode(memoryview(data)[start:end], final=end >= len(data))
        except UnicodeDecodeError as error:
            raise _not_utf8(data, start - undecoded + error.start) from None


def _not_utf8(data: bytes, position: int) -> TextError:
    return TextError(
        f"is not text in UTF-8: byte 0x{data[position]:02x} at offset {position}"
    )


# ----------------------------------------------------------------------------
# Text in JSON: one value, or several in a row. Every value goes through `json_value`.

_SPACE: Final = re.compile(r"\s*")
_ESCAPED_QUOTE: Final = rb"\u0022"
_KEYS: Final = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|[{}]'
)
_SYNTAX: Final = json.JSONDecoder(parse_int=str, parse_float=str)
"""Knows where a value ends and what is wrong with its syntax, and never looks into numbers."""


def json_value(data: bytes, start: int = 0, end: int | None = None) -> Any:
    """Return the value of a part of the data.

    Numbers have 64 bits: longer integers become floats, as in Kubernetes.

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
        data.find(b"\\", start, end) >= 0
        and data.find(_ESCAPED_QUOTE, start, end) >= 0
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
    """Return the values in a JSON text, one or several in a row, and why there are not more."""
    try:
        return [json_value(data)], None
    except JSONDecodeError:
        text = _decoded(data)
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
    """Return the position where the next value starts."""
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


# ----------------------------------------------------------------------------
# Lists: their items, and long ones in JSON without parsing them as a whole.

ItemAt = Callable[[bytes, int, int], Any]
"""What the part of some data between two places is as an item."""

SPLIT_FROM: Final = 1 << 20
"""Lists in JSON from this many bytes on are parsed item by item, as plain data takes ten times the room of its text."""

_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[(\s*)(\{\s*"[^"\\]*")')
_CLOSING_BRACKETS: Final = 8
"""How many brackets at the end of a list are tried as the one that closes its items."""


def is_list(kind: object) -> bool:
    """Return whether a kind is that of a list, typed or not."""
    return isinstance(kind, str) and kind.endswith("List")


def item_of(item: Any, parent: dict[str, Any]) -> Any:
    """Return an item of a list, with the kind and version that items of typed lists leave out."""
    if not isinstance(item, dict) or "kind" in item or parent["kind"] == "List":
        return item
    return {
        "apiVersion": parent.get("apiVersion"),
        "kind": parent["kind"].removesuffix("List"),
        **item,
    }


def split_list(
    data: bytes, item_at: ItemAt = json_value
) -> tuple[dict[str, Any], Iterator[Any]] | None:
    """Return a list's own fields and its items, one by one, if all items start alike; None for other texts.

    Items are cut where the text ``}, {"apiVersion"`` (or whatever their first key is) stands. As every piece and what
    is left of the list without them must parse, a cut in the wrong place cannot go unnoticed.

    Parameters
    ----------
    item_at
        Reads the item that a part of the data is; raises JSONDecodeError if it is none.
    """
    opening = _ITEMS.search(data)
    if opening is None:
        return None
    indent, first_key = opening.groups()
    # Between items is the same blank as before the first one, or a single space, as Python's json writes it.
    separators = (b"}," + indent + first_key, b"}, " + first_key)
    separator = next(
        (candidate for candidate in separators if candidate in data), None
    )
    # From the end on, as fields of the list may stand behind its items, with brackets of their own.
    closing = len(data)
    for _ in range(_CLOSING_BRACKETS if separator else 0):
        closing = data.rfind(b"]", opening.end(), closing)
        try:
            shell = json_value(
                data[: opening.start(1)] + b"true" + data[max(closing, 0) :]
            )
        except JSONDecodeError:
            continue
        if (
            separator
            and isinstance(shell, dict)
            and shell.get("items") == [True]
            and is_list(shell.get("kind"))
        ):
            return shell, _pieces(
                data, opening.start(2), closing, separator, item_at
            )
    return None


def _pieces(
    data: bytes, start: int, closing: int, separator: bytes, item_at: ItemAt
) -> Iterator[Any]:
    count = 0
    while start < closing:
        cut = data.find(separator, start, closing)
        end = closing if cut < 0 else cut + 1
        try:
            item = item_at(data, start, end)
        except JSONDecodeError:
            documents, failure = json_documents(data)
            if failure is not None:
                raise TextError(failure) from None
            yield from documents[0]["items"][count:]
            return
        yield item
        count, start = count + 1, end + 1
