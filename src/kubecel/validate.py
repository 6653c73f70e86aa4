"""Checks of constants and literals, which upstream does after checking types."""

from __future__ import annotations

from collections.abc import Iterator

from kubecel.check import Checked, Finding
from kubecel.data import EvalError
from kubecel.overloads import check_pattern
from kubecel.overloads.format_text import CLAUSES, clauses
from kubecel.runtime_types import type_named
from kubecel.syntax import (
    Call,
    Element,
    Expr,
    ListLiteral,
    Literal,
    MapLiteral,
    children,
)
from kubecel.types import Type

__all__ = ["validate"]


def validate(checked: Checked) -> list[Finding]:
    """What is wrong with literals: mixed types, and texts that are no patterns or formats."""
    findings: list[Finding] = []
    stack = [(checked.root, False)]
    while stack:
        node, in_format = stack.pop()
        if isinstance(node, ListLiteral) and not in_format:
            findings += _mixed(checked, [(item.value, item) for item in node.items])
        elif isinstance(node, MapLiteral) and not in_format:
            findings += _mixed(
                checked,
                [
                    (e.key, None)
                    for e in node.entries
                    if e.key and not isinstance(e.key, str)
                ],
            )
            findings += _mixed(
                checked, [(entry.value, entry) for entry in node.entries]
            )
        elif isinstance(node, Call):
            findings += _call(checked, node)
            in_format = in_format or node.function == "format"
        stack += ((child, in_format) for child in children(node))
    return findings


def _mixed(
    checked: Checked, parts: list[tuple[Expr, Element | None]]
) -> Iterator[Finding]:
    """Elements of other types than the first; dyn is a type of its own here."""
    first: Type | None = None
    for node, entry in parts:
        found = checked.types[node]
        if entry is not None and entry.optional and found.params:
            found = found.params[0]
        if first is None:
            first = found
        elif not _equivalent(first, found):
            yield node.pos, f"expected type '{first}' but found '{found}'"
            return


def _equivalent(left: Type, right: Type) -> bool:
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(map(_equivalent, left.params, right.params))


def _call(checked: Checked, node: Call) -> Iterator[Finding]:
    argument = node.args[0] if node.args else None
    if (
        node.function == "matches"
        and isinstance(argument, Literal)
        and isinstance(argument.value, str)
    ):
        if problem := check_pattern(argument.value):
            yield argument.pos, f"invalid matches argument: {problem}"
    elif (
        node.function == "format"
        and isinstance(argument, ListLiteral)
        and isinstance(node.target, Literal)
    ):
        yield from _format(
            checked,
            node,
            str(node.target.value),
            [item.value for item in argument.items],
        )


def _format(
    checked: Checked, node: Call, form: str, args: list[Expr]
) -> Iterator[Finding]:
    try:
        letters = [clause.letter for clause in clauses(form) if clause.letter]
    except EvalError as error:
        yield node.pos, str(error)
        return
    if len(letters) > len(args):
        yield node.pos, f"index {len(args)} out of range"
    elif len(letters) < len(args):
        yield (
            node.pos,
            f"too many arguments supplied to string.format (expected {len(letters)}, got {len(args)})",
        )
    else:
        for letter, arg in zip(letters, args, strict=True):
            yield from _clause(checked, letter, arg)


def _clause(checked: Checked, letter: str, arg: Expr) -> Iterator[Finding]:
    """A clause's argument; what a list or map literal holds must have a text, too."""
    message, kinds = CLAUSES[letter]
    parts = [arg]
    while parts:
        part = parts.pop()
        found = checked.types[part]
        if not found.is_dyn and type_named(found.name) not in kinds:
            yield part.pos, f"error during formatting: {message}, was given {found}"
            return
        if letter == "s" and isinstance(part, ListLiteral | MapLiteral):
            parts += children(part)
