"""The answers of this engine and of cel-python's interpreter, in a form in which they can be compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import celpy
from celpy import celtypes

from cel_helpers import DOMAIN, GPU, WIRE
from kubecel.check import check
from kubecel.code import FIRST_LOCAL
from kubecel.cost import COST_LIMIT
from kubecel.environment import ALL_GATES, environment_for
from kubecel.errors import CelCompileError, CelRuntimeError, SelectorError
from kubecel.literal_checks import validate
from kubecel.parse import parse
from kubecel.plan import plan
from kubecel.values import Duration, TimestampValue, Uint

__all__ = ["ERROR", "REFUSED", "our_answer", "their_answer"]

ERROR: Final = "error"
REFUSED: Final = "refused"

_ENVIRONMENT: Final = environment_for(ALL_GATES)


def our_answer(expression: str) -> object:
    """The value of an expression, with its type, or that it fails, or what is wrong with its text.

    `REFUSED` means that a conversion of a constant fails, which upstream computes when it compiles the expression.
    """
    try:
        checked, findings = check(parse(expression), _ENVIRONMENT)
    except CelCompileError as error:
        return str(error)
    if findings := findings or validate(checked):
        return str(findings)
    try:
        code, size = plan(checked)
    except SelectorError:
        return REFUSED
    frame = [
        code.cost,
        COST_LIMIT,
        GPU.variables,
        *([None] * (size - FIRST_LOCAL)),
    ]
    try:
        return _ours(code.run(frame))
    except CelRuntimeError:
        return ERROR


def _ours(value: Any) -> object:
    match value:
        case bool() | float() | str() | bytes() | Uint():
            return type(value).__name__.lower(), repr(value)
        case int():
            return "int", repr(value)
        case tuple():
            return "list", [_ours(item) for item in value]
        case dict():
            return "map", sorted(
                (repr(_ours(key)), _ours(item)) for key, item in value.items()
            )
        case Duration() | TimestampValue():
            return type(value).__name__.lower().removesuffix(
                "value"
            ), value.nanos
    raise AssertionError(value)


def their_answer(expression: str) -> object:
    """The same of cel-python's interpreter. Its evaluator lets some exceptions of Python through."""
    try:
        tree = _CEL.compile(expression)
        return _theirs(_CEL.program(tree).evaluate({"device": _CEL_DEVICE}))
    except Exception:
        return ERROR


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _nanos(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * 1000


def _theirs(value: Any) -> object:
    match value:
        case celtypes.BoolType():
            return "bool", repr(bool(value))
        case celtypes.UintType():
            return "uint", repr(int(value))
        case bool():
            return "bool", repr(value)
        case int():
            return "int", repr(int(value))
        case float():
            return "float", repr(float(value))
        case str():
            return "str", repr(str(value))
        case bytes():
            return "bytes", repr(bytes(value))
        case list():
            return "list", [_theirs(item) for item in value]
        case dict():
            return "map", sorted(
                (repr(_theirs(key)), _theirs(item))
                for key, item in value.items()
            )
        case timedelta():
            return "duration", _nanos(value)
        case datetime():
            return "timestamp", _nanos(value - _EPOCH)
    raise AssertionError(value)


def _cel_value(value: Any) -> Any:
    """A plain value as cel-python's own."""
    match value:
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case str():
            return celtypes.StringType(value)
        case list():
            return celtypes.ListType([_cel_value(item) for item in value])
        case dict():
            return celtypes.MapType(
                {
                    _cel_value(key): _cel_value(item)
                    for key, item in value.items()
                }
            )
    raise AssertionError(value)


_CEL: Final = celpy.Environment()
_CEL_DEVICE: Final = _cel_value(
    {
        "driver": DOMAIN,
        "attributes": {
            DOMAIN: {
                name: next(iter(value.values()))
                for name, value in WIRE["attributes"].items()
            }
        },
    }
)
