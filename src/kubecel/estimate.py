"""The highest cost that a selector can have for any device: what admission compares with its limit.

The estimate is upstream's own, unit by unit, because what it says about an expression decides whether the API server
takes it. It is coarse: what has no known size counts as endless, and a few functions are estimated for less than they
cost when they run.

Here is the walk over the expression, with what is known of sizes on the way. Sizes and costs as ranges are in
`kubecel.size_ranges`, the rules for calls in `kubecel.call_estimates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from kubecel import syntax
from kubecel.call_estimates import Operand, estimate_call, is_concatenation
from kubecel.check import Checked
from kubecel.cost import LIST_COST, MAP_COST, STRUCT_COST
from kubecel.size_ranges import (
    ITEMS,
    KEYS,
    ONE,
    UNKNOWN,
    VALUES,
    Path,
    Size,
    device_size,
)
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
    """The sizes of keys and values in a list or map literal, or in a list that was computed from one."""

    of_list: bool
    keys: Size
    values: Size

    def or_(self, other: _Elements) -> _Elements:
        keys = self.keys.or_(other.keys)
        values = self.values.or_(other.values)
        return _Elements(self.of_list, keys, values)


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
        if isinstance(node, syntax.Ident):
            return self.scope.get(node.name.removeprefix("."))
        return None

    def _size(self, node: syntax.Expr) -> Size | None:
        """Return the known bounds of a node's size. Upstream's declaration for ``device`` counts more than the type."""
        size = self.sizes.get(node) or _written_size(node)
        if size is not None:
            return size
        size = device_size(self.paths.get(node, ()))
        if size is not None:
            self.sizes[node] = size
            return size
        if _is_scalar(self.checked.types[node]):
            return ONE
        local = self._local(node)
        return local.size if local is not None else None

    def _any_size(self, node: syntax.Expr) -> Size:
        return self._size(node) or UNKNOWN

    def _common_elements(
        self, left: syntax.Expr, right: syntax.Expr
    ) -> _Elements | None:
        left_elements = self.elements.get(left)
        right_elements = self.elements.get(right)
        if left_elements is None or right_elements is None:
            return None
        return left_elements.or_(right_elements)

    def _note(
        self,
        node: syntax.Expr,
        size: Size | None,
        elements: _Elements | None = None,
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
        if self.checked.types[node.operand].name in _SELECTED_FROM:
            return cost + 1
        return cost

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
        literal = node.value if isinstance(node, syntax.Literal) else None
        path = self.paths.get(node, ())
        return Operand(
            self.checked.types[node], self._size(node), path, literal
        )

    def _call(self, node: syntax.Call) -> int:
        if node.target is None and node.function.removeprefix(".") == "dyn":
            argument = node.args[0]
            cost = 1 + self.cost(argument)
            self._note(node, self._size(argument), self.elements.get(argument))
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
        size = self._any_size(yes).or_(self._any_size(no))
        self._note(node, size, self._common_elements(yes, no))
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
        values = self._range(item.value for item in node.items)
        self.elements[node] = _Elements(True, ONE, values)
        return cost

    def _map_literal(self, node: syntax.MapLiteral) -> int:
        cost = MAP_COST + self._parts(node)
        keys = self._range(
            entry.key
            for entry in node.entries
            if isinstance(entry.key, syntax.Expr)
        )
        values = self._range(entry.value for entry in node.entries)
        self.elements[node] = _Elements(False, keys, values)
        return cost

    def _struct(self, node: syntax.Struct) -> int:
        return STRUCT_COST + self._parts(node)

    def _range(self, nodes: Iterable[syntax.Expr]) -> Size:
        """The sizes of nodes."""
        sizes = [*map(self._any_size, nodes)]
        if sizes:
            return reduce(Size.or_, sizes)
        return Size(0, 0)

    def _variables(self, node: syntax.Fold) -> dict[str, _Local]:
        elements = self.elements.get(node.range)
        path = self.paths.get(node.range, ())
        if elements is None:
            of_list = self.checked.types[node.range].name == "list"
            keys = values = None
        else:
            of_list = elements.of_list
            keys, values = elements.keys, elements.values
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
        loop_cost, step_cost = _LOOPS[node.kind]
        if node.kind in {"all", "exists", "exists_one"}:
            self._note(node, ONE)
        elif node.kind == "map":
            elements = _NOTHING_YET.or_(_Elements(True, ONE, body_size))
            self._note(node, count, elements)
        else:
            self._note(node, count)
        return start + loop_cost + count.high * (guard + step + step_cost)

    def _bind(self, node: syntax.Bind) -> int:
        """A variable costs a list, too: upstream makes an empty loop of it."""
        value = self.cost(node.value)
        path = self.paths.get(node.value, ())
        elements = self.elements.get(node.value)
        local = _Local(path, self._size(node.value), elements)
        with self.scoped({node.name: local}):
            body = self.cost(node.body)
            self._note(
                node, self._size(node.body), self.elements.get(node.body)
            )
        return LIST_COST + value + body

    def _opt_map(self, node: syntax.OptMap) -> int:
        """Upstream asks whether there is a value, and evaluates the target once more for the variable."""
        target = 1 + self.cost(node.target)
        with self.scoped({node.name: _Local()}):
            body = self.cost(node.body)
            size = self._any_size(node.body)
        none = ONE if _is_scalar(self.checked.types[node]) else UNKNOWN
        cost = 2 * target + LIST_COST + body
        if node.flat:
            self._note(node, none.or_(size))
            return cost
        self._note(node, none)
        # ``optional.of`` makes the result.
        return cost + 1


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


def _is_scalar(static: Type) -> bool:
    if static.name == "optional_type":
        return _is_scalar(static.params[0])
    return static.name in _SCALARS
