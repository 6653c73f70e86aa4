"""Long texts in YAML, piece by piece: what says the same as a piece before, but for names, is not parsed again.

Parsing YAML takes a hundred times as long as JSON. So pieces are documents, and the items of a list; a piece is cut at
plain values that look like names, which are text wherever they are. The rest of it, once it has been parsed, is known
as JSON, in which other names take their place.

A cut is where YAML itself says that whatever was open is complete: at a line of three dashes, or at a dash with the
indentation of a list's items. Only what is in quotes or brackets goes on there, and then the piece cannot be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import orjson

from dralloc.objects.load.json_text import ItemAt, TextError, is_list
from dralloc.objects.load.yaml_text import yaml_documents

__all__ = ["YamlPieces"]

_ALIAS: Final = re.compile(rb"[\s\[{,:?-]\*\S")
"""How an alias starts, which may mean something in another piece."""

_DOCUMENT: Final = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)
_ITEMS: Final = re.compile(rb"^items:[ \t]*\n( *)- ", re.MULTILINE)
_NAME: Final = re.compile(
    rb"(?<=[:-] )([A-Za-z][A-Za-z.]*[0-9-][A-Za-z0-9.-]*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=\n)"
)
"""A value to the end of its line that is nothing but text in YAML and in JSON."""

_MARK: Final = b"name-of-dralloc-"
_BLANK: Final = re.compile(_MARK + rb"(\d+)-")
"""Stands for such a value. Texts with this in them are parsed as a whole."""


class _WholeError(Exception):
    """The text cannot be read in pieces."""


class YamlPieces:
    """Reads texts, and pieces in them once for all that are alike.

    Parameters
    ----------
    item_at
        Reads what has become JSON.
    """

    def __init__(self, item_at: ItemAt) -> None:
        self._item_at = item_at
        self._seen: set[bytes] = set()
        self._templates: dict[bytes, Sequence[bytes]] = {}

    def documents(self, data: bytes) -> list[Any] | None:
        """Return the documents of a text; None if it has to be parsed as a whole, if only to say what is wrong."""
        if _MARK in data or (b"*" in data and _ALIAS.search(data)):
            return None
        cuts = dict.fromkeys(
            (
                0,
                *(separator.start() for separator in _DOCUMENT.finditer(data)),
                len(data),
            )
        )
        try:
            return [
                document
                for start, end in pairwise(cuts)
                for document in self._documents(data[start:end])
            ]
        except _WholeError:
            return None

    def _documents(self, text: bytes) -> list[Any]:
        """Return the documents of a piece: one, or none if there are only comments."""
        opening = _ITEMS.search(text)
        if opening is None:
            return self._values(text)
        margin = opening[1]
        start = opening.end() - len(margin) - len(b"- ")
        behind = re.compile(
            rb"^(?!%b(?: |-[ \n])|\s*$)" % margin, re.MULTILINE
        ).search(text, start)
        end = behind.start() if behind else len(text)
        [shell] = _parsed(text[:start] + margin + b" true\n" + text[end:]) or [
            None
        ]
        if not (
            isinstance(shell, dict)
            and shell.get("items") is True
            and is_list(shell.get("kind"))
        ):
            return self._values(text)
        dashes = re.compile(rb"^%b-(?=[ \n])" % margin, re.MULTILINE).finditer(
            text, start, end
        )
        items = pairwise(
            [*(dash.end() for dash in dashes), end + len(margin) + 1]
        )
        # The first key of an item is as far from the margin as the others are.
        pieces = (
            margin + b" " + text[first : last - len(margin) - 1]
            for first, last in items
        )
        shell["items"] = [self._item(piece) for piece in pieces]
        return [shell]

    def _item(self, text: bytes) -> Any:
        values = self._values(text)
        if len(values) != 1:
            raise _WholeError
        return values[0]

    def _values(self, text: bytes) -> list[Any]:
        parts = _NAME.split(text)
        name = blake2b(_MARK.join(parts[::2]), digest_size=16).digest()
        if name not in self._templates:
            values = _parsed(text)
            if name in self._seen:
                self._templates[name] = tuple(_template(parts[::2]))
            self._seen.add(name)
            return values
        template = self._templates[name]
        if not template:
            return _parsed(text)
        parts[::2] = template
        written = b"".join(parts)
        return [self._item_at(written, 0, len(written))]


def _parsed(text: bytes) -> list[Any]:
    documents, failure = _yaml(text)
    if failure is not None:
        raise _WholeError
    return documents


def _yaml(text: bytes) -> tuple[list[Any], str | None]:
    try:
        return yaml_documents(text, 0)
    except TextError as error:
        return [], str(error)


def _template(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the parts in JSON between which names belong; nothing if these are not where they are in YAML."""
    blanks = [_MARK + b"%d-" % index for index in range(len(parts) - 1)]
    documents, _ = _yaml(
        b"".join(
            part
            for pair in zip(parts, [*blanks, b""], strict=True)
            for part in pair
        )
    )
    try:
        pieces = (
            _BLANK.split(orjson.dumps(documents[0]))
            if len(documents) == 1
            else []
        )
    except orjson.JSONEncodeError:
        return
    if list(map(int, pieces[1::2])) == list(range(len(blanks))):
        yield from pieces[::2]
