"""The highest cost that a selector can have for any device: what admission compares with its limit.

The estimate is upstream's own, unit by unit, because what it says about an expression decides whether the API server
takes it. It is coarse: what has no known size counts as endless, and a few functions are estimated for less than they
cost when they run.

From top to bottom: sizes and costs as ranges, the rules for calls, and the walk over the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil
from typing import Final, TypeAlias

from kubecel import syntax
from kubecel.check import Checked
from kubecel.cost import LIST_COST, MAP_COST, STRUCT_COST
from kubecel.overloads import Overload
from kubecel.types import Type
from kubecel.values import Value

__all__ = ["estimate"]

# ----------------------------------------------------------------------------
# Sizes and costs as ranges, and what upstream's limits say about a device. Arithmetic
# stops at the largest 64 bit number, which stands for "not limited". A size is what
# ``size()`` would give: the number of characters, bytes, elements or entries.

_LIMIT: Final = 2**64 - 1
_LARGEST_DOUBLE: Final = 2.0**64

_MAX_LIST_ATTRIBUTE: Final = 48
"""``ResourceSliceMaxAttributeValuesPerDevice``"""

_MAX_ATTRIBUTE: Final = 64
"""``DeviceAttributeMaxValueLength``: more than a list may have elements."""

_MAX_NAMES: Final = 32
"""``ResourceSliceMaxAttributesAndCapacitiesPerDevice``"""

_MAX_DOMAIN: Final = 63
_MAX_IDENTIFIER: Final = 32
_MAX_DRIVER: Final = 63

Path: TypeAlias = tuple[str, ...]
"""The steps from a variable to what it holds: names of fields, or one of the following."""

_ITEMS: Final = "@items"
_KEYS: Final = "@keys"
_VALUES: Final = "@values"


def _add(*costs: int) -> int:
    """The sum of costs."""
    return min(sum(costs), _LIMIT)


def _scale(number: int, factor: float) -> int:
    """A number times a factor, rounded up, as doubles have it."""
    product = float(number) * factor
    if product >= _LARGEST_DOUBLE:
        return _LIMIT
    return ceil(product)


@dataclass(frozen=True, slots=True)
class Size:
    """A size within a range."""

    low: int
    high: int

    def plus(self, other: Size) -> Size:
        """The size of both together."""
        return Size(_add(self.low, other.low), _add(self.high, other.high))

    def times(self, other: Size) -> Size:
        """The size of so many of the other."""
        return Size(
            min(self.low * other.low, _LIMIT),
            min(self.high * other.high, _LIMIT),
        )

    def or_(self, other: Size) -> Size:
        """The range of both."""
        return Size(min(self.low, other.low), max(self.high, other.high))

    def cost(self, unit_cost: float) -> int:
        """The highest cost, if every unit costs so much."""
        return _scale(self.high, unit_cost)


_ONE: Final = Size(1, 1)
_UNKNOWN: Final = Size(0, _LIMIT)


def _domains(field: str, value_size: int) -> dict[Path, int]:
    """A map by domain of maps by identifier."""
    return {
        (field,): _MAX_NAMES,
        (field, _KEYS): _MAX_DOMAIN,
        (field, _VALUES): _MAX_NAMES,
        (field, _VALUES, _KEYS): _MAX_IDENTIFIER,
        (field, _VALUES, _VALUES): value_size,
    }


_ATTRIBUTE: Final = ("attributes", _VALUES, _VALUES)
_DEVICE: Final[dict[Path, int]] = {
    (): 0,
    ("driver",): _MAX_DRIVER,
    ("allowMultipleAllocations",): 1,
    **_domains("attributes", _MAX_ATTRIBUTE),
    **_domains("capacity", 0),
}
"""What upstream has declared about the parts of ``device``."""


def _device_size(path: Path) -> Size | None:
    """The size of a part of ``device``, or None if the path leads elsewhere or to what has no limit."""
    if not path or path[0] != "device":
        return None
    steps = tuple(_VALUES if step == _ITEMS else step for step in path[1:])
    if steps[:2] == _ATTRIBUTE[:2] and len(steps) == 3 and steps[2] != _KEYS:
        # Attributes are known by any name; upstream knows nothing of capacities by name.
        steps = _ATTRIBUTE
    if steps in _DEVICE:
        return Size(0, _DEVICE[steps])
    return None


# ----------------------------------------------------------------------------
# Rules for the highest cost of calls and the size of their results. Where a rule looks
# odd (a size that overflows, a form of a function that is forgotten), upstream's does,
# too: admission refuses what passes its limit, odd or not.

Estimate: TypeAlias = tuple[int, Size | None]
"""A cost, and the size of the result where a rule says something about it."""

_TENTH: Final = 0.1
_FIFTH: Final = 0.2
_QUARTER: Final = 0.25
_UINT64: Final = 2**64
_ADDRESS: Final = Size(4, 16)
_COMPARED: Final = _ADDRESS.plus(_ADDRESS).cost(_TENTH)
_FORMAT_NAME: Final = Size(1, 64)
_FORMAT_PATTERN: Final = 128
_TEXTS: Final = frozenset({"string", "bytes"})


@dataclass(frozen=True, slots=True)
class Operand:
    """A target or an argument: its type, its size if that is known, where it was read, and the value of a literal."""

    type: Type
    known: Size | None
    path: Path
    literal: Value

    @property
    def size(self) -> Size:
        """The size, which may be anything if it is not known."""
        return self.known or _UNKNOWN


_Rule: TypeAlias = Callable[[Overload, Sequence[Operand]], Estimate]
"""Of a call with its target, if it has one, as first operand."""


def _estimate_call(
    overload: Overload, target: Operand | None, args: Sequence[Operand]
) -> Estimate:
    """Estimate a call of one overload, without the cost of its target and arguments."""
    rule = _RULES.get(overload.name)
    if rule is None:
        return 1, None
    return rule(overload, args if target is None else (target, *args))


def _is_concatenation(overload: Overload) -> bool:
    """Whether a call joins two texts or lists."""
    return overload.name == "_+_" and overload.params[0].name in {
        *_TEXTS,
        "list",
    }


def _scan(
    factor: float, resized: Callable[[Size], Size | None] = lambda _: None
) -> _Rule:
    """The first operand is read; what is known of the result's size follows from its size."""
    return lambda _, args: (args[0].size.cost(factor), resized(args[0].size))


