"""The abstract syntax of a selector, after macros are expanded.

Nodes compare by identity, so that the checker can note a type for each. ``pos`` is an offset into the expression: where
CEL reports an error about the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kubecel.data import Value

__all__ = [
    "CONDITIONAL",
    "Bind",
    "Call",
    "Element",
    "Fold",
    "Ident",
    "Index",
    "ListLiteral",
    "Literal",
    "Logic",
    "MapLiteral",
    "Node",
    "OptMap",
    "Select",
    "Struct",
    "Visitor",
    "children",
    "qualified_name",
    "step_weight",
    "walk",
]

CONDITIONAL: Final = "_?_:_"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A part of an expression."""

    pos: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant; the minus of a number belongs to it."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Node):
    """A variable or the name of a type; a leading dot skips local variables."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """``operand.field``, ``operand.?field``, or the test ``has(operand.field)``."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    """``operand[key]`` or ``operand[?key]``."""

    operand: Node
    key: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """A function, an operator (``_+_``) or the conditional; with a target if it was written ``target.function()``."""

    function: str
    target: Node | None
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Node):
    """A chain of ``&&`` (``conjunction``) or of ``||``."""

    conjunction: bool
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element of a list (``key`` is None), an entry of a map, or a field of a message."""

    pos: int
    key: Node | str | None
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(Node):
    """``[a, ?b]``."""

    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral(Node):
    """``{k: v, ?k: v}``."""

    entries: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct(Node):
    """A message, ``name{field: value}``."""

    name: str
    fields: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Node):
    """A loop over a list or map.

    ``kind`` is all, exists, exists_one, map, transform_map or transform_entry; ``guard`` is the optional predicate of
    the transforming ones, ``body`` the predicate or the transformation.
    """

    kind: str
    range: Node
    names: tuple[str, ...]
    guard: Node | None
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Node):
    """``cel.bind(name, value, body)``: the value is computed when it is first read."""

    name: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class OptMap(Node):
    """``target.optMap(name, body)``, or ``optFlatMap`` where the body itself gives an optional."""

    target: Node
    name: str
    body: Node
    flat: bool


def children(node: Node | Element) -> Iterator[Node]:
    """The direct parts of a node, in the order they are written."""
    for field in node.__slots__:
        part = getattr(node, field)
        for one in part if isinstance(part, tuple) else (part,):
            if isinstance(one, Node):
                yield one
            elif isinstance(one, Element):
                yield from children(one)


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth, without recursion."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += ((child, depth + 1) for child in children(node))


_Result = TypeVar("_Result")
_Local = TypeVar("_Local")


class Visitor(Generic[_Result, _Local]):
    """A walk with a method for each kind of node, which is named like it, and with the local variables in scope."""

    rules: Mapping[type, Callable[[Any, Any], _Result]]

    def __init_subclass__(cls) -> None:
        names = {kind: re.sub(r"\B[A-Z]", r"_\g<0>", kind.__name__).lower() for kind in Node.__subclasses__()}
        cls.rules = {kind: getattr(cls, f"_{name}") for kind, name in names.items()}

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
    stack: list[Node] = [loop.body, *([loop.guard] if loop.guard is not None else [])]
    while stack:
        node = stack.pop()
        count += 1
        stack += [node.range] if isinstance(node, Fold) else children(node)
    return count


def qualified_name(node: Node) -> str | None:
    """The dotted name that a chain of selections spells, or None if the node is something else."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join((node.name, *reversed(parts)))
