"""Lists: their items, and long ones in JSON without parsing them as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError
from typing import Any, Final

from dralloc.objects.load.json_text import json_documents, json_value
from dralloc.objects.load.text import TextError

__all__ = ["SPLIT_FROM", "ItemAt", "is_list", "item_of", "split_list"]

ItemAt = Callable[[bytes, int, int], Any]
"""What the part of some data between two places is as an item."""

SPLIT_FROM: Final = 1 << 20
"""Lists in JSON from this many bytes on are parsed item by item, as plain data takes ten times the room of its text."""

_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[(\s*)(\{\s*"[^"\\]*")')
_CLOSING_BRACKETS: Final = 8
"""How many brackets at the end of a list are tried as the one that closes its items."""


def is_list(kind: object) -> bool:
    """Whether a kind is that of a list, typed or not."""
    return isinstance(kind, str) and kind.endswith("List")


def item_of(item: Any, parent: dict[str, Any]) -> Any:
    """An item of a list, with the kind and version that items of typed lists leave out."""
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
    """A list's own fields and its items, one by one, for a list whose items all start alike; None for other texts.

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
    separators = (b"}," + indent + first_key, b"}, " + first_key)
    separator = next((one for one in separators if one in data), None)
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
            return shell, _pieces(data, opening.start(2), closing, separator, item_at)
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
