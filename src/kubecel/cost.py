"""Rules for the cost of calls: what upstream charges for the values it sees at run time; and below, our own guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kubecel.kubernetes_types.urls import Url
from kubecel.values import (
    EXTENSION_TYPES,
    MAPS,
    Optional,
    Value,
    map_items,
    size_of,
)

__all__ = [
    "CONTAINERS",
    "COST_LIMIT",
    "LIST_COST",
    "MAP_COST",
    "STRUCT_COST",
    "CostRule",
    "EffortRule",
    "addition",
    "comparison",
    "containment",
    "containment_effort",
    "contains_cidr",
    "contains_ip",
    "copying",
    "counting",
    "equality",
    "flattening",
    "formatting",
    "inequality",
    "join",
    "joining",
    "membership",
    "pairs",
    "parsing",
    "parts_of_url",
    "regex",
    "replacing",
    "reversal",
    "scanned",
    "self_comparison",
    "sets",
    "slicing",
    "slow",
    "smaller_scan",
    "tenths",
    "traversal",
    "traversal_effort",
    "twice_scanned",
    "value_count",
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
    """Return the cost as `contains_ip` does; the network is masked in addition."""
    size = size_of(args[0])
    return tenths(2 * size) + tenths(size) + 1


def parsing(rule: CostRule) -> CostRule:
    """Return a rule that adds, to another rule's cost, that of parsing the second argument as a string."""

    def with_parsing(args: Sequence[Value]) -> int:
        return rule(args) + tenths(size_of(args[1]))

    return with_parsing


# ----------------------------------------------------------------------------
# Our own guard: the work of calls that take longer than their cost says.
#
# Upstream charges some calls a nominal cost whatever they work on, and so do we. What
# they take beyond it is counted apart, in units of cost (about a microsecond), and
# taken off what the evaluation may still cost. Thus every evaluation ends soon, with
# an error where need be, while its cost stays upstream's. Sensible selectors never
# come near.

EffortRule: TypeAlias = Callable[[Sequence[Value]], int]
"""The effort of a call, from its arguments, which may be of any types. Most calls need no rule."""

CONTAINERS: Final = MAPS | {tuple, Optional}
"""The types of values that hold others, and so can be large at little cost: the same list may be in many places."""

_MOST: Final = 1_100_000
"""Where counting ends: above what an evaluation may take."""

_LONG: Final = 1000
"""Comparing or copying so many characters takes as long as handling a value."""


def value_count(value: Value, limit: int = _MOST) -> int:
    """Return the number of values in a value, each counted as often as it occurs, or `limit` if there are more.

    Long texts count as several.
    """
    count = 0
    stack = [value]
    while stack:
        value = stack.pop()
        kind = type(value)
        count += 1
        if kind is str or kind is bytes:
            count += len(value) // _LONG
        elif kind is tuple:
            count += len(value) // 8
            # Looked at before the elements are stacked: a list of a million is not
            # copied in vain.
            if count + len(stack) > limit:
                return limit
            stack += value
        elif kind in MAPS:
            count += len(value)
            stack += value.values()
        elif kind is Optional:
            stack.append(value.value)
        if count > limit:
            return limit
    return count


def _inner_values(values: Value) -> int:
    """Return the number of values in a list's elements, without the elements."""
    return value_count(values) - len(values) - 1


def _length(value: Value) -> int:
    kind = type(value)
    if kind is str or kind is bytes or kind is tuple:
        return len(value)
    return 0


def comparison(args: Sequence[Value]) -> int:
    """Two values are compared, which takes as long as the smaller one is large."""
    # A comparison ends with the smaller value, so count a little of both first, and go
    # on with more only if neither has ended.
    limit = 100
    while True:
        count = min(value_count(args[0], limit), value_count(args[1], limit))
        if count < limit or limit == _MOST:
            return count
        limit = min(10 * limit, _MOST)


def containment_effort(args: Sequence[Value]) -> int:
    """A value is looked for in a list, which is the second argument; the cost covers plain elements."""
    if type(args[1]) is not tuple:
        return 0
    return max(_inner_values(args[1]), 0)


def pairs(args: Sequence[Value]) -> int:
    """Every element of the first list is compared with all of the last one; the cost covers plain elements."""
    if type(args[-1]) is not tuple:
        return 0
    inner_values = max(_inner_values(args[-1]), 0)
    return _length(args[0]) * inner_values + len(args[-1]) // 4


def traversal_effort(args: Sequence[Value]) -> int:
    """The first argument is passed over, with all that is in it."""
    if type(args[0]) in CONTAINERS:
        return value_count(args[0])
    return 0


def copying(args: Sequence[Value]) -> int:
    """Two lists are joined. Upstream only links them."""
    if type(args[0]) is tuple:
        return (_length(args[0]) + _length(args[1])) // 20
    return 0


def joining(args: Sequence[Value]) -> int:
    """A list's elements are looked at."""
    return _length(args[0]) // 10


def replacing(args: Sequence[Value]) -> int:
    """A text is written which may be much longer than the first argument."""
    text, old, new = (_length(arg) for arg in args[:3])
    replacements = text // max(old, 1) + 1
    return replacements * new // 10


def slow(args: Sequence[Value]) -> int:
    """The first argument, a text, is read character by character, and the call takes a few microseconds in any case."""
    return 3 + _length(args[0]) // 10


def formatting(args: Sequence[Value]) -> int:
    """A format is filled: its clauses are few characters long, but their arguments may be large."""
    form, values = args
    return 2 + _length(form) // 2 + _written(values)


def _written(values: Value) -> int:
    """The effort to write values with all that is in them; texts inside of lists are quoted character by character."""
    count = value_count(values)
    if count >= _MOST:
        return count
    stack = [values]
    while stack:
        value = stack.pop()
        if type(value) is str or type(value) is bytes:
            count += len(value) // 8
        elif type(value) is tuple:
            stack += value
        elif isinstance(value, dict):
            count += sum(map(_length, value)) // 8
            stack += value.values()
    return 2 * count


def parts_of_url(args: Sequence[Value]) -> int:
    """A URL is taken apart."""
    url = args[0]
    if not isinstance(url, Url):
        return 0
    return (len(url.host) + len(url.path) + len(url.query)) // 4
