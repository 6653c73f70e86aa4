"""Rules for the cost of calls: what upstream charges for the values it sees at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kubecel.values import EXTENSION_TYPES, Value, map_items, size_of

__all__ = [
    "COST_LIMIT",
    "LIST_COST",
    "MAP_COST",
    "STRUCT_COST",
    "CostRule",
    "addition",
    "containment",
    "contains_cidr",
    "contains_ip",
    "counting",
    "equality",
    "flattening",
    "inequality",
    "join",
    "membership",
    "parsing",
    "regex",
    "reversal",
    "scanned",
    "self_comparison",
    "sets",
    "slicing",
    "smaller_scan",
    "tenths",
    "traversal",
    "twice_scanned",
]

CostRule: TypeAlias = Callable[[Sequence[Value]], int]
"""The cost of a call, from its arguments. Most calls cost 1 and need no rule."""

COST_LIMIT: Final = 1_000_000
"""What a selector may cost for one device: ``CELSelectorExpressionMaxCost``."""

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def tenths(size: int) -> int:
    """A tenth, rounded up: the cost of passing over a string once."""
    return -(-size // 10)


def scanned(args: Sequence[Value]) -> int:
    """The first argument is read once."""
    return tenths(size_of(args[0]))


def twice_scanned(args: Sequence[Value]) -> int:
    """The first argument is read, and as much is written."""
    return tenths(2 * size_of(args[0]))


def smaller_scan(args: Sequence[Value]) -> int:
    """Two strings are compared until the shorter one ends."""
    return tenths(min(size_of(args[0]), size_of(args[1])))


def equality(left: Value, right: Value) -> int:
    """The cost of ``left == right``."""
    if type(left) in EXTENSION_TYPES:
        return 1
    return inequality(left, right)


def inequality(left: Value, right: Value) -> int:
    """The cost of ``left != right``."""
    return tenths(min(size_of(left), size_of(right)))


def addition(args: Sequence[Value]) -> int:
    """Two strings are copied."""
    return tenths(size_of(args[0]) + size_of(args[1]))


def containment(args: Sequence[Value]) -> int:
    """A string is searched for another one."""
    return tenths(size_of(args[0])) * tenths(size_of(args[1]))


def regex(args: Sequence[Value]) -> int:
    """A string is searched by a pattern."""
    return tenths(1 + size_of(args[0])) * -(-size_of(args[1]) // 4)


def membership(args: Sequence[Value]) -> int:
    """A list is searched; it is the second argument."""
    return size_of(args[1])


def traversal(args: Sequence[Value]) -> int:
    """The first argument is passed over, with all that is in it; here strings round down."""
    return _traversal(args[0])


def _traversal(value: Value) -> int:
    if isinstance(value, str | bytes):
        # Upstream divides integers here, while all other scans round up.
        return len(value.encode() if isinstance(value, str) else value) // 10
    if isinstance(value, tuple):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(
            _traversal(key) + _traversal(item) for key, item in map_items(value)
        )
    return 1


def join(args: Sequence[Value]) -> int:
    """The result is written."""
    texts = args[0]
    length = sum(map(size_of, texts))
    if len(args) > 1:
        separator_count = max(len(texts) - 1, 0)
        length += size_of(args[1]) * separator_count
    return tenths(2 * length)


def sets(factor: int) -> CostRule:
    """Every element of one list is looked for in the other, `factor` times."""

    def rule(args: Sequence[Value]) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * factor

    return rule


def reversal(args: Sequence[Value]) -> int:
    """A list is built, of the first one's length."""
    return 1 + LIST_COST + size_of(args[0])


def slicing(args: Sequence[Value]) -> int:
    """A list is built, of the second to the third argument."""
    return 1 + LIST_COST + max(int(args[2]) - int(args[1]), 0)


def counting(args: Sequence[Value]) -> int:
    """A list is built, as long as the argument says."""
    return 1 + LIST_COST + max(int(args[0]), 0)


def flattening(args: Sequence[Value]) -> int:
    """A list is flattened to a depth. Costs are unsigned, so that a negative one is as good as endless."""
    depth = 1
    if len(args) > 1 and type(args[1]) is int:
        depth = args[1]
    total = 1 + LIST_COST + size_of(args[0]) * depth
    # Upstream's arithmetic is unsigned: a negative depth wraps around to a huge cost.
    return total if total >= 0 else 2**63


def self_comparison(position: int) -> CostRule:
    """Every element of the list at a position is compared with every other one."""

    def rule(args: Sequence[Value]) -> int:
        values = args[position]
        comparisons = len(values) ** 2
        # Upstream looks at the first element alone: texts cost 2.1, anything else 2.
        if values and isinstance(values[0], str | bytes):
            return 1 + LIST_COST + comparisons * 21 // 10
        return 1 + LIST_COST + comparisons * 2

    return rule


def contains_ip(args: Sequence[Value]) -> int:
    """An address is compared with a network's bytes."""
    return tenths(2 * size_of(args[0]))


def contains_cidr(args: Sequence[Value]) -> int:
    """As `contains_ip`, and the network is masked."""
    size = size_of(args[0])
    return tenths(2 * size) + tenths(size) + 1


def parsing(rule: CostRule) -> CostRule:
    """As another rule, and the second argument is a string to parse."""

    def with_parsing(args: Sequence[Value]) -> int:
        return rule(args) + tenths(size_of(args[1]))

    return with_parsing
