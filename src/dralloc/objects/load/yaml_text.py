"""YAML as Kubernetes reads it, and the documents of a text in either format.

From the parser's events to data, without recursion (`yaml_documents`). Keys are text and unique. Then the choice of the
format (`documents_of`).

An alias stands for the value of its anchor, which is made once. But whoever reads the data goes through it once for
each alias, so what the aliases of a text stand for is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from dralloc.objects.load.json_text import (
    DEPTH,
    TOO_DEEP,
    TextError,
    json_documents,
    require_utf8,
)
from dralloc.objects.load.yaml_scalars import refused, refused_tag, value_of

__all__ = ["Parser", "documents_of", "starts_like_json", "yaml_documents"]

try:
    from yaml import CSafeLoader as Parser
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as Parser  # type: ignore[assignment]


_MERGE: Final = "<<"
_PARSER_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml says since version 0.2.6, before what it has read that far is handed out."""


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
    """What it merges counts where it stands, as in kubectl: more than the keys before it, less than later ones."""

    key: str | None = None
    merges: bool = False
    merged: set[str] = field(default_factory=set)
    """Keys that it has of others alone, and may have itself."""

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

    def _merge(self, value: Any, event: yaml.Event) -> None:
        """Take what a merge key names: in a list, the first counts most."""
        parts = value[::-1] if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise refused("only mappings can be merged", event.start_mark)
        for part in parts:
            self.merged |= part.keys() - self.value.keys()
            self.value |= part
        self.merges = False

    def _new_key(self, value: Any, event: yaml.Event) -> str:
        if isinstance(value, list | dict):
            raise refused("a key must be text", event.start_mark)
        key = value if isinstance(value, str) else json.dumps(value)
        if key in self.value and key not in self.merged:
            raise refused(f'the key "{key}" is there twice', event.start_mark)
        self.merged.discard(key)
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
        value = value_of(event)
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
            raise refused_tag(event)
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


def _said(problem: str | None) -> str | None:
    """Return what is wrong in our words: newer parsers have a limit of their own to what is nested, beyond ours."""
    return TOO_DEEP if problem == _PARSER_TOO_DEEP else problem


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