def _conversion(source: str, resized: Callable[[Size], Size]) -> _Rule:
    """Only the conversion from one type, a text, is more than nominal."""
    scan = _scan(_TENTH, resized)

    def rule(overload: Overload, args: Sequence[Operand]) -> Estimate:
        if overload.params[0].name == source:
            return scan(overload, args)
        return 1, None

    return rule


def _comparison(_: Overload, args: Sequence[Operand]) -> Estimate:
    shorter = min(args[0].size.high, args[1].size.high)
    return _scale(shorter, _TENTH), None


def _order(overload: Overload, args: Sequence[Operand]) -> Estimate:
    if overload.params[0].name in _TEXTS:
        return _comparison(overload, args)
    return (1, None)


def _equality(overload: Overload, args: Sequence[Operand]) -> Estimate:
    left_operand, right_operand = args
    if left_operand.type == right_operand.type:
        type_name = left_operand.type.name
        if type_name in _CHEAP_TO_COMPARE:
            return 1, None
        if type_name == "kubernetes.NamedFormat":
            return _FORMAT_NAME.cost(_TENTH), None
        if type_name == "kubernetes.URL":
            right_size = right_operand.known or _ONE
            return right_size.cost(_TENTH), None
    return _comparison(overload, args)


_CHEAP_TO_COMPARE: Final = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "net.CIDR", "net.IP"}
)


def _addition(overload: Overload, args: Sequence[Operand]) -> Estimate:
    if not _is_concatenation(overload):
        return 1, None
    size = args[0].size.plus(args[1].size)
    if overload.params[0].name in _TEXTS:
        return size.cost(_TENTH), size
    # Lists are only linked.
    return 1, size


def _product(factor: int, cost: int) -> int:
    return min(factor * cost, _UNKNOWN.high)


def _pattern(args: Sequence[Operand]) -> int:
    """The cost of searching a text by a pattern."""
    text_cost = args[0].size.plus(_ONE).cost(_TENTH)
    pattern_cost = args[1].size.cost(_QUARTER)
    return _product(text_cost, pattern_cost)


