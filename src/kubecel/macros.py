"""Macros: calls that are syntax, expanded while the expression is parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kubecel.errors import SelectorError
from kubecel.syntax import (
    Bind,
    Call,
    Expr,
    Fold,
    Ident,
    Literal,
    MapLiteral,
    OptMap,
    Select,
)

__all__ = ["expand_macro"]

# Upstream's loops keep their result under these names.
_RESULT_NAMES: Final = ("@result", "__result__")
_SORT_INPUT: Final = "@__sortBy_input__"
_Macro: TypeAlias = Callable[[int, Expr, tuple[Expr, ...]], Expr | None]


def expand_macro(call: Call) -> Expr:
    """The node that a call stands for: its expansion if it is a macro, otherwise the call itself.

    Raises
    ------
    SelectorError
        An argument is not what the macro needs.
    """
    if call.target is None:
        if call.function == "has" and len(call.args) == 1:
            return _has(call)
        return call
    macro = _MACROS.get((call.function, len(call.args)))
    if macro is None:
        return call
    expanded = macro(call.pos, call.target, call.args)
    if expanded is None:
        return call
    return expanded


def _has(call: Call) -> Expr:
    operand = call.args[0]
    if not isinstance(operand, Select) or operand.optional or operand.test:
        raise SelectorError(operand.pos, "invalid argument to has() macro")
    return Select(call.pos, operand.operand, operand.field, test=True)


def _name(node: Expr, message: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise SelectorError(node.pos, message)
    return node.name


def _names(nodes: tuple[Expr, ...]) -> tuple[str, ...]:
    names = tuple(_name(node) for node in nodes)
    for node, name in zip(nodes, names, strict=True):
        if name in _RESULT_NAMES:
            raise SelectorError(
                node.pos, "iteration variable overwrites accumulator variable"
            )
    if len(set(names)) < len(names):
        raise SelectorError(
            nodes[-1].pos, f"duplicate variable name: {names[-1]}"
        )
    return names


def _fold(kind: str, variables: int) -> _Macro:
    """The macro of a loop: its variables, a guard if there is one more argument, and the body."""

    def macro(pos: int, target: Expr, args: tuple[Expr, ...]) -> Expr:
        names = _names(args[:variables])
        guard = args[variables] if len(args) > variables + 1 else None
        return Fold(pos, kind, target, names, guard, args[-1])

    return macro


def _filter(pos: int, target: Expr, args: tuple[Expr, ...]) -> Expr:
    """A filter is a map of the variable to itself, with the predicate as guard."""
    names = _names(args[:1])
    return Fold(pos, "map", target, names, args[1], args[0])


def _bind(pos: int, target: Expr, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _name(
        args[0], "cel.bind() variable names must be simple identifiers"
    )
    return Bind(pos, name, args[1], args[2])


def _opt_map(flat: bool) -> _Macro:
    def macro(pos: int, target: Expr, args: tuple[Expr, ...]) -> Expr:
        function = "optFlatMap()" if flat else "optMap()"
        name = _name(
            args[0], f"{function} variable name must be a simple identifier"
        )
        return OptMap(pos, target, name, args[1], flat)

    return macro


def _sort_by(pos: int, target: Expr, args: tuple[Expr, ...]) -> Expr:
    if isinstance(target, Literal | MapLiteral):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise SelectorError(target.pos, message)
    # cel.bind(input, target, input.@sortByAssociatedKeys(input.map(name, key)))
    names = _names(args[:1])
    keys = Fold(pos, "map", Ident(pos, _SORT_INPUT), names, None, args[1])
    sorted_input = Call(
        pos, "@sortByAssociatedKeys", Ident(pos, _SORT_INPUT), (keys,)
    )
    return Bind(pos, _SORT_INPUT, target, sorted_input)


_MACROS: Final[dict[tuple[str, int], _Macro]] = {
    ("all", 2): _fold("all", 1),
    ("all", 3): _fold("all", 2),
    ("exists", 2): _fold("exists", 1),
    ("exists", 3): _fold("exists", 2),
    ("exists_one", 2): _fold("exists_one", 1),
    ("exists_one", 3): _fold("exists_one", 2),
    ("existsOne", 3): _fold("exists_one", 2),
    ("map", 2): _fold("map", 1),
    ("map", 3): _fold("map", 1),
    ("filter", 2): _filter,
    ("transformList", 3): _fold("map", 2),
    ("transformList", 4): _fold("map", 2),
    ("transformMap", 3): _fold("transform_map", 2),
    ("transformMap", 4): _fold("transform_map", 2),
    ("transformMapEntry", 3): _fold("transform_entry", 2),
    ("transformMapEntry", 4): _fold("transform_entry", 2),
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map(False),
    ("optFlatMap", 2): _opt_map(True),
    ("sortBy", 2): _sort_by,
}
