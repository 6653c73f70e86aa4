"""Loops, and variables that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dralloc.errors import CelRuntimeError
from dralloc.match.cel.code import COST, Code, charge, is_true
from dralloc.match.cel.compare import go_name, no_overload
from dralloc.match.cel.cost import LIST_COST
from dralloc.match.cel.data import MISSING, NONE, DomainMap, EvalError, Frame, Optional, Run, Value, map_key, map_keys

__all__ = ["Loop", "bind", "fold", "lazy_variable", "opt_map", "opt_variable", "put", "variable"]

_UNREAD: Final = object()


@dataclass(frozen=True, slots=True)
class _Failed:
    error: EvalError


@dataclass(frozen=True, slots=True)
class Loop:
    """A fold with its parts compiled; ``slots`` are those of its one or two variables."""

    kind: str
    range: Code
    slots: tuple[int, ...]
    body: Code
    guard: Code | None


_Values: TypeAlias = tuple[int, Iterable[Any]]


def variable(slot: int) -> Code:
    """A loop's variable."""
    return Code(lambda frame: frame[slot], 1, attribute=True, base=1)


def fold(loop: Loop) -> Code:
    """Compile a loop. The cost of the result, read once, is part of the static cost."""
    run = _FOLDS[loop.kind](loop, _values(loop))
    return Code(run, loop.range.cost + (2 if loop.kind == "exists_one" else 1))


def _values(loop: Loop) -> Callable[[Frame], _Values]:
    """What the loop runs over: how many, and the values (or pairs, for two variables)."""
    source = loop.range.run
    pairs = len(loop.slots) == 2

    def values(frame: Frame) -> _Values:
        found = source(frame)
        kind = type(found)
        if kind is tuple:
            return len(found), enumerate(found) if pairs else found
        if kind is dict or kind is DomainMap:
            keys = map_keys(found)
            return len(found), zip(keys, found.values(), strict=True) if pairs else keys
        if pairs:
            raise EvalError(f"unsupported comprehension range type: {go_name(found)}")
        raise EvalError(f"got '{go_name(found)}', expected iterable type")

    return values


def _setter(slots: tuple[int, ...]) -> Callable[[Frame, Value], None]:
    if len(slots) == 1:
        (only,) = slots

        def set_one(frame: Frame, value: Value) -> None:
            frame[only] = value

        return set_one
    first, second = slots

    def set_two(frame: Frame, pair: Value) -> None:
        frame[first], frame[second] = pair

    return set_two


