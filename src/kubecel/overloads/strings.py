"""The string functions: formats, regular expressions, and all others.

No other module knows the library of regular expressions, RE2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kubecel import cost
from kubecel.overloads.conversions import (
    TEXTS,
    double_text,
    duration_text,
    timestamp_text,
)
from kubecel.syntax import ESCAPED
from kubecel.types import function, method
from kubecel.values import (
    MAPS,
    MAX_TEXT,
    Duration,
    EvalError,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
    find,
    map_keys,
    size_of,
    type_name,
)

__all__ = [
    "CLAUSES",
    "REGEX",
    "REGEX_NAMES",
    "STRINGS",
    "check_pattern",
    "clauses",
]

# ----------------------------------------------------------------------------
# Formats: the clauses of ``string.format``, and how values look in them.

_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]+))?([sdfebxXo]))")
_MAX_PRECISION: Final = 1000
_MAX_DIGITS: Final = 4
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NOT_FINITE: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


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
        digits = (match[2] or "6").lstrip("0") or "0"
        # Python reads no number of several thousand digits.
        if len(digits) > _MAX_DIGITS or int(digits) > _MAX_PRECISION:
            raise EvalError(f"precision {digits} is too large")
        yield FormatClause(text, match[3], int(digits))
        text = ""
    yield FormatClause(text + form[start:], "", 0)


def _format_text(form: str, args: Sequence[Value]) -> str:
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
            # Each argument may have its share, so the sum need not be counted.
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
        if math.isfinite(value):
            return f"{value:.6f}"
        return _quoted(double_text(value))
    if kind is TimestampValue:
        return f"timestamp({_quoted(timestamp_text(value))})"
    if kind is Duration:
        return f"duration({_quoted(duration_text(value))})"
    return _written("s", value)


def _quoted(text: str) -> str:
    """Quote a text as Go's ``%q`` does."""
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
            parts.append(
                f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
            )
    return f'"{"".join(parts)}"'


def _map_text(value: dict[Any, Any]) -> str:
    pairs = []
    for key in map_keys(value):
        if type(key) not in {str, bool, int, Uint}:
            raise EvalError(
                f"no formatting function for map key of type {type_name(key)}"
            )
        pairs.append((_nested(key), _nested(find(value, key))))
    # Go's maps have no order: upstream sorts the entries by the texts of their keys.
    pairs.sort(key=lambda pair: pair[0])
    entries = ", ".join(f"{key}:{item}" for key, item in pairs)
    return f"{{{entries}}}"


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
    if math.isnan(value):
        return "NaN"
    if value > 0:
        return "∞"
    return "-∞"


def _fixed(value: Value, precision: int) -> str:
    number = _double("f", value)
    if math.isfinite(number):
        return f"{number:,.{precision}f}"
    return _not_finite(number)


def _scientific(value: Value, precision: int) -> str:
    """Six digits behind the point, whatever the precision is: upstream takes it for the least width."""
    number = _double("e", value)
    if not math.isfinite(number):
        return _not_finite(number).rjust(precision)
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    power = (
        f"{int(exponent):03}" if int(exponent) < 0 else f"{int(exponent):02}"
    )
    # As people write powers of ten, with narrow spaces that do not break.
    text = f"{mantissa}\u202f\u00d7\u202f10{power.translate(_SUPERSCRIPT)}"
    return text.rjust(precision)


def _integer(letter: str) -> Callable[[Value, int], str]:
    return lambda value, _: format(int(value), letter)


def _hex(value: Value, _: int) -> str:
    data = value.encode() if type(value) is str else value
    if type(data) is bytes:
        return data.hex()
    return f"{int(value):x}"


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
    "b": (
        "only integers and bools can be formatted as binary",
        {int, Uint, bool},
    ),
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


# ----------------------------------------------------------------------------
# Regular expressions.

_ANY_BYTE: Final = re.compile(
    r"(?:[^\\]|\\[^CQ]|\\Q(?:(?!\\E)[\s\S])*+(?:\\E)?)*+\\C"
)
r"""A pattern with a ``\C`` that is not quoted: Go's library does not have it, which is otherwise like this one."""

_MAX_REMEMBERED: Final = 500
"""Answers about longer texts are not remembered."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - few selectors need it

    if _ANY_BYTE.match(pattern):
        raise EvalError(r"error parsing regexp: invalid escape sequence: `\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0]
        if isinstance(message, bytes):
            message = message.decode("utf-8", "replace")
        raise EvalError(f"error parsing regexp: {message}") from error


def check_pattern(pattern: str) -> str:
    """Return the fault of a pattern; empty if there is none."""
    try:
        _compiled(pattern)
    except EvalError as error:
        return str(error)
    return ""


def _matches(text: str, pattern: str) -> bool:
    if len(text) + len(pattern) > _MAX_REMEMBERED:
        return _search(text, pattern)
    return _remembered(text, pattern)


def _search(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


_remembered = lru_cache(maxsize=16384)(_search)


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    if match is None:
        return ""
    return str(match.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """Find all matches as Go does: an empty match right behind another match does not count."""
    parts: list[str] = []
    end = -1
    for match in _compiled(pattern).finditer(text):
        if 0 <= limit <= len(parts):
            break
        if match.start() == match.end() == end:
            continue
        parts.append(match.group())
        end = match.end()
    return tuple(parts)


def _searching(args: Sequence[Value]) -> int:
    """At worst, every state of the pattern's automaton is visited for every character."""
    text, pattern = args[:2]
    if type(text) is not str or type(pattern) is not str:
        return 0
    parsing = len(pattern) // 10
    try:
        states = int(_compiled(pattern).programsize)
    except EvalError:
        return parsing
    return (len(text) + 1) * states // 200 + parsing


