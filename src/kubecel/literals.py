"""What the text of a literal means."""

from __future__ import annotations

import re
from math import isinf
from typing import Final

from kubecel.data import INT_MAX, INT_MIN, UINT_MAX, Uint

__all__ = ["ESCAPED", "bytes_literal", "double_literal", "int_literal", "string_literal", "uint_literal"]

_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SIMPLE: Final = {**_CONTROLS, **{mark: mark for mark in "\\'\"`?"}}

ESCAPED: Final = {char: f"\\{letter}" for letter, char in (*_CONTROLS.items(), *zip('\\"', '\\"', strict=True))}
"""How quoted text writes the characters that have a letter for it."""

_CODE: Final = re.compile(r"[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})")


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
    if raw or "\\" not in body:
        return body
    parts: list[str] = []
    for plain, escape in _pieces(body):
        parts.append(plain)
        if isinstance(escape, str):
            parts.append(escape)
        elif escape is not None:
            if escape > 0x10FFFF or 0xD800 <= escape <= 0xDFFF:
                raise ValueError("invalid unicode code point")
            parts.append(chr(escape))
    return "".join(parts)


def bytes_literal(text: str) -> bytes:
    r"""A quoted bytes literal with its prefix ``b``; ``\x`` and octal escapes are single bytes, ``\u`` is not allowed.

    Raises
    ------
    ValueError
        An escape is unknown or not allowed.
    """
    raw, body = _unquote(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    for plain, escape in _pieces(body, unicode=False):
        parts.append(plain.encode())
        if escape is not None:
            parts.append(escape.encode() if isinstance(escape, str) else bytes((escape,)))
    return b"".join(parts)


def _unquote(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    return raw, text[width:-width]


def _pieces(body: str, *, unicode: bool = True) -> list[tuple[str, str | int | None]]:
    """Split into plain text, each followed by an escaped character, a code, or (at the end) nothing."""
    pieces: list[tuple[str, str | int | None]] = []
    start = 0
    while (slash := body.find("\\", start)) >= 0:
        plain = body[start:slash]
        if (simple := _SIMPLE.get(body[slash + 1 : slash + 2])) is not None:
            pieces.append((plain, simple))
            start = slash + 2
            continue
        code = _CODE.match(body, slash + 1)
        if code is None or (not unicode and (code[2] or code[3])):
            raise ValueError("unable to unescape string")
        pieces.append((plain, int(code[4], 8) if code[4] else int(code[1] or code[2] or code[3], 16)))
        start = code.end()
    return [*pieces, (body[start:], None)]
