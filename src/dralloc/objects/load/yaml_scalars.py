"""Scalars of YAML as Kubernetes reads them: no dates, no ``yes`` for true, no numbers to base 60.

Also the errors for what cannot be read at a place of a text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from dralloc.objects.load.json_text import TextError

__all__ = ["refused", "refused_tag", "value_of"]

Scalar = str | int | float | bool | None

_TAG: Final = "tag:yaml.org,2002:"
_SHOWN: Final = 20


def value_of(event: yaml.ScalarEvent) -> Scalar:
    """Return the value of a scalar.

    Raises
    ------
    TextError
        Its tag is none of JSON's types, or it does not fit its type: numbers have 64 bits and an end, text is Unicode.
    """
    text: str = event.value
    if event.tag not in (None, "!"):
        make = _TAGGED.get(event.tag)
        if make is None:
            raise refused_tag(event)
    else:
        make = _plain(text) if event.implicit[0] else str
    try:
        if not text.isascii():
            text.encode()
        return make(text)
    except (ValueError, OverflowError, KeyError):
        raise refused(
            f"{text[:_SHOWN]!a} is not what JSON can hold in 64 bits",
            event.start_mark,
        ) from None


def refused(problem: str | None, mark: Any) -> TextError:
    """Return the error for what is wrong at a place of a YAML text."""
    location = (
        f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    )
    return TextError(f"is not YAML: {location}{problem}")


def refused_tag(event: Any) -> TextError:
    """Return the error for something whose tag is not known."""
    return refused(
        f"could not determine a constructor for the tag {event.tag!r}",
        event.start_mark,
    )


def _plain(text: str) -> Callable[[str], Scalar]:
    """Return the function for the value of a scalar that has neither quotes nor tag."""
    for pattern, make in _PLAIN.get(text[:1], ()):
        if pattern.fullmatch(text):
            return make
    return str


def _integer(text: str) -> int | float:
    """Return the integer, or the float nearest to one that is longer than 64 bits, as in JSON."""
    digits = text.replace("_", "")
    bare = digits.lstrip("+-")
    value = int(digits, 8 if bare[:1] == "0" and bare[1:].isdecimal() else 0)
    return value if -(1 << 63) <= value < 1 << 64 else float(value)


def _float(text: str) -> float:
    value = float(text.replace("_", ""))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _null(_text: str) -> None:
    return None


_TAGGED: Final[Mapping[str, Callable[[str], Scalar]]] = {
    f"{_TAG}str": str, f"{_TAG}int": _integer, f"{_TAG}float": _float, f"{_TAG}bool": _bool, f"{_TAG}null": _null
}  # fmt: skip

_PLAIN: Final[
    dict[str, list[tuple[re.Pattern[str], Callable[[str], Scalar]]]]
] = {}
"""By the first character: which texts without quotes are no text, and what makes a value of them."""

for _make, _pattern, _first in (
    (_bool, "true|True|TRUE|false|False|FALSE", "tTfF"),
    (
        _integer,
        "[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        _float,
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    (_float, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    (_null, "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    for _character in _first:
        _PLAIN.setdefault(_character, []).append((re.compile(_pattern), _make))
