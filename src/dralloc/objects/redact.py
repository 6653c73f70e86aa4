"""Replaces the names in a cluster's objects, so that a snapshot can be shared and still gives the same answer.

`plan_redaction` collects the names, `Redaction.apply` replaces them, one object at a time. Before that: where names
stand inside of longer texts, in CEL expressions and in identifiers; which name is replaced with what; and the last look
at what comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, ip_interface
from typing import Any, Final
from uuid import UUID

from dralloc.objects.api import ResourceObject, ResourceSlice
from dralloc.objects.api.disclosure import (
    KEPT,
    LabelKey,
    Mark,
    Name,
    Public,
    Terms,
    Text,
    is_time,
)
from dralloc.objects.api.owners import PodOwner
from dralloc.objects.api.reading import MODELS, field_path, model_of, subject
from dralloc.objects.api.schema import (
    ABSENT,
    Leaf,
    is_quantity,
    parts,
    rebuilt,
    wire_schema,
)
from dralloc.objects.api.versions import (
    CONVERSIONS,
    Json,
    from_kep5075_alpha,
    from_kep5517_alpha,
)
from dralloc.objects.errors import RedactionError
from kubecel import CelCompileError, compile_derivation, string_literal

__all__ = ["Identifiers", "Redaction", "looks_inside", "plan_redaction"]

# ----------------------------------------------------------------------------
# Where names occur inside of longer texts: between characters that are neither
# letters nor digits.

_RUN: Final = re.compile(r"[^\W_]+")


class Occurrences:
    """Finds names in texts, from the left, the longest first."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._longest: dict[str, int] = {}
        """By the first run of letters and digits: of how many runs a name with this one consists at most."""
        for name in names:
            runs = _RUN.findall(name)
            if runs:
                self._longest[runs[0]] = max(
                    len(runs), self._longest.get(runs[0], 0)
                )

    def find(self, text: str) -> Iterator[slice]:
        """Yield the places of names in a text."""
        runs = [run.span() for run in _RUN.finditer(text)]
        at = 0
        while at < len(runs):
            start, end = runs[at]
            longest = self._longest.get(text[start:end], 0)
            at += 1
            for last in reversed(runs[at - 1 : at - 1 + longest]):
                if text[start : last[1]] in self._names:
                    yield slice(start, last[1])
                    at = runs.index(last) + 1
                    break

    def replaced(self, text: str, new: Callable[[str], str]) -> str:
        """Return the text with every name replaced."""
        parts, end = [], 0
        for occurrence in self.find(text):
            parts += [text[end : occurrence.start], new(text[occurrence])]
            end = occurrence.stop
        return "".join((*parts, text[end:]))


def _parts_of(text: str) -> Iterator[str]:
    """Yield everything in a text that could occur in it as a name."""
    runs = [run.span() for run in _RUN.finditer(text)]
    for at, (start, _) in enumerate(runs):
        for _, end in runs[at:]:
            yield text[start:end]


# ----------------------------------------------------------------------------
# String literals in CEL expressions, found without parsing them.

_TOKEN: Final = re.compile(
    r"(?P<comment>//[^\n]*)"
    r"|(?P<bytes>[bB])?(?P<string>"
    r"(?<![_a-zA-Z0-9])[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    r"|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|\"(?:\\.|[^\\\"\n\r])*\""
    r"|'''(?:\\[\s\S]|[^\\])*?'''|'(?:\\.|[^\\'\n\r])*')"
)
_WORD: Final = re.compile(r"[^\W_]+")
_INSIDE: Final = re.compile(
    r"\.\s*(?:startsWith|endsWith|contains|matches|find|findAll|split|substring|indexOf|lastIndexOf|charAt|replace"
    r"|lowerAscii|upperAscii|reverse|size|isGreaterThan|isLessThan|compareTo)\s*\(|\b(?:size|ip|cidr|isIP|isCIDR|semver|isSemver|quantity)\s*\("
)


def _with_literals(
    expression: str, replaced: Callable[[str], str | None]
) -> str:
    """Return an expression with other values for its string literals, where that is not None; comments go."""

    def new(token: re.Match[str]) -> str:
        if token["comment"]:
            return "//"
        value = _value(token)
        replacement = None if value is None else replaced(value)
        return (
            token[0]
            if replacement in (None, value)
            else (token["bytes"] or "")
            + json.dumps(replacement, ensure_ascii=False)
        )

    return _TOKEN.sub(new, expression)


