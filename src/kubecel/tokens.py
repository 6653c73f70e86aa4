"""The tokens of an expression: literals, names, operators and marks.

What a text is depends on what may stand at its place: `in` is an operator or a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from kubecel.errors import SelectorError
from kubecel.syntax import (
    bytes_literal,
    double_literal,
    int_literal,
    string_literal,
    uint_literal,
)

__all__ = [
    "AFTER_NAME",
    "LITERAL_READERS",
    "NAME",
    "OPERAND",
    "OPERATOR",
    "Place",
    "Token",
    "read_token",
    "refuse_token",
]

Token: TypeAlias = re.Match[str]
"""Its ``lastgroup`` tells literals and names from each other, and is None for everything else."""

Place: TypeAlias = re.Pattern[str]
"""What may stand at a place."""

# Possessive, as nothing that was skipped is ever given back.
_SKIPPED: Final = re.compile(r"(?:[\t\n\f\r ]|//[^\n]*+)*+")
_WORD_END: Final = "(?![_a-zA-Z0-9])"
# A raw string ends at the first quote, whatever is before it.
_RAW: Final = (
    r"""[rR](?:"{3}[\s\S]*?"{3}|'{3}[\s\S]*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
)
_TEXT: Final = (
    r'"{3}(?:\\[\s\S]|[^\\])*?"{3}|"(?:\\.|[^\\"\n\r])*"|'
    + r"'{3}(?:\\[\s\S]|[^\\])*?'{3}|'(?:\\.|[^\\'\n\r])*'"
)
_LITERALS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "bytes": (f"[bB](?:{_RAW}|{_TEXT})", bytes_literal),
    "string": (f"{_RAW}|{_TEXT}", string_literal),
    "bool": (f"(?:true|false){_WORD_END}", "true".__eq__),
    "null": (f"null{_WORD_END}", lambda _: None),
    "double": (
        r"(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
        double_literal,
    ),
    "uint": ("(?:0x[0-9a-fA-F]+|[0-9]+)[uU]", uint_literal),
    "int": ("0x[0-9a-fA-F]+|[0-9]+", int_literal),
}
_ANY_LITERAL: Final = "|".join(
    f"(?P<{kind}>{pattern})" for kind, (pattern, _) in _LITERALS.items()
)
_ANY_NAME: Final = "(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)"
_ANY_OPERATOR: Final = rf"in{_WORD_END}|&&|\|\||[<>=!]=|[-+*/%<>?:.,\[{{)\]}}]"

LITERAL_READERS: Final = {
    kind: reader for kind, (_, reader) in _LITERALS.items()
}
"""What the text of a literal means, by its kind. They raise `ValueError`."""

NAME: Final = re.compile(rf"{_ANY_NAME}|[?,}}]")
"""Behind a dot, or between the fields of a message."""

OPERAND: Final = re.compile(rf"{_ANY_LITERAL}|{_ANY_NAME}|[-!.?,(\[{{)\]}}]")
"""Where an operand begins, or brackets end that may be empty."""

OPERATOR: Final = re.compile(rf"{_ANY_OPERATOR}|\Z")
"""Behind an operand."""

AFTER_NAME: Final = re.compile(rf"{_ANY_OPERATOR}|\(|\Z")
"""Behind the name of a variable, a field or a function."""

_ANYWHERE: Final = re.compile(
    rf"{_ANY_LITERAL}|{_ANY_NAME}|{_ANY_OPERATOR}|[!(]"
)


def read_token(expression: str, start: int, place: Place) -> Token:
    """The next token behind spaces and comments.

    Parameters
    ----------
    start
        Where the text goes on behind the token before.
    place
        What may stand there.

    Raises
    ------
    SelectorError
        It may not stand there.
    """
    skipped = _SKIPPED.match(expression, start)
    assert skipped is not None  # it matches the empty text, too
    pos = skipped.end()
    return place.match(expression, pos) or refuse_token(expression, pos)


def refuse_token(expression: str, pos: int) -> NoReturn:
    """Raise the error of a token that may not stand where it does.

    Raises
    ------
    SelectorError
        In any case. It shows the token, or that the expression ends there.
    """
    if pos == len(expression):
        shown = "end of the expression"
    else:
        token = _ANYWHERE.match(expression, pos)
        shown = (
            f"input {expression[pos]!r}"
            if token is None
            else f"input '{token[0]}'"
        )
    raise SelectorError(pos, f"Syntax error: unexpected {shown}")
