"""Random well-typed expressions that cel-python's interpreter can evaluate, too.

cel-python is right about most of the standard language. What the generator leaves out, because cel-python is wrong
about it or lacks it, is named in `LEFT_OUT`.
"""

from __future__ import annotations

import re
from typing import Final

import hypothesis.strategies as st

from cel_helpers import ATTRIBUTES as _A

__all__ = ["LEFT_OUT", "TYPED"]

LEFT_OUT: Final = {
    "0.0 / 0.0": "cel-python takes it for infinity",
    "1.0 / -0.0": "cel-python does not know the sign of zero",
    "0.0 / 0.0 == 0.0 / 0.0": "cel-python's NaN equals itself, so doubles stay finite",
    '["a"][-1]': "cel-python counts negative indexes from the end",
    "string(true)": "cel-python writes True, and",
    "string(1.0)": "1.0",
    '{"a": 1, "a": 2}.size() == 1': "cel-python refuses a key that is there twice; upstream takes the last one",
    'string(duration("1h") - duration("1s"))': "the difference of durations is no duration for cel-python",
    'timestamp("9999-12-31T23:59:59Z") - timestamp("2024-02-29T23:59:59Z")': "cel-python's durations have no limit",
    'string(timestamp("0001-01-01T00:00:00Z"))': "cel-python writes years without leading zeroes",
    'timestamp("2024-01-01T00:00:00.123456789Z")': "cel-python rounds to microseconds",
    "timestamp(1)": "cel-python cannot convert from int",
    'int(duration("1h"))': "cel-python cannot convert durations",
    '{"a": 1 / 0}.size()': "cel-python keeps errors as values of a map",
    '("a" + "a").contains("b")': "a sum of strings has no methods for cel-python, and",
    "type([1] + [2]) == list": "a sum of lists is not of the type list",
    "dyn(true) == dyn(1)": "a bool is an int for cel-python",
    'dyn(1) == dyn("a")': "cel-python fails where types differ",
    "1 < 1.5": "cel-python does not compare numbers of different types",
    f"has({_A}.nosuch.x)": "cel-python's has() absorbs every error",
    'device.attributes["zz"].size()': "upstream's domains are empty maps where they are unknown",
    "[dyn(1)].all(x, x)": "cel-python's all() may give any value",
    "[1, 2].map(x, x > 1, x) == [2]": "cel-python lacks the guard of map(),",
    "[1].all(i, x, x == 1)": "macros of two variables,",
    "cel.bind(x, 1, x == 1)": "bind(),",
    "optional.of(1).hasValue()": "optional values,",
    '"%s".format([1])': "and the extension libraries",
    'int("0x10")': "cel-python converts what Python's int() can; upstream refuses, and",
    'int("x") == 1 || true': "does so when the selector is compiled, as it computes conversions of constants",
    "[1, dyn(1)]": "upstream wants elements of one type",
    '"x" in "xyz"': "cel-python takes strings for lists, as it has no type checker",
    "--9223372036854775808 == 1 || true": "for upstream two signs cancel out, and then the number is too large",
}
"""Expressions that the two engines answer differently, and why; nothing like them is generated."""

