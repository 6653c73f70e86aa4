"""From cel-python's grammar to abstract syntax: what each of its rules becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

from lark import Token, Transformer

from kubecel import syntax
from kubecel.failure import SelectorError
from kubecel.literals import bytes_literal, double_literal, int_literal, string_literal, uint_literal
from kubecel.macros import expand

__all__ = ["new_builder"]

_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "INT_LIT": int_literal,
    "UINT_LIT": uint_literal,
    "FLOAT_LIT": double_literal,
    "STRING_LIT": string_literal,
    "BYTES_LIT": bytes_literal,
    "BOOL_LIT": "true".__eq__,
    "NULL_LIT": lambda _: None,
}
_Children: TypeAlias = list[Any]


def _at(token: Token) -> int:
    return token.start_pos or 0


def _only(children: _Children) -> Any:
    return children[0]


def _field(token: Token) -> str:
    if token.value in _KEYWORDS:
        raise SelectorError(_at(token), f"Syntax error: no viable alternative at input '{token.value}'")
    return str(token.value)


def _variable(token: Token) -> str:
    if token.value in _KEYWORDS or token.value in _RESERVED:
        raise SelectorError(_at(token), f"Syntax error: reserved identifier: {token.value}")
    return str(token.value)


def _operator(symbol: str) -> Callable[[Any, _Children], tuple[int, str, syntax.Node]]:
    """Half of a binary operation: cel-python's grammar has a rule for the left side with the operator."""

    def rule(_: Any, children: _Children) -> tuple[int, str, syntax.Node]:
        return _at(children[1]), symbol, children[0]

    return rule


class _Signs(NamedTuple):
    """An operand with the signs before it, which count together."""

    symbol: str
    positions: tuple[int, ...]
    operand: syntax.Node


