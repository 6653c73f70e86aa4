"""YAML as Kubernetes reads it, and the documents of a text in either format.

From the parser's events to data (`yaml_documents`), the values of scalars, the choice of the format (`documents_of`),
and long texts piece by piece (`YamlPieces`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import orjson
import yaml

from dralloc.objects.load.json_text import (
    DEPTH,
    TOO_DEEP,
    ItemAt,
    TextError,
    is_list,
    json_documents,
    require_utf8,
)

__all__ = [
    "Parser",
    "YamlPieces",
    "documents_of",
    "starts_like_json",
    "yaml_documents",
]

# ----------------------------------------------------------------------------
# YAML as Kubernetes reads it: from the parser's events to data, without recursion.
# Keys are text and unique.
#
# An alias stands for the value of its anchor, which is made once. But whoever reads
# the data goes through it once for each alias, so what the aliases of a text stand
# for is counted.

try:
    from yaml import CSafeLoader as Parser
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as Parser  # type: ignore[assignment]


_MERGE: Final = "<<"


def yaml_documents(data: bytes, limit: int) -> tuple[list[Any], str | None]:
    """Return the documents of a YAML text up to the first that cannot be read, and why it cannot.

    Parameters
    ----------
    limit
        How many characters the aliases of the text may stand for.

    Raises
    ------
    TextError
        The data is no text.
    """
    require_utf8(data)
    builder = _Builder(limit)
    try:
        for event in iter(Parser(data).get_event, None):
            builder.take(event)
    except TextError as error:
        return builder.documents, str(error)
    except yaml.MarkedYAMLError as error:
        return builder.documents, str(
            refused(
                _said(error.problem or error.context),
                error.problem_mark or error.context_mark,
            )
        )
    except yaml.reader.ReaderError as error:
        location = (
            f"character #x{error.character:04x} at offset {error.position}"
        )
        return builder.documents, f"is not YAML: {location}: {error.reason}"
    return builder.documents, None


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping that is being read, or what an anchor names.

    ``size`` is in characters; while the part is open, that of the text before it. ``depth`` is in levels.
    """

    value: Any
    size: int
    depth: int = 1
    is_open: bool = True

    @property
    def wants_key(self) -> bool:
        """Whether what comes next is a key."""
        return False

    def add(self, value: Any, _event: yaml.Event) -> None:
        self.value.append(value)

    def close(self, size: int) -> None:
        self.size, self.is_open = size - self.size, False


@dataclass(slots=True)
class _Mapping(_OpenNode):
    key: str | None = None
    merges: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wants_key(self) -> bool:
        return self.key is None and not self.merges

    def add(self, value: Any, event: yaml.Event) -> None:
        if self.merges:
            self._merge(value, event)
        elif self.key is None:
            self.key = self._new_key(value, event)
        else:
            self.value[self.key], self.key = value, None

    def close(self, size: int) -> None:
        """Merge: its own keys count more than merged ones, and the last of these most."""
        _OpenNode.close(self, size)
        if self.merged:
            self.value = {
                key: value
                for part in (*self.merged, self.value)
                for key, value in part.items()
            }

    def _merge(self, value: Any, event: yaml.Event) -> None:
        """Take what a merge key names: in a list, the first counts most."""
        parts = value[::-1] if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise refused("only mappings can be merged", event.start_mark)
        self.merged += parts
        self.merges = False

    def _new_key(self, value: Any, event: yaml.Event) -> str:
        if isinstance(value, list | dict):
            raise refused("a key must be text", event.start_mark)
        key = value if isinstance(value, str) else json.dumps(value)
        if key in self.value:
            raise refused(f'the key "{key}" is there twice', event.start_mark)
        return key


