"""Text to abstract syntax."""

from __future__ import annotations

import re
from threading import Lock
from typing import Any, Final, cast

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from dralloc.errors import CelCompileError
from dralloc.match.cel.builder import new_builder
from dralloc.match.cel.data import INT_MAX
from dralloc.match.cel.failure import SelectorError, compile_error
from dralloc.match.cel.grammar import new_parser
from dralloc.match.cel.syntax import Literal, Node, walk

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]

MAX_LENGTH: Final = 100_000
"""How long an expression may be for upstream's parser; the API allows no more than 10 KiB."""

MAX_DEPTH: Final = 250
"""How deep an expression may nest, as upstream's parser limits its recursion."""

_BRACKETS: Final = re.compile(
    r"""([()\[\]{}])|//[^\n]*|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
)
"""Brackets in group 1; comments and strings, in which brackets do not count."""

_PARSER: Final = new_parser(new_builder())
_LOCK: Final = Lock()


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
            root: Any = _PARSER.parse(expression)
        _check_nodes(root)
    except VisitError as error:
        if not isinstance(error.orig_exc, SelectorError):
            raise
        raise compile_error(expression, [(error.orig_exc.pos, str(error.orig_exc))]) from None
    except SelectorError as error:
        raise compile_error(expression, [(error.pos, str(error))]) from None
    except UnexpectedInput as error:
        raise _syntax_error(expression, error) from None
    return cast("Node", root)


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


def _syntax_error(expression: str, error: UnexpectedInput) -> CelCompileError:
    pos = error.pos_in_stream if error.pos_in_stream is not None else len(expression)
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        message = f"unexpected input '{error.token}'"
    elif isinstance(error, UnexpectedCharacters):
        message = f"unexpected input {expression[pos]!r}"
    else:
        pos, message = len(expression), "unexpected end of the expression"
    return compile_error(expression, [(pos, f"Syntax error: {message}")])
