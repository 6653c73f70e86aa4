"""The errors of this package, in the words and the form of upstream.

::

    CelError
    ├── CelCompileError    an expression that does not parse or is not well typed
    ├── CelRuntimeError    an expression that fails on one device
    └── QuantitySyntaxError      a text that is not a Kubernetes quantity
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = [
    "CelCompileError",
    "CelError",
    "CelRuntimeError",
    "QuantitySyntaxError",
    "SelectorError",
    "compile_error",
    "explain",
]

_MAX_SHOWN: Final = 100
_MAX_SNIPPET: Final = 16384
_ADVICE: Final = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional"
    " fields"
)


class CelError(Exception):
    """Base of every error that this package raises on purpose."""


class CelCompileError(CelError):
    """An expression does not parse, is not well typed, or cannot give a bool. The message shows where."""


class CelRuntimeError(CelError):
    """An expression failed while it was evaluated for one device."""


class QuantitySyntaxError(CelError, ValueError):
    """A text is not a Kubernetes quantity."""


class SelectorError(Exception):
    """A fault of an expression and where it is (as an offset), until `compile_error` shows it in the text."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos


def compile_error(
    expression: str, findings: Sequence[tuple[int, str]]
) -> CelCompileError:
    """Return an error that shows every finding under its line of the expression; lines and columns count from 1."""
    shown = [
        _shown(expression, *finding)
        for finding in sorted(
            findings[:_MAX_SHOWN], key=lambda finding: finding[0]
        )
    ]
    if len(findings) > _MAX_SHOWN:
        shown.append(f"{len(findings) - _MAX_SHOWN} more errors were truncated")
    return CelCompileError("compilation failed: " + "\n".join(shown))


def _shown(expression: str, pos: int, message: str) -> str:
    """A finding with the line that it is in, unless that is too long; below it an arrow as wide as the characters."""
    line_start = expression.rfind("\n", 0, pos) + 1
    line_number = expression.count("\n", 0, pos) + 1
    column = pos - line_start
    line = (
        expression[line_start:]
        .partition("\n")[0]
        .replace("\t", " ")
        .encode(errors="replace")
        .decode()
    )
    head = f"ERROR: <input>:{line_number}:{column + 1}: {message}"
    # Upstream leaves out the line, and with it the arrow, where nobody could read it.
    if len(line.encode()) > _MAX_SNIPPET:
        return head
    # Wide characters get a fullwidth dot, so that the arrow stands below its column.
    dots = "".join(
        "." if char.isascii() else "\uff0e" for char in line[:column]
    )
    arrow = "^" if line[column : column + 1].isascii() else "\uff3e"
    return f"{head}\n | {line}\n | {dots}{arrow}"


def explain(error: CelRuntimeError) -> str:
    """The text of an error of an evaluation, with upstream's advice where the device lacks what is looked up."""
    message = str(error)
    if "no such key:" in message:
        return f"{message}. {_ADVICE}"
    return message