def _traversal(_: Overload, args: Sequence[Operand]) -> Estimate:
    """A text, or a list with the texts in it, is passed over."""
    target = args[0]
    if not target.type.params:
        return target.size.cost(_TENTH), None
    element = target.type.params[0]
    element_cost = 1
    if element.name in _TEXTS:
        element_cost = _add(1, _items(target).cost(_TENTH))
    return _product(target.size.high, element_cost), None


def _items(target: Operand) -> Size:
    """The size of what is in a list, which is known only of what is read from the device."""
    path = (*target.path, _ITEMS) if target.path else ()
    return _device_size(path) or _UNKNOWN


def _join(_: Overload, args: Sequence[Operand]) -> Estimate:
    target = args[0]
    size = Size(0, 0)
    if target.type.params:
        size = target.size.times(_items(target))
    if len(args) > 1:
        # One less than there are texts.
        separators = Size(
            max(target.size.low - 1, 0), max(target.size.high - 1, 0)
        )
        size = size.plus(args[1].size.times(separators))
    return size.cost(_TENTH), size


def _split(_: Overload, args: Sequence[Operand]) -> Estimate:
    size = args[0].size
    most_parts = size.high
    if len(args) > 2:
        limit = args[2].literal
        if type(limit) is int:
            # Upstream makes an unsigned number of it, and -1 the largest of all.
            most_parts = limit % _UINT64
    return size.cost(_FIFTH), Size(0, most_parts)


def _replace(_: Overload, args: Sequence[Operand]) -> Estimate:
    """The result is longest if the shortest texts are replaced by the longest, and the other way round."""
    text, old, new = (arg.size for arg in args[:3])
    high_count, high_rest = _replacements(
        text.high, old.low, grows=new.high > old.low
    )
    low_count, low_rest = _replacements(
        text.low, old.high, grows=new.low < old.high
    )
    replaced = Size(low_count, high_count).times(new)
    size = replaced.plus(Size(low_rest, high_rest))
    return text.cost(_FIFTH), size


def _replacements(length: int, old: int, *, grows: bool) -> tuple[int, int]:
    """Return the number of texts replaced, and the rest's size; an empty text stands around every character."""
    if old == 0:
        return _add(length, 1), length
    if grows:
        return (min(ceil(float(length) / old), _UNKNOWN.high), 0)
    return (0, length)


def _parsed(overload: Overload, args: Sequence[Operand]) -> int:
    """The cost of reading the argument if it is a text."""
    if overload.params[1].name == "string":
        return args[1].size.cost(_TENTH)
    return 0


def _sets(factor: int) -> _Rule:

    def rule(_: Overload, args: Sequence[Operand]) -> Estimate:
        comparisons = args[0].size.times(args[1].size)
        return _add(1, comparisons.cost(factor)), None

    return rule


def _new_list(size: Size, factor: float = 1) -> Estimate:
    return _add(1, LIST_COST, size.cost(factor)), size


def _number(operand: Operand, otherwise: int) -> int:
    """The value of a literal int, at least 0."""
    if type(operand.literal) is int:
        return max(operand.literal, 0)
    return otherwise


def _slice(_: Overload, args: Sequence[Operand]) -> Estimate:
    start = _number(args[1], 0)
    end = _number(args[2], args[0].size.high)
    count = (end - start) % _UINT64
    return _new_list(Size(count, count))


def _range(_: Overload, args: Sequence[Operand]) -> Estimate:
    count = _number(args[0], _UNKNOWN.high)
    return _new_list(Size(count, count))


def _flatten(_: Overload, args: Sequence[Operand]) -> Estimate:
    if len(args) == 1:
        return _new_list(args[0].size)
    depth = _number(args[1], _UNKNOWN.high)
    return _new_list(args[0].size, float(depth))


def _membership(overload: Overload, args: Sequence[Operand]) -> Estimate:
    if overload.params[1].name == "list":
        return args[1].size.cost(1), None
    return 1, None


def _containment(_: Overload, args: Sequence[Operand]) -> Estimate:
    text_cost = args[0].size.cost(_TENTH)
    part_cost = args[1].size.cost(_TENTH)
    return _product(text_cost, part_cost), None


def _validation(_: Overload, args: Sequence[Operand]) -> Estimate:
    text_cost = args[1].size.cost(_TENTH)
    return _scale(text_cost, _FORMAT_PATTERN * _QUARTER), None


