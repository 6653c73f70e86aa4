"""Conversions between the standard types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from kubecel import cost, effort
from kubecel.data import (
    INT_MAX,
    UINT_MAX,
    Duration,
    EvalError,
    TimestampValue,
    Uint,
    Value,
)
from kubecel.overloads.registry import Impl, Overload, function
from kubecel.overloads.temporal import (
    checked_timestamp,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from kubecel.runtime_types import type_name

__all__ = ["CONVERSIONS", "CONVERSION_NAMES", "TEXTS", "double_text"]

_INT: Final = re.compile(r"([+-]?)([0-9]+)", re.ASCII)
_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
_DOUBLE: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII
)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:inf(?:inity)?)|nan", re.ASCII | re.IGNORECASE)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_SECOND: Final = 10**9
_MAX_DIGITS: Final = 30


def _refused(value: Value, wanted: str) -> EvalError:
    return EvalError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def _decimal(sign: str, digits: str) -> int:
    """The value of digits; what has too many of them for any type is just too large."""
    return int(sign + (digits.lstrip("0")[:_MAX_DIGITS] or "0"))


def _to_int(value: Value) -> int:
    kind = type(value)
    if kind is int:
        number: int = value
    elif kind is Uint:
        number = int(value)
    elif kind is float:
        # Upstream refuses both ends of the range, where doubles are not exact.
        if not -(2.0**63) < value < 2.0**63:
            raise EvalError("integer overflow")
        number = int(value)
    elif kind is str and (digits := _INT.fullmatch(value)):
        number = _decimal(digits[1], digits[2])
    elif kind is TimestampValue:
        number = value.nanos // _SECOND
    elif kind is Duration:
        number = value.nanos
    else:
        raise _refused(value, "int")
    if not -INT_MAX - 1 <= number <= INT_MAX:
        raise _refused(value, "int") if kind is str else EvalError("integer overflow")
    return number


def _to_uint(value: Value) -> Uint:
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is str:
        if not _UINT.fullmatch(value) or (number := _decimal("", value)) > UINT_MAX:
            raise _refused(value, "uint")
        return Uint(number)
    if kind is int and value >= 0:
        return Uint(value)
    if kind is float and 0 <= value < 2.0**64:
        return Uint(int(value))
    raise EvalError("unsigned integer overflow")


def _to_double(value: Value) -> float:
    if not isinstance(value, str):
        return float(value)
    if _NOT_FINITE.fullmatch(value):
        return float(value)
    if not _DOUBLE.fullmatch(value) or math.isinf(number := float(value)):
        raise _refused(value, "double")
    return number


def double_text(value: float) -> str:
    """A double with the fewest digits that tell it from its neighbours; with an exponent below -4 and from 6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent:+03}"


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from error


TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: double_text,
    str: str,
    bytes: _decoded,
    TimestampValue: timestamp_text,
    Duration: duration_text,
}
"""How values of the standard types become strings."""


def _to_string(value: Value) -> str:
    return TEXTS.get(type(value), str)(value)


def _to_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _refused(value, "bool")


def _to_bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _to_timestamp(value: Value) -> TimestampValue:
    if isinstance(value, TimestampValue):
        return value
    if isinstance(value, int):
        return checked_timestamp(value * _SECOND)
    try:
        return parse_timestamp(value)
    except ValueError as error:
        raise _refused(value, "google.protobuf.Timestamp") from error


def _to_duration(value: Value) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):  # declared by upstream, but never implemented
        raise _refused(value, "google.protobuf.Duration")
    try:
        return parse_duration(value)
    except ValueError as error:
        raise _refused(value, "google.protobuf.Duration") from error


_SOURCES: Final[dict[str, tuple[str, Impl, str]]] = {
    "bool": ("bool", _to_bool, "bool string"),
    "bytes": ("bytes", _to_bytes, "bytes string"),
    "double": ("double", _to_double, "double int string uint"),
    "duration": ("duration", _to_duration, "duration int string"),
    "int": ("int", _to_int, "int double duration string timestamp uint"),
    "string": (
        "string",
        _to_string,
        "string bool bytes double duration int timestamp uint ip cidr",
    ),
    "timestamp": ("timestamp", _to_timestamp, "timestamp int string"),
    "uint": ("uint", _to_uint, "uint double int string"),
}
_QUICK: Final = frozenset(
    {("string", "string"), ("bytes", "string"), ("bool", "string")}
)
_RULES: Final = {("bytes", "string"): cost.scanned, ("string", "bytes"): cost.scanned}


def _conversions() -> tuple[Overload, ...]:
    table = []
    for name, (result, impl, sources) in _SOURCES.items():
        for source in sources.split():
            rule = _RULES.get((name, source))
            work = (
                effort.slow
                if "string" in {source, name} and (name, source) not in _QUICK
                else None
            )
            table.append(
                function(name, f"{source} -> {result}", impl, rule, work, by_name=False)
            )
    return (*table, function("dyn", "A -> dyn", lambda value: value))


CONVERSIONS: Final = _conversions()
"""The conversions, as functions named like their result."""

CONVERSION_NAMES: Final = frozenset({*_SOURCES, "dyn", "type"})
"""Functions that are computed once, when the selector is compiled, if their argument is constant."""
