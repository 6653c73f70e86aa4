"""What the text of a literal means."""

from __future__ import annotations

import re
from math import isinf
from typing import Final

from kubecel.data import INT_MAX, INT_MIN, UINT_MAX, Uint

__all__ = [
    "ESCAPED",
    "bytes_literal",
    "double_literal",
    "int_literal",
    "string_literal",
    "uint_literal",
]

_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SIMPLE: Final = {**_CONTROLS, **{mark: mark for mark in "\\'\"`?"}}

ESCAPED: Final = {
    char: f"\\{letter}"
    for letter, char in (*_CONTROLS.items(), *zip('\\"', '\\"', strict=True))
}
"""How quoted text writes the characters that have a letter for it."""

_ESCAPE: Final = re.compile(
    r"""\\(?:([abfnrtv\\'"`?])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"""
)
_ESCAPE_IN_BYTES: Final = re.compile(_ESCAPE.pattern.encode())


def int_literal(text: str) -> int:
    """An int, perhaps with a minus.

    Raises
    ------
    ValueError
        It is too large.
    """
    if not INT_MIN <= (value := int(text, 16 if "x" in text else 10)) <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def double_literal(text: str) -> float:
    """A double, perhaps with a minus.

    Raises
    ------
    ValueError
        It is too large.
    """
    if isinf(value := float(text)):
        raise ValueError("invalid double literal")
    return value


def uint_literal(text: str) -> Uint:
    """A uint, written with its suffix.

    Raises
    ------
    ValueError
        It is too large.
    """
    if (value := int(text[:-1], 16 if text[:2] == "0x" else 10)) > UINT_MAX:
        raise ValueError("invalid uint literal")
    return Uint(value)


def string_literal(text: str) -> str:
    """A quoted, perhaps raw, string.

    Raises
    ------
    ValueError
        An escape is unknown, or names no character.
    """
    raw, body = _unquote(text)
    return body if raw else _ESCAPE.sub(_character, body)


def bytes_literal(text: str) -> bytes:
    r"""A quoted bytes literal with its prefix ``b``; ``\x`` and octal escapes are single bytes, ``\u`` is not allowed.

    Raises
    ------
    ValueError
        An escape is unknown or not allowed.
    """
    raw, body = _unquote(text[1:])
    return body.encode() if raw else _ESCAPE_IN_BYTES.sub(_byte, body.encode())


def _unquote(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    return raw, text[width:-width]


def _character(escape: re.Match[str]) -> str:
    mark, octal, byte, *wide = escape.groups()
    if mark:
        return _SIMPLE[mark]
    code = _number(octal, byte or wide[0] or wide[1])
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _byte(escape: re.Match[bytes]) -> bytes:
    mark, octal, byte, *_ = escape.groups()
    return _SIMPLE[mark.decode()].encode() if mark else bytes((_number(octal, byte),))


def _number(octal: str | bytes | None, hexadecimal: str | bytes | None) -> int:
    if octal or hexadecimal:
        return int(octal, 8) if octal else int(hexadecimal or "", 16)
    raise ValueError("unable to unescape string")