def _self_comparison(position: int) -> _Rule:
    """Every element of a list is compared with every other one."""

    def rule(overload: Overload, args: Sequence[Operand]) -> Estimate:
        size = args[position].size
        element = overload.params[position].params[0]
        return _new_list(size.times(size), 2.1 if element.name in _TEXTS else 2)

    return rule


_RULES: Final[dict[str, _Rule]] = {
    "_==_": _equality,
    "_!=_": _comparison,
    "_+_": _addition,
    "@in": _membership,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    "bytes": _conversion(
        "string", lambda size: Size(size.low, size.high * 4 % _UINT64)
    ),
    "string": _conversion("bytes", lambda size: Size(size.low // 4, size.high)),
    # Upstream lets the size of the result overflow, and forgot the form of `matches` that is no method.
    "strings.quote": _scan(
        _TENTH,
        lambda size: Size(
            (size.low + 2) % _UINT64, (size.high * 2 + 2) % _UINT64
        ),
    ),
    **dict.fromkeys(
        ("startsWith", "endsWith"),
        lambda _, args: (args[1].size.cost(_TENTH), None),
    ),
    "contains": _containment,
    "matches": lambda overload, args: (
        _pattern(args) if overload.member else 1,
        None,
    ),
    **dict.fromkeys(
        ("find", "findAll"),
        lambda _, args: (_pattern(args), Size(0, args[0].size.high)),
    ),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim"),
        _scan(_TENTH, lambda size: size),
    ),
    **dict.fromkeys(("format", "cidr", "isIP", "isCIDR"), _scan(_TENTH)),
    **dict.fromkeys(
        ("quantity", "isQuantity", "semver", "isSemver"), _scan(_TENTH)
    ),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": lambda overload, args: (
        1 if overload.member else args[0].size.cost(_TENTH),
        None,
    ),
    "ip.isCanonical": _scan(_FIFTH),
    "containsIP": lambda overload, args: (
        _add(_COMPARED, _parsed(overload, args)),
        None,
    ),
    "containsCIDR": lambda overload, args: (
        _add(_COMPARED, _ADDRESS.cost(_TENTH), 1, _parsed(overload, args)),
        None,
    ),
    "validate": _validation,
    "includes": lambda _, __: (_MAX_LIST_ATTRIBUTE, None),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "slice": _slice,
    "lists.range": _range,
    "flatten": _flatten,
    "reverse": lambda _, args: _new_list(args[0].size),
    "distinct": _self_comparison(0),
    "sort": _self_comparison(0),
    "@sortByAssociatedKeys": _self_comparison(1),
}
"""By the function's name; all others cost 1."""


# ----------------------------------------------------------------------------
# The walk over the expression, with what is known of sizes on the way.

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


_NOTHING_YET: Final = _Elements(True, _ONE, Size(0, 0))
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
        return min(self.rules[type(node)](self, node), _UNKNOWN.high)

    def _local(self, node: syntax.Expr) -> _Local | None:
        if isinstance(node, syntax.Ident):
            return self.scope.get(node.name.removeprefix("."))
        return None

    def _size(self, node: syntax.Expr) -> Size | None:
        """Return the known bounds of a node's size. Upstream's declaration for ``device`` counts more than the type."""
        size = self.sizes.get(node) or _written_size(node)
        if size is not None:
            return size
        size = _device_size(self.paths.get(node, ()))
        if size is not None:
            self.sizes[node] = size
            return size
        if _is_scalar(self.checked.types[node]):
            return _ONE
        local = self._local(node)
        return local.size if local is not None else None

    def _any_size(self, node: syntax.Expr) -> Size:
        return self._size(node) or _UNKNOWN

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
                    _ITEMS if container == "list" else _VALUES,
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
            cost, result = _estimate_call(overload, target, args)
            highest = max(highest, cost)
            if result is not None:
                size = result if size is None else size.or_(result)
            elif size is None:
                size = self._size(node)
            if _is_concatenation(overload):
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
        self.elements[node] = _Elements(True, _ONE, values)
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
        value = _Local((*path, _ITEMS if of_list else _VALUES), values)
        key = _Local((*path, _INDICES if of_list else _KEYS), keys)
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
            self._note(node, _ONE)
        elif node.kind == "map":
            elements = _NOTHING_YET.or_(_Elements(True, _ONE, body_size))
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
        none = _ONE if _is_scalar(self.checked.types[node]) else _UNKNOWN
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
