"""Positions of fields in a text, for findings: looked up when there is a finding, and never before.

Loading keeps of each object the text, the document and the item of a list that it was read from (`ObjectSource`), which
costs next to nothing. Only what has a finding is read once more, for the lines and columns of its fields (`located`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from dralloc.objects.api.versions import spellings
from dralloc.objects.errors import Finding
from dralloc.objects.load.json_text import (
    TextError,
    content,
    json_documents,
    unpacked,
)
from dralloc.objects.load.yaml_text import Parser, starts_like_json

__all__ = ["ObjectSource", "SourceText", "located"]

# ----------------------------------------------------------------------------
# Where an object was read.

_KEPT: Final = 1 << 20
"""Texts that are in no file are kept up to this many bytes, and files up to it are read as a whole again."""


@dataclass(frozen=True, eq=False)
class SourceText:
    """A text that objects were read from.

    Parameters
    ----------
    name
        The file, or what stands for standard input and texts.
    limit
        How many bytes it may unpack to.
    data
        What is in no file; None for a file, which is read again.
    """

    name: str
    limit: int
    data: bytes | None = None

    @classmethod
    def given(cls, name: str, limit: int, data: bytes) -> SourceText:
        """Return a text that is in no file; a long one is not kept."""
        return cls(name, limit, data if len(data) <= _KEPT else b"")

    def content(self) -> bytes:
        """Return the text; an empty one if it cannot be had again, as from a pipe."""
        try:
            if self.data is not None:
                return unpacked(self.data, self.limit)
            path = Path(self.name)
            if not path.is_file():
                return b""
            return unpacked(content(path, self.limit), self.limit)
        except (OSError, TextError):
            return b""


class ObjectSource(str):
    """The source of an object, in words, and the data by which its position in the text is found again.

    It is a plain text wherever it is copied to another process.
    """

    __slots__ = ("number", "outer")

    outer: SourceText | ObjectSource
    """The text, or the list that the object is an item of."""
    number: int
    """The number of the document in the text, from 1; or the place in the list, from 0."""

    @classmethod
    def at(
        cls, text: SourceText, document: int, *, is_only: bool = True
    ) -> ObjectSource:
        """Return the place of a document, which is named if it is not the only one."""
        words = text.name if is_only else f"{text.name}: document {document}"
        source = str.__new__(cls, words)
        source.outer, source.number = text, document
        return source

    def item(self, index: int) -> ObjectSource:
        """Return the place of an item of the list that is here; there may be a million of them."""
        source = str.__new__(ObjectSource, self)
        source.outer = self
        source.number = index
        return source

    @property
    def document(self) -> ObjectSource:
        """The document that the object is, or is a part of."""
        outer = self.outer
        return self if isinstance(outer, SourceText) else outer.document

    @property
    def text(self) -> SourceText:
        """The text that the document is in."""
        outer = self.document.outer
        assert isinstance(outer, SourceText)
        return outer

    @property
    def items(self) -> tuple[int, ...]:
        """The places in a list, and in the lists in it; empty where the document is the object."""
        outer = self.outer
        if isinstance(outer, SourceText):
            return ()
        return (*outer.items, self.number)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


# ----------------------------------------------------------------------------
# The places of all parts of a text.

_Path = tuple[str | int, ...]
"""The number of the document, then keys and places in lists."""


class Position(NamedTuple):
    """A place in a text: the line and the column, from 1."""

    line: int
    column: int


@dataclass
class _Container:
    """A list or mapping that is being read."""

    path: _Path
    is_list: bool
    size: int = 0
    key: str | None = None


@dataclass
class _Outline:
    """Takes the parts of a text in order, and notes where each begins: a value in a mapping at its key."""

    places: dict[_Path, Position] = field(default_factory=dict)
    _documents: int = 0
    _open: list[_Container] = field(default_factory=list)

    def scalar(self, text: str, position: Position) -> None:
        container = self._open[-1] if self._open else None
        # A key may be an empty text.
        if container and not container.is_list and container.key is None:
            container.key = text
            self.places[*container.path, text] = position
        else:
            self._begin(position)

    def open(self, *, is_list: bool, position: Position) -> None:
        self._open.append(_Container(self._begin(position), is_list))

    def close(self) -> None:
        self._open.pop()

    def _begin(self, position: Position) -> _Path:
        """Return the path of the value that begins here."""
        if not self._open:
            self._documents += 1
            path: _Path = (self._documents,)
        elif self._open[-1].is_list:
            outer = self._open[-1]
            path = (*outer.path, outer.size)
            outer.size += 1
        else:
            outer = self._open[-1]
            path = (*outer.path, str(outer.key))
            outer.key = None
        self.places.setdefault(path, position)
        return path


def _places(data: bytes, *, is_json: bool) -> Mapping[_Path, Position]:
    """Return the positions of the parts of a text, up to the first that cannot be read."""
    outline = _Outline()
    take = _take_json if is_json else _take_yaml
    # What cannot be read has a finding of its own, which says where.
    with suppress(yaml.YAMLError, UnicodeError, IndexError):
        take(data, outline)
    return outline.places


def _take_yaml(data: bytes, outline: _Outline) -> None:
    for event in iter(Parser(data).get_event, None):
        mark: Any = event.start_mark
        position = Position(mark.line + 1, mark.column + 1)
        match event:
            case yaml.ScalarEvent():
                outline.scalar(event.value, position)
            case yaml.AliasEvent():
                outline.scalar(f"*{event.anchor}", position)
            case yaml.SequenceStartEvent():
                outline.open(is_list=True, position=position)
            case yaml.MappingStartEvent():
                outline.open(is_list=False, position=position)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                outline.close()


_TOKEN: Final = re.compile(
    r'"((?:[^"\\]|\\.)*)"|([\[{])|([\]}])|(\n)|[^\s\[\]{},:"]+'
)


def _take_json(data: bytes, outline: _Outline) -> None:
    line, line_start = 1, 0
    for token in _TOKEN.finditer(data.decode()):
        text, opening, closing, line_end = token.groups()
        position = Position(line, token.start() - line_start + 1)
        if line_end:
            line, line_start = line + 1, token.end()
        elif opening:
            outline.open(is_list=opening == "[", position=position)
        elif closing:
            outline.close()
        else:
            outline.scalar(token[0] if text is None else text, position)


# ----------------------------------------------------------------------------
# Long texts: only the item of the list that is asked for is looked at.

_DOCUMENT: Final = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)
_CONTENT: Final = re.compile(rb"^[ \t]*[^\s#%]", re.MULTILINE)
_YAML_ITEMS: Final = re.compile(rb"^items:[ \t]*\n( *)- ", re.MULTILINE)
_JSON_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[(\s*)(\{\s*"[^"\\]*")')
_READ: Final = 16 << 20
"""How many bytes of items are read for their fields; of further ones only the beginnings are found."""


@dataclass
class _LongText:
    """A text whose objects are read one by one."""

    data: bytes
    _read: int = 0
    _counted: tuple[int, int] = (0, 1)
    """A place in the text, and its line."""

    def places(self, source: ObjectSource) -> Mapping[_Path, Position]:
        """Return where the parts of an object begin; only where it begins itself once much has been read."""
        starts = self._starts(source.document.number, bool(source.items))
        object_index = source.items[0] if source.items else 0
        if object_index >= len(starts) - 1 or len(source.items) > 1:
            return {}
        start, end = starts[object_index], starts[object_index + 1]
        line_start = self.data.rfind(b"\n", 0, start) + 1
        line = self._line(line_start)
        column = len(self.data[line_start:start].decode(errors="replace")) + 1
        # Blanks for what stands before it in its line, so that columns are right.
        object_text = b" " * (column - 1) + self.data[start:end]
        self._read += len(object_text)
        here: _Path = (source.document.number, *_steps_to(source))
        if self._read > _READ:
            return {here: Position(line, column)}
        return {
            (*here, *path[1:]): Position(
                line + position.line - 1, position.column
            )
            for path, position in _places(
                object_text, is_json=starts_like_json(self.data)
            ).items()
        }

    def _line(self, offset: int) -> int:
        counted, line = self._counted if self._counted[0] <= offset else (0, 1)
        line += self.data.count(b"\n", counted, offset)
        self._counted = offset, line
        return line

    def _starts(self, document: int, is_item: bool) -> list[int]:
        """Return the positions of objects: of the items of a list, or of the document; and an end."""
        if starts_like_json(self.data):
            return self._json_items if is_item else []
        if document >= len(self._documents):
            return []
        start, end = self._documents[document - 1 : document + 1]
        if not is_item:
            return [start, end]
        if document not in self._yaml_items:
            self._yaml_items[document] = _yaml_items(self.data, start, end)
        return self._yaml_items[document]

    @cached_property
    def _yaml_items(self) -> dict[int, list[int]]:
        return {}

    @cached_property
    def _documents(self) -> list[int]:
        """The positions of the documents of a YAML text, and its end."""
        starts = [cut.end() for cut in _DOCUMENT.finditer(self.data)]
        first = starts[0] if starts else len(self.data)
        begins_at_once = _CONTENT.search(self.data[: max(first - 3, 0)])
        return [*([0] if begins_at_once else []), *starts, len(self.data)]

    @cached_property
    def _json_items(self) -> list[int]:
        """The positions of the items of a JSON list, if all start alike; and its end."""
        opening = _JSON_ITEMS.search(self.data)
        if opening is None:
            return []
        indent, first_key = opening.groups()
        separators = (b"}," + indent + first_key, b"}, " + first_key)
        starts = [opening.start(2)]
        for separator in separators:
            pattern = re.compile(re.escape(separator))
            further = pattern.finditer(self.data, opening.end())
            starts += [cut.end() - len(first_key) for cut in further]
            if len(starts) > 1:
                break
        return [*starts, len(self.data)]


def _yaml_items(data: bytes, start: int, end: int) -> list[int]:
    """Return the positions of the items of a YAML list, and its end."""
    opening = _YAML_ITEMS.search(data, start, end)
    if opening is None:
        return []
    margin = opening[1]
    behind = re.compile(
        rb"^(?!%b(?: |-[ \n])|\s*$)" % margin, re.MULTILINE
    ).search(data, opening.start(1), end)
    end = behind.start() if behind else end
    dashes = re.compile(rb"^%b-(?=[ \n])" % margin, re.MULTILINE)
    items = dashes.finditer(data, opening.start(1), end)
    return [*(dash.end() for dash in items), end]


def _steps_to(source: ObjectSource) -> Iterator[str | int]:
    for index in source.items:
        yield "items"
        yield index


# ----------------------------------------------------------------------------
# From the path of a finding to its place.

_STEP: Final = re.compile(r"\[([^]]*)\]|([^.\[\]]+)")


def located(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with lines and columns, as far as their texts can be had again.

    A field that is absent, or is called otherwise in the text, is found where the object that it belongs to is.
    """
    lookups: dict[
        SourceText, Callable[[ObjectSource], Mapping[_Path, Any]]
    ] = {}
    result = []
    for finding in findings:
        source = finding.source
        if isinstance(source, ObjectSource) and not finding.line:
            if source.text not in lookups:
                lookups[source.text] = _lookup(source.text)
            position = _place(lookups[source.text](source), source, finding)
            if position:
                finding = replace(  # noqa: PLW2901 - it is the same finding
                    finding, line=position.line, column=position.column
                )
        result.append(finding)
    return result


def _lookup(
    text: SourceText,
) -> Callable[[ObjectSource], Mapping[_Path, Position]]:
    """Return the lookup of positions of the parts of the object at a source."""
    data = text.content()
    if len(data) > _KEPT:
        return _LongText(data).places
    # What starts with a bracket may be YAML in flow style.
    is_json = starts_like_json(data) and json_documents(data)[1] is None
    positions = _places(data, is_json=is_json)
    return lambda _source: positions


def _place(
    positions: Mapping[_Path, Position], source: ObjectSource, finding: Finding
) -> Position | None:
    """Return the position of the field, or of the innermost part around it that is there."""
    path: _Path = (source.document.number, *_steps_to(source))
    position = positions.get(path)
    for step in _STEP.finditer(finding.path):
        key = step[2] if step[1] is None else step[1]
        further = [(*path, *written) for written in spellings(key)]
        if step[1] is not None and key.isdecimal():
            further.append((*path, int(key)))
        known = next((way for way in further if way in positions), None)
        if known is None:
            break
        path, position = known, positions.get(known, position)
    return position
