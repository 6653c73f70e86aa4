"""Scalars of YAML as Kubernetes reads them: ``yes`` is true, ``08`` a number; no dates, no numbers to base 60.

Also the errors for what cannot be read at a place of a text.

Source: ``resolve.go`` of ``go.yaml.in/yaml/v2``, which ``sigs.k8s.io/yaml`` uses.
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
    return value if _fits(value) else float(value)


def _number(text: str) -> int | float | str:
    """Return an integer that has no tag. Longer ones are read as decimals, and are text if they are none."""
    value = _integer(text)
    return value if isinstance(value, int) else _decimal(text)


def _float(text: str) -> int | float:
    """Return a float; a whole one of 64 bits is an integer in JSON."""
    value = float(text.replace("_", ""))
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and _fits(value) else value


def _decimal(text: str) -> int | float | str:
    """Return a float that has no tag; it is text if it is none, or too large."""
    try:
        return _float(text)
    except ValueError:
        return text


def _fits(number: float) -> bool:
    """Return whether a whole number has 64 bits."""
    return -(1 << 63) <= number < 1 << 64


def _endless(text: str) -> float:
    """Refuse what has no end, or is no number: JSON has neither."""
    raise ValueError(text)


def _bool(text: str) -> bool:
    return _TRUTH[text.lower()]


def _null(_text: str) -> None:
    return None


_TRUTH: Final = {
    **dict.fromkeys(("y", "yes", "true", "on"), True),
    **dict.fromkeys(("n", "no", "false", "off"), False),
}

_TAGGED: Final[Mapping[str, Callable[[str], Scalar]]] = {
    f"{_TAG}str": str, f"{_TAG}int": _integer, f"{_TAG}float": _float, f"{_TAG}bool": _bool, f"{_TAG}null": _null
}  # fmt: skip

_PLAIN: Final[
    dict[str, list[tuple[re.Pattern[str], Callable[[str], Scalar]]]]
] = {}
"""By the first character: which texts without quotes are no text, and what makes a value of them."""

for _make, _pattern, _first in (
    (
        _bool,
        "|".join(
            spelling
            for word in _TRUTH
            for spelling in (word, word.capitalize(), word.upper())
        ),
        "yYnNtTfFoO",
    ),
    # Underscores count nowhere in a number, but for one that starts with a point.
    (
        _number,
        "[-+]?_*(?:0_*(?:[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|[bB]_*[01][01_]*|[oO]?_*[0-7][0-7_]*)?|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        _decimal,
        r"[-+]?_*(?:\._*[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE]_*[-+]?_*[0-9][0-9_]*)?",
        "-+0123456789",
    ),
    (_decimal, r"\.[0-9]+(?:[eE][-+]?[0-9]+)?", "."),
    (_endless, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    (_null, "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    for _character in _first:
        _PLAIN.setdefault(_character, []).append((re.compile(_pattern), _make))
