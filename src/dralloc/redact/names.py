"""Which name is replaced with what.

Nothing secret goes in, and the same objects always give the same names. First fit goes through pools and slices by
name, so that nodes, pools and slices are numbered in the order of their names; the rest as they appear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dralloc.redact.places import NAMES, Place

__all__ = ["KEPT_NAMESPACE", "Names", "NamesFound"]

KEPT_NAMESPACE: Final = "default"
"""Where an object lives that names no namespace; it keeps its name."""

_OWN: Final = (Place.SLICE, Place.CONTAINER, Place.GANG)
"""Names that nothing else refers to: they are numbered for themselves."""
_DIGITS: Final = 4
_LIKE_ONE: Final = re.compile(r"[a-z-]+-\d")


@dataclass
class NamesFound:
    """What was seen in the objects, each in the order of appearance."""

    names: dict[Place, dict[str, None]] = field(default_factory=lambda: {place: {} for place in NAMES})
    words: set[str] = field(default_factory=set)
    """Drivers and names of attributes: in text they stay what they are."""
    texts: set[str] = field(default_factory=set)
    """Texts that stay unless they are names."""

    def add(self, place: Place, name: str) -> None:
        """Note a name."""
        if name and not (place is Place.NAMESPACE and name == KEPT_NAMESPACE):
            self.names[place][name] = None

    def settled(self) -> Names:
        """Decide on all replacements."""
        nodes, pools = set(self.names[Place.NODE]), set(self.names[Place.POOL])
        everywhere = self._ordered(nodes, pools)
        for place in NAMES:
            if place not in (Place.NODE, Place.POOL, *_OWN):
                new = [name for name in self.names[place] if name not in everywhere]
                everywhere |= self._numbered(place, new)
        own = {place: self._numbered(place, sorted(self.names[place])) for place in _OWN}
        text = {name: new for name, new in everywhere.items() if name not in self.words and not name.isdecimal()}
        return Names(everywhere, own, text)

    def _ordered(self, nodes: set[str], pools: set[str]) -> dict[str, str]:
        """Nodes and pools; if only some pools are named after nodes, the others are numbered behind the node before."""
        others = pools - nodes
        if not pools & nodes or not others:
            return {**self._numbered(Place.NODE, sorted(nodes)), **self._numbered(Place.POOL, sorted(others))}
        found = self._numbered(Place.NODE, sorted(nodes))
        latest, behind = f"{self._word(Place.NODE)}-{0:0{_width(len(nodes))}}", 0
        width = _width(len(others))
        for name in sorted(nodes | others):
            if name in nodes:
                latest, behind = found[name], 0
            else:
                behind += 1
                found[name] = f"{latest}-{Place.POOL.value}-{behind:0{width}}"
        return found

    def _numbered(self, place: Place, names: Iterable[str]) -> dict[str, str]:
        known = tuple(names)
        word, width = self._word(place), _width(len(known))
        return {name: f"{word}-{number:0{width}}" for number, name in enumerate(known, 1)}

    @cached_property
    def _staying(self) -> frozenset[str]:
        """Texts that are not replaced, as far as they could be taken for a replacement."""
        named = {name for place, names in self.names.items() if place not in _OWN for name in names}
        return frozenset(text for text in self.texts - (named - self.words) if _LIKE_ONE.match(text))

    def _word(self, place: Place) -> str:
        """What replacements start with, so that none of them is a text which stays."""
        word = str(place.value)
        while any(re.match(rf"{word}-\d", text) for text in self._staying):
            word = f"other-{word}"
        return word


@dataclass(frozen=True)
class Names:
    """The replacements.

    Parameters
    ----------
    everywhere
        By name; what is a name in one place has the same replacement in every other.
    own
        Those that only mean something in their place.
    text
        What is replaced in attributes, labels and expressions.
    """

    everywhere: Mapping[str, str]
    own: Mapping[Place, Mapping[str, str]]
    text: Mapping[str, str]

    def of(self, place: Place, name: str) -> str:
        """The replacement of a name."""
        if not name or (place is Place.NAMESPACE and name == KEPT_NAMESPACE):
            return name
        return self.own.get(place, self.everywhere)[name]


def _width(count: int) -> int:
    return max(_DIGITS, len(str(count)))
