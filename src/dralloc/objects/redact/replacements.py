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

from dralloc.objects.api.disclosure import (
    KEPT,
    LabelKey,
    Mark,
    Name,
    Public,
    Terms,
    Text,
)
from dralloc.objects.api.schema import is_quantity
from dralloc.objects.redact.cel_literals import (
    code_words,
    looks_inside,
    with_literals,
)
from dralloc.objects.redact.identifiers import Identifiers
from dralloc.objects.redact.occurrences import Occurrences, parts_of

__all__ = ["Names", "NamesFound"]

_OBJECTS: Final = (Name.SLICE, Name.CONTAINER, Name.PRIORITY)
_WORDS: Final = (
    Name.GATE,
    Name.IMAGE,
    Name.ADDRESS,
    Name.KEY,
    Name.LABEL,
    Name.TERM,
)
_OWN: Final = (*_OBJECTS, *_WORDS)
"""Names that nothing but their like refers to are numbered for themselves; words are replaced nowhere else."""
_DIGITS: Final = 4
_NAMED_BY_CEL: Final = (Public.DRIVER, Public.ATTRIBUTE)


@dataclass
class NamesFound:
    """The names and texts that were seen in the objects, each in the order of appearance."""

    names: dict[Name, dict[str, None]] = field(
        default_factory=lambda: {kind: {} for kind in Name}
    )
    public: dict[str, None] = field(default_factory=dict)
    """Texts that stay as they are."""
    words: set[str] = field(default_factory=set)
    """Of these, what expressions name: drivers, attributes and capacities. In other texts they stay, too."""
    code: set[str] = field(default_factory=set)
    """Words of expressions outside of literals."""
    selector_keys: set[str] = field(default_factory=set)
    """Keys of labels that selectors name."""
    texts: set[str] = field(default_factory=set)
    """Texts that stay but for the names in them."""
    inside: dict[str, None] = field(default_factory=dict)
    """Expressions that look inside of text."""

    def note(self, mark: Mark, text: str) -> str:
        """Note what a text is; it stays."""
        if isinstance(mark, Name):
            self.add(mark, text)
        elif isinstance(mark, Terms) and text not in mark.words:
            self.add(Name.TERM, text)
        elif isinstance(mark, Public):
            self.public[text] = None
            if mark in _NAMED_BY_CEL:
                self.words.update((text, *text.split("/")))
        elif mark in (LabelKey.ASKED, LabelKey.KEPT):
            # Keys that stay only if some selector names them are noted where one does.
            self.add(Name.KEY, text)
            if mark is LabelKey.ASKED:
                self.selector_keys.add(text)
        elif mark is Text.CEL:
            with_literals(text, self.texts.add)
            self.code |= code_words(text)
            if looks_inside(text):
                self.inside[text] = None
        elif isinstance(mark, Text):
            self.texts.add(text)
        return text

    def add(self, kind: Name, name: str) -> None:
        """Note a name."""
        if name and name not in KEPT.get(kind, ()):
            self.names[kind][name] = None

    def settled(self, identifiers: Identifiers) -> Names:
        """Decide on all replacements."""
        everywhere = self._ordered(
            set(self.names[Name.NODE]), set(self.names[Name.POOL])
        )
        # In the order of the kinds: what is a name in several places gets the word of the first of them.
        for kind in Name:
            if kind not in (Name.NODE, Name.POOL, Name.UID, *_OWN):
                everywhere |= self._numbered(
                    kind,
                    [
                        name
                        for name in self.names[kind]
                        if name not in everywhere
                    ],
                )
        everywhere |= {
            uid: identifiers.uid(uid)
            for uid in self.names[Name.UID]
            if uid not in everywhere
        }
        by_kind = {
            kind: self._numbered(kind, sorted(self.names[kind]))
            for kind in _OWN
        }
        objects = {
            name: new
            for kind in _OBJECTS
            for name, new in by_kind[kind].items()
        } | everywhere
        # What expressions name, or what may be an amount, is replaced only where it is known to be a name.
        text = {
            name: new
            for name, new in objects.items()
            if name not in self.words and not is_quantity(name)
        }
        # Inside of longer texts, what also occurs in such words, in code or among texts that stay is left alone.
        parts = {part for word in self.words for part in parts_of(word)}
        return Names(
            everywhere,
            by_kind,
            text,
            frozenset(text.keys() - self.public.keys() - self.code - parts),
        )

    def _ordered(self, nodes: set[str], pools: set[str]) -> dict[str, str]:
        """Nodes and pools; if only some pools are named after nodes, the others are numbered behind the node before."""
        other_pools = pools - nodes
        if not pools & nodes or not other_pools:
            return {
                **self._numbered(Name.NODE, sorted(nodes)),
                **self._numbered(Name.POOL, sorted(other_pools)),
            }
        numbered = self._numbered(Name.NODE, sorted(nodes))
        latest, behind = f"{self._word(Name.NODE)}-{0:0{_width(len(nodes))}}", 0
        width = _width(len(other_pools))
        for name in sorted(nodes | other_pools):
            if name in nodes:
                latest, behind = numbered[name], 0
            else:
                behind += 1
                numbered[name] = f"{latest}-{Name.POOL.value}-{behind:0{width}}"
        return numbered

    def _numbered(self, kind: Name, names: Iterable[str]) -> dict[str, str]:
        listed = tuple(names)
        word, width = self._word(kind), _width(len(listed))
        return {
            name: f"{word}-{ordinal:0{width}}"
            for ordinal, name in enumerate(listed, 1)
        }

    @cached_property
    def _staying(self) -> str:
        """The texts that stay and that could be taken for a replacement."""
        names = {
            name
            for kind, names in self.names.items()
            if kind not in _WORDS
            for name in names
        } - self.words
        occurrences = Occurrences(names)
        like_one = re.compile(
            rf"(?:{'|'.join(kind.value for kind in Name)})-\d"
        )
        return "\n".join(
            occurrences.replaced(text, lambda _: "\n")
            for text in self.texts
            if like_one.search(text)
        )

    def _word(self, kind: Name) -> str:
        """Return the prefix of replacements, chosen so that none is, or is in, a text which stays."""
        word = str(kind.value)
        while re.search(rf"(?<![^\W_]){word}-\d", self._staying):
            word = f"other-{word}"
        return word


@dataclass(frozen=True)
class Names:
    """The replacements.

    Parameters
    ----------
    everywhere
        By name; what is a name in one place has the same replacement in every other.
    by_kind
        Those of names that mean something only beside others of their kind.
    text
        What is replaced in attributes, labels and expressions, where it is the whole text.
    hidden
        Of these, what is also replaced inside of longer texts and must be left nowhere.
    """

    everywhere: Mapping[str, str]
    by_kind: Mapping[Name, Mapping[str, str]]
    text: Mapping[str, str]
    hidden: frozenset[str]

    def of(self, kind: Name, name: str) -> str:
        """Return the replacement of a name."""
        if not name or name in KEPT.get(kind, ()):
            return name
        return self.by_kind.get(kind, self.everywhere)[name]


def _width(count: int) -> int:
    return max(_DIGITS, len(str(count)))
