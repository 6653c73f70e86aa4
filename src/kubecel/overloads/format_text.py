"""``string.format``: the clauses of a format and how values look in them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from kubecel.data import (
    MAPS,
    MAX_TEXT,
    Duration,
    EvalError,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
)
from kubecel.literals import ESCAPED
from kubecel.maps import find, map_keys
from kubecel.overloads.convert import TEXTS, double_text
from kubecel.overloads.temporal import duration_text, timestamp_text
from kubecel.runtime_types import type_name

__all__ = ["CLAUSES", "FormatClause", "clauses", "format_text"]

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]+))?([sdfebxXo]))")
_MAX_PRECISION: Final = 1000
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class FormatClause(NamedTuple):
    """A part of a format: `text` as it is, then (unless `letter` is empty) one argument."""

    text: str
    letter: str
    precision: int


def clauses(form: str) -> Iterator[FormatClause]:
    """Take a format apart.

    Raises
    ------
    EvalError
        A clause is unknown or incomplete, or asks for too many digits.
    """
    start, text = 0, ""
    while (percent := form.find("%", start)) >= 0:
        match = _CLAUSE.match(form, percent)
        if match is None:
            raise EvalError(
                f"could not parse formatting clause: unrecognized formatting clause {form[percent : percent + 2]!r}"
            )
        text += form[start:percent]
        start = match.end()
        if match[1]:
            text += "%"
            continue
        precision = int(match[2] or 6)
        if precision > _MAX_PRECISION:
            raise EvalError(f"precision {precision} is too large")
        yield FormatClause(text, match[3], precision)
        text = ""
    yield FormatClause(text + form[start:], "", 0)


def format_text(form: str, args: Sequence[Value]) -> str:
    """Fill a format with arguments."""
    parts: list[str] = []
    index = 0
    for clause in clauses(form):
        parts.append(clause.text)
        if clause.letter:
            if index >= len(args):
                raise EvalError(f"index {index} out of range")
            parts.append(_written(clause.letter, args[index], clause.precision))
            index += 1
            if len(parts[-1]) > MAX_TEXT // (len(args) or 1):
                raise EvalError("the result of format() is too long")
    return "".join(parts)


def _written(letter: str, value: Value, precision: int = 0) -> str:
    if type(value) not in CLAUSES[letter][1]:
        raise _wrong(letter, value)
    return _WRITERS[letter](value, precision)


def _wrong(letter: str, value: Value) -> EvalError:
    return EvalError(
        f"error during formatting: {CLAUSES[letter][0]}, was given {type_name(value)}"
    )


def _nested(value: Value) -> str:
    """A value inside a list or map: quoted, doubles with six digits, times as calls."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is bytes:
        return "b" + _quoted(_written("s", value))
    if kind is float:
        return f"{value:.6f}" if math.isfinite(value) else _quoted(double_text(value))
    if kind is TimestampValue:
        return f"timestamp({_quoted(timestamp_text(value))})"
    if kind is Duration:
        return f"duration({_quoted(duration_text(value))})"
    return _written("s", value)


def _quoted(text: str) -> str:
    """As Go's ``%q``."""
    parts = []
    for char in text:
        code = ord(char)
        if char in ESCAPED:
            parts.append(ESCAPED[char])
        elif char.isprintable():
            parts.append(char)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(parts)}"'


def _map_text(value: dict[Any, Any]) -> str:
    pairs = []
    for key in map_keys(value):
        if type(key) not in {str, bool, int, Uint}:
            raise EvalError(
                f"no formatting function for map key of type {type_name(key)}"
            )
        pairs.append((_nested(key), _nested(find(value, key))))
    return (
        "{"
        + ", ".join(
            f"{key}:{item}" for key, item in sorted(pairs, key=lambda pair: pair[0])
        )
        + "}"
    )


_PLAIN: Final[dict[type, Callable[[Any], str]]] = {
    **TEXTS,
    type(None): lambda _: "null",
    TypeValue: lambda value: value.name,
    tuple: lambda value: f"[{', '.join(map(_nested, value))}]",
    **dict.fromkeys(MAPS, _map_text),
}


def _double(letter: str, value: Value) -> float:
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if type(value) is not float:
        raise _wrong(letter, value)
    return value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(value: Value, precision: int) -> str:
    number = _double("f", value)
    return f"{number:,.{precision}f}" if math.isfinite(number) else _not_finite(number)


def _scientific(value: Value, precision: int) -> str:
    number = _double("e", value)
    if not math.isfinite(number):
        return _not_finite(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    power = f"{int(exponent):03}" if int(exponent) < 0 else f"{int(exponent):02}"
    return f"{mantissa}\u202f\u00d7\u202f10{power.translate(_SUPERSCRIPT)}"


def _integer(letter: str) -> Callable[[Value, int], str]:
    return lambda value, _: format(int(value), letter)


def _hex(value: Value, _: int) -> str:
    data = value.encode() if type(value) is str else value
    return data.hex() if type(data) is bytes else f"{int(value):x}"


_WRITERS: Final[dict[str, Callable[[Value, int], str]]] = {
    "s": lambda value, _: _PLAIN[type(value)](value),
    "f": _fixed,
    "e": _scientific,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
    **{letter: _integer(letter) for letter in "dbo"},
}
CLAUSES: Final[Mapping[str, tuple[str, Set[type]]]] = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations,"
        " and timestamps",
        _PLAIN.keys(),
    ),
    "d": ("decimal clause can only be used on integers", {int, Uint}),
    "f": ("fixed-point clause can only be used on doubles", {float, str}),
    "e": ("scientific clause can only be used on doubles", {float, str}),
    "b": ("only integers and bools can be formatted as binary", {int, Uint, bool}),
    **dict.fromkeys(
        "xX",
        (
            "only integers, byte buffers, and strings can be formatted as hex",
            {int, Uint, str, bytes},
        ),
    ),
    "o": ("octal clause can only be used on integers", {int, Uint}),
}
"""By letter: what is said about a wrong argument, and the types that are right."""
