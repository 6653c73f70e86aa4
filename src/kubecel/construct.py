"""Lists, maps and messages that an expression builds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kubecel.code import Compiled, constant
from kubecel.cost import LIST_COST, MAP_COST, STRUCT_COST
from kubecel.data import MISSING, EvalError, Frame, Optional, Run, Value
from kubecel.errors import CelRuntimeError
from kubecel.maps import map_key
from kubecel.messages import MESSAGES

__all__ = ["new_list", "new_map", "new_message"]


def new_list(items: Sequence[Compiled], optional: Sequence[bool]) -> Compiled:
    """``[a, ?b]``; a list of constants is one itself."""
    cost = LIST_COST + sum(code.cost for code in items)
    runs = tuple(code.run for code in items)
    if any(optional):
        return Compiled(_optional_list(runs, optional), cost)
    if all(code.literal for code in items):
        return constant(tuple(code.value for code in items))
    return Compiled(lambda frame: tuple([run(frame) for run in runs]), cost)


def _optional_list(runs: Sequence[Run], optional: Sequence[bool]) -> Run:
    parts = tuple(zip(runs, optional, strict=True))

    def run(frame: Frame) -> tuple[Value, ...]:
        values = [
            _unwrapped(run(frame)) if optional else run(frame)
            for run, optional in parts
        ]
        return tuple(value for value in values if value is not MISSING)

    return run


def new_map(
    keys: Sequence[Compiled], values: Sequence[Compiled], optional: Sequence[bool]
) -> Compiled:
    """``{a: b, ?c: d}``; a map of constants is one itself."""
    codes = (*keys, *values)
    run = _map(
        tuple(
            zip(
                (key.run for key in keys),
                (value.run for value in values),
                optional,
                strict=True,
            )
        )
    )
    if all(code.literal for code in codes) and not any(optional):
        with suppress(
            CelRuntimeError
        ):  # a map that cannot be built fails when it is evaluated
            return constant(run([]))
    return Compiled(run, MAP_COST + sum(code.cost for code in codes))


def _map(parts: tuple[tuple[Run, Run, bool], ...]) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_run, value_run, optional in parts:
            key, value = key_run(frame), value_run(frame)
            if optional:
                value = _unwrapped(value)
                if value is MISSING:
                    result.pop(map_key(key), None)
                    continue
            result[map_key(key)] = value
        return result

    return run


def new_message(name: str, fields: Sequence[tuple[str, Compiled, bool]]) -> Compiled:
    """``name{field: value, ?field: value}``."""
    message = MESSAGES[name]
    parts = tuple((field, code.run, optional) for field, code, optional in fields)

    def run(frame: Frame) -> Value:
        values: dict[str, Value] = {}
        for field, inner, optional in parts:
            value = inner(frame)
            values.pop(field, None)
            values[field] = _unwrapped(value) if optional else value
        return message.value(
            name,
            {field: value for field, value in values.items() if value is not MISSING},
        )

    return Compiled(run, STRUCT_COST + sum(code.cost for _, code, _ in fields))


def _unwrapped(value: Value) -> Value:
    """The value of an optional entry, or `MISSING`."""
    if type(value) is not Optional:
        raise EvalError("cannot initialize optional entry from non-optional value")
    return value.held()
