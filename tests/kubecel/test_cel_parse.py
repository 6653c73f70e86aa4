from __future__ import annotations

import pytest

from cel_helpers import compile_message, evaluate, lines
from kubecel.errors import CelCompileError
from kubecel.parse import MAX_DEPTH, MAX_LENGTH, parse
from kubecel.syntax import (
    Call,
    Fold,
    Ident,
    Index,
    Literal,
    Logic,
    Select,
    qualified_name,
    walk,
)


def test_a_chain_of_selections_and_indexes() -> None:
    node = parse('device.attributes["d"].?x[?0]')
    assert isinstance(node, Index)
    assert node.optional
    select = node.operand
    assert isinstance(select, Select)
    assert (select.field, select.optional, select.pos) == ("x", True, 22)


def test_positions_are_where_upstream_reports() -> None:
    node = parse('a.f("x") + 1')
    assert isinstance(node, Call)
    assert (node.function, node.pos) == ("_+_", 9)
    assert isinstance(node.args[0], Call)
    assert node.args[0].pos == 3


def test_a_chain_of_and_is_one_node() -> None:
    node = parse("a && b && (c && d) || e")
    assert isinstance(node, Logic)
    assert (node.conjunction, len(node.terms)) == (False, 2)
    assert isinstance(node.terms[0], Logic)
    assert len(node.terms[0].terms) == 3


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        *(
            ("- 1", -1),
            ("--1", 1),
            ("-9223372036854775808", -(2**63)),
            ("0xFF", 255),
            ("1e3", 1000.0),
        ),
        *(
            (".5", 0.5),
            ("18446744073709551615u", 2**64 - 1),
            ("null", None),
            ("true", True),
            ("// c\n1 // d", 1),
        ),
        *(
            ('"a\\x41\\u00e9\\101"', "aAéA"),
            ("r'a\\b'", "a\\b"),
            ("b'\\xff\\377a'", b"\xff\xffa"),
            ("'''a\r\n'b'''", "a\n'b"),
        ),
        *(
            ('"\\`\\?\\a\\v"', "`?\a\v"),
            ("'\\U0001F600'", "😀"),
            ('""""""', ""),
            ("bR'\\x'", b"\\x"),
        ),
    ],
)
def test_literals(expression: str, value: object) -> None:
    node = parse(expression)
    assert isinstance(node, Literal)
    assert node.value == value
    assert isinstance(node.value, type(value))


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "",
            "  ",
            "1 +",
            "(1",
            "1 2",
            '"a" "b"',
            "1.",
            "0b1",
            "1_0",
            "!-1",
            "-!a",
            "a ?: b",
            "true;",
            "a..b",
            "a.?",
        ),
        *(
            "`a`",
            "a.`b`",
            "package",
            "in",
            "x.in",
            "x.true",
            "x inb",
            "9223372036854775808",
            "0x1FFFFFFFFFFFFFFFF == 1",
        ),
        *(
            "18446744073709551616u",
            "1e999",
            '"\\z"',
            "'\\ud800'",
            "b'\\u00e9'",
            '"a\n"',
            '"',
            "'\\400'",
            "a{b}",
            "1{}",
        ),
        *(
            "[1,,]",
            "{1}",
            "{,1:2}",
            "f(,)",
            "f(1,)",
            "\ud800",
            "has(x)",
            "has(x.?y)",
            "[1].all(x.y, true)",
        ),
        *(
            "[1].all(@result, true)",
            "[1].all(__result__, true)",
            "[1].all(i, i, true)",
            'cel.bind("x", 1, true)',
            "1.sortBy(x, x)",
        ),
    ],
)
def test_what_is_no_expression(expression: str) -> None:
    with pytest.raises(CelCompileError):
        parse(expression)


_WHAT_IS_ONE = """
    [1,2,].size() == 2
    [,].size() == 0
    {'a':1,}.size() == 1
    {,}.size() == 0
    [?optional.of(1)][0] == 1
    {?'a': optional.none()}.size() == 0
    true&&	true
    ((true))
    !!true
    - 1 == -1
    1 - -1 == 2
    google.protobuf.Int64Value{value: 1,} == 1
    .google.protobuf.BoolValue{} == false
    {'in': true}['in']
    {'package': 1}.package == 1
    1 == 2 ? false : 3 == 3 ? true : false
    [1].all(inx, inx == 1)
"""


@pytest.mark.parametrize("expression", lines(_WHAT_IS_ONE))
def test_what_is_one(expression: str) -> None:
    assert evaluate(expression) is True