def _searching_all(args: Sequence[Value]) -> int:
    """Return the cost as `_searching` does, where every character may be a match."""
    return _searching(args) + size_of(args[0])


REGEX: Final = (
    function("matches", "string, string -> bool", _matches, effort=_searching),
    method(
        "matches", "string, string -> bool", _matches, cost.regex, _searching
    ),
    method("find", "string, string -> string", _find, cost.regex, _searching),
    method(
        "findAll",
        "string, string -> list(string)",
        _find_all,
        cost.regex,
        _searching_all,
    ),
    method(
        "findAll",
        "string, string, int -> list(string)",
        _find_all,
        cost.regex,
        _searching_all,
    ),
)

REGEX_NAMES: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose pattern is checked when the selector is compiled, if it is constant."""


# ----------------------------------------------------------------------------
# String functions: the standard ones, and version 2 of the extension library.

# What Go's ``unicode.IsSpace`` takes for space, which is not all that Python strips.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
_QUOTED: Final = str.maketrans(ESCAPED)
_SHORT: Final = 50
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}


def _out_of_range(index: int) -> EvalError:
    return EvalError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    # As upstream: nothing is found at the offset, wherever that is.
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if not part:
        return len(text) if offset is None else offset
    if offset is None:
        return _last_found(text, part)
    if offset < 0:
        raise _out_of_range(offset)
    if offset < len(text):
        return _last_found(text[: offset + len(part)], part)
    return -1


def _last_found(text: str, part: str) -> int:
    """Find the last occurrence, only ever searching forward: ``rfind`` can take as long as the lengths' product."""
    if len(part) < _SHORT:
        return text.rfind(part)
    distance = text[::-1].find(part[::-1])
    if distance < 0:
        return -1
    return len(text) - distance - len(part)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    replacements = text.count(old)
    if count >= 0:
        replacements = min(count, replacements)
    if len(text) + replacements * len(new) > MAX_TEXT:
        raise EvalError("the result of replace() is too long")
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    if count == 0:
        return ()
    if separator:
        return tuple(text.split(separator, count - 1 if count > 0 else -1))
    # Go splits at an empty separator into characters, which Python refuses.
    if count < 0 or count >= len(text):
        return tuple(text)
    return (*text[: count - 1], text[count - 1 :])


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, stop):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:stop]


def _join(parts: tuple[object, ...], separator: str = "") -> str:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise EvalError("join: invalid input")
    return separator.join(texts)


STRINGS: Final = (
    method(
        "contains",
        "string, string -> bool",
        lambda text, part: part in text,
        cost.containment,
    ),
    method(
        "startsWith", "string, string -> bool", str.startswith, cost.scanned
    ),
    method("endsWith", "string, string -> bool", str.endswith, cost.scanned),
    method("charAt", "string, int -> string", _char_at),
    method("indexOf", "string, string -> int", _index_of, cost.traversal),
    method("indexOf", "string, string, int -> int", _index_of, cost.traversal),
    method(
        "lastIndexOf", "string, string -> int", _last_index_of, cost.traversal
    ),
    method(
        "lastIndexOf",
        "string, string, int -> int",
        _last_index_of,
        cost.traversal,
    ),
    method(
        "lowerAscii",
        "string -> string",
        lambda text: text.translate(_LOWER),
        cost.scanned,
    ),
    method(
        "upperAscii",
        "string -> string",
        lambda text: text.translate(_UPPER),
        cost.scanned,
    ),
    method(
        "replace",
        "string, string, string -> string",
        _replace,
        cost.twice_scanned,
        cost.replacing,
    ),
    method(
        "replace",
        "string, string, string, int -> string",
        _replace,
        cost.twice_scanned,
        cost.replacing,
    ),
    method(
        "split", "string, string -> list(string)", _split, cost.twice_scanned
    ),
    method(
        "split",
        "string, string, int -> list(string)",
        _split,
        cost.twice_scanned,
    ),
    method("substring", "string, int -> string", _substring, cost.scanned),
    method("substring", "string, int, int -> string", _substring, cost.scanned),
    method(
        "trim",
        "string -> string",
        lambda text: text.strip(_SPACE),
        cost.scanned,
    ),
    method("join", "list(string) -> string", _join, cost.join, cost.joining),
    method(
        "join",
        "list(string), string -> string",
        _join,
        cost.join,
        cost.joining,
    ),
    method(
        "format",
        "string, list(dyn) -> string",
        _format_text,
        cost.scanned,
        cost.formatting,
    ),
    function(
        "strings.quote",
        "string -> string",
        lambda text: f'"{text.translate(_QUOTED)}"',
        cost.scanned,
    ),
)
