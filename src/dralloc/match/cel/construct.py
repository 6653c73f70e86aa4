"""Lists, maps and messages that an expression builds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from dralloc.errors import CelRuntimeError
from dralloc.match.cel.code import Code, constant
from dralloc.match.cel.cost import LIST_COST, MAP_COST, STRUCT_COST
from dralloc.match.cel.data import MISSING, EvalError, Frame, Optional, Run, Uint, Value, map_key
from dralloc.match.cel.kinds import go_name

__all__ = ["new_list", "new_map", "new_message", "put"]

_DEFAULTS: Final[dict[str, Value]] = {
    "bool": False,
    "bytes": b"",
    "double": 0.0,
    "int": 0,
    "string": "",
    "uint": Uint(0),
}
_INT32: Final = {
    "google.protobuf.Int32Value": (-(2**31), 2**31 - 1),
    "google.protobuf.UInt32Value": (0, 2**32 - 1),
}


def new_list(items: Sequence[Code], optional: Sequence[bool]) -> Code:
    """``[a, ?b]``; a list of constants is one itself."""
    cost = LIST_COST + sum(code.cost for code in items)
    runs = tuple(code.run for code in items)
    if any(optional):
        return Code(_optional_list(runs, optional), cost)
    if all(code.literal for code in items):
        return constant(tuple(code.value for code in items))
    return Code(lambda frame: tuple([run(frame) for run in runs]), cost)


def _optional_list(runs: Sequence[Run], optional: Sequence[bool]) -> Run:
    parts = tuple(zip(runs, optional, strict=True))

    def run(frame: Frame) -> tuple[Value, ...]:
        values = [_unwrapped(run(frame)) if optional else run(frame) for run, optional in parts]
        return tuple(value for value in values if value is not MISSING)

    return run


def new_map(keys: Sequence[Code], values: Sequence[Code], optional: Sequence[bool]) -> Code:
    """``{a: b, ?c: d}``; a map of constants is one itself."""
    codes = (*keys, *values)
    run = _map(tuple(zip((key.run for key in keys), (value.run for value in values), optional, strict=True)))
    if all(code.literal for code in codes) and not any(optional):
        with suppress(CelRuntimeError):  # a map that cannot be built fails when it is evaluated
            return constant(run([]))
    return Code(run, MAP_COST + sum(code.cost for code in codes))


def _map(parts: tuple[tuple[Run, Run, bool], ...]) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        kinds: dict[Any, type] = {}
        for key_run, value_run, optional in parts:
            key, value = key_run(frame), value_run(frame)
            if optional:
                value = _unwrapped(value)
                if value is MISSING:
                    result.pop(map_key(key), None)
                    continue
            found = put(result, key, value)
            if kinds.setdefault(found, type(found)) is not type(found):
                raise CelRuntimeError(f"a map with equal keys of different types is not supported: {key}")
        return result

    return run


def new_message(name: str, kind: str, value: Code | None, *, optional: bool) -> Code:
    """A message that wraps a value of a standard type; it is that value, or the type's default."""
    default = _DEFAULTS[kind]
    code = value or constant(default)
    low, high = _INT32.get(name, (None, None))
    inner = code.run

    def run(frame: Frame) -> Value:
        value = inner(frame)
        if optional:
            value = _unwrapped(value)
            value = default if value is MISSING else value
        if low is not None and high is not None and not low <= value <= high:
            raise EvalError("range error converting to a 32 bit integer")
        return value

    return Code(run, STRUCT_COST + code.cost)


def _unwrapped(value: Value) -> Value:
    """The value of an optional entry, or `MISSING`."""
    if type(value) is not Optional:
        raise EvalError("cannot initialize optional entry from non-optional value")
    return value.value


def put(values: dict[Any, Any], key: Value, value: Value) -> Value:
    """Set an entry of a map that is being built, and return the Python key."""
    found = map_key(key)
    if found is MISSING:
        raise CelRuntimeError(f"unsupported type of a map key: {go_name(key)}")
    values[found] = value
    return found
