"""The names that a selector can use: the variable ``device``, types, messages and functions, with the gates in force.

First the messages that an expression may build: protobuf's well-known types, and ``kubernetes.DRADevice``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import copysign, inf
from struct import pack, unpack
from typing import Any, Final, TypeAlias

from kubecel.overloads import FUNCTIONS, Overload
from kubecel.overloads.conversions import duration_text, timestamp_text
from kubecel.types import (
    ANY,
    DYN,
    QUANTITY,
    STRING,
    Type,
    list_of,
    map_of,
    optional_of,
    parse_type,
    runtime_test,
)
from kubecel.values import (
    INT_MAX,
    INT_MIN,
    Duration,
    Empty,
    EvalError,
    TimestampValue,
    Uint,
    Value,
    map_items,
    type_name,
)

__all__ = [
    "ALL_GATES",
    "CONSTANTS",
    "DEVICE",
    "MESSAGES",
    "TYPE_NAMES",
    "Environment",
    "FeatureGates",
    "environment_for",
]

# ----------------------------------------------------------------------------
# Messages: all but the empty one stand for a value of CEL, as upstream has it in
# ``common/types/provider.go`` (``NativeToValue``).

DEVICE: Final = Type("kubernetes.DRADevice")

CONSTANTS: Final[Mapping[str, Value]] = {
    "google.protobuf.NullValue.NULL_VALUE": 0
}
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
            if field in self.fields and not runtime_test(self.fields[field])(
                value
            ):
                kind = type_name(value)
                raise EvalError(
                    f"field type conversion error for {name}.{field} value type: unsupported {kind}"
                )
        return self.build(fields)


def _message(
    result: str, fields: str, build: Callable[[_Fields], Value]
) -> Message:
    """Declare a message with fields like ``seconds: int; nanos: int``."""
    pairs = (field.split(": ") for field in fields.split("; ") if field)
    types = {name: parse_type(type_text) for name, type_text in pairs}
    return Message(parse_type(result), types, build)


def _wrapper(
    kind: str,
    default: Value,
    convert: Callable[[Any], Value] = lambda value: value,
) -> Message:
    """A message that wraps a value of a standard type."""

    def build(fields: _Fields) -> Value:
        return convert(fields.get("value", default))

    return Message(Type(kind, (), "wrapper"), {"value": Type(kind)}, build)


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
    return int(fields.get("seconds", 0)) * _SECOND + _int32(
        fields.get("nanos", 0)
    )


def _json(value: Value) -> Value:
    """A value as JSON has it."""
    kind = type(value)
    if kind is int or kind is Uint:
        # As protobuf's JSON mapping, which keeps what a double would round as text.
        if -_EXACT < value < _EXACT:
            return float(value)
        return str(int(value))
    if kind is bytes:
        return b64encode(value).decode()
    if kind is tuple:
        return tuple(map(_json, value))
    if isinstance(value, dict):
        return {_json_key(key): _json(item) for key, item in map_items(value)}
    if kind is Duration or kind is TimestampValue:
        if kind is Duration:
            return duration_text(value)
        return timestamp_text(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value
    raise EvalError(
        f"field type conversion error: unsupported type {type_name(value)}"
    )


def _json_key(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    if isinstance(key, str | int):
        return str(key)
    raise EvalError(
        f"field type conversion error: unsupported key {type_name(key)}"
    )


def _json_value(fields: _Fields) -> Value:
    """A ``google.protobuf.Value``: of several fields the last one counts."""
    if "null_value" in fields or not fields:
        return None
    *_, last_value = fields.values()
    return _json(last_value)


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
    "google.protobuf.Empty": _message(
        "google.protobuf.Empty", "", lambda _: Empty()
    ),
    "google.protobuf.ListValue": _message(
        "list(dyn)",
        "values: list(dyn)",
        lambda fields: _json(fields.get("values", ())),
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
    "google.protobuf.UInt32Value": _wrapper(
        "uint", Uint(0), _within(0, 2**32 - 1)
    ),
    "google.protobuf.UInt64Value": _wrapper("uint", Uint(0)),
}
"""By name. The fields of a device are those of the environment; as upstream has it, none can be built."""


# ----------------------------------------------------------------------------
# Environments: what is declared, depending on feature gates.

TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{
        name: Type(name)
        for name in (
            "bool",
            "bytes",
            "double",
            "int",
            "null_type",
            "string",
            "type",
            "uint",
            "google.protobuf.Duration",
            "google.protobuf.Empty",
            "google.protobuf.Timestamp",
            "net.CIDR",
            "net.IP",
        )
    },
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "optional_type": optional_of(DYN),
}
"""Names of types that an expression may use as values."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Declarations.

    Parameters
    ----------
    fields
        The fields of ``device``.
    attribute
        The type of an attribute: dyn, or any where lists are unknown.
    functions
        Overloads by name.
    """

    fields: Mapping[str, Type]
    attribute: Type
    functions: Mapping[str, tuple[Overload, ...]]


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The features that an expression may use, by Kubernetes' feature gates.

    They matter when an object is created. The expressions of objects that are there may use everything (KEP-4381, the
    environment "StoredExpressions"), so that all gates are on unless something else is said.

    Parameters
    ----------
    consumable_capacity
        ``DRAConsumableCapacity``: the field ``device.allowMultipleAllocations``.
    list_attributes
        ``DRAListTypeAttributes``: attributes that are lists, and ``includes()``.
    """

    consumable_capacity: bool = True
    list_attributes: bool = True


ALL_GATES: Final = FeatureGates()


@lru_cache(maxsize=8)
def environment_for(gates: FeatureGates) -> Environment:
    """The environment with or without the parts that are gated."""
    attribute = DYN if gates.list_attributes else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if gates.consumable_capacity:
        fields["allowMultipleAllocations"] = parse_type("bool")
    functions = FUNCTIONS
    if not gates.list_attributes:
        functions = {
            name: overloads
            for name, overloads in FUNCTIONS.items()
            if name != "includes"
        }
    return Environment(fields, attribute, functions)
