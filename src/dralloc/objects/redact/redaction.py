"""Two passes over the objects: the first finds out what there is, the second replaces it.

`plan_redaction` collects the names, `Redaction.apply` replaces them, one object at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from dralloc.objects.api import ResourceObject, ResourceSlice
from dralloc.objects.api.disclosure import (
    KEPT,
    LabelKey,
    Mark,
    Name,
    Public,
    Terms,
    Text,
)
from dralloc.objects.api.known_kinds import model_of
from dralloc.objects.api.owners import PodOwner
from dralloc.objects.api.reading import subject
from dralloc.objects.api.schema import ABSENT, Leaf, rebuilt, wire_schema
from dralloc.objects.api.versions import (
    CONVERSIONS,
    Json,
    from_kep5075_alpha,
    from_kep5517_alpha,
)
from dralloc.objects.errors import RedactionError
from dralloc.objects.redact.cel_literals import with_literals
from dralloc.objects.redact.identifiers import Identifiers
from dralloc.objects.redact.leaks import Leaks
from dralloc.objects.redact.occurrences import Occurrences
from dralloc.objects.redact.replacements import Names, NamesFound
from kubecel import CelCompileError, compile_derivation

__all__ = ["Redaction", "plan_redaction"]

_TELLING: Final = (Name.NODE, Name.HOST, Name.NAMESPACE, Name.POD, Name.CLAIM)
"""Names that say something about a cluster's owner, and are worth a warning inside of texts that stay."""
_TELLING_LENGTH: Final = 4


def _in_v1(raw: Json, leaf: Leaf) -> Json:
    """Return the object in v1, with its texts replaced.

    Slices keep the alpha spelling of KEP-5075, which says more than v1 can.
    """
    model = model_of(raw)
    if model is None:
        raise RedactionError(
            f"{subject(raw)}: is of a kind or version that dralloc does not read"
        )
    api_version, body = raw["apiVersion"], raw
    if issubclass(model, ResourceObject):
        body = from_kep5517_alpha(
            model.kind,
            CONVERSIONS[api_version.rpartition("/")[2]](model.kind, raw),
        )
        if model is not ResourceSlice:
            body = from_kep5075_alpha(model.kind, body)
    # These have the form of v1 now, or are read alike in every version; other kinds keep theirs.
    if issubclass(model, ResourceObject | PodOwner):
        api_version = model.api_version
    return {
        "apiVersion": api_version,
        "kind": model.kind,
        **rebuilt(body, wire_schema(model), leaf),
    }


def plan_redaction(objects: Iterable[Json]) -> Redaction:
    """Decide what every name in the objects will be replaced with.

    Parameters
    ----------
    objects
        As they came over the wire; of kinds that dralloc does not read nothing is looked at.
    """
    names_found, identifiers = NamesFound(), Identifiers()
    for raw in objects:
        if model_of(raw) is not None:
            _in_v1(raw, names_found.note)
    return Redaction(names_found.settled(identifiers), identifiers, names_found)


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
    """

    names: Names
    identifiers: Identifiers
    names_found: NamesFound
    _attribute: str = ""
    _redacted: set[str] = field(default_factory=set)
    """Attributes without domain of which some device has another text now."""

    def apply(self, raw: Json) -> Json:
        """Return the object in v1 with everything replaced. The given one is not changed.

        Raises
        ------
        RedactionError
            A name is left in it, or dralloc does not read such objects.
        """
        redacted = _in_v1(raw, self._leaf)
        leak = self._leaks.first(
            {
                key: part
                for key, part in redacted.items()
                if key not in ("apiVersion", "kind")
            }
        )
        if leak is not None:
            raise RedactionError(f"{subject(raw)}: {leak}")
        return redacted

    def warnings(self) -> Iterator[str]:
        """After all objects: what may make the answer another one, and names in texts that stay."""
        names = {
            name
            for kind in _TELLING
            for name in self.names_found.names[kind]
            if len(name) >= _TELLING_LENGTH
        }
        telling = Occurrences(
            names - self.names_found.public.keys() - self.names_found.code
        )
        for text in self.names_found.public:
            if any(telling.find(text)):
                yield f'a name is left inside of the text "{text}"'
        for expression in self.names_found.inside:
            read = _attributes_read(expression) & self._redacted
            if read:
                yield (
                    f"a selector looks inside of the text of {', '.join(sorted(read))}, which is redacted, "
                    f"so that it may choose other devices: {' '.join(expression.split())}"
                )
            elif self._names_something(expression):
                yield (
                    "a selector looks inside of text and names something, which is redacted, "
                    f"so that it may choose other devices: {' '.join(expression.split())}"
                )

    def _names_something(self, expression: str) -> bool:
        """Return whether a literal of an expression is redacted, maybe unlike the text that it stands for."""
        literals: list[str] = []
        with_literals(expression, literals.append)
        return any(self._text(literal) != literal for literal in literals)

    def _leaf(self, mark: Mark, text: str) -> Any:
        if isinstance(mark, Name):
            return self.names.of(mark, text)
        if isinstance(mark, Terms):
            return (
                text if text in mark.words else self.names.of(Name.TERM, text)
            )
        if isinstance(mark, LabelKey):
            stays = (
                mark is not LabelKey.IF_ASKED
                or text in self.names_found.selector_keys
                or text in KEPT[Name.KEY]
            )
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
        """Return the replacement of a name, or the text with the names and identifiers in it replaced."""
        if text in self.names.text:
            return self.names.text[text]
        if text in self.names_found.words:
            return text
        return self.identifiers.replaced(text, self._without_names)

    def _without_names(self, text: str) -> str:
        return self._hidden.replaced(text, self.names.text.__getitem__)

    @cached_property
    def _leaks(self) -> Leaks:
        return Leaks(self.names_found, self.names, self.identifiers)

    @cached_property
    def _hidden(self) -> Occurrences:
        return Occurrences(self.names.hidden)


def _attributes_read(expression: str) -> frozenset[str]:
    """Names without domain of the attributes that an expression reads, as far as it tells."""
    try:
        return frozenset(
            name for _, name in compile_derivation(expression).reads.attributes
        )
    except CelCompileError:
        return frozenset()