def test_errors_show_line_and_column() -> None:
    message = compile_message("true &&\n  ?")
    assert (
        message
        == "compilation failed: ERROR: <input>:2:3: Syntax error: unexpected input '?'\n |   ?\n | ..^"
    )


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        (
            "true &&\n\tnosuch\t== 1",
            "2:2: undeclared reference to 'nosuch' (in container '')\n |  nosuch == 1\n | .^",
        ),
        (
            "true\r\n  && nosuch",
            "2:6: undeclared reference to 'nosuch' (in container '')\n |   && nosuch\n | .....^",
        ),
        (
            "'éa' == nosuch",
            "1:9: undeclared reference to 'nosuch' (in container '')\n | 'éa' == nosuch\n | .\uff0e......^",
        ),
        (
            "1 == é",
            "1:6: Syntax error: unexpected input 'é'\n | 1 == é\n | .....\uff3e",
        ),
        (
            '\n"""\n\n""" == nosuch',
            "4:8: undeclared reference to 'nosuch' (in container '')\n | \"\"\" == nosuch\n | .......^",
        ),
        (
            "f(\n",
            "2:1: Syntax error: unexpected end of the expression\n | \n | ^",
        ),
        (
            f"'{'a' * 20000}' == nosuch",
            "1:20007: undeclared reference to 'nosuch' (in container '')",
        ),
    ],
)
def test_errors_are_shown_as_upstream_does(expression: str, shown: str) -> None:
    assert (
        compile_message(expression)
        == f"compilation failed: ERROR: <input>:{shown}"
    )


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("a.5", 3, "unexpected input '5'"),
        ("a..5", 3, "unexpected input '.5'"),
        ("a.?b(1)", 5, "unexpected input '('"),
        ("'\\z'(1)", 5, "unexpected input '('"),
        ("a{1: 2}", 3, "unexpected input '1'"),
        ("1 // 2\n 3", 2, "unexpected input '3'"),
        ("[1, 2 3]", 7, "unexpected input '3'"),
        ("f(1,)", 5, "unexpected input ')'"),
        ("a ? b ? c : d : e", 7, "unexpected input '?'"),
        ("a && !=b", 7, "unexpected input '='"),
        ('a == "b', 6, "unexpected input '\"'"),
        ("-!a", 2, "extraneous input '!'"),
        ("9223372036854775808 == 1", 1, "invalid int literal"),
        ("1 + -9223372036854775809", 6, "invalid int literal"),
        pytest.param(
            "9" * 5000, 1, "invalid int literal", id="int of 5,000 digits"
        ),
        pytest.param(
            "9" * 5000 + "u",
            1,
            "invalid uint literal",
            id="uint of 5,000 digits",
        ),
        ("x.in(1)", 3, "no viable alternative at input 'in'"),
        (".true", 2, "reserved identifier: true"),
        ("a[0]{b: 1}", 5, "mismatched input '{'"),
    ],
)
def test_what_is_said_about_text_that_is_no_expression(
    expression: str, column: int, message: str
) -> None:
    line = 2 if "\n" in expression else 1
    shown = compile_message(expression).splitlines()[0]
    assert (
        shown
        == f"compilation failed: ERROR: <input>:{line}:{column}: Syntax error: {message}"
    )


@pytest.mark.parametrize(
    ("expression", "function", "pos"),
    [
        ("-1.includes(2)", "includes", 11),
        ("-(1).includes(2)", "-_", 0),
        ("-a.b(2)", "-_", 0),
        ("1 - 2", "_-_", 2),
    ],
)
def test_the_minus_of_a_number_binds_closest(
    expression: str, function: str, pos: int
) -> None:
    node = parse(expression)
    assert isinstance(node, Call)
    assert (node.function, node.pos) == (function, pos)


def test_no_more_than_a_hundred_errors_are_shown() -> None:
    message = compile_message(" && ".join(f"a{index}" for index in range(103)))
    assert message.count("ERROR") == 100
    assert message.endswith("\n3 more errors were truncated")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 300 + "true" + ")" * 300,
        "+".join(["1"] * 300),
        "device" + ".a" * 300,
    ],
)
def test_depth_is_limited(expression: str) -> None:
    assert f"recursion limit exceeded: {MAX_DEPTH}" in compile_message(
        expression
    )


def test_length_is_limited() -> None:
    assert "exceeds limit" in compile_message(f'"{"a" * MAX_LENGTH}" == ""')


@pytest.mark.parametrize(
    "expression",
    [
        "!" * 1000 + "true",
        " && ".join(["true"] * 1000),
        "(" * 200 + "true" + ")" * 200,
        "dyn(" * 200 + "true" + ")" * 200,
        '"((((' + "(" * 300 + '" != ""',
    ],
)
def test_long_is_not_deep(expression: str) -> None:
    assert evaluate(expression) is True


def test_macros_are_expanded() -> None:
    node = parse("[1].filter(x, x > 0)")
    assert isinstance(node, Fold)
    assert (node.kind, node.names) == ("map", ("x",))
    assert isinstance(node.body, Ident)
    assert isinstance(parse("x.bind(a, 1, a)"), Call)
    assert isinstance(parse("x.existsOne(a, a)"), Call)


def test_walking_and_naming() -> None:
    assert [
        depth for _, depth in walk(parse("f([1], {2: 3}, a ? b : c)"))
    ].count(3) == 6
    assert qualified_name(parse("a.b.c")) == "a.b.c"
    assert qualified_name(parse("a[0].c")) is None
