"""Rules for the highest cost of calls and the size of their results.

Where a rule looks odd (a size that overflows, a form of a function that is forgotten), upstream's does, too: admission
refuses what passes its limit, odd or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeAlias

from kubecel.cost import LIST_COST
from kubecel.overloads import Overload
from kubecel.size_ranges import (
    ITEMS,
    MAX_LIST_ATTRIBUTE,
    ONE,
    UNKNOWN,
    Path,
    Size,
    added,
    device_size,
    scaled,
)
from kubecel.types import Type
from kubecel.values import Value

__all__ = ["Operand", "estimate_call", "is_concatenation"]

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
        return self.known or UNKNOWN


_Rule: TypeAlias = Callable[[Overload, Sequence[Operand]], Estimate]
"""Of a call with its target, if it has one, as first operand."""


def estimate_call(
    overload: Overload, target: Operand | None, args: Sequence[Operand]
) -> Estimate:
    """Estimate a call of one overload, without the cost of its target and arguments."""
    rule = _RULES.get(overload.name)
    if rule is None:
        return 1, None
    return rule(overload, args if target is None else (target, *args))


def is_concatenation(overload: Overload) -> bool:
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
    return scaled(shorter, _TENTH), None


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
            right_size = right_operand.known or ONE
            return right_size.cost(_TENTH), None
    return _comparison(overload, args)


_CHEAP_TO_COMPARE: Final = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "net.CIDR", "net.IP"}
)


def _addition(overload: Overload, args: Sequence[Operand]) -> Estimate:
    if not is_concatenation(overload):
        return 1, None
    size = args[0].size.plus(args[1].size)
    if overload.params[0].name in _TEXTS:
        return size.cost(_TENTH), size
    # Lists are only linked.
    return 1, size


def _product(factor: int, cost: int) -> int:
    return min(factor * cost, UNKNOWN.high)


def _pattern(args: Sequence[Operand]) -> int:
    """The cost of searching a text by a pattern."""
    text_cost = args[0].size.plus(ONE).cost(_TENTH)
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
        element_cost = added(1, _items(target).cost(_TENTH))
    return _product(target.size.high, element_cost), None


def _items(target: Operand) -> Size:
    """The size of what is in a list, which is known only of what is read from the device."""
    path = (*target.path, ITEMS) if target.path else ()
    return device_size(path) or UNKNOWN


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
        return added(length, 1), length
    if grows:
        return (min(ceil(float(length) / old), UNKNOWN.high), 0)
    return (0, length)


def _parsed(overload: Overload, args: Sequence[Operand]) -> int:
    """The cost of reading the argument if it is a text."""
    if overload.params[1].name == "string":
        return args[1].size.cost(_TENTH)
    return 0


def _sets(factor: int) -> _Rule:

    def rule(_: Overload, args: Sequence[Operand]) -> Estimate:
        comparisons = args[0].size.times(args[1].size)
        return added(1, comparisons.cost(factor)), None

    return rule


def _new_list(size: Size, factor: float = 1) -> Estimate:
    return added(1, LIST_COST, size.cost(factor)), size


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
    count = _number(args[0], UNKNOWN.high)
    return _new_list(Size(count, count))


def _flatten(_: Overload, args: Sequence[Operand]) -> Estimate:
    if len(args) == 1:
        return _new_list(args[0].size)
    depth = _number(args[1], UNKNOWN.high)
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
    return scaled(text_cost, _FORMAT_PATTERN * _QUARTER), None


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
        added(_COMPARED, _parsed(overload, args)),
        None,
    ),
    "containsCIDR": lambda overload, args: (
        added(_COMPARED, _ADDRESS.cost(_TENTH), 1, _parsed(overload, args)),
        None,
    ),
    "validate": _validation,
    "includes": lambda _, __: (MAX_LIST_ATTRIBUTE, None),
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
