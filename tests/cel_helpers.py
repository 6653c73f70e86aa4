"""A device to select, and expressions about it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from kubecel import CelDevice, compile_selector, device_from_wire
from kubecel.errors import CelCompileError, CelRuntimeError

DOMAIN = "gpu.example.com"
ATTRIBUTES = f'device.attributes["{DOMAIN}"]'
CAPACITY = f'device.capacity["{DOMAIN}"]'
WIRE: dict[str, Any] = {
    "allowMultipleAllocations": True,
    "attributes": {
        "model": {"string": "A100"},
        "empty": {"string": ""},
        "ecc": {"bool": True},
        "index": {"int": 3},
        "driverVersion": {"version": "550.54.15"},
        "features": {"strings": ["nvlink", "mig"]},
        "numa": {"ints": [0, 1]},
        "flags": {"bools": [True, False]},
        "apis": {"versions": ["1.0.0", "2.1.0"]},
        "other.example.com/pool": {"string": "blue"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "108"}},
}
GPU: CelDevice = device_from_wire(DOMAIN, WIRE)


def evaluate(expression: str, device: CelDevice = GPU) -> bool | str:
    """The answer, or which kind of error there is instead."""
    try:
        selector = compile_selector(expression)
    except CelCompileError:
        return "compile-error"
    try:
        return selector.matches(device)
    except CelRuntimeError:
        return "runtime-error"


def compile_message(expression: str, **options: Any) -> str:
    """What is said about an expression that does not compile."""
    try:
        compile_selector(expression, **options)
    except CelCompileError as error:
        return str(error)
    raise AssertionError(f"{expression} compiles")


def runtime_message(expression: str, device: CelDevice = GPU) -> str:
    """What is said when an expression fails on a device."""
    try:
        compile_selector(expression).matches(device)
    except CelRuntimeError as error:
        return str(error)
    raise AssertionError(f"{expression} does not fail")


_ATOMS = st.sampled_from(
    [
        *(
            "true",
            "false",
            "null",
            "0",
            "1",
            "-1",
            "2u",
            "1.5",
            "9223372036854775807",
            "-9223372036854775808",
            "0.0",
        ),
        *(
            '"a"',
            '""',
            "'A100'",
            'b"x"',
            '"1h"',
            '"1Gi"',
            '"1.2.3"',
            '"10.0.0.1/8"',
            '"%s"',
            '"("',
            "r'\\d'",
            "[]",
            "{}",
        ),
        *(
            "device",
            "device.driver",
            "x",
            ATTRIBUTES,
            CAPACITY,
            "device.attributes",
            "device.capacity",
            "int",
            "type",
        ),
        *(
            f"{ATTRIBUTES}.{name}"
            for name in WIRE["attributes"]
            if "/" not in name
        ),
        *(
            f"{ATTRIBUTES}.nosuch",
            f"{ATTRIBUTES}.?model",
            f"{CAPACITY}.memory",
            'quantity("1Gi")',
            'semver("1.2.3")',
        ),
        *(
            'duration("1h")',
            'timestamp("2024-01-01T00:00:00Z")',
            "optional.none()",
            "optional.of(1)",
            "1/0",
            "dyn(1)",
        ),
        *(
            'ip("10.0.0.1")',
            'cidr("10.0.0.0/8")',
            'url("https://a.b/c?d=e")',
            "format.uuid()",
            "lists.range(3)",
        ),
    ]
)
_BINARY = st.sampled_from(
    [
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "in",
        "&&",
        "||",
    ]
)
_UNARY_CALLS = st.sampled_from(
    [
        *(
            "size",
            "type",
            "dyn",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "bool",
            "duration",
            "timestamp",
            "has",
        ),
        *(
            "quantity",
            "isQuantity",
            "sign",
            "semver",
            "isSemver",
            "ip",
            "isIP",
            "cidr",
            "isCIDR",
            "url",
            "isURL",
        ),
        *(
            "optional.of",
            "optional.ofNonZeroValue",
            "optional.unwrap",
            "strings.quote",
            "lists.range",
            "format.named",
        ),
    ]
)
_METHODS = st.sampled_from(
    [
        *(
            "size",
            "lowerAscii",
            "upperAscii",
            "trim",
            "join",
            "sort",
            "reverse",
            "distinct",
            "isSorted",
            "sum",
            "min",
        ),
        *(
            "max",
            "first",
            "last",
            "flatten",
            "hasValue",
            "value",
            "unwrapOpt",
            "isInteger",
            "asInteger",
            "major",
        ),
        *(
            "asApproximateFloat",
            "family",
            "masked",
            "prefixLength",
            "ip",
            "getHost",
            "getQuery",
            "getPort",
        ),
        *(
            "getEscapedPath",
            "getFullYear",
            "getHours",
            "getMilliseconds",
            "isGlobalUnicast",
        ),
    ]
)
_METHODS_OF_ONE = st.sampled_from(
    [
        *(
            "includes",
            "contains",
            "startsWith",
            "endsWith",
            "matches",
            "find",
            "findAll",
            "split",
            "charAt",
            "indexOf",
        ),
        *(
            "lastIndexOf",
            "substring",
            "join",
            "format",
            "add",
            "sub",
            "compareTo",
            "isGreaterThan",
            "isLessThan",
        ),
        *(
            "containsIP",
            "containsCIDR",
            "or",
            "orValue",
            "validate",
            "flatten",
            "getHours",
            "sortBy",
        ),
    ]
)
_FOLDS = st.sampled_from(
    [
        "all",
        "exists",
        "exists_one",
        "map",
        "filter",
        "sortBy",
        "optMap",
        "optFlatMap",
    ]
)
_PAIR_FOLDS = st.sampled_from(
    [
        "all",
        "exists",
        "existsOne",
        "transformList",
        "transformMap",
        "transformMapEntry",
    ]
)


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, parts, _BINARY, parts),
        st.builds("({} ? {} : {})".format, parts, parts, parts),
        st.builds("!{}".format, parts),
        st.builds("-{}".format, parts),
        st.builds("{}({})".format, _UNARY_CALLS, parts),
        st.builds("{}.{}()".format, parts, _METHODS),
        st.builds("{}.{}({})".format, parts, _METHODS_OF_ONE, parts),
        st.builds("{}.{}(x, {})".format, parts, _FOLDS, parts),
        st.builds("{}.{}(k, x, {})".format, parts, _PAIR_FOLDS, parts),
        st.builds("{}.replace({}, {})".format, parts, parts, parts),
        st.builds("{}.slice({}, {})".format, parts, parts, parts),
        st.builds("cel.bind(x, {}, {})".format, parts, parts),
        st.builds("[{}, {}]".format, parts, parts),
        st.builds("[?{}]".format, parts),
        st.builds("{{{}: {}}}".format, parts, parts),
        st.builds("{{?{}: {}}}".format, parts, parts),
        st.builds("{}[{}]".format, parts, parts),
        st.builds("{}[?{}]".format, parts, parts),
        st.builds("{}.model".format, parts),
        st.builds("{}.?model".format, parts),
        st.builds("has({}.model)".format, parts),
        st.builds("dyn({})".format, parts),
    )


EXPRESSIONS = st.recursive(_ATOMS, _larger, max_leaves=6)
"""Expressions that parse and often are well typed."""

DYNAMIC = st.recursive(
    _ATOMS.map("dyn({})".format),
    lambda parts: _larger(parts).map("dyn({})".format),
    max_leaves=6,
)
"""The same with every part's type hidden from the checker, so that most of them compile."""

