"""Messages that an expression may build: protobuf's well-known types, and ``kubernetes.DRADevice``.

All but the empty one stand for a value of CEL (``common/types/provider.go``, ``NativeToValue``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import copysign, inf
from struct import pack, unpack
from typing import Any, Final, TypeAlias

from kubecel.data import (
    INT_MAX,
    INT_MIN,
    Duration,
    Empty,
    EvalError,
    TimestampValue,
    Uint,
    Value,
)
from kubecel.maps import map_items
from kubecel.overloads.registry import runtime_test
from kubecel.overloads.temporal import duration_text, timestamp_text
from kubecel.runtime_types import type_name
from kubecel.types import Type, parse_type

__all__ = ["CONSTANTS", "DEVICE", "MESSAGES", "Message"]

DEVICE: Final = Type("kubernetes.DRADevice")

CONSTANTS: Final[Mapping[str, Value]] = {"google.protobuf.NullValue.NULL_VALUE": 0}
"""Values of enumerations, which are ints."""

_Fields: TypeAlias = Mapping[str, Value]
_SECOND: Final = 10**9
_EXACT: Final = 2**53
"""JSON's numbers are doubles; ints from here on become texts."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message: the type of its value, the types of its fields, and the value for those that are set."""

    result: Type
    fields: Mapping[str, Type]
    build: Callable[[_Fields], Value]

    def value(self, name: str, fields: _Fields) -> Value:
        """The value of a message with these fields.

        Raises
        ------
        EvalError
            A field's value is not of its type.
        """
        for field, value in fields.items():
            if field in self.fields and not runtime_test(self.fields[field])(value):
                kind = type_name(value)
                raise EvalError(
                    f"field type conversion error for {name}.{field} value type: unsupported {kind}"
                )
        return self.build(fields)


def _message(result: str, fields: str, build: Callable[[_Fields], Value]) -> Message:
    """Declare a message with fields like ``seconds: int; nanos: int``."""
    pairs = (field.split(": ") for field in fields.split("; ") if field)
    return Message(
        parse_type(result), {name: parse_type(kind) for name, kind in pairs}, build
    )


def _wrapper(
    kind: str, default: Value, convert: Callable[[Any], Value] = lambda value: value
) -> Message:
    """A message that wraps a value of a standard type."""
    return Message(
        Type(kind, (), "wrapper"),
        {"value": Type(kind)},
        lambda fields: convert(fields.get("value", default)),
    )


def _within(low: int, high: int) -> Callable[[int], int]:
    def convert(value: int) -> int:
        if not low <= value <= high:
            raise EvalError("field type conversion error: integer overflow")
        return value

    return convert


_int32: Final = _within(-(2**31), 2**31 - 1)


def _float32(value: float) -> float:
    try:
        number: float = unpack("f", pack("f", value))[0]
    except OverflowError:
        return copysign(inf, value)
    return number


def _nanos(fields: _Fields) -> int:
    return int(fields.get("seconds", 0)) * _SECOND + _int32(fields.get("nanos", 0))


def _json(value: Value) -> Value:
    """A value as JSON has it."""
    kind = type(value)
    if kind is int or kind is Uint:
        return float(value) if -_EXACT < value < _EXACT else str(int(value))
    if kind is bytes:
        return b64encode(value).decode()
    if kind is tuple:
        return tuple(map(_json, value))
    if isinstance(value, dict):
        return {_json_key(key): _json(item) for key, item in map_items(value)}
    if kind is Duration or kind is TimestampValue:
        return duration_text(value) if kind is Duration else timestamp_text(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value
    raise EvalError(f"field type conversion error: unsupported type {type_name(value)}")


def _json_key(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    if isinstance(key, str | int):
        return str(key)
    raise EvalError(f"field type conversion error: unsupported key {type_name(key)}")


def _json_value(fields: _Fields) -> Value:
    """A ``google.protobuf.Value``: of several fields the last one counts."""
    return (
        None if "null_value" in fields or not fields else _json([*fields.values()][-1])
    )


def _unknown(name: str) -> Callable[[_Fields], Value]:
    def build(_: _Fields) -> Value:
        raise EvalError(f"unknown type '{name}'")

    return build


_VALUES: Final = (
    "null_value: int; number_value: double; string_value: string; bool_value: bool; "
    "struct_value: map(string, dyn); list_value: list(dyn)"
)

MESSAGES: Final[Mapping[str, Message]] = {
    "kubernetes.DRADevice": _message(
        "kubernetes.DRADevice", "", _unknown("kubernetes.DRADevice")
    ),
    "google.protobuf.Any": _message(
        "any", "type_url: string; value: bytes", _unknown("google.protobuf.Any")
    ),
    "google.protobuf.Duration": _message(
        "duration",
        "seconds: int; nanos: int",
        lambda fields: Duration(max(INT_MIN, min(_nanos(fields), INT_MAX))),
    ),
    "google.protobuf.Empty": _message("google.protobuf.Empty", "", lambda _: Empty()),
    "google.protobuf.ListValue": _message(
        "list(dyn)", "values: list(dyn)", lambda fields: _json(fields.get("values", ()))
    ),
    "google.protobuf.Struct": _message(
        "map(string, dyn)",
        "fields: map(string, dyn)",
        lambda fields: _json(fields.get("fields", {})),
    ),
    "google.protobuf.Timestamp": _message(
        "timestamp",
        "seconds: int; nanos: int",
        lambda fields: TimestampValue(_nanos(fields)),
    ),
    "google.protobuf.Value": _message("dyn", _VALUES, _json_value),
    "google.protobuf.BoolValue": _wrapper("bool", False),
    "google.protobuf.BytesValue": _wrapper("bytes", b""),
    "google.protobuf.DoubleValue": _wrapper("double", 0.0),
    "google.protobuf.FloatValue": _wrapper("double", 0.0, _float32),
    "google.protobuf.Int32Value": _wrapper("int", 0, _int32),
    "google.protobuf.Int64Value": _wrapper("int", 0),
    "google.protobuf.StringValue": _wrapper("string", ""),
    "google.protobuf.UInt32Value": _wrapper("uint", Uint(0), _within(0, 2**32 - 1)),
    "google.protobuf.UInt64Value": _wrapper("uint", Uint(0)),
}
"""By name. The fields of a device are those of the environment; as upstream has it, none can be built."""
