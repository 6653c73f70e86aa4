"""Text to abstract syntax: operators by precedence, everything else by recursive descent.

First the words of an expression, then macros, which are expanded while the expression is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeAlias

from kubecel.errors import CelCompileError, SelectorError, compile_error
from kubecel.syntax import (
    CONDITIONAL,
    Bind,
    Call,
    Element,
    Expr,
    Fold,
    Ident,
    Index,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    OptMap,
    Select,
    Struct,
    bytes_literal,
    double_literal,
    int_literal,
    qualified_name,
    string_literal,
    uint_literal,
    walk,
)

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]

# ----------------------------------------------------------------------------
# Tokens. What a text is depends on what may stand at its place: `in` is an operator or
# a field.

Token: TypeAlias = re.Match[str]
"""Its ``lastgroup`` tells literals and names from each other, and is None for everything else."""

Place: TypeAlias = re.Pattern[str]
"""What may stand at a place."""

# Possessive, as nothing that was skipped is ever given back.
_SKIPPED: Final = re.compile(r"(?:[\t\n\f\r ]|//[^\n]*+)*+")
_WORD_END: Final = "(?![_a-zA-Z0-9])"
# A raw string ends at the first quote, whatever is before it.
_RAW: Final = (
    r"""[rR](?:"{3}[\s\S]*?"{3}|'{3}[\s\S]*?'{3}|"[^"\n\r]*"|'[^'\n\r]*')"""
)
_TEXT: Final = (
    r'"{3}(?:\\[\s\S]|[^\\])*?"{3}|"(?:\\.|[^\\"\n\r])*"|'
    + r"'{3}(?:\\[\s\S]|[^\\])*?'{3}|'(?:\\.|[^\\'\n\r])*'"
)
_LITERALS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "bytes": (f"[bB](?:{_RAW}|{_TEXT})", bytes_literal),
    "string": (f"{_RAW}|{_TEXT}", string_literal),
    "bool": (f"(?:true|false){_WORD_END}", "true".__eq__),
    "null": (f"null{_WORD_END}", lambda _: None),
    "double": (
        r"(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
        double_literal,
    ),
    "uint": ("(?:0x[0-9a-fA-F]+|[0-9]+)[uU]", uint_literal),
    "int": ("0x[0-9a-fA-F]+|[0-9]+", int_literal),
}
_ANY_LITERAL: Final = "|".join(
    f"(?P<{kind}>{pattern})" for kind, (pattern, _) in _LITERALS.items()
)
_ANY_NAME: Final = "(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)"
_ANY_OPERATOR: Final = rf"in{_WORD_END}|&&|\|\||[<>=!]=|[-+*/%<>?:.,\[{{)\]}}]"

_READERS: Final = {kind: reader for kind, (_, reader) in _LITERALS.items()}
"""What the text of a literal means, by its kind. They raise `ValueError`."""

_NAME: Final = re.compile(rf"{_ANY_NAME}|[?,}}]")
"""Behind a dot, or between the fields of a message."""

_OPERAND: Final = re.compile(rf"{_ANY_LITERAL}|{_ANY_NAME}|[-!.?,(\[{{)\]}}]")
"""Where an operand begins, or brackets end that may be empty."""

_OPERATOR: Final = re.compile(rf"{_ANY_OPERATOR}|\Z")
"""Behind an operand."""

_AFTER_NAME: Final = re.compile(rf"{_ANY_OPERATOR}|\(|\Z")
"""Behind the name of a variable, a field or a function."""

_ANYWHERE: Final = re.compile(
    rf"{_ANY_LITERAL}|{_ANY_NAME}|{_ANY_OPERATOR}|[!(]"
)


def _read_token(expression: str, start: int, place: Place) -> Token:
    """The next token behind spaces and comments.

    Raises
    ------
    SelectorError
        It may not stand there.
    """
    skipped = _SKIPPED.match(expression, start)
    assert skipped is not None  # it matches the empty text, too
    pos = skipped.end()
    return place.match(expression, pos) or _unexpected(expression, pos)


