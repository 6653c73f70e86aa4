"""Text to abstract syntax."""

from __future__ import annotations

import re
from functools import cache
from threading import Lock
from typing import Any, Final

from kubecel.data import INT_MAX
from kubecel.errors import CelCompileError
from kubecel.failure import SelectorError, compile_error
from kubecel.syntax import Literal, Node, walk

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]

MAX_LENGTH: Final = 100_000
"""How long an expression may be for upstream's parser; the API allows no more than 10 KiB."""

MAX_DEPTH: Final = 250
"""How deep an expression may nest, as upstream's parser limits its recursion."""

_BRACKETS: Final = re.compile(
    r"""([()\[\]{}])|//[^\n]*|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
)
"""Brackets in group 1; comments and strings, in which brackets do not count."""

_LOCK: Final = Lock()


@cache
def _parser() -> Any:
    """Built when the first expression is parsed, as that takes longer than importing everything else."""
    from kubecel.grammar import new_parser  # noqa: PLC0415

    return new_parser()


def parse(expression: str) -> Node:
    """Parse an expression and expand its macros.

    Raises
    ------
    CelCompileError
        The text is not an expression of CEL, or nests too deeply.
    """
    if len(expression) > MAX_LENGTH:
        raise CelCompileError(f"expression code point size exceeds limit: size: {len(expression)}, limit {MAX_LENGTH}")
    try:
        _check_brackets(expression)
        with _LOCK:  # lark builds parts of its lexer on first use
            root: Node = _parser()(expression)
        _check_nodes(root)
    except SelectorError as error:
        raise compile_error(expression, [(error.pos, str(error))]) from None
    return root


def _check_brackets(expression: str) -> None:
    """Parentheses leave no trace in the tree, so their depth is counted in the text."""
    depth = 0
    for match in _BRACKETS.finditer(expression):
        if match[1]:
            depth += 1 if match[1] in "([{" else -1
        if depth >= MAX_DEPTH:
            raise SelectorError(match.start(), f"expression recursion limit exceeded: {MAX_DEPTH}")


def _check_nodes(root: Node) -> None:
    for node, depth in walk(root):
        if depth > MAX_DEPTH:
            raise SelectorError(node.pos, f"expression recursion limit exceeded: {MAX_DEPTH}")
        if isinstance(node, Literal) and type(node.value) is int and node.value > INT_MAX:
            raise SelectorError(node.pos, "Syntax error: invalid int literal")