_RULES: Final[dict[str, str]] = {
    "bool": """
        true
        false
        $A.ecc
        $A["ecc"]
        has($A.model)
        has($A.nosuch)
        !<bool>
        <bool> && <bool>
        <bool> || <bool>
        <bool> ? <bool> : <bool>
        <bool> == <bool>
        <bool> != <bool>
        <int> == <int>
        <int> != <int>
        <int> < <int>
        <int> <= <int>
        <int> > <int>
        <int> >= <int>
        <uint> == <uint>
        <uint> < <uint>
        <double> == <double>
        <double> < <double>
        <double> >= <double>
        <string> == <string>
        <string> != <string>
        <string> < <string>
        <string> >= <string>
        <bytes> == <bytes>
        <bytes> < <bytes>
        <duration> == <duration>
        <duration> < <duration>
        <timestamp> == <timestamp>
        <timestamp> <= <timestamp>
        <ints> == <ints>
        <ints> != <ints>
        <strings> == <strings>
        <map> == <map>
        <int> in <ints>
        <string> in <strings>
        <string> in <map>
        <text>.contains(<string>)
        <string>.startsWith(<string>)
        <string>.endsWith(<string>)
        <string>.matches(<pattern>)
        <ints>.all(x, <bool of x>)
        <ints>.exists(x, <bool of x>)
        <ints>.exists_one(x, <bool of x>)
        <strings>.all(s, <bool of s>)
        <strings>.exists(s, <bool of s>)
        <lists>.all(l, <bool of l>)
        <lists>.exists_one(l, <bool of l>)
        <lists> == <lists>
        <ints> in <lists>
        dyn(<bool>)
        type(<int>) == int
        type(<bool>) == bool
        <map>.all(s, <bool of s>)
        <map>.exists(s, <bool of s>)
        bool(<booltext>)
    """,
    "int": """
        0
        1
        -1
        3
        7
        -2
        9223372036854775807
        -9223372036854775808
        $A.index
        9223372036854775806
        $A.nosuch
        <int> + <int>
        <int> - <int>
        <int> * <int>
        <int> / <int>
        <int> % <int>
        -(<int>)
        <bool> ? <int> : <int>
        size(<string>)
        <string>.size()
        size(<bytes>)
        size(<ints>)
        <strings>.size()
        size(<map>)
        <lists>.size()
        dyn(<int>)
        <ints>[<index>]
        <map>[<string>]
        <map>.a
        int(<inttext>)
        int(<uint>)
        int(<double>)
        int(<timestamp>)
        <timestamp>.getFullYear()
        <timestamp>.getMonth()
        <timestamp>.getDate()
        <timestamp>.getDayOfMonth()
        <timestamp>.getDayOfWeek()
        <timestamp>.getDayOfYear()
        <timestamp>.getHours()
        <timestamp>.getMinutes()
        <timestamp>.getSeconds()
        <duration>.getHours()
        <duration>.getMinutes()
        <duration>.getSeconds()
    """,
    "uint": """
        0u
        1u
        5u
        18446744073709551615u
        <uint> + <uint>
        <uint> - <uint>
        <uint> * <uint>
        <uint> / <uint>
        <uint> % <uint>
        uint(<int>)
    """,
    "double": """
        0.0
        1.5
        -2.25
        1e10
        <double> + <double>
        <double> - <double>
        <double> * <double>
        <double> / 2.5
        -(<double>)
        double(<int>)
        double(<uint>)
        double(<doubletext>)
    """,
    "string": """
        ""
        "a"
        "b"
        "A100-SXM4"
        "é\\u4e16"
        $A.model
        $A["model"]
        $A.empty
        $A.nosuch
        device.driver
        <string> + <string>
        <bool> ? <string> : <string>
        <strings>[<index>]
        string(<int>)
        string(<uint>)
        string(<bytes>)
        string(<timestamp>)
        string(<duration>)
    """,
    "bytes": r"""
        b""
        b"a"
        b"\xff"
        <bytes> + <bytes>
        bytes(<string>)
    """,
    "duration": """
        duration("0s")
        duration("90s")
        duration("-1h30m")
        <duration> + <duration>
        <timestamp> - <timestamp>
    """,
    "timestamp": """
        timestamp("2024-02-29T23:59:59Z")
        timestamp("1969-12-31T00:00:00Z")
        timestamp("2030-01-01T12:34:56Z")
        <timestamp> + <duration>
        <duration> + <timestamp>
        <timestamp> - <duration>
    """,
    "lists": """
        [[1, 2], [3]]
        [<ints>]
        <lists> + <lists>
        <lists>.filter(l, <bool of l>)
        <ints>.map(x, <ints of x>)
        <strings>.map(s, <ints of s>)
    """,
    "ints": """
        [0]
        <lists>[<index>]
        [1, 2, 3]
        [<int>]
        [<int>] + [<int>]
        $A.numa
        <ints> + <ints>
        <ints>.filter(x, <bool of x>)
        <ints>.map(x, <int of x>)
        <strings>.map(s, <int of s>)
        <bool> ? <ints> : <ints>
    """,
    "strings": """
        ["a"]
        ["a", "b"]
        [<string>]
        $A.features
        <strings> + <strings>
        <strings>.filter(s, <bool of s>)
        <strings>.map(s, <string of s>)
        <map>.map(s, <string of s>)
    """,
    "map": """
        {"a": 1}
        {"a": 1, "b": 2}
        {<string>: 1}
    """,
    "index": """
        0
        1
        2
        <string>.size()
    """,
    "pattern": """
        "a"
        "^A[0-9]+"
        "b$"
        ""
    """,
    "text": """
        ""
        "banana"
        $A.model
        $A.nosuch
        string(<int>)
    """,
    "inttext": """
        "0"
        "42"
        "-7"
        "x"
        "9223372036854775808"
    """,
    "doubletext": """
        "1.5"
        "-0.25"
        "1e3"
        "x"
    """,
    "booltext": """
        "true"
        "false"
        "x"
    """,
}
_HOLE: Final = re.compile(r"<(\w+)(?: of (\w))?>")
_VARIABLES: Final = {"x": "int", "s": "string", "l": "ints"}


def _templates(kind: str) -> tuple[list[str], list[str]]:
    """Of a type: what stands alone, and what has parts."""
    rules = [
        line.strip()
        for line in _RULES[kind].replace("$A", _A).strip().splitlines()
    ]
    return [rule for rule in rules if not _HOLE.search(rule)], [
        rule for rule in rules if _HOLE.search(rule)
    ]


_TEMPLATES: Final = {kind: _templates(kind) for kind in _RULES}


@st.composite
def _expression(
    draw: st.DrawFn, kind: str, depth: int, scope: frozenset[str] = frozenset()
) -> str:
    atoms, others = _TEMPLATES[kind]
    names = [name for name in sorted(scope) if _VARIABLES[name] == kind]
    template = draw(
        st.sampled_from(
            [*atoms, *names]
            if depth == 0 or not others
            else [*atoms, *names, *others]
        )
    )
    parts: list[str] = []
    end = 0
    for hole in _HOLE.finditer(template):
        inner = scope | {hole[2]} if hole[2] else scope
        parts += (
            template[end : hole.start()],
            draw(_expression(hole[1], max(depth - 1, 0), inner)),
        )
        end = hole.end()
    return f"({''.join((*parts, template[end:]))})" if parts else template


TYPED: Final = st.sampled_from(["bool", *_RULES]).flatmap(
    lambda kind: _expression(kind, 3)
)
"""Expressions of any of the types."""
