"""Collects what there is to replace in a first pass over the objects, and replaces it in a second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dralloc.errors import CelCompileError
from dralloc.match.cel import compile_selector
from dralloc.redact.expressions import literals, looks_inside, with_literals
from dralloc.redact.fields import Json, Pass
from dralloc.redact.identifiers import Identifiers
from dralloc.redact.names import Names, NamesFound
from dralloc.redact.places import Place

__all__ = ["Redaction", "plan_redaction"]

_WORD: Final = re.compile(r"[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?")
_DOTTED: Final = re.compile(r"[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?")
_TELLING: Final = (Place.NODE, Place.HOST, Place.NAMESPACE, Place.POD, Place.CLAIM)
"""Names that say something about a cluster's owner, and should not remain inside of longer texts."""
_TELLING_LENGTH: Final = 4


def plan_redaction(objects: Iterable[Json]) -> Redaction:
    """Decide what every name in the objects will be replaced with.

    Parameters
    ----------
    objects
        Objects of kinds that dralloc reads (see `dralloc.snapshot.is_read`), as they came over the wire.
    """
    collector = _Collector()
    for one in objects:
        collector.visit(one)
    found = collector.found
    telling = {name for place in _TELLING for name in found.names[place] if len(name) >= _TELLING_LENGTH}
    return Redaction(
        found.settled(),
        collector.identifiers,
        frozenset(collector.selected),
        frozenset(telling - found.words),
        tuple(collector.inside),
    )


class _Collector(Pass):
    """The first pass: nothing changes."""

    def __init__(self) -> None:
        super().__init__(Identifiers())
        self.found = NamesFound()
        self.selected: set[str] = set()
        self.inside: dict[str, None] = {}

    def name(self, place: Place, name: str) -> str:
        self.found.add(place, name)
        return name

    def text(self, text: str) -> str:
        if text not in self.found.texts:
            self.found.texts.add(text)
            self.identifiers.replaced(text)
        return text

    def expression(self, text: str) -> str:
        for value in literals(text):
            self.text(value)
        if looks_inside(text):
            self.inside[text] = None
        return text

    def words(self, words: Iterable[str]) -> None:
        for word in words:
            self.found.words.update((word, *word.split("/")))

    def selects(self, label: str) -> None:
        self.selected.add(label)

    def keeps(self, label: str) -> bool:  # noqa: ARG002 - only at the end is it known
        return True


@dataclass
class Redaction(Pass):
    """The second pass: everything is replaced.

    Parameters
    ----------
    names
        What is replaced with what.
    identifiers
        The numbers of UUIDs and addresses.
    selected
        The labels that some selector asks for.
    telling
        Names that are worth a warning where they remain inside of longer texts.
    inside
        Expressions that look inside of text.
    """

    names: Names
    identifiers: Identifiers
    selected: frozenset[str]
    telling: frozenset[str]
    inside: tuple[str, ...]
    _left: dict[str, None] = field(default_factory=dict)
    _redacted: set[str] = field(default_factory=set)

    def apply(self, one: Json) -> Json:
        """The object with everything replaced. The given one is not changed."""
        return self.visit(one)

    def warnings(self) -> Iterator[str]:
        """After all objects: what may make the answer another one, and texts in which a name is left."""
        for text in self._left:
            yield f'a name is left inside of the text "{text}"'
        for expression in self.inside:
            read = _attributes_read(expression) & self._redacted
            if read:
                yield (
                    f"a selector looks inside of the text of {', '.join(sorted(read))}, which is redacted, "
                    f"so that it may choose other devices: {' '.join(expression.split())}"
                )

    def name(self, place: Place, name: str) -> str:
        """Its replacement."""
        return self.names.of(place, name)

    def text(self, text: str) -> str:
        """The replacement of a name, or the text with its identifiers replaced."""
        if text in self.names.text:
            return self.names.text[text]
        replaced = self.identifiers.replaced(text)
        if text not in self._left and any(word in self.telling for word in _words(replaced)):
            self._left[text] = None
        return replaced

    def expression(self, text: str) -> str:
        """The expression with its literals replaced."""
        return with_literals(text, self.text)

    def keeps(self, label: str) -> bool:
        """Whether a selector asks for it."""
        return label in self.selected

    def redacts(self, attribute: str) -> None:
        """Note it for the warnings."""
        self._redacted.add(attribute.rpartition("/")[2])


def _words(text: str) -> Iterator[str]:
    yield from _WORD.findall(text)
    if "." in text:
        yield from _DOTTED.findall(text)


def _attributes_read(expression: str) -> frozenset[str]:
    """Names without domain of the attributes that an expression reads, as far as it tells."""
    try:
        return frozenset(name for _, name in compile_selector(expression).reads.attributes)
    except CelCompileError:
        return frozenset()
