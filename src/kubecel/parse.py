"""Text to abstract syntax: operators by precedence, everything else by recursive descent.

Its tokens are in `kubecel.tokens`, and macros, which are expanded while it is parsed, in `kubecel.macros`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kubecel.errors import CelCompileError, SelectorError, compile_error
from kubecel.macros import expand_macro
from kubecel.syntax import (
    CONDITIONAL,
    Call,
    Element,
    Expr,
    Ident,
    Index,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    Select,
    Struct,
    qualified_name,
    walk,
)
from kubecel.tokens import (
    AFTER_NAME,
    LITERAL_READERS,
    NAME,
    OPERAND,
    OPERATOR,
    Place,
    Token,
    read_token,
    refuse_token,
)

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]

MAX_LENGTH: Final = 100_000
"""How long an expression may be for upstream's parser; the API allows no more than 10 KiB."""

MAX_DEPTH: Final = 250
"""How deep an expression may nest, as upstream's parser limits its recursion."""

_LEVELS: Final = (
    ("||",),
    ("&&",),
    ("<", "<=", ">", ">=", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_RANKS: Final = {
    symbol: rank
    for rank, symbols in enumerate(_LEVELS, 1)
    for symbol in symbols
}
"""How closely operators bind; all of them group from left to right."""

_NESTING: Final = {**dict.fromkeys("([{", 1), **dict.fromkeys(")]}", -1)}
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_RESERVED: Final = re.compile(
    "as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while"
)


def parse(expression: str) -> Expr:
    """Parse an expression and expand its macros.

    Raises
    ------
    CelCompileError
        The text is not an expression of CEL, or nests too deeply.
    """
    if len(expression) > MAX_LENGTH:
        raise CelCompileError(
            f"expression code point size exceeds limit: size: {len(expression)}, limit {MAX_LENGTH}"
        )
    try:
        root = _Parser(expression).whole()
        for node, depth in walk(root):
            if depth > MAX_DEPTH:
                raise _too_deep(node.pos)
    except SelectorError as error:
        raise compile_error(expression, [(error.pos, str(error))]) from None
    return root


def _too_deep(pos: int) -> SelectorError:
    return SelectorError(
        pos, f"expression recursion limit exceeded: {MAX_DEPTH}"
    )


class _Parser:
    """Looks one token ahead. Brackets nest no more than three calls each, as Python limits them, too."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.token = read_token(expression, 0, OPERAND)
        self.depth = 0

    def _take(self, next_place: Place = OPERAND) -> Token:
        """Take the token, and read the next one, which stands at such a place."""
        token = self.token
        self.depth += _NESTING.get(token[0], 0)
        if self.depth >= MAX_DEPTH:
            raise _too_deep(token.start())
        self.token = read_token(self.expression, token.end(), next_place)
        return token

    def _expect(self, mark: str, next_place: Place = OPERAND) -> Token:
        if self.token[0] == mark:
            return self._take(next_place)
        return refuse_token(self.expression, self.token.start())

    def _name(self, next_place: Place) -> Token:
        if self.token.lastgroup == "name":
            return self._take(next_place)
        return refuse_token(self.expression, self.token.start())

    def _skip(self, mark: str, next_place: Place = OPERAND) -> bool:
        """Take a token that need not be there."""
        is_there = self.token[0] == mark
        if is_there:
            self._take(next_place)
        return is_there

    def whole(self) -> Expr:
        """The expression that is all of the text."""
        root = self._expression()
        if not self.token[0]:
            return root
        return refuse_token(self.expression, self.token.start())

    def _expression(self, *, conditional: bool = True) -> Expr:
        """Operators wait until one follows that binds no closer."""
        operands: list[Expr] = []
        waiting: list[Token] = []
        while True:
            signs = self._signs()
            operand = self._steps(self._primary(signs))
            operands.append(_signed(signs, operand))
            # 0 at the end of the operators, which binds less than any of them.
            rank = _RANKS.get(self.token[0], 0)
            while waiting and _RANKS[waiting[-1][0]] >= rank:
                right_operand, left_operand = operands.pop(), operands.pop()
                operation = _operation(
                    waiting.pop(), left_operand, right_operand
                )
                operands.append(operation)
            if not rank:
                break
            waiting.append(self._take())
        (node,) = operands
        if not conditional or self.token[0] != "?":
            return node
        mark = self._take()
        yes = self._expression(conditional=False)
        self._expect(":")
        no = self._expression()
        return Call(mark.start(), CONDITIONAL, None, (node, yes, no))

    def _signs(self) -> list[Token]:
        signs = []
        while self.token[0] in {"!", "-"}:
            signs.append(self._take())
        return signs

    def _primary(self, signs: list[Token]) -> Expr:
        """Return the first part of an operand; takes a sign away that belongs to a number."""
        token = self.token
        if token.lastgroup in LITERAL_READERS:
            # The minus is part of the literal: the digits of the smallest int alone would be too large.
            is_signed = token.lastgroup in {"int", "double"}
            if is_signed and len(signs) == 1 and signs[0][0] == "-":
                return self._literal(signs.pop())
            return self._literal(None)
        if token[0] == "(":
            self._take()
            node = self._expression()
            self._expect(")", OPERATOR)
            return node
        if token[0] == "[":
            return self._list()
        if token[0] == "{":
            return self._map()
        dot = "." if self._skip(".", NAME) else ""
        name = self._name(AFTER_NAME)
        if self.token[0] != "(":
            return Ident(token.start(), dot + _variable(name))
        opening, args = self.token.start(), self._arguments()
        return expand_macro(Call(opening, _variable(name), None, args))

    def _steps(self, node: Expr) -> Expr:
        """Selections, calls, indexes and fields behind what an operand begins with."""
        while (mark := self.token)[0] in {".", "[", "{"}:
            if mark[0] == "{":
                node = self._struct(node)
            elif mark[0] == "[":
                self._take()
                optional = self._skip("?")
                node = Index(mark.start(), node, self._expression(), optional)
                self._expect("]", OPERATOR)
            else:
                self._take(NAME)
                optional = self._skip("?", NAME)
                name = self._name(OPERATOR if optional else AFTER_NAME)
                if self.token[0] == "(":
                    opening, args = self.token.start(), self._arguments()
                    node = expand_macro(Call(opening, _field(name), node, args))
                else:
                    node = Select(mark.start(), node, _field(name), optional)
        return node

    def _literal(self, sign: Token | None) -> Expr:
        token = self._take(OPERATOR)
        text = token[0] if sign is None else f"-{token[0]}"
        try:
            value = LITERAL_READERS[str(token.lastgroup)](text)
        except ValueError as error:
            raise SelectorError(
                token.start(), f"Syntax error: {error}"
            ) from error
        return Literal((sign or token).start(), value)

    def _in_brackets(
        self, closing: str, place: Place = OPERAND, *, loose: bool = True
    ) -> Iterator[None]:
        """Stops where an element begins. A comma may follow the last one, or stand alone, if that is allowed."""
        self._take(place)
        if self.token[0] != closing and not (loose and self._skip(",")):
            while True:
                yield
                if not self._skip(",", place) or (
                    loose and self.token[0] == closing
                ):
                    break
        self._expect(closing, OPERATOR)

    def _arguments(self) -> tuple[Expr, ...]:
        args = []
        for _ in self._in_brackets(")", loose=False):
            args.append(self._expression())  # noqa: PERF401 - a comprehension would be one more call
        return tuple(args)

    def _list(self) -> Expr:
        opening, items = self.token.start(), []
        for _ in self._in_brackets("]"):
            start = self.token.start()
            optional = self._skip("?")
            value = self._expression()
            pos = start if optional else value.pos
            items.append(Element(pos, None, value, optional))
        return ListLiteral(opening, tuple(items))

    def _map(self) -> Expr:
        opening, entries = self.token.start(), []
        for _ in self._in_brackets("}"):
            optional = self._skip("?")
            key = self._expression()
            colon = self._expect(":")
            value = self._expression()
            entries.append(Element(colon.start(), key, value, optional))
        return MapLiteral(opening, tuple(entries))

    def _struct(self, operand: Expr) -> Expr:
        opening, fields = self.token.start(), []
        for _ in self._in_brackets("}", NAME):
            optional = self._skip("?", NAME)
            name = self._name(OPERATOR)
            colon = self._expect(":")
            value = self._expression()
            fields.append(Element(colon.start(), _field(name), value, optional))
        message = qualified_name(operand)
        if message is None:
            raise SelectorError(opening, "Syntax error: mismatched input '{'")
        return Struct(opening, message, tuple(fields))


def _field(name: Token) -> str:
    if name[0] in _KEYWORDS:
        raise SelectorError(
            name.start(),
            f"Syntax error: no viable alternative at input '{name[0]}'",
        )
    return name[0]


def _variable(name: Token) -> str:
    if name[0] in _KEYWORDS or _RESERVED.fullmatch(name[0]):
        raise SelectorError(
            name.start(), f"Syntax error: reserved identifier: {name[0]}"
        )
    return name[0]


def _signed(signs: list[Token], node: Expr) -> Expr:
    """Two signs of a kind cancel out; different ones may not mix."""
    for outer, inner in reversed(list(pairwise(signs))):
        if outer[0] != inner[0]:
            raise SelectorError(
                inner.start(), f"Syntax error: extraneous input '{inner[0]}'"
            )
    if len(signs) % 2:
        return Call(signs[0].start(), f"{signs[0][0]}_", None, (node,))
    return node


def _operation(operator: Token, left: Expr, right: Expr) -> Expr:
    pos, symbol = operator.start(), operator[0]
    if symbol not in {"&&", "||"}:
        function = "@in" if symbol == "in" else f"_{symbol}_"
        return Call(pos, function, None, (left, right))
    conjunction = symbol == "&&"
    # ``a && b && c`` is one chain, so that each term may absorb the others' errors.
    if isinstance(left, Logic) and left.conjunction is conjunction:
        return Logic(pos, conjunction, (*left.terms, right))
    return Logic(pos, conjunction, (left, right))