FRAGMENTS = st.lists(
    st.one_of(
        _ATOMS,
        _BINARY,
        st.sampled_from(list("()[]{}.,?:!-\"'`\\\n ")),
        st.text(max_size=3),
    ),
    max_size=8,
).map("".join)
"""Text that looks like an expression here and there."""


def lines(text: str) -> list[str]:
    """One expression per line; ``$A`` and ``$C`` stand for the attributes and the capacity of the driver's domain."""
    return [
        line.strip().replace("$A", ATTRIBUTES).replace("$C", CAPACITY)
        for line in text.strip().splitlines()
    ]


def table(text: str) -> list[tuple[str, str]]:
    """One ``expression -> text`` per line."""
    rows = (line.partition("->") for line in lines(text))
    return [
        (expression.strip(), result.strip()) for expression, _, result in rows
    ]


def answers(text: str) -> list[tuple[str, bool | str]]:
    """One ``expression -> answer`` per line; an answer is true, false, or the kind of error."""
    known: dict[str, bool | str] = {"true": True, "false": False}
    return [
        (expression, known.get(result, result))
        for expression, result in table(text)
    ]


def costs(text: str) -> list[tuple[str, int]]:
    """One ``expression -> number`` per line."""
    return [(expression, int(result)) for expression, result in table(text)]