def _quantifier(decisive: bool) -> Callable[[Loop, Callable[[Frame], _Values]], Run]:
    """``all`` and ``exists``. Before each step the condition reads the result, and ``exists`` negates it."""
    test_cost = 3 if decisive else 2

    def build(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
        body, put_values = loop.body.run, _setter(loop.slots)
        cost = test_cost + 1 + loop.body.cost

        def run(frame: Frame) -> Value:
            left, items = values(frame)
            error: EvalError | None = None
            for item in items:
                charge(frame, cost)
                put_values(frame, item)
                left -= 1
                try:
                    value = body(frame)
                except EvalError as failure:
                    error = error or failure
                    continue
                if value is decisive:
                    frame[COST] += test_cost if left else 0
                    return decisive
                if value is not True and value is not False:
                    error = error or no_overload()
            if error is not None:
                raise error
            return not decisive

        return run

    return build


def _exists_one(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    body, put_values, cost = loop.body.run, _setter(loop.slots), loop.body.cost

    def run(frame: Frame) -> bool:
        count = 0
        for item in values(frame)[1]:
            charge(frame, cost)
            put_values(frame, item)
            if is_true(body(frame)):
                frame[COST] += 2
                count += 1
        return count == 1

    return run


def _passing(loop: Loop) -> Callable[[Frame, Value], bool]:
    """Set the variables and evaluate the guard."""
    put_values = _setter(loop.slots)
    test, cost = (loop.guard.run, loop.guard.cost) if loop.guard else (None, 0)

    def passing(frame: Frame, item: Value) -> bool:
        put_values(frame, item)
        if test is None:
            return True
        charge(frame, cost)
        return is_true(test(frame))

    return passing


def _map(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    """Each step adds a list of one element to the result."""
    body, passing = loop.body.run, _passing(loop)
    cost = 2 + (0 if loop.body.literal else LIST_COST + loop.body.cost)

    def run(frame: Frame) -> tuple[Value, ...]:
        result = []
        for item in values(frame)[1]:
            if passing(frame, item):
                charge(frame, cost)
                result.append(body(frame))
        return tuple(result)

    return run


def _transform_map(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    body, passing, (key_slot, _) = loop.body.run, _passing(loop), loop.slots
    cost = 3 + loop.body.cost

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for item in values(frame)[1]:
            if passing(frame, item):
                charge(frame, cost)
                key = frame[key_slot]
                _insert(result, key, body(frame))
        return result

    return run


def _transform_entry(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    body, passing = loop.body.run, _passing(loop)
    cost = 2 + loop.body.cost

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for item in values(frame)[1]:
            if passing(frame, item):
                charge(frame, cost)
                entries = body(frame)
                if not isinstance(entries, dict):
                    raise no_overload("cel.@mapInsert")
                for key, value in zip(map_keys(entries), entries.values(), strict=True):
                    _insert(result, key, value)
        return result

    return run


_FOLDS: Final[dict[str, Callable[[Loop, Callable[[Frame], _Values]], Run]]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    "map": _map,
    "transform_map": _transform_map,
    "transform_entry": _transform_entry,
}


def _insert(values: dict[Any, Any], key: Value, value: Value) -> None:
    """Add an entry to a map that is being built; the key must be new."""
    if map_key(key) in values:
        raise EvalError(f"insert failed: key {key} already exists")
    put(values, key, value)


def put(values: dict[Any, Any], key: Value, value: Value) -> None:
    """Set an entry of a map that is being built."""
    found = map_key(key)
    if found is MISSING:
        raise CelRuntimeError(f"unsupported type of a map key: {go_name(key)}")
    if found in values and any(other == found and type(other) is not type(found) for other in values):
        raise CelRuntimeError(f"a map with equal keys of different types is not supported: {key}")
    values[found] = value


def lazy_variable(slot: int, value: Code) -> Code:
    """A variable of `bind`: computed at the first reading, an error as well."""
    compute, cost = value.run, value.cost

    def run(frame: Frame) -> Value:
        found = frame[slot]
        if found is _UNREAD:
            frame[COST] += cost
            try:
                found = frame[slot] = compute(frame)
            except EvalError as error:
                frame[slot] = _Failed(error)
                raise
        elif type(found) is _Failed:
            raise found.error
        return found

    return Code(run, 1, attribute=True, base=1)


def bind(slot: int, body: Code) -> Code:
    """A scope in which a variable has not been read yet."""
    inner, cost = body.run, body.cost

    def run(frame: Frame) -> Value:
        frame[slot] = _UNREAD
        return inner(frame)

    return Code(run, cost)


def opt_map(target: Code, slots: tuple[int, int], body: Code, *, flat: bool) -> Code:
    """``optMap`` and ``optFlatMap``.

    Upstream evaluates the target once more where the variable is first read, which is only noticed in the cost: the
    second slot keeps what that would be.
    """
    source, inner, cost = target.run, body.run, body.cost - (body.base if flat else 0)
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        before = frame[COST]
        found = source(frame)
        if type(found) is not Optional:
            raise no_overload("hasValue")
        if found.value is MISSING:
            frame[COST] += 1
            return NONE
        frame[cost_slot] = (found.value, frame[COST] - before + target.cost + 1)
        frame[value_slot] = _UNREAD
        frame[COST] += cost if flat else cost + 1
        result = inner(frame)
        return result if flat else Optional(result)

    return Code(run, target.cost + 1)


def opt_variable(slots: tuple[int, int]) -> Code:
    """The variable of `opt_map`."""
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        value, cost = frame[cost_slot]
        if frame[value_slot] is _UNREAD:
            frame[COST] += cost
            frame[value_slot] = None
        return value

    return Code(run, 1, attribute=True, base=1)
