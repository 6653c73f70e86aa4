"""ResourceSlices in JSON that publish what others do: their long lists are recognised by their text, and not parsed.

Nodes of a kind publish the same devices, but for the identifiers in some attributes. So the text of a list is cut at
the values of such attributes. Whatever else is in it, however much, is the same as in lists that were read before, and
so is everything that could be wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from json import JSONDecodeError
from typing import Any, Final

from dralloc.objects.api import ResourceSlice
from dralloc.objects.api.slice_reader import LISTS, SliceReader
from dralloc.objects.load.json_text import json_value

__all__ = ["SliceTexts"]

_LIST: Final = re.compile(rb'"(%s)"\s*:\s*(\[)' % "|".join(LISTS).encode())
_TEXT: Final = re.compile(rb'"string"\s*:\s*"([ !#-\[\]-~]{33,})"')
"""The value of an attribute that is long and plain. As it follows a key, it is a value wherever the text is JSON."""

_BLANK: Final = b"\x7f"
"""Stands for such a value. Texts that have this character themselves are not looked at."""

_HERE: Final = b'"\x7fhere"'
_CLOSING_BRACKETS: Final = 4
"""How many brackets at the end of a slice are tried as the one that closes its list."""

Template = Callable[[Sequence[str]], tuple[Any, ...]]


class SliceTexts:
    """Reads items of lists, and the lists in ResourceSlices among them once for all that are alike.

    A text that is there once costs no memory: what makes lists of it is worked out when it comes again.

    Parameters
    ----------
    reader
        Reads what is seen for the first time, and keeps equal parts once.
    """

    def __init__(self, reader: SliceReader) -> None:
        self._reader = reader
        self._seen: set[bytes] = set()
        self._templates: dict[bytes, Template | None] = {}

    def item_at(self, data: bytes, start: int, end: int) -> Any:
        """The value that a part of the data is, as plain data but for lists of slices that are known.

        Raises
        ------
        json.JSONDecodeError
            This is no JSON.
        """
        text = data[start:end]
        opening = _LIST.search(text)
        if opening is not None and _BLANK not in text:
            key, begin = opening[1].decode(), opening.start(2)
            for closing in islice(_brackets_before(text), _CLOSING_BRACKETS):
                item = _head(key, text[:begin] + _HERE + text[closing:])
                if item is not None:
                    item["spec"][key] = self._list(key, text[begin:closing])
                    return json_value(text) if item["spec"][key] is None else item
        return json_value(text)

    def _list(self, key: str, text: bytes) -> tuple[Any, ...] | None:
        """The list that the text is; None for one that is not known yet, or unusual."""
        parts = _TEXT.split(text)
        name = blake2b(_BLANK.join(parts[::2]), digest_size=16).digest()
        if name not in self._templates:
            if name not in self._seen:
                self._seen.add(name)
                return None
            self._templates[name] = self._template(key, parts[::2])
        template = self._templates[name]
        # Texts are decoded together, as there are a million of them.
        return (
            template(
                _BLANK.join(parts[1::2]).decode().split("\x7f")
                if len(parts) > 1
                else ()
            )
            if template
            else None
        )

    def _template(self, key: str, parts: Sequence[bytes]) -> Template | None:
        blanks = [f"\x7f{number}" for number in range(len(parts) - 1)]
        written = [b'"string":"%s"' % blank.encode() for blank in blanks]
        text = b"".join(
            part for pair in zip(parts, [*written, b""], strict=True) for part in pair
        )
        try:
            return self._reader.template(key, json_value(text), blanks)
        except JSONDecodeError:
            return None


def _brackets_before(text: bytes) -> Iterator[int]:
    """Where closing brackets end, from the last on."""
    end = len(text)
    while (end := text.rfind(b"]", 0, end)) >= 0:
        yield end + 1


def _head(key: str, text: bytes) -> dict[str, Any] | None:
    """A slice without the list, if it is one, the list is where it belongs, and nothing else is missing."""
    try:
        item = json_value(text)
    except JSONDecodeError:
        return None
    # In a typed list, items do not say what they are.
    if (
        not isinstance(item, dict)
        or item.get("kind", ResourceSlice.kind) != ResourceSlice.kind
    ):
        return None
    spec = item.get("spec")
    complete = (
        isinstance(spec, dict)
        and spec.keys() >= {"driver", "pool"}
        and spec.get(key) == _HERE[1:-1].decode()
    )
    return item if complete else None
