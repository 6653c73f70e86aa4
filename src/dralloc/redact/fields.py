"""What becomes of each place of an object; the two passes differ in what they make of names and texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dralloc.api.node_names import HOSTNAME_LABEL
from dralloc.redact.identifiers import Identifiers
from dralloc.redact.places import DROPPED, NAMES, Place, rebuilt, schema_of
from dralloc.snapshot.strip import trimmed

__all__ = ["Json", "Pass"]

Json = dict[str, Any]

_WELL_KNOWN: Final = ("kubernetes.io", "k8s.io")
_OWNERS: Final = {"Node": Place.NODE, "Pod": Place.POD, "PodGroup": Place.GROUP}
_NUMERIC: Final = ("Gt", "Lt")
_ATTRIBUTE: Final = {"string": Place.TEXT, "strings": Place.TEXT}


class Pass:
    """One pass over the objects."""

    def __init__(self, identifiers: Identifiers) -> None:
        self.identifiers = identifiers

    def visit(self, one: Json) -> Json:
        """The object with every place handled; what dralloc does not read is left out first."""
        found: Json = rebuilt(trimmed(one), schema_of(one["kind"]), self._leaf)
        return found

    def name(self, place: Place, name: str) -> str:
        """What becomes of a name."""
        raise NotImplementedError

    def text(self, text: str) -> str:
        """What becomes of text that may be a name."""
        raise NotImplementedError

    def expression(self, text: str) -> str:
        """What becomes of a CEL expression."""
        raise NotImplementedError

    def words(self, words: Iterable[str]) -> None:
        """Words that CEL may name, and that stay."""

    def selects(self, label: str) -> None:
        """A selector asks for a label."""

    def keeps(self, label: str) -> bool:
        """Whether a node keeps a label."""
        raise NotImplementedError

    def redacts(self, attribute: str) -> None:
        """A device has another text for an attribute now."""

    def _leaf(self, place: Place, value: Any) -> Any:
        if place is Place.DROP:
            return DROPPED
        if place is Place.EMPTY:
            return {}
        if place is Place.WORDS:
            self.words([value] if isinstance(value, str) else value)
            return value
        if isinstance(value, str):
            return self._of_text(place, value)
        return self._of_object(place, value) if isinstance(value, dict) else value

    def _of_text(self, place: Place, value: str) -> str:
        if place in NAMES:
            return self.name(place, value)
        if place is Place.UID:
            return self.identifiers.uid(value) if value else value
        return self.expression(value) if place is Place.CEL else self.text(value)

    def _of_object(self, place: Place, value: Json) -> Json:
        if place is Place.ATTRIBUTES:
            return self._attributes(value)
        if place is Place.REQUIREMENT:
            return self._requirement(value)
        if place is Place.REFERENCE:
            owner = _OWNERS.get(value.get("kind", ""), Place.OWNER)
            found: Json = rebuilt(value, {"name": owner, "uid": Place.UID}, self._leaf)
            return found
        if place is Place.POD_LABELS:
            return {label: rebuilt(text, Place.GANG, self._leaf) for label, text in value.items()}
        return {label: self._label(label, text) for label, text in value.items() if self._shows(place, label)}

    def _shows(self, place: Place, label: str) -> bool:
        """Whether a label stays: a selector has it, or it is well known, or, for a node, a selector asks for it."""
        if place is Place.LABELS:
            self.selects(label)
            return True
        known = label.partition("/")[0].endswith(_WELL_KNOWN)
        return known or (place is Place.NODE_LABELS and self.keeps(label))

    def _label(self, label: str, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return self.name(Place.HOST, text) if label == HOSTNAME_LABEL else self.text(text)

    def _requirement(self, requirement: Json) -> Json:
        key = str(requirement.get("key"))
        self.selects(key)
        if requirement.get("operator") in _NUMERIC or not isinstance(requirement.get("values"), list):
            return requirement
        place = {"metadata.name": Place.NODE, HOSTNAME_LABEL: Place.HOST}.get(key, Place.TEXT)
        return {**requirement, "values": rebuilt(requirement["values"], place, self._leaf)}

    def _attributes(self, attributes: Json) -> Json:
        self.words(attributes)
        found = {name: rebuilt(value, _ATTRIBUTE, self._leaf) for name, value in attributes.items()}
        for name, value in attributes.items():
            if value != found[name]:
                self.redacts(name)
        return found
