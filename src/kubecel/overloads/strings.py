"""The string functions: the standard ones and version 2 of the extension library."""

from __future__ import annotations

from typing import Final

from kubecel import cost, effort
from kubecel.data import MAX_TEXT, EvalError
from kubecel.literals import ESCAPED
from kubecel.overloads.format_text import format_text
from kubecel.overloads.registry import function, method

__all__ = ["STRINGS"]

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
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
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if part else min(offset, len(text))


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if not part:
        return len(text) if offset is None else _index_of(text, part, offset)
    if offset is None:
        return _last_found(text, part)
    if offset < 0:
        raise _out_of_range(offset)
    return _last_found(text[: offset + len(part)], part) if offset < len(text) else -1


def _last_found(text: str, part: str) -> int:
    """As ``rfind``, which can take as long as the lengths' product: only searching forward is always quick."""
    if len(part) < _SHORT:
        return text.rfind(part)
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - found - len(part)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(count, text.count(old))
    if len(text) + found * len(new) > MAX_TEXT:
        raise EvalError("the result of replace() is too long")
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    if count == 0:
        return ()
    if separator:
        return tuple(text.split(separator, count - 1 if count > 0 else -1))
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
    method("startsWith", "string, string -> bool", str.startswith, cost.scanned),
    method("endsWith", "string, string -> bool", str.endswith, cost.scanned),
    method("charAt", "string, int -> string", _char_at),
    method("indexOf", "string, string -> int", _index_of, cost.traversal),
    method("indexOf", "string, string, int -> int", _index_of, cost.traversal),
    method("lastIndexOf", "string, string -> int", _last_index_of, cost.traversal),
    method("lastIndexOf", "string, string, int -> int", _last_index_of, cost.traversal),
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
        effort.replacing,
    ),
    method(
        "replace",
        "string, string, string, int -> string",
        _replace,
        cost.twice_scanned,
        effort.replacing,
    ),
    method("split", "string, string -> list(string)", _split, cost.twice_scanned),
    method("split", "string, string, int -> list(string)", _split, cost.twice_scanned),
    method("substring", "string, int -> string", _substring, cost.scanned),
    method("substring", "string, int, int -> string", _substring, cost.scanned),
    method("trim", "string -> string", lambda text: text.strip(_SPACE), cost.scanned),
    method("join", "list(string) -> string", _join, cost.join, effort.joining),
    method("join", "list(string), string -> string", _join, cost.join, effort.joining),
    method(
        "format",
        "string, list(dyn) -> string",
        format_text,
        cost.scanned,
        effort.formatting,
    ),
    function(
        "strings.quote",
        "string -> string",
        lambda text: f'"{text.translate(_QUOTED)}"',
        cost.scanned,
    ),
)
