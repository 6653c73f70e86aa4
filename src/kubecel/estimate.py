"""The highest cost that a selector can have for any device: what admission compares with its limit.

The estimate is upstream's own, unit by unit, because what it says about an expression decides whether the API server
takes it. It is coarse: what has no known size counts as endless, and a few functions are estimated for less than they
cost when they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from kubecel import syntax
from kubecel.bounds import ITEMS, KEYS, ONE, UNKNOWN, VALUES, Path, Size, device_size
from kubecel.check import Checked
from kubecel.cost import LIST_COST, MAP_COST, STRUCT_COST
from kubecel.estimate_rules import Operand, estimate_call, is_concatenation
from kubecel.types import Type

__all__ = ["estimate"]

_SCALARS: Final = frozenset(
    {
        "bool",
        "double",
        "int",
        "uint",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
    }
)
_SELECTED_FROM: Final = frozenset({"map", "kubernetes.DRADevice"})
"""Selecting from these costs 1. From what is not known to be a map, upstream expects it for nothing."""

_INDICES: Final = "@indices"


def estimate(checked: Checked) -> int:
    """The highest cost of a checked expression."""
    return _Estimator(checked).cost(checked.root)


@dataclass(frozen=True, slots=True)
class _Elements:
    """What a list or map literal, or a list that was computed from one, holds: the sizes of its keys and values."""

    of_list: bool
    keys: Size
    values: Size

    def or_(self, other: _Elements) -> _Elements:
        return _Elements(
            self.of_list, self.keys.or_(other.keys), self.values.or_(other.values)
        )


@dataclass(frozen=True, slots=True)
class _Local:
    """A local variable: where its value was read, and its size as far as it is known."""

    path: Path = ()
    size: Size | None = None
    elements: _Elements | None = None


_NOTHING_YET: Final = _Elements(True, ONE, Size(0, 0))
"""The elements of the empty list that a loop begins with."""


class _Estimator(syntax.Visitor[int, _Local]):
    def __init__(self, checked: Checked) -> None:
        super().__init__()
        self.checked = checked
        self.paths: dict[syntax.Expr, Path] = {}
        self.sizes: dict[syntax.Expr, Size] = {}
        self.elements: dict[syntax.Expr, _Elements] = {}

    def cost(self, node: syntax.Expr) -> int:
        """Estimate a node and all of its parts, and note what is known about its size."""
        return min(self.rules[type(node)](self, node), UNKNOWN.high)

    def _local(self, node: syntax.Expr) -> _Local | None:
        return (
            self.scope.get(node.name.removeprefix("."))
            if isinstance(node, syntax.Ident)
            else None
        )

    def _size(self, node: syntax.Expr) -> Size | None:
        """What is known about a node's size. What upstream has declared for ``device`` counts more than the type."""
        found = self.sizes.get(node) or _written_size(node)
        if found is not None:
            return found
        found = device_size(self.paths.get(node, ()))
        if found is not None:
            self.sizes[node] = found
            return found
        if _is_scalar(self.checked.types[node]):
            return ONE
        local = self._local(node)
        return local.size if local is not None else None

    def _any_size(self, node: syntax.Expr) -> Size:
        return self._size(node) or UNKNOWN

    def _common_elements(
        self, left: syntax.Expr, right: syntax.Expr
    ) -> _Elements | None:
        one, other = self.elements.get(left), self.elements.get(right)
        return one.or_(other) if one is not None and other is not None else None

    def _note(
        self, node: syntax.Expr, size: Size | None, elements: _Elements | None = None
    ) -> None:
        if size is not None:
            self.sizes[node] = size
        if elements is not None:
            self.elements[node] = elements

    def _literal(self, _: syntax.Literal) -> int:
        return 0

    def _ident(self, node: syntax.Ident) -> int:
        local = self._local(node) or _Local((node.name.removeprefix("."),))
        self.paths[node] = local.path
        self._note(node, None, local.elements)
        return 1

    def _select(self, node: syntax.Select) -> int:
        name = self.checked.names.get(node)
        if name is not None:
            self.paths[node] = (name,)
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return cost + 1
        self.paths[node] = (*self.paths.get(node.operand, ()), node.field)
        return (
            cost + 1
            if self.checked.types[node.operand].name in _SELECTED_FROM
            else cost
        )

    def _index(self, node: syntax.Index) -> int:
        cost = 1 + self.cost(node.operand) + self.cost(node.key)
        size: Size | None = None
        for overload in self.checked.overloads[node]:
            container = overload.params[0].name
            if not node.optional and container in {"list", "map"}:
                elements = self.elements.get(node.operand)
                size = elements.values if elements is not None else None
                self.paths[node] = (
                    *self.paths.get(node.operand, ()),
                    ITEMS if container == "list" else VALUES,
                )
            size = size or self._size(node)
        self._note(node, size)
        return cost

    def _operand(self, node: syntax.Expr) -> Operand:
        value = node.value if isinstance(node, syntax.Literal) else None
        return Operand(
            self.checked.types[node], self._size(node), self.paths.get(node, ()), value
        )

    def _call(self, node: syntax.Call) -> int:
        if node.target is None and node.function.removeprefix(".") == "dyn":
            cost = 1 + self.cost(node.args[0])
            self._note(node, self._size(node.args[0]), self.elements.get(node.args[0]))
            return cost
        if node.function == syntax.CONDITIONAL:
            return self._conditional(node)
        cost, args = 0, []
        for arg in node.args:
            cost += self.cost(arg)
            args.append(self._operand(arg))
        target = None
        if node.target is not None and node not in self.checked.namespaced:
            cost += self.cost(node.target)
            target = self._operand(node.target)
        return cost + self._function(node, target, args)

    def _function(
        self, node: syntax.Call, target: Operand | None, args: Sequence[Operand]
    ) -> int:
        """The cost of a call without that of its arguments: the highest of all overloads that it may mean."""
        highest = 0
        size: Size | None = None
        for overload in self.checked.overloads[node]:
            cost, result = estimate_call(overload, target, args)
            highest = max(highest, cost)
            if result is not None:
                size = result if size is None else size.or_(result)
            elif size is None:
                size = self._size(node)
            if is_concatenation(overload):
                self._note(node, None, self._common_elements(*node.args))
        self._note(node, size)
        return highest

    def _conditional(self, node: syntax.Call) -> int:
        condition, yes, no = node.args
        cost = self.cost(condition)
        cost += max(self.cost(yes), self.cost(no))
        self._note(
            node,
            self._any_size(yes).or_(self._any_size(no)),
            self._common_elements(yes, no),
        )
        return cost

    def _parts(self, node: syntax.Expr) -> int:
        """The cost of all parts."""
        cost = 0
        for part in syntax.children(node):
            cost += self.cost(part)
        return cost

    _logic = _parts

    def _list_literal(self, node: syntax.ListLiteral) -> int:
        cost = LIST_COST + self._parts(node)
        self.elements[node] = _Elements(
            True, ONE, self._range(item.value for item in node.items)
        )
        return cost

    def _map_literal(self, node: syntax.MapLiteral) -> int:
        cost = MAP_COST + self._parts(node)
        keys = self._range(
            entry.key for entry in node.entries if isinstance(entry.key, syntax.Expr)
        )
        self.elements[node] = _Elements(
            False, keys, self._range(entry.value for entry in node.entries)
        )
        return cost

    def _struct(self, node: syntax.Struct) -> int:
        return STRUCT_COST + self._parts(node)

    def _range(self, nodes: Iterable[syntax.Expr]) -> Size:
        """The sizes of nodes."""
        sizes = [*map(self._any_size, nodes)]
        return reduce(Size.or_, sizes) if sizes else Size(0, 0)

    def _variables(self, node: syntax.Fold) -> dict[str, _Local]:
        elements, path = self.elements.get(node.range), self.paths.get(node.range, ())
        of_list = (
            elements.of_list
            if elements is not None
            else self.checked.types[node.range].name == "list"
        )
        keys, values = (
            (elements.keys, elements.values) if elements is not None else (None, None)
        )
        value = _Local((*path, ITEMS if of_list else VALUES), values)
        key = _Local((*path, _INDICES if of_list else KEYS), keys)
        if len(node.names) == 2:
            return dict(zip(node.names, (key, value), strict=True))
        return {node.names[0]: value if of_list else key}

    def _fold(self, node: syntax.Fold) -> int:
        start = self.cost(node.range)
        with self.scoped(self._variables(node)):
            guard = self.cost(node.guard) if node.guard is not None else 0
            step = self.cost(node.body)
            body_size = self._any_size(node.body)
        count = self._any_size(node.range)
        once, each = _LOOPS[node.kind]
        if node.kind in {"all", "exists", "exists_one"}:
            self._note(node, ONE)
        else:
            grown = (
                _NOTHING_YET.or_(_Elements(True, ONE, body_size))
                if node.kind == "map"
                else None
            )
            self._note(node, count, grown)
        return start + once + count.high * (guard + step + each)

    def _bind(self, node: syntax.Bind) -> int:
        """A variable costs a list, too: upstream makes an empty loop of it."""
        value = self.cost(node.value)
        local = _Local(
            self.paths.get(node.value, ()),
            self._size(node.value),
            self.elements.get(node.value),
        )
        with self.scoped({node.name: local}):
            body = self.cost(node.body)
            self._note(node, self._size(node.body), self.elements.get(node.body))
        return LIST_COST + value + body

    def _opt_map(self, node: syntax.OptMap) -> int:
        """Upstream asks whether there is a value, and evaluates the target once more for the variable."""
        target = 1 + self.cost(node.target)
        with self.scoped({node.name: _Local()}):
            body = self.cost(node.body)
            size = self._any_size(node.body)
        none = ONE if _is_scalar(self.checked.types[node]) else UNKNOWN
        self._note(node, none.or_(size) if node.flat else none)
        return 2 * target + LIST_COST + body + (0 if node.flat else 1)


_LOOPS: Final = {
    "all": (1, 3),
    "exists": (1, 4),
    "exists_one": (2, 2),
    "map": (LIST_COST + 1, LIST_COST + 2),
    "transform_map": (MAP_COST + 1, 3),
    "transform_entry": (MAP_COST + 1, 2),
}
"""What a loop costs once, for its first and its last result, and for each step besides the body."""


def _written_size(node: syntax.Expr) -> Size | None:
    """The size of what is written out."""
    if isinstance(node, syntax.Literal):
        length = len(node.value) if isinstance(node.value, str | bytes) else 1
    elif isinstance(node, syntax.ListLiteral):
        length = len(node.items)
    elif isinstance(node, syntax.MapLiteral):
        length = len(node.entries)
    else:
        return None
    return Size(length, length)


def _is_scalar(found: Type) -> bool:
    if found.name == "optional_type":
        return _is_scalar(found.params[0])
    return found.name in _SCALARS