class _Builder:
    """Takes a text's events and makes ``documents`` of them."""

    def __init__(self, limit: int) -> None:
        self.documents: list[Any] = []
        self._limit = limit
        self._aliased = 0
        self._size = 0
        self._parts: list[_OpenNode] = []
        self._anchors: dict[str, _OpenNode] = {}
        self._takers: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.DocumentStartEvent: self._begin,
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceEndEvent: self._close,
            yaml.MappingEndEvent: self._close,
        }

    def take(self, event: yaml.Event) -> None:
        taker = self._takers.get(type(event))
        if taker is not None:
            taker(event)

    def _begin(self, _event: yaml.DocumentStartEvent) -> None:
        self._anchors.clear()

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if (
            event.value == _MERGE
            and event.implicit[0]
            and self._parts
            and self._parts[-1].wants_key
        ):
            self._parts[-1].merges = True  # type: ignore[attr-defined]
            return
        self._size += len(event.value) + 1
        value = _value_of(event)
        if event.anchor:
            self._anchors[event.anchor] = _OpenNode(
                value, len(event.value) + 1, depth=0, is_open=False
            )
        self._put(value, 0, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        named = self._anchors.get(str(event.anchor))
        if named is None:
            raise refused("found undefined alias", event.start_mark)
        if named.is_open or len(self._parts) + named.depth > DEPTH:
            raise refused(TOO_DEEP, event.start_mark)
        self._size += named.size
        self._aliased += named.size
        if self._aliased > self._limit:
            problem = f"aliases stand for more than {self._limit} characters; --limit aliases=AMOUNT allows more"
            raise refused(problem, event.start_mark)
        self._put(named.value, named.depth, event)

    def _open(
        self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent
    ) -> None:
        make, value, tag = _KINDS[type(event)]
        if event.tag not in (None, "!", tag):
            raise _refused_tag(event)
        if len(self._parts) == DEPTH:
            raise refused(TOO_DEEP, event.start_mark)
        if self._parts and self._parts[-1].wants_key:
            raise refused("a key must be text", event.start_mark)
        part = make(value(), self._size)
        if event.anchor:
            self._anchors[event.anchor] = part
        self._size += 1
        self._parts.append(part)

    def _close(
        self, event: yaml.SequenceEndEvent | yaml.MappingEndEvent
    ) -> None:
        part = self._parts.pop()
        part.close(self._size)
        self._put(part.value, part.depth, event)

    def _put(self, value: Any, depth: int, event: yaml.Event) -> None:
        """Add a complete value of so many levels to what it is a part of."""
        if not self._parts:
            self.documents.append(value)
            return
        outer = self._parts[-1]
        outer.depth = max(outer.depth, depth + 1)
        outer.add(value, event)


_KINDS: Final[
    dict[type[yaml.Event], tuple[type[_OpenNode], type[Any], str]]
] = {
    yaml.SequenceStartEvent: (_OpenNode, list, "tag:yaml.org,2002:seq"),
    yaml.MappingStartEvent: (_Mapping, dict, "tag:yaml.org,2002:map"),
}


# ----------------------------------------------------------------------------
# Scalars of YAML as Kubernetes reads them: no dates, no ``yes`` for true, no numbers
# to base 60.

Scalar = str | int | float | bool | None

_TAG: Final = "tag:yaml.org,2002:"
_SHOWN: Final = 20
_PARSER_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml says since version 0.2.6, before what it has read that far is handed out."""


def _value_of(event: yaml.ScalarEvent) -> Scalar:
    """Return the value of a scalar.

    Raises
    ------
    TextError
        Its tag is none of JSON's types, or it does not fit its type: numbers have 64 bits and an end, text is Unicode.
    """
    text: str = event.value
    if event.tag not in (None, "!"):
        make = _TAGGED.get(event.tag)
        if make is None:
            raise _refused_tag(event)
    else:
        make = _plain(text) if event.implicit[0] else str
    try:
        if not text.isascii():
            text.encode()
        return make(text)
    except (ValueError, OverflowError, KeyError):
        raise refused(
            f"{text[:_SHOWN]!a} is not what JSON can hold in 64 bits",
            event.start_mark,
        ) from None


def _said(problem: str | None) -> str | None:
    """Return what is wrong in our words: newer parsers have a limit of their own to what is nested, beyond ours."""
    return TOO_DEEP if problem == _PARSER_TOO_DEEP else problem


def refused(problem: str | None, mark: Any) -> TextError:
    """Return the error for what is wrong at a place of a YAML text."""
    location = (
        f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    )
    return TextError(f"is not YAML: {location}{problem}")


def _refused_tag(event: Any) -> TextError:
    """Return the error for something whose tag is not known."""
    return refused(
        f"could not determine a constructor for the tag {event.tag!r}",
        event.start_mark,
    )


def _plain(text: str) -> Callable[[str], Scalar]:
    """Return the function for the value of a scalar that has neither quotes nor tag."""
    for pattern, make in _PLAIN.get(text[:1], ()):
        if pattern.fullmatch(text):
            return make
    return str


def _integer(text: str) -> int | float:
    """Return the integer, or the float nearest to one that is longer than 64 bits, as in JSON."""
    digits = text.replace("_", "")
    bare = digits.lstrip("+-")
    value = int(digits, 8 if bare[:1] == "0" and bare[1:].isdecimal() else 0)
    return value if -(1 << 63) <= value < 1 << 64 else float(value)


def _float(text: str) -> float:
    value = float(text.replace("_", ""))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _null(_text: str) -> None:
    return None


_TAGGED: Final[Mapping[str, Callable[[str], Scalar]]] = {
    f"{_TAG}str": str, f"{_TAG}int": _integer, f"{_TAG}float": _float, f"{_TAG}bool": _bool, f"{_TAG}null": _null
}  # fmt: skip

_PLAIN: Final[
    dict[str, list[tuple[re.Pattern[str], Callable[[str], Scalar]]]]
] = {}
"""By the first character: which texts without quotes are no text, and what makes a value of them."""

for _make, _pattern, _first in (
    (_bool, "true|True|TRUE|false|False|FALSE", "tTfF"),
    (
        _integer,
        "[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        _float,
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    (_float, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    (_null, "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    for _character in _first:
        _PLAIN.setdefault(_character, []).append((re.compile(_pattern), _make))


# ----------------------------------------------------------------------------
# A text's documents, in the format that it is in.

_BEGINNING: Final = 4096


def starts_like_json(data: bytes) -> bool:
    """Return whether the first character is a bracket; YAML in flow style starts so, too."""
    return data[:_BEGINNING].lstrip()[:1] in (b"{", b"[")


def documents_of(
    data: bytes, source: str, aliased: int
) -> tuple[list[Any], str | None]:
    """Return the documents up to the first that cannot be read, and why it cannot.

    Parameters
    ----------
    source
        Where the data is from: a file that is called YAML may be in flow style.
    aliased
        How many characters the aliases of a YAML text may stand for.
    """
    if not starts_like_json(data):
        return yaml_documents(data, aliased)
    documents, failure = json_documents(data)
    if failure is not None and source.endswith((".yaml", ".yml")):
        return yaml_documents(data, aliased)
    return documents, failure


# ----------------------------------------------------------------------------
# Long texts in YAML, piece by piece: what says the same as a piece before, but for
# names, is not parsed again.
#
# Parsing YAML takes a hundred times as long as JSON. So pieces are documents, and the
# items of a list; a piece is cut at plain values that look like names, which are text
# wherever they are. The rest of it, once it has been parsed, is known as JSON, in
# which other names take their place.
#
# A cut is where YAML itself says that whatever was open is complete: at a line of
# three dashes, or at a dash with the indentation of a list's items. Only what is in
# quotes or brackets goes on there, and then the piece cannot be parsed.

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