def _code_words(expression: str) -> frozenset[str]:
    """Return the words outside of literals; none if a literal has no end, so that what is code is not known."""
    code = _TOKEN.sub(" ", expression)
    return (
        frozenset()
        if set("'\"") & set(code)
        else frozenset(_WORD.findall(code))
    )


def looks_inside(expression: str) -> bool:
    """Return whether it does more with text than to compare it as a whole."""
    return _INSIDE.search(_TOKEN.sub("''", expression)) is not None


def _value(token: re.Match[str]) -> str | None:
    if token["string"] is None:
        return None
    try:
        return string_literal(token["string"])
    except ValueError:
        return None


# ----------------------------------------------------------------------------
# Identifiers inside of text: UUIDs, serial numbers, hardware and network addresses.
# Their form stays.

_PATTERN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
    r"|(?P<serial>[0-9a-fA-F]{16,})"
    r"|(?P<hardware>[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,})"
    r")(?![0-9A-Za-z])"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F:.]+(/\d{1,3})?")
_NETWORK_V4: Final = int(IPv4Address("10.0.0.0"))
_NETWORK_V6: Final = int(IPv6Address("2001:db8::"))
_LOCAL: Final = "02"
"""First byte of a hardware address that nobody has assigned."""


@dataclass
class Identifiers:
    """Numbers identifiers in the order in which they are first seen; the same one always gets the same number."""

    replacements: set[str] = field(default_factory=set)
    """The replacements."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def uid(self, text: str) -> str:
        """Return a replacement for a text that is an identifier as a whole."""
        return str(UUID(int=self._number(text)))

    def replaced(self, text: str, between: Callable[[str], str] = str) -> str:
        """Return the text with a replacement for every identifier in it, and with what `between` makes of the rest."""
        # Eight bytes of a hardware address would also do as an IP address.
        if (
            _ADDRESS.fullmatch(text)
            and not _PATTERN.fullmatch(text)
            and (address := self._address(text))
        ):
            return address
        parts, end = [], 0
        for match in _PATTERN.finditer(text):
            new = self._replacement(match)
            self.replacements.add(new)
            parts += [between(text[end : match.start()]), new]
            end = match.end()
        return "".join((*parts, between(text[end:])))

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def _replacement(self, match: re.Match[str]) -> str:
        text = match[0]
        if match["uuid"]:
            return self.uid(text)
        if match["serial"]:
            return f"{self._number(text):0{len(text)}x}"
        digits = f"{self._number(text):0{text.count(':') * 2}x}"
        return ":".join(
            (_LOCAL, *(digits[at : at + 2] for at in range(0, len(digits), 2)))
        )

    def _address(self, text: str) -> str | None:
        """Return a replacement for an IP address, with its prefix length if it has one; None for other texts."""
        try:
            interface = ip_interface(text)
        except ValueError:
            return None
        host_number = self._number(str(interface.ip))
        new: IPv4Address | IPv6Address
        if isinstance(interface, IPv4Interface):
            new = IPv4Address(_NETWORK_V4 + host_number)
        else:
            new = IPv6Address(_NETWORK_V6 + host_number)
        self.replacements.add(str(new))
        return "/".join((str(new), *text.split("/")[1:]))


# ----------------------------------------------------------------------------
# Which name is replaced with what.
#
# Nothing secret goes in, and the same objects always give the same names. First fit
# goes through pools and slices by name, so that nodes, pools and slices are numbered
# in the order of their names; the rest as they appear.

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
            self.add(Name.KEY, text)
            if mark is LabelKey.ASKED:
                self.selector_keys.add(text)
        elif mark is Text.CEL:
            _with_literals(text, self.texts.add)
            self.code |= _code_words(text)
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
        text = {
            name: new
            for name, new in objects.items()
            if name not in self.words and not is_quantity(name)
        }
        parts = {part for word in self.words for part in _parts_of(word)}
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


# ----------------------------------------------------------------------------
# The last look at what was redacted: no name may be left in it, whatever the rules
# for its fields were.


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


# ----------------------------------------------------------------------------
# Two passes over the objects: the first finds out what there is, the second replaces
# it.

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
            return _with_literals(text, self._text)
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