def _unexpected(expression: str, pos: int) -> NoReturn:
    """The error of a token that may not stand where it does."""
    if pos == len(expression):
        shown = "end of the expression"
    else:
        token = _ANYWHERE.match(expression, pos)
        shown = (
            f"input {expression[pos]!r}"
            if token is None
            else f"input '{token[0]}'"
        )
    raise SelectorError(pos, f"Syntax error: unexpected {shown}")


# ----------------------------------------------------------------------------
# Macros: calls that are syntax.

# Upstream's loops keep their result under these names.
_RESULT_NAMES: Final = ("@result", "__result__")
_SORT_INPUT: Final = "@__sortBy_input__"
_Macro: TypeAlias = Callable[[int, Expr, tuple[Expr, ...]], Expr | None]


def _expand(call: Call) -> Expr:
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


# ----------------------------------------------------------------------------
# The parser.

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
        self.token = _read_token(expression, 0, _OPERAND)
        self.depth = 0

    def _take(self, next_place: Place = _OPERAND) -> Token:
        """Take the token, and read the next one, which stands at such a place."""
        token = self.token
        self.depth += _NESTING.get(token[0], 0)
        if self.depth >= MAX_DEPTH:
            raise _too_deep(token.start())
        self.token = _read_token(self.expression, token.end(), next_place)
        return token

    def _expect(self, mark: str, next_place: Place = _OPERAND) -> Token:
        if self.token[0] == mark:
            return self._take(next_place)
        return _unexpected(self.expression, self.token.start())

    def _name(self, next_place: Place) -> Token:
        if self.token.lastgroup == "name":
            return self._take(next_place)
        return _unexpected(self.expression, self.token.start())

    def _skip(self, mark: str, next_place: Place = _OPERAND) -> bool:
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
        return _unexpected(self.expression, self.token.start())

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
        if token.lastgroup in _READERS:
            is_signed = token.lastgroup in {"int", "double"}
            if is_signed and len(signs) == 1 and signs[0][0] == "-":
                return self._literal(signs.pop())
            return self._literal(None)
        if token[0] == "(":
            self._take()
            node = self._expression()
            self._expect(")", _OPERATOR)
            return node
        if token[0] == "[":
            return self._list()
        if token[0] == "{":
            return self._map()
        dot = "." if self._skip(".", _NAME) else ""
        name = self._name(_AFTER_NAME)
        if self.token[0] != "(":
            return Ident(token.start(), dot + _variable(name))
        opening, args = self.token.start(), self._arguments()
        return _expand(Call(opening, _variable(name), None, args))

    def _steps(self, node: Expr) -> Expr:
        """Selections, calls, indexes and fields behind what an operand begins with."""
        while (mark := self.token)[0] in {".", "[", "{"}:
            if mark[0] == "{":
                node = self._struct(node)
            elif mark[0] == "[":
                self._take()
                optional = self._skip("?")
                node = Index(mark.start(), node, self._expression(), optional)
                self._expect("]", _OPERATOR)
            else:
                self._take(_NAME)
                optional = self._skip("?", _NAME)
                name = self._name(_OPERATOR if optional else _AFTER_NAME)
                if self.token[0] == "(":
                    opening, args = self.token.start(), self._arguments()
                    node = _expand(Call(opening, _field(name), node, args))
                else:
                    node = Select(mark.start(), node, _field(name), optional)
        return node

    def _literal(self, sign: Token | None) -> Expr:
        token = self._take(_OPERATOR)
        text = token[0] if sign is None else f"-{token[0]}"
        try:
            value = _READERS[str(token.lastgroup)](text)
        except ValueError as error:
            raise SelectorError(
                token.start(), f"Syntax error: {error}"
            ) from error
        return Literal((sign or token).start(), value)

    def _in_brackets(
        self, closing: str, place: Place = _OPERAND, *, loose: bool = True
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
        self._expect(closing, _OPERATOR)

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
        for _ in self._in_brackets("}", _NAME):
            optional = self._skip("?", _NAME)
            name = self._name(_OPERATOR)
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
