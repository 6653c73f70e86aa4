"""Errors of compilation, in the words and the form of upstream."""

from __future__ import annotations

from dralloc.errors import CelCompileError

__all__ = ["SelectorError", "compile_error"]


class SelectorError(Exception):
    """What is wrong with an expression and where (as an offset), until `compile_error` shows it in the text."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos


def compile_error(expression: str, findings: list[tuple[int, str]]) -> CelCompileError:
    """One error that shows every finding under its line of the expression; lines and columns count from 1."""
    shown = []
    for pos, message in sorted(findings):
        line_start = expression.rfind("\n", 0, pos) + 1
        line = expression.count("\n", 0, pos) + 1
        column = pos - line_start
        text = expression[line_start:].partition("\n")[0]
        shown.append(f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text}\n | {'.' * column}^")
    return CelCompileError("compilation failed: " + "\n".join(shown))