class _TreeBuilder(Transformer[Any, Any]):
    """One method per rule of the grammar. Stateless, as one instance serves every thread."""

    def expr(self, children: _Children) -> syntax.Node:
        if len(children) == 1:
            return _only(children)  # type: ignore[no-any-return]
        condition, mark, then, _, otherwise = children
        return syntax.Call(_at(mark), syntax.CONDITIONAL, (condition, then, otherwise))

    def _chain(self, children: _Children, conjunction: bool) -> syntax.Node:
        if len(children) == 1:
            return _only(children)  # type: ignore[no-any-return]
        left, mark, right = children
        terms = left.terms if isinstance(left, syntax.Logic) and left.conjunction is conjunction else (left,)
        return syntax.Logic(_at(mark), conjunction, (*terms, right))

    def conditionalor(self, children: _Children) -> syntax.Node:
        return self._chain(children, conjunction=False)

    def conditionaland(self, children: _Children) -> syntax.Node:
        return self._chain(children, conjunction=True)

    def relation(self, children: _Children) -> syntax.Node:
        if len(children) == 1:
            return _only(children)  # type: ignore[no-any-return]
        (pos, symbol, left), right = children
        return syntax.Call(pos, symbol, (left, right))

    addition = relation
    relation_lt = _operator("_<_")
    relation_le = _operator("_<=_")
    relation_gt = _operator("_>_")
    relation_ge = _operator("_>=_")
    relation_eq = _operator("_==_")
    relation_ne = _operator("_!=_")
    relation_in = _operator("@in")
    addition_add = _operator("_+_")
    addition_sub = _operator("_-_")
    multiplication_mul = _operator("_*_")
    multiplication_div = _operator("_/_")
    multiplication_mod = _operator("_%_")
    unary_not = unary_neg = element = member = primary = staticmethod(_only)

    def unary(self, children: _Children) -> Any:
        if len(children) == 1:
            return _only(children)
        sign, operand = children
        signs = operand if isinstance(operand, _Signs) else _Signs("", (), operand)
        if signs.symbol not in {"", sign.value}:
            raise SelectorError(signs.positions[0], f"Syntax error: extraneous input '{signs.symbol}'")
        return _Signs(sign.value, (_at(sign), *signs.positions), signs.operand)

    def multiplication(self, children: _Children) -> syntax.Node:
        return self.relation([*children[:-1], _signed(children[-1])])

    def member_dot(self, children: _Children) -> syntax.Node:
        operand, dot, name = children
        return syntax.Select(_at(dot), operand, _field(name))

    def member_opt_dot(self, children: _Children) -> syntax.Node:
        operand, dot, _, name = children
        return syntax.Select(_at(dot), operand, _field(name), optional=True)

    def member_dot_arg(self, children: _Children) -> syntax.Node:
        target, _, name, opening, *args, _ = children
        return expand(syntax.Call(_at(opening), _field(name), args[0] if args else (), target))

    def member_index(self, children: _Children) -> syntax.Node:
        operand, opening, key, _ = children
        return syntax.Index(_at(opening), operand, key)

    def member_opt_index(self, children: _Children) -> syntax.Node:
        operand, opening, _, key, _ = children
        return syntax.Index(_at(opening), operand, key, optional=True)

    def member_object(self, children: _Children) -> syntax.Node:
        operand, opening, *fields = children
        name = syntax.qualified_name(operand)
        if name is None:
            raise SelectorError(_at(opening), "Syntax error: mismatched input '{'")
        return syntax.Struct(_at(opening), name, tuple(field for field in fields if isinstance(field, syntax.Element)))

    def ident(self, children: _Children) -> syntax.Node:
        return syntax.Ident(_at(children[0]), _variable(children[0]))

    def dot_ident(self, children: _Children) -> syntax.Node:
        return syntax.Ident(_at(children[0]), "." + _variable(children[1]))

    def ident_arg(self, children: _Children) -> syntax.Node:
        name, opening, *args, _ = children
        return expand(syntax.Call(_at(opening), _variable(name), args[0] if args else ()))

    def dot_ident_arg(self, children: _Children) -> syntax.Node:
        return self.ident_arg(children[1:])

    def paren_expr(self, children: _Children) -> syntax.Node:
        inner: syntax.Node = children[1]
        return _on_number(inner, lambda number: replace(number, parens=True)) or inner

    def exprlist(self, children: _Children) -> tuple[syntax.Node, ...]:
        return tuple(children[::2])

    def optional_element(self, children: _Children) -> syntax.Element:
        return syntax.Element(_at(children[0]), None, children[1], optional=True)

    def list_lit(self, children: _Children) -> syntax.Node:
        items = [child for child in children if not isinstance(child, Token)]
        entries = (item if isinstance(item, syntax.Element) else syntax.Element(item.pos, None, item) for item in items)
        return syntax.ListLiteral(_at(children[0]), tuple(entries))

    def entry(self, children: _Children) -> syntax.Element:
        key, colon, value = children
        if isinstance(key, syntax.Element):
            return syntax.Element(_at(colon), key.value, value, optional=True)
        return syntax.Element(_at(colon), key, value)

    def map_lit(self, children: _Children) -> syntax.Node:
        return syntax.MapLiteral(
            _at(children[0]), tuple(child for child in children if isinstance(child, syntax.Element))
        )

    def field(self, children: _Children) -> syntax.Element:
        if isinstance(children[0], syntax.Element):
            return children[0]
        name, colon, value = children
        return syntax.Element(_at(colon), _field(name), value)

    def optional_field(self, children: _Children) -> syntax.Element:
        _, name, colon, value = children
        return syntax.Element(_at(colon), _field(name), value, optional=True)

    def literal(self, children: _Children) -> syntax.Node:
        token: Token = children[0]
        try:
            return syntax.Literal(_at(token), _READERS[token.type](token.value))
        except ValueError as error:
            raise SelectorError(_at(token), f"Syntax error: {error}") from error


def _signed(operand: Any) -> syntax.Node:
    """Apply signs: two of a kind cancel out, and a minus before a number belongs to the number."""
    if not isinstance(operand, _Signs):
        return operand  # type: ignore[no-any-return]
    node = operand.operand
    if len(operand.positions) % 2 == 0:
        return node
    pos = operand.positions[0]
    if operand.symbol == "-" and len(operand.positions) == 1:
        negative = _on_number(node, lambda number: syntax.Literal(pos, -number.value))
        if negative is not None:
            return negative
    return syntax.Call(pos, f"{operand.symbol}_", (node,))


def _on_number(node: syntax.Node, change: Callable[[syntax.Literal], syntax.Literal]) -> syntax.Node | None:
    """A node with the number changed that it begins with, as in ``1.includes(x)``, or None if it begins otherwise."""
    if isinstance(node, syntax.Literal):
        return change(node) if type(node.value) in {int, float} and not node.parens else None
    field = _FIRST_PARTS.get(type(node))
    inner: syntax.Node | None = getattr(node, field) if field else None
    changed = None if inner is None else _on_number(inner, change)
    if changed is None:
        return None
    copy: syntax.Node = replace(cast("Any", node), **{str(field): changed})
    return copy


_FIRST_PARTS: Final = {
    syntax.Call: "target",
    syntax.OptMap: "target",
    syntax.Select: "operand",
    syntax.Index: "operand",
    syntax.Fold: "range",
}


def new_builder() -> Transformer[Any, Any]:
    """The object whose methods a parser calls for the grammar's rules."""
    return _TreeBuilder()
