"""Durations, timestamps, and conversions between the standard types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubecel import cost
from kubecel.cost import slow
from kubecel.types import Impl, Overload, function, method
from kubecel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    EvalError,
    TimestampValue,
    Uint,
    Value,
    no_overload,
    type_name,
)

__all__ = [
    "CONVERSIONS",
    "CONVERSION_NAMES",
    "TEMPORAL",
    "TEXTS",
    "add_times",
    "checked_duration",
    "double_text",
    "duration_text",
    "parse_timestamp",
    "subtract_times",
    "timestamp_text",
]

# ----------------------------------------------------------------------------
# Times: durations and timestamps, as text, in sums, and their parts.

_SECOND: Final = 10**9
_MAX_DIGITS: Final = 30
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_FIRST_SECOND: Final = -62135596800
_LAST_SECOND: Final = 253402300799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET: Final = re.compile(r"([+-]?[0-9]+):([+-]?[0-9]+)", re.ASCII)


def checked_duration(nanos: int) -> Duration:
    """A duration, if it fits."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise EvalError("duration overflow")
    return Duration(nanos)


def _checked_timestamp(nanos: int, offset: int = 0) -> TimestampValue:
    """A timestamp, if it lies in the years 1 to 9999."""
    if not _FIRST_SECOND <= nanos // _SECOND <= _LAST_SECOND:
        raise EvalError("timestamp overflow")
    return TimestampValue(nanos, offset)


def add_times(left: Value, right: Value) -> Value:
    """A duration added to another one or to a timestamp."""
    if type(left) is Duration:
        left, right = right, left
    if type(right) is Duration and type(left) is Duration:
        return checked_duration(left.nanos + right.nanos)
    if type(right) is Duration and type(left) is TimestampValue:
        return _checked_timestamp(left.nanos + right.nanos, left.offset)
    raise no_overload()


def subtract_times(left: Value, right: Value) -> Value:
    """A duration less another one, or a timestamp less a duration or another timestamp."""
    if type(left) is TimestampValue and type(right) is Duration:
        return add_times(left, checked_duration(-right.nanos))
    if type(left) is type(right) and type(left) in {Duration, TimestampValue}:
        return checked_duration(left.nanos - right.nanos)
    raise no_overload()


def _parse_duration(text: str) -> Duration:
    """Read a duration like ``1h30m`` or ``-1.5s``.

    Raises
    ------
    ValueError
        The text is not a duration, or too long a one.
    """
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return Duration(0)
    nanos = start = 0
    while start < len(body):
        part = _PART.match(body, start)
        if part is None or not (part[1] or part[2]):
            break
        unit = _UNITS[part[3]]
        # More digits than these are too large in any unit.
        count = int(part[1].lstrip("0")[:_MAX_DIGITS] or 0)
        nanos += count * unit + _fraction(part[2] or "", unit)
        start = part.end()
    # An int64 reaches one further below zero.
    limit = INT_MAX + (text[:1] == "-")
    if not body or start < len(body) or nanos > limit:
        raise ValueError(f"invalid duration {text!r}")
    return Duration(-nanos if text[0] == "-" else nanos)


def _fraction(digits: str, unit: int) -> int:
    """Digits behind a point, as a double has them; those that an int64 cannot hold do not count."""
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if number > INT_MAX // 10 or longer > INT_MAX + 1:
            break
        number, scale = longer, scale * 10
    return int(number * (unit / scale))


