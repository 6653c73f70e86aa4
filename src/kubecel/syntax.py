"""The abstract syntax of a selector, after macros are expanded, and what the text of a literal means.

Nodes compare by identity, so that the checker can note a type for each. ``pos`` is an offset into the expression:
where CEL reports an error about the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isinf
from typing import Any, Final, Generic, TypeVar

from kubecel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, Value

__all__ = [
    "CONDITIONAL",
    "ESCAPED",
    "Bind",
    "Call",
    "Element",
    "Expr",
    "Fold",
    "Ident",
    "Index",
    "ListLiteral",
    "Literal",
    "Logic",
    "MapLiteral",
    "OptMap",
    "Select",
    "Struct",
    "bytes_literal",
    "children",
    "double_literal",
    "int_literal",
    "qualified_name",
    "string_literal",
    "uint_literal",
    "walk",
]


_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SIMPLE: Final = {**_CONTROLS, **{mark: mark for mark in "\\'\"`?"}}

ESCAPED: Final = {
    char: f"\\{letter}"
    for letter, char in (*_CONTROLS.items(), *zip('\\"', '\\"', strict=True))
}
"""How quoted text writes the characters that have a letter for it."""

_ESCAPE: Final = re.compile(
    r"""\\(?:([abfnrtv\\'"`?])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"""
)
_ESCAPE_IN_BYTES: Final = re.compile(_ESCAPE.pattern.encode())


def int_literal(text: str) -> int:
    """An int, perhaps with a minus.

    Raises
    ------
    ValueError
        It is too large.
    """
    value = _integer(text, "int")
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def _integer(text: str, kind: str) -> int:
    try:
        return int(text, 16 if "x" in text else 10)
    # Python reads no number of several thousand digits.
    except ValueError as error:
        raise ValueError(f"invalid {kind} literal") from error


def double_literal(text: str) -> float:
    """A double, perhaps with a minus.

    Raises
    ------
    ValueError
        It is too large.
    """
    value = float(text)
    if isinf(value):
        raise ValueError("invalid double literal")
    return value


def uint_literal(text: str) -> Uint:
    """A uint, written with its suffix.

    Raises
    ------
    ValueError
        It is too large.
    """
    value = _integer(text[:-1], "uint")
    if value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return Uint(value)


def string_literal(text: str) -> str:
    """A quoted, perhaps raw, string.

    Raises
    ------
    ValueError
        An escape is unknown, or names no character.
    """
    raw, body = _unquote(text)
    if raw:
        return body
    return _ESCAPE.sub(_character, body)


def bytes_literal(text: str) -> bytes:
    r"""A quoted bytes literal with its prefix ``b``; ``\x`` and octal escapes are single bytes, ``\u`` is not allowed.

    Raises
    ------
    ValueError
        An escape is unknown or not allowed.
    """
    raw, body = _unquote(text[1:])
    if raw:
        return body.encode()
    return _ESCAPE_IN_BYTES.sub(_byte, body.encode())


def _unquote(text: str) -> tuple[bool, str]:
    # The lexer of upstream's parser sees line ends like this, even in raw strings.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    return raw, text[width:-width]


def _character(escape: re.Match[str]) -> str:
    mark, octal, byte, *wide = escape.groups()
    if mark:
        return _SIMPLE[mark]
    code = _number(octal, byte or wide[0] or wide[1])
    # Halves of surrogate pairs are no characters.
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _byte(escape: re.Match[bytes]) -> bytes:
    mark, octal, byte, *_ = escape.groups()
    if mark:
        return _SIMPLE[mark.decode()].encode()
    return bytes((_number(octal, byte),))


def _number(octal: str | bytes | None, hexadecimal: str | bytes | None) -> int:
    if octal:
        return int(octal, 8)
    if hexadecimal:
        return int(hexadecimal, 16)
    raise ValueError("unable to unescape string")


# ----------------------------------------------------------------------------
# Nodes, and walks over them.

CONDITIONAL: Final = "_?_:_"


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A part of an expression."""

    pos: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A constant; the minus of a number belongs to it."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Expr):
    """A variable or the name of a type; a leading dot skips local variables."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """``operand.field``, ``operand.?field``, or the test ``has(operand.field)``."""

    operand: Expr
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """``operand[key]`` or ``operand[?key]``."""

    operand: Expr
    key: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A function, an operator (``_+_``) or the conditional; with a target if it was written ``target.function()``."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Expr):
    """A chain of ``&&`` (``conjunction``) or of ``||``."""

    conjunction: bool
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element of a list (``key`` is None), an entry of a map, or a field of a message."""

    pos: int
    key: Expr | str | None
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(Expr):
    """``[a, ?b]``."""

    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral(Expr):
    """``{k: v, ?k: v}``."""

    entries: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct(Expr):
    """A message, ``name{field: value}``."""

    name: str
    fields: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Expr):
    """A loop over a list or map.

    ``kind`` is all, exists, exists_one, map, transform_map or transform_entry; ``guard`` is the optional predicate of
    the transforming ones, ``body`` the predicate or the transformation.
    """

    kind: str
    range: Expr
    names: tuple[str, ...]
    guard: Expr | None
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Expr):
    """``cel.bind(name, value, body)``: the value is computed when it is first read."""

    name: str
    value: Expr
    body: Expr


@dataclass(frozen=True, slots=True, eq=False)
class OptMap(Expr):
    """``target.optMap(name, body)``, or ``optFlatMap`` where the body itself gives an optional."""

    target: Expr
    name: str
    body: Expr
    flat: bool


def children(node: Expr | Element) -> Iterator[Expr]:
    """The direct parts of a node, in the order they are written."""
    for field in node.__slots__:
        value = getattr(node, field)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Expr):
                yield part
            elif isinstance(part, Element):
                yield from children(part)


def walk(root: Expr) -> Iterator[tuple[Expr, int]]:
    """Every node with its depth, without recursion."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += ((child, depth + 1) for child in children(node))


_Result = TypeVar("_Result")
_Local = TypeVar("_Local")


def _snake_case(name: str) -> str:
    return re.sub(r"\B[A-Z]", r"_\g<0>", name).lower()


class Visitor(Generic[_Result, _Local]):
    """A walk with a method for each kind of node, which is named like it, and with the local variables in scope."""

    rules: Mapping[type, Callable[[Any, Any], _Result]]

    def __init_subclass__(cls) -> None:
        # A walk that lacks a method for some kind of node fails here, at import.
        cls.rules = {
            kind: getattr(cls, f"_{_snake_case(kind.__name__)}")
            for kind in Expr.__subclasses__()
        }

    def __init__(self) -> None:
        self.scope: dict[str, _Local] = {}

    @contextmanager
    def scoped(self, names: Mapping[str, _Local]) -> Iterator[None]:
        """Add variables to those in scope."""
        outer, self.scope = self.scope, {**self.scope, **names}
        yield
        self.scope = outer


def step_weight(loop: Fold) -> int:
    """The number of nodes that a step of a loop evaluates, without the steps of loops inside of it."""
    count = 0
    stack: list[Expr] = [loop.body]
    if loop.guard is not None:
        stack.append(loop.guard)
    while stack:
        node = stack.pop()
        count += 1
        # The steps of an inner loop are paid for when it runs.
        if isinstance(node, Fold):
            stack.append(node.range)
        else:
            stack += children(node)
    return count


def qualified_name(node: Expr) -> str | None:
    """The dotted name that a chain of selections spells, or None if the node is something else."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join((node.name, *reversed(parts)))
