"""Checks of constants and literals, which upstream does after checking types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubecel.check import Checked, Finding
from kubecel.overloads import check_pattern
from kubecel.overloads.strings import CLAUSES, clauses
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
from kubecel.values import EvalError, type_named

__all__ = ["validate"]


def validate(checked: Checked) -> list[Finding]:
    """Return the faults of literals: mixed types, and texts that are no patterns or formats."""
    findings: list[Finding] = []
    stack = [(checked.root, False)]
    while stack:
        node, in_format = stack.pop()
        if isinstance(node, ListLiteral) and not in_format:
            findings += _mixed(
                checked, [(item.value, item) for item in node.items]
            )
        elif isinstance(node, MapLiteral) and not in_format:
            keys = [entry.key for entry in node.entries]
            key_parts = [(key, None) for key in keys if isinstance(key, Expr)]
            findings += _mixed(checked, key_parts)
            value_parts = [(entry.value, entry) for entry in node.entries]
            findings += _mixed(checked, value_parts)
        elif isinstance(node, Call):
            findings += _call(checked, node)
            # The arguments of a format may be of any types.
            in_format = in_format or node.function == "format"
        stack += ((child, in_format) for child in children(node))
    return findings


def _mixed(
    checked: Checked, parts: Sequence[tuple[Expr, Element | None]]
) -> Iterator[Finding]:
    """Elements of other types than the first; dyn is a type of its own here."""
    first: Type | None = None
    for node, entry in parts:
        part_type = checked.types[node]
        if entry is not None and entry.optional and part_type.params:
            part_type = part_type.params[0]
        if first is None:
            first = part_type
        elif not _equivalent(first, part_type):
            yield node.pos, f"expected type '{first}' but found '{part_type}'"
            return


def _equivalent(left: Type, right: Type) -> bool:
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(map(_equivalent, left.params, right.params))


def _call(checked: Checked, node: Call) -> Iterator[Finding]:
    argument = node.args[0] if node.args else None
    if node.function == "matches" and isinstance(argument, Literal):
        if not isinstance(argument.value, str):
            return
        if problem := check_pattern(argument.value):
            yield argument.pos, f"invalid matches argument: {problem}"
    elif (
        node.function == "format"
        and isinstance(argument, ListLiteral)
        and isinstance(node.target, Literal)
    ):
        args = [item.value for item in argument.items]
        yield from _format(checked, node, str(node.target.value), args)


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
        counts = f"(expected {len(letters)}, got {len(args)})"
        yield node.pos, f"too many arguments supplied to string.format {counts}"
    else:
        for letter, arg in zip(letters, args, strict=True):
            yield from _clause(checked, letter, arg)


def _clause(checked: Checked, letter: str, arg: Expr) -> Iterator[Finding]:
    """A clause's argument; what a list or map literal holds must have a text, too."""
    message, kinds = CLAUSES[letter]
    parts = [arg]
    while parts:
        part = parts.pop()
        part_type = checked.types[part]
        if not part_type.is_dyn and type_named(part_type.name) not in kinds:
            yield (
                part.pos,
                f"error during formatting: {message}, was given {part_type}",
            )
            return
        if letter == "s" and isinstance(part, ListLiteral | MapLiteral):
            parts += children(part)
