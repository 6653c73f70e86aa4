"""Collects what there is to replace in a first pass over the objects, and replaces it in a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final

from dralloc.api import ResourceObject, ResourceSlice
from dralloc.api.disclosure import KEPT, LabelKey, Mark, Name, Public, Terms, Text
from dralloc.api.messages import field_path
from dralloc.api.owner_schema import wire_schema
from dralloc.api.owners import PodOwner
from dralloc.api.reading import MODELS, model_of
from dralloc.api.schema import ABSENT, Leaf, is_quantity, is_time, parts, rebuilt
from dralloc.api.versions import CONVERSIONS, Json, kep5075_alpha
from dralloc.errors import CelCompileError, RedactionError
from dralloc.match.cel import compile_selector
from dralloc.redact.expressions import code_words, literals, looks_inside, with_literals
from dralloc.redact.identifiers import Identifiers
from dralloc.redact.names import Names, NamesFound
from dralloc.redact.occurrences import Occurrences

__all__ = ["Redaction", "plan_redaction"]

_TELLING: Final = (Name.NODE, Name.HOST, Name.NAMESPACE, Name.POD, Name.CLAIM)
"""Names that say something about a cluster's owner, and are worth a warning inside of texts that stay."""
_TELLING_LENGTH: Final = 4
_NAMED_BY_CEL: Final = (Public.DRIVER, Public.ATTRIBUTE)


def plan_redaction(objects: Iterable[Json]) -> Redaction:
    """Decide what every name in the objects will be replaced with.

    Parameters
    ----------
    objects
        As they came over the wire; of kinds that dralloc does not read nothing is looked at.
    """
    collector = _Collector()
    for one in objects:
        if model_of(one) is not None:
            _rebuilt(one, collector.leaf)
    identifiers = Identifiers()
    return Redaction(collector.found.settled(identifiers), identifiers, collector.found, tuple(collector.inside))


def _rebuilt(one: Json, leaf: Leaf) -> Json:
    """The object in v1, with its texts replaced.

    Slices keep the alpha spelling of KEP-5075, which says more than v1 can.
    """
    model = model_of(one)
    if model is None:
        raise RedactionError(f"{_title(one)}: is of a kind or version that dralloc does not read")
    api_version, body = one["apiVersion"], one
    if issubclass(model, ResourceObject):
        body = CONVERSIONS[api_version.rpartition("/")[2]](model.kind, one)
        if model is not ResourceSlice:
            body = kep5075_alpha.to_v1(model.kind, body)
    if issubclass(model, ResourceObject | PodOwner):
        api_version = model.api_version
    return {"apiVersion": api_version, "kind": model.kind, **rebuilt(body, wire_schema(model), leaf)}


class _Collector:
    """The first pass: what there is."""

    def __init__(self) -> None:
        self.found = NamesFound()
        self.inside: dict[str, None] = {}

    def leaf(self, mark: Mark, text: str) -> str:
        """Note what a text is; it stays."""
        if isinstance(mark, Name):
            self.found.add(mark, text)
        elif isinstance(mark, Terms) and text not in mark.known:
            self.found.add(Name.TERM, text)
        elif isinstance(mark, Public):
            self.found.public[text] = None
            if mark in _NAMED_BY_CEL:
                self.found.words.update((text, *text.split("/")))
        elif mark in (LabelKey.ASKED, LabelKey.KEPT):
            self.found.add(Name.KEY, text)
            if mark is LabelKey.ASKED:
                self.found.asked.add(text)
        elif mark is Text.CEL:
            self._expression(text)
        elif isinstance(mark, Text):
            self.found.texts.add(text)
        return text

    def _expression(self, text: str) -> None:
        self.found.texts.update(literals(text))
        self.found.code |= code_words(text)
        if looks_inside(text):
            self.inside[text] = None


