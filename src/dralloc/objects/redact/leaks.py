"""The last look at what was redacted: no name may be left in it, whatever the rules for its fields were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dralloc.objects.api.disclosure import KEPT, Terms, is_time
from dralloc.objects.api.field_errors import field_path
from dralloc.objects.api.known_kinds import MODELS
from dralloc.objects.api.schema import is_quantity, parts, wire_schema
from dralloc.objects.redact.identifiers import Identifiers
from dralloc.objects.redact.occurrences import Occurrences
from dralloc.objects.redact.replacements import Names, NamesFound

__all__ = ["Leaks"]


class Leaks:
    """Looks for original names in redacted objects, in keys and texts at any place."""

    def __init__(
        self, names_found: NamesFound, names: Names, identifiers: Identifiers
    ) -> None:
        self._public = names_found.public.keys() | _vocabulary()
        self._identifiers = identifiers
        self._made = frozenset(
            new
            for replacements in (names.everywhere, *names.by_kind.values())
            for new in replacements.values()
        )
        self._names = Occurrences(names.hidden | self._made)
        self._clean: set[str] = set()

    def first(self, value: Mapping[str, Any]) -> str | None:
        """Return the first text that is left, and its place; None if there is none."""
        for path, text in _texts(value):
            if text not in self._clean:
                for name in self._left(text):
                    return f'{field_path(path)}: the name "{name}" would be left in: {text}'
                self._clean.add(text)
        return None

    def _left(self, text: str) -> Iterator[str]:
        if text in self._public:
            return
        for occurrence in self._names.find(text):
            new = (
                text[occurrence] in self._made
                or text[occurrence] in self._identifiers.replacements
            )
            if not (new or is_quantity(text) or is_time(text)):
                yield text[occurrence]


@cache
def _vocabulary() -> frozenset[str]:
    """Return the texts in objects that are words of the API itself."""
    words = set[str]().union(*KEPT.values())
    for model in MODELS:
        for path, schema in parts(wire_schema(model)):
            words.update(path[-1:])
            if isinstance(schema, Terms):
                words |= schema.words
    return frozenset(words)


def _texts(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield all keys and texts, each with its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield (*path, key), key
            yield from _texts(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, (*path, index))
