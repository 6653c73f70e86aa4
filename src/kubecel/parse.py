"""Text to abstract syntax: operators by precedence, everything else by recursive descent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kubecel.errors import CelCompileError, SelectorError, compile_error
from kubecel.macros import expand
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
    NAME,
    OPERAND,
    OPERATOR,
    READERS,
    Place,
    Token,
    read_token,
    unexpected,
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
    symbol: rank for rank, symbols in enumerate(_LEVELS, 1) for symbol in symbols
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
    return SelectorError(pos, f"expression recursion limit exceeded: {MAX_DEPTH}")


class _Parser:
    """Looks one token ahead. Brackets nest no more than three calls each, as Python limits them, too."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.token = read_token(expression, 0, OPERAND)
        self.depth = 0

    def _take(self, then: Place = OPERAND) -> Token:
        """The token, behind which another one is read."""
        taken = self.token
        self.depth += _NESTING.get(taken[0], 0)
        if self.depth >= MAX_DEPTH:
            raise _too_deep(taken.start())
        self.token = read_token(self.expression, taken.end(), then)
        return taken

    def _expect(self, mark: str, then: Place = OPERAND) -> Token:
        return (
            self._take(then)
            if self.token[0] == mark
            else unexpected(self.expression, self.token.start())
        )

    def _name(self, then: Place) -> Token:
        return (
            self._take(then)
            if self.token.lastgroup == "name"
            else unexpected(self.expression, self.token.start())
        )

    def _skip(self, mark: str, then: Place = OPERAND) -> bool:
        """Take a token that need not be there."""
        found = self.token[0] == mark
        if found:
            self._take(then)
        return found

    def whole(self) -> Expr:
        """The expression that is all of the text."""
        root = self._expression()
        return (
            root
            if not self.token[0]
            else unexpected(self.expression, self.token.start())
        )

    def _expression(self, *, conditional: bool = True) -> Expr:
        """Operators wait until one follows that binds no closer."""
        operands: list[Expr] = []
        waiting: list[Token] = []
        while True:
            signs = self._signs()
            operands.append(_signed(signs, self._steps(self._primary(signs))))
            rank = _RANKS.get(self.token[0], 0)
            while waiting and _RANKS[waiting[-1][0]] >= rank:
                right, left = operands.pop(), operands.pop()
                operands.append(_operation(waiting.pop(), left, right))
            if not rank:
                break
            waiting.append(self._take())
        (node,) = operands
        if not conditional or self.token[0] != "?":
            return node
        mark = self._take()
        then = self._expression(conditional=False)
        self._expect(":")
        return Call(mark.start(), CONDITIONAL, None, (node, then, self._expression()))

    def _signs(self) -> list[Token]:
        signs = []
        while self.token[0] in {"!", "-"}:
            signs.append(self._take())
        return signs

    def _primary(self, signs: list[Token]) -> Expr:
        """What an operand begins with; takes a sign away that belongs to a number."""
        token = self.token
        if token.lastgroup in READERS:
            negative = token.lastgroup in {"int", "double"} and [
                sign[0] for sign in signs
            ] == ["-"]
            return self._literal(signs.pop() if negative else None)
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
        return expand(Call(opening, _variable(name), None, args))

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
                    node = expand(Call(opening, _field(name), node, args))
                else:
                    node = Select(mark.start(), node, _field(name), optional)
        return node

    def _literal(self, sign: Token | None) -> Expr:
        token = self._take(OPERATOR)
        text = token[0] if sign is None else f"-{token[0]}"
        try:
            value = READERS[str(token.lastgroup)](text)
        except ValueError as error:
            raise SelectorError(token.start(), f"Syntax error: {error}") from error
        return Literal((sign or token).start(), value)

    def _in_brackets(
        self, closing: str, place: Place = OPERAND, *, loose: bool = True
    ) -> Iterator[None]:
        """Stops where an element begins. A comma may follow the last one, or stand alone, if that is allowed."""
        self._take(place)
        if self.token[0] != closing and not (loose and self._skip(",")):
            while True:
                yield
                if not self._skip(",", place) or (loose and self.token[0] == closing):
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
            items.append(
                Element(start if optional else value.pos, None, value, optional)
            )
        return ListLiteral(opening, tuple(items))

    def _map(self) -> Expr:
        opening, entries = self.token.start(), []
        for _ in self._in_brackets("}"):
            optional, key, colon = (
                self._skip("?"),
                self._expression(),
                self._expect(":"),
            )
            entries.append(Element(colon.start(), key, self._expression(), optional))
        return MapLiteral(opening, tuple(entries))

    def _struct(self, operand: Expr) -> Expr:
        opening, fields = self.token.start(), []
        for _ in self._in_brackets("}", NAME):
            optional, name, colon = (
                self._skip("?", NAME),
                self._name(OPERATOR),
                self._expect(":"),
            )
            value = self._expression()
            fields.append(Element(colon.start(), _field(name), value, optional))
        message = qualified_name(operand)
        if message is None:
            raise SelectorError(opening, "Syntax error: mismatched input '{'")
        return Struct(opening, message, tuple(fields))


def _field(name: Token) -> str:
    if name[0] in _KEYWORDS:
        raise SelectorError(
            name.start(), f"Syntax error: no viable alternative at input '{name[0]}'"
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
    return (
        Call(signs[0].start(), f"{signs[0][0]}_", None, (node,))
        if len(signs) % 2
        else node
    )


def _operation(operator: Token, left: Expr, right: Expr) -> Expr:
    pos, symbol = operator.start(), operator[0]
    if symbol not in {"&&", "||"}:
        return Call(
            pos, "@in" if symbol == "in" else f"_{symbol}_", None, (left, right)
        )
    conjunction = symbol == "&&"
    terms = (
        left.terms
        if isinstance(left, Logic) and left.conjunction is conjunction
        else (left,)
    )
    return Logic(pos, conjunction, (*terms, right))