@dataclass
class Redaction:
    """The second pass: everything is replaced.

    Parameters
    ----------
    names
        What is replaced with what.
    identifiers
        The numbers of UUIDs and addresses.
    found
        What the first pass found.
    inside
        Expressions that look inside of text.
    """

    names: Names
    identifiers: Identifiers
    found: NamesFound
    inside: tuple[str, ...]
    _attribute: str = ""
    _redacted: set[str] = field(default_factory=set)
    """Attributes without domain of which some device has another text now."""
    _clean: set[str] = field(default_factory=set)

    def apply(self, one: Json) -> Json:
        """The object in v1 with everything replaced. The given one is not changed.

        Raises
        ------
        RedactionError
            A name is left in it, or dralloc does not read such objects.
        """
        redacted = _rebuilt(one, self._leaf)
        for path, text in _texts({key: redacted[key] for key in redacted if key not in ("apiVersion", "kind")}):
            if text not in self._clean:
                left = self._left(text)
                if left is not None:
                    place = field_path(path)
                    raise RedactionError(f'{_title(one)}: {place}: the name "{left}" would be left in: {text}')
                self._clean.add(text)
        return redacted

    def warnings(self) -> Iterator[str]:
        """After all objects: what may make the answer another one, and names in texts that stay."""
        names = {name for place in _TELLING for name in self.found.names[place] if len(name) >= _TELLING_LENGTH}
        telling = Occurrences(names - self.found.public.keys() - self.found.code)
        for text in self.found.public:
            if any(telling.find(text)):
                yield f'a name is left inside of the text "{text}"'
        for expression in self.inside:
            read = _attributes_read(expression) & self._redacted
            if read:
                yield (
                    f"a selector looks inside of the text of {', '.join(sorted(read))}, which is redacted, "
                    f"so that it may choose other devices: {' '.join(expression.split())}"
                )

    def _leaf(self, mark: Mark, text: str) -> Any:
        if isinstance(mark, Name):
            return self.names.of(mark, text)
        if isinstance(mark, Terms):
            return text if text in mark.known else self.names.of(Name.TERM, text)
        if isinstance(mark, LabelKey):
            stays = mark is not LabelKey.IF_ASKED or text in self.found.asked or text in KEPT[Name.KEY]
            return self.names.of(Name.KEY, text) if stays else ABSENT
        if mark is Text.CEL:
            return with_literals(text, self._text)
        if mark is Public.ATTRIBUTE:
            self._attribute = text  # its value comes next
        if not isinstance(mark, Text):
            return text
        new = self._text(text)
        if mark is Text.ATTRIBUTE and new != text:
            self._redacted.add(self._attribute.rpartition("/")[2])
        return new

    def _text(self, text: str) -> str:
        """The replacement of a name, or the text with the names and identifiers in it replaced."""
        if text in self.names.text:
            return self.names.text[text]
        if text in self.found.words:
            return text
        return self.identifiers.replaced(text, self._without_names)

    def _without_names(self, text: str) -> str:
        return self._hidden.replaced(text, self.names.text.__getitem__)

    @cached_property
    def _hidden(self) -> Occurrences:
        return Occurrences(self.names.hidden)

    @cached_property
    def _made(self) -> frozenset[str]:
        own = (new for names in self.names.own.values() for new in names.values())
        return frozenset((*self.names.everywhere.values(), *own))

    @cached_property
    def _hidden_or_made(self) -> Occurrences:
        return Occurrences(self.names.hidden | self._made)

    def _left(self, text: str) -> str | None:
        """A name that is left in a text of a redacted object."""
        if text in self.found.public or text in _vocabulary():
            return None
        found = (text[place] for place in self._hidden_or_made.find(text))
        left = (name for name in found if name not in self._made and name not in self.identifiers.made)
        return next((name for name in left if not (is_quantity(text) or is_time(text))), None)


@cache
def _vocabulary() -> frozenset[str]:
    """What the API itself says in objects."""
    words = set[str]().union(*KEPT.values())
    for model in MODELS:
        for path, schema in parts(wire_schema(model)):
            words.update(path[-1:])
            if isinstance(schema, Terms):
                words |= schema.known
    return frozenset(words)


def _texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """All keys and texts, each with its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield (*path, key), key
            yield from _texts(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, (*path, index))


def _title(one: Json) -> str:
    metadata = one.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return f"{one.get('kind')} {'/'.join(str(named[key]) for key in ('namespace', 'name') if named.get(key))}"


def _attributes_read(expression: str) -> frozenset[str]:
    """Names without domain of the attributes that an expression reads, as far as it tells."""
    try:
        return frozenset(name for _, name in compile_selector(expression).reads.attributes)
    except CelCompileError:
        return frozenset()
