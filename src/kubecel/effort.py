"""Our own guard: the work of calls that take longer than their cost says.

Upstream charges some calls a nominal cost whatever they work on, and so do we. What they take beyond it is counted
apart, in units of cost (about a microsecond), and taken off what the evaluation may still cost. Thus every evaluation
ends soon, with an error where need be, while its cost stays upstream's. Sensible selectors never come near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kubecel.kubernetes_types import Url
from kubecel.values import MAPS, Optional, Value

__all__ = [
    "CONTAINERS",
    "EffortRule",
    "comparison",
    "containment",
    "copying",
    "formatting",
    "joining",
    "pairs",
    "parts_of_url",
    "replacing",
    "slow",
    "traversal",
    "value_count",
]

EffortRule: TypeAlias = Callable[[Sequence[Value]], int]
"""The effort of a call, from its arguments, which may be of any types. Most calls need no rule."""

CONTAINERS: Final = MAPS | {tuple, Optional}
"""The types of values that hold others, and so can be large at little cost: the same list may be in many places."""

_MOST: Final = 1_100_000
"""Where counting ends: above what an evaluation may take."""

_LONG: Final = 1000
"""Comparing or copying so many characters takes as long as handling a value."""


def value_count(value: Value, limit: int = _MOST) -> int:
    """Return how many values there are in a value, each counted as often as it occurs, or `limit` if there are more.

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
    """Return how many values there are in a list's elements, without the elements."""
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


def containment(args: Sequence[Value]) -> int:
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


def traversal(args: Sequence[Value]) -> int:
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
