"""What there is in the objects, in a first pass over them."""

from __future__ import annotations

from typing import Final

from dralloc.api import ResourceObject, ResourceSlice
from dralloc.api.disclosure import LabelKey, Mark, Name, Public, Terms, Text
from dralloc.api.owners import PodOwner
from dralloc.api.reading import model_of, subject
from dralloc.api.schema import Leaf, rebuilt, wire_schema
from dralloc.api.versions import CONVERSIONS, Json, kep5075_alpha, kep5517_alpha
from dralloc.errors import RedactionError
from dralloc.redact.expressions import code_words, looks_inside, with_literals
from dralloc.redact.names import NamesFound

__all__ = ["Collector", "in_v1"]

_NAMED_BY_CEL: Final = (Public.DRIVER, Public.ATTRIBUTE)


def in_v1(one: Json, leaf: Leaf) -> Json:
    """The object in v1, with its texts replaced.

    Slices keep the alpha spelling of KEP-5075, which says more than v1 can.
    """
    model = model_of(one)
    if model is None:
        raise RedactionError(f"{subject(one)}: is of a kind or version that dralloc does not read")
    api_version, body = one["apiVersion"], one
    if issubclass(model, ResourceObject):
        body = kep5517_alpha.to_v1(model.kind, CONVERSIONS[api_version.rpartition("/")[2]](model.kind, one))
        if model is not ResourceSlice:
            body = kep5075_alpha.to_v1(model.kind, body)
    if issubclass(model, ResourceObject | PodOwner):
        api_version = model.api_version
    return {"apiVersion": api_version, "kind": model.kind, **rebuilt(body, wire_schema(model), leaf)}


class Collector:
    """Notes what each text of an object is."""

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
        with_literals(text, self.found.texts.add)
        self.found.code |= code_words(text)
        if looks_inside(text):
            self.inside[text] = None