def duration_text(value: Duration) -> str:
    """A duration as a number of seconds, as a double has it, without an exponent."""
    seconds = abs(value.nanos) // _SECOND + abs(value.nanos) % _SECOND / 1e9
    text = format(Decimal(repr(seconds)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    sign = "-" if value.nanos < 0 else ""
    return f"{sign}{text}s"


def parse_timestamp(text: str) -> TimestampValue:
    """Read a timestamp of RFC 3339.

    Raises
    ------
    ValueError
        The text is not one.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid timestamp {text!r}")
    year, month, day, hour, minute, second = (
        int(match[i]) for i in range(1, 7)
    )
    zone_hours, zone_minutes = int(match[9] or 0), int(match[10] or 0)
    # As Go reads it, which takes offsets of 24 hours and of 60 minutes, too.
    if year == 0 or zone_hours > 24 or zone_minutes > 60:
        raise ValueError(f"invalid timestamp {text!r}")
    offset = (zone_hours * 60 + zone_minutes) * 60
    if match[8] == "-":
        offset = -offset
    local_time = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    seconds = (local_time - _EPOCH) // timedelta(seconds=1)
    # Digits behind the ninth are cut off.
    fraction = int(((match[7] or "") + "0" * 9)[:9])
    try:
        return _checked_timestamp(
            (seconds - offset) * _SECOND + fraction, offset
        )
    except EvalError as error:
        raise ValueError(str(error)) from error


def _local(time: TimestampValue, zone: tzinfo | timedelta) -> datetime:
    """Return the local time in a zone, or at an offset from UTC, which may be longer than Python's zones have it."""
    moment = _EPOCH + timedelta(seconds=time.nanos // _SECOND)
    try:
        if isinstance(zone, timedelta):
            return moment + zone
        return moment.astimezone(zone)
    except (OverflowError, ValueError) as error:
        raise EvalError(
            f"timestamp is out of range in this time zone: {error}"
        ) from error


def timestamp_text(value: TimestampValue) -> str:
    """A timestamp in RFC 3339, in the zone that it was written with and without trailing zeroes."""
    local = _local(value, timedelta(seconds=value.offset))
    nanos = value.nanos % _SECOND
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    sign = "-" if value.offset < 0 else "+"
    zone = f"{sign}{hours:02}:{minutes:02}" if value.offset else "Z"
    return f"{local.year:04}{local:-%m-%dT%H:%M:%S}{fraction}{zone}"


def _zone(name: str) -> tzinfo | timedelta:
    """A time zone by name, or by its offset from UTC in hours and minutes."""
    if ":" in name:
        match = _OFFSET.fullmatch(name)
        if match is None:
            raise EvalError(f"invalid time zone offset {name!r}")
        # The minutes take the sign of the hours, which "-0" has as well; as upstream, they may be any number.
        sign = -1 if name[0] == "-" else 1
        try:
            minutes = int(match[1]) * 60 + sign * int(match[2])
            return timedelta(minutes=minutes)
        except (ValueError, OverflowError) as error:
            raise EvalError(f"invalid time zone offset {name!r}") from error
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise EvalError(f"unknown time zone {name}") from error


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda time: time.year,
    "getMonth": lambda time: time.month - 1,
    "getDate": lambda time: time.day,
    # From 0, as months, days of a week (Sunday first) and days of a year are; "getDate"
    # is the one that begins with 1.
    "getDayOfMonth": lambda time: time.day - 1,
    "getDayOfWeek": lambda time: time.isoweekday() % 7,
    "getDayOfYear": lambda time: time.timetuple().tm_yday - 1,
    "getHours": lambda time: time.hour,
    "getMinutes": lambda time: time.minute,
    "getSeconds": lambda time: time.second,
}
_SPANS: Final = {
    "getHours": 3600 * _SECOND,
    "getMinutes": 60 * _SECOND,
    "getSeconds": _SECOND,
    "getMilliseconds": 10**6,
}


def _part(read: Callable[[datetime], int]) -> Impl:
    return lambda time, zone="UTC": read(_local(time, _zone(zone)))


def _milliseconds(time: TimestampValue, zone: str = "UTC") -> int:
    _zone(zone)
    return time.nanos % _SECOND // 10**6


def _span(unit: int) -> Impl:
    """A duration in a unit, truncated towards zero."""

    def units(value: Duration) -> int:
        count = abs(value.nanos) // unit
        return -count if value.nanos < 0 else count

    return units


def _accessors() -> tuple[Overload, ...]:
    impls = {name: _part(read) for name, read in _PARTS.items()}
    impls["getMilliseconds"] = _milliseconds
    plain = (
        method(name, "timestamp -> int", impl, effort=slow)
        for name, impl in impls.items()
    )
    zoned = (
        method(name, "timestamp, string -> int", impl, effort=slow)
        for name, impl in impls.items()
    )
    spans = (
        method(name, "duration -> int", _span(unit))
        for name, unit in _SPANS.items()
    )
    return (*plain, *zoned, *spans)


TEMPORAL: Final = _accessors()
"""The parts of timestamps and durations."""


# ----------------------------------------------------------------------------
# Conversions between the standard types.

_INT: Final = re.compile(r"([+-]?)([0-9]+)", re.ASCII)
_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
# As Go writes its literals: digits may be apart by underscores, and hexadecimal.
_DIGITS: Final = "[0-9](?:_?[0-9])*+"
_HEX_DIGITS: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*+"
_DOUBLE: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?",
    re.ASCII,
)
_HEX_DOUBLE: Final = re.compile(
    rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}",
    re.ASCII,
)
_NOT_FINITE: Final = re.compile(
    r"[+-]?(?:inf(?:inity)?)|nan", re.ASCII | re.IGNORECASE
)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _refused(value: Value, result: str) -> EvalError:
    return EvalError(
        f"type conversion error from '{type_name(value)}' to '{result}'"
    )


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
        raise (
            _refused(value, "int")
            if kind is str
            else EvalError("integer overflow")
        )
    return number


def _to_uint(value: Value) -> Uint:
    kind = type(value)
    if kind is Uint:
        return Uint(value)
    if kind is str:
        if not _UINT.fullmatch(value):
            raise _refused(value, "uint")
        number = _decimal("", value)
        if number > UINT_MAX:
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
    if _DOUBLE.fullmatch(value):
        number = float(value)
    elif _HEX_DOUBLE.fullmatch(value):
        try:
            number = float.fromhex(value.replace("_", ""))
        except OverflowError as error:
            raise _refused(value, "double") from error
    else:
        raise _refused(value, "double")
    if math.isinf(number):
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
        raise EvalError(
            "invalid UTF-8 in bytes, cannot convert to string"
        ) from error


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
    if isinstance(value, bytes):
        return value
    encoded: bytes = value.encode()
    return encoded


def _to_timestamp(value: Value) -> TimestampValue:
    if isinstance(value, TimestampValue):
        return value
    if isinstance(value, int):
        return _checked_timestamp(value * _SECOND)
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
        return _parse_duration(value)
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
_RULES: Final = {
    ("bytes", "string"): cost.scanned,
    ("string", "bytes"): cost.scanned,
}


def _conversions() -> tuple[Overload, ...]:
    table = []
    for name, (result, impl, sources) in _SOURCES.items():
        for source in sources.split():
            rule = _RULES.get((name, source))
            work = None
            if "string" in {source, name} and (name, source) not in _QUICK:
                work = cost.slow
            signature = f"{source} -> {result}"
            overload = function(
                name, signature, impl, rule, work, by_name=False
            )
            table.append(overload)
    return (*table, function("dyn", "A -> dyn", lambda value: value))


CONVERSIONS: Final = _conversions()
"""The conversions, as functions named like their result."""

CONVERSION_NAMES: Final = frozenset({*_SOURCES, "dyn", "type"})
"""Functions that are computed once, when the selector is compiled, if their argument is constant."""
