"""CEL's grammar: cel-python's rules with what upstream's parser accepts beyond them.

cel-python's ``CELParser`` keeps one parser in a class attribute and lacks the optional syntax, so the grammar is read
from the installed package, patched below, and given to a parser of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, cast

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from kubecel.builder import new_builder
from kubecel.failure import SelectorError
from kubecel.syntax import Node

__all__ = ["new_parser"]

_TERMINALS_START: Final = "// Terminals."
"""Everything from here on in cel-python's grammar is replaced by `_TERMINALS`."""

_PATCHES: Final = (
    # Optional selection and index: `a.?b` and `a[?k]`.
    (
        "member         : member_dot |",
        "member         : member_opt_dot | member_opt_index | member_dot |",
    ),
    (
        'member_index   : member "[" expr "]"',
        'member_index   : member "[" expr "]"\n'
        'member_opt_dot : member "." "?" IDENT\n'
        'member_opt_index : member "[" "?" expr "]"',
    ),
    # Optional elements, entries and fields, and a trailing comma, also alone.
    (
        'list_lit       : "[" [exprlist] "]"',
        'list_lit       : "[" "]" | "[" "," "]" | "[" element ("," element)* ","? "]"\n'
        "element        : expr | optional_element\n"
        'optional_element : "?" expr',
    ),
    (
        'map_lit        : "{" [mapinits] "}"',
        'map_lit        : "{" "}" | "{" "," "}" | "{" entry ("," entry)* ","? "}"\nentry          : element ":" expr',
    ),
    (
        'member_object  : member "{" [fieldinits] "}"',
        'member_object  : member "{" "}" | member "{" "," "}" | member "{" field ("," field)* ","? "}"\n'
        'field          : IDENT ":" expr | optional_field\n'
        'optional_field : "?" IDENT ":" expr',
    ),
    ('fieldinits     : IDENT ":" expr ("," IDENT ":" expr)*', ""),
    ('mapinits       : expr ":" expr ("," expr ":" expr)*', ""),
    # The keyword must not match the start of a longer word.
    ('relation_in    : relation "in"', "relation_in    : relation IN"),
)

_TERMINALS: Final = r"""
IN.5           : /in(?![_a-zA-Z0-9])/
BOOL_LIT.5     : /(?:true|false)(?![_a-zA-Z0-9])/
NULL_LIT.5     : /null(?![_a-zA-Z0-9])/

FLOAT_LIT.4    : /[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?/
UINT_LIT.3     : /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/
INT_LIT.2      : /0x[0-9a-fA-F]+|[0-9]+/

// Escapes are checked when the literal is read. A raw string ends at the first quote, whatever is before it.
BYTES_LIT.8    : /[bB]/ (_RAW | _TEXT)
STRING_LIT.7   : _RAW | _TEXT
_RAW           : /[rR](?:\"\"\"[\s\S]*?\"\"\"|\'\'\'[\s\S]*?\'\'\'|\"[^\"\n\r]*\"|\'[^\'\n\r]*\')/
_TEXT          : /\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|\"(?:\\.|[^\\\"\n\r])*\"/
               | /\'\'\'(?:\\[\s\S]|[^\\])*?\'\'\'|\'(?:\\.|[^\\\'\n\r])*\'/

IDENT.1        : /[_a-zA-Z][_a-zA-Z0-9]*/

WHITESPACE     : /[\t\n\f\r ]+/
COMMENT.9      : /\/\/[^\n]*/
%ignore WHITESPACE
%ignore COMMENT
"""


def _grammar() -> str:
    # Importing the package would take longer than reading its file.
    package = find_spec("celpy")
    assert package is not None
    assert package.submodule_search_locations is not None
    path = Path(package.submodule_search_locations[0]) / "cel.lark"
    rules = path.read_text("utf-8").partition(_TERMINALS_START)[0]
    for old, new in _PATCHES:
        if old not in rules:
            raise RuntimeError(f"the grammar of the installed cel-python has no rule {old!r}")
        rules = rules.replace(old, new)
    rules = rules.replace("UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT |", "UINT_LIT | FLOAT_LIT | INT_LIT |")
    return rules + _TERMINALS


def new_parser() -> Callable[[str], Node]:
    """Build a parser; every token, punctuation too, is passed on to the builder's methods.

    What is no expression of CEL is a `SelectorError`.
    """
    lark = Lark(
        _grammar(),
        parser="lalr",
        start="expr",
        transformer=new_builder(),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )

    def parse(expression: str) -> Node:
        try:
            return cast("Node", lark.parse(expression))
        except VisitError as error:
            raise error.orig_exc from None
        except UnexpectedInput as error:
            raise _syntax_error(expression, error) from None

    return parse


def _syntax_error(expression: str, error: UnexpectedInput) -> SelectorError:
    pos = error.pos_in_stream if error.pos_in_stream is not None else len(expression)
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        message = f"unexpected input '{error.token}'"
    elif isinstance(error, UnexpectedCharacters):
        message = f"unexpected input {expression[pos]!r}"
    else:
        pos, message = len(expression), "unexpected end of the expression"
    return SelectorError(pos, f"Syntax error: {message}")
