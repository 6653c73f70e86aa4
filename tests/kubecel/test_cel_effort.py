"""Every evaluation ends soon, whatever upstream charges for it."""

from __future__ import annotations

from time import perf_counter

import pytest

from cel_helpers import (
    ATTRIBUTES,
    GPU,
    compile_message,
    evaluate,
    lines,
    runtime_message,
)
from kubecel import compile_selector
from kubecel.cost import value_count
from kubecel.errors import CelCompileError, CelRuntimeError

_SOON = 20.0
"""Seconds; a tenth of one is usual, but machines may be busy."""


def _grown(start: str, step: str, times: int, body: str) -> str:
    """A variable ``a`` that a step makes larger, again and again."""
    return (
        f"cel.bind(a, {start}, "
        + f"cel.bind(a, {step}, " * times
        + body
        + ")" * (times + 1)
    )


_TEXT = "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 3
_SHARED = {
    "==": "a == a.map(x, x)",
    "!=": "a != a.map(x, x)",
    "in": "a.map(x, x) in [a]",
    "distinct": "[a, a.map(x, x)].distinct().size() == 1",
    "sets": "sets.contains([a], [a.map(x, x)])",
    "format": "'%s'.format([a]) == ''",
    "optional": "optional.of(a) == optional.of(a.map(x, x))",
    "includes": "dyn([a]).includes(a.map(x, x))",
    "indexOf": "[a].indexOf(a) == 0",
}
_SLOW = {
    **{
        name: _grown("[1]", "[a, a]", 40, body)
        for name, body in _SHARED.items()
    },
    "indexOf of what costs nothing": _grown(
        "dyn([])", "dyn([a, a])", 40, "[a].indexOf(a) == 0"
    ),
    "flatten": _grown(
        "[dyn(1)]", "[dyn(a), dyn(a)]", 40, "a.flatten(100).size() == 1"
    ),
    "joining lists": _grown(
        "[1]", "a + a", 20, "lists.range(9000).all(x, (a + a).size() > 0)"
    ),
    "join": _grown(
        "['']", "a + a", 18, "lists.range(9000).all(x, a.join() == '')"
    ),
    "min": _grown(
        "['']", "a + a", 18, "lists.range(9000).all(x, a.min() == '')"
    ),
    "unwrap": _grown(
        "[optional.none()]",
        "a + a",
        18,
        "lists.range(9000).all(x, optional.unwrap(a) == [])",
    ),
    "isURL": f"cel.bind(t, '/' + {_TEXT}, lists.range(9000).all(x, isURL(t)))",
    "double": f"cel.bind(t, {_TEXT}.replace('a', '1'), lists.range(9000).all(x, double(t) > 1.0))",
    "getQuery": f"cel.bind(u, url('/?' + {_TEXT}.replace('a', '&a=')), lists.range(9000).all(x, u.getQuery() != {{}}))",
    "validate": f"cel.bind(t, {_TEXT}, lists.range(9000).all(x, format.uuid().validate(t).hasValue()))",
    "matches": f"cel.bind(t, {_TEXT}, lists.range(9000).all(x, matches(t, 'a*')))",
    "automaton": f"cel.bind(t, {_TEXT}, lists.range(9000).all(x, !matches(t, '(a|b)*a(a|b){{400}}c')))",
    "format of many": _grown(
        "'%s'",
        "a + a",
        12,
        "lists.range(9000).all(x, a.format(lists.range(4096)) != '')",
    ),
    "quoting": f"cel.bind(t, {_TEXT}, lists.range(9000).all(x, '%s'.format([[t]]) != ''))",
    "what is free": "lists.range(9000).all(x, "
    + " && ".join(["true"] * 2000)
    + ")",
    "time": "lists.range(9000).all(x, timestamp(string(timestamp(x))).getFullYear('Europe/Berlin') > 0)",
}


@pytest.mark.parametrize("name", _SLOW)
def test_what_takes_too_long_is_stopped(name: str) -> None:
    selector = compile_selector(_SLOW[name])
    start = perf_counter()
    with pytest.raises(CelRuntimeError, match="operation cancelled"):
        selector.matches(GPU, cost_limit=100_000)
    assert perf_counter() - start < _SOON


_QUICK = f"""
    {_TEXT}.lastIndexOf({_TEXT}.substring(5000) + 'b') == -1
    {_TEXT}.lastIndexOf({_TEXT}.substring(9000)) == 9000
    ('b' + {_TEXT}).lastIndexOf('b' + {_TEXT}.substring(9000)) == 0
    {_TEXT}.lastIndexOf({_TEXT}.substring(9000), 5) == 5
    cel.bind(t, {_TEXT}.replace('a', '0'), int(t + '7') == 7 && uint(t + '7') == 7u)
    cel.bind(t, {_TEXT}.replace('a', '1'), duration('0.' + t + 's') == duration('0.111111111s'))
    cel.bind(t, {_TEXT}.replace('a', '0'), duration(t + '2s') == duration('2s'))
"""


@pytest.mark.parametrize("expression", lines(_QUICK))
def test_long_texts_are_handled_quickly(expression: str) -> None:
    start = perf_counter()
    assert evaluate(expression) is True
    assert perf_counter() - start < _SOON


@pytest.mark.parametrize(
    "kind",
    [
        "int",
        "uint",
        "double",
        "duration",
        "timestamp",
        "quantity",
        "semver",
        "bool",
    ],
)
@pytest.mark.parametrize("tail", ["", "x", ".1", "e1"])
def test_long_numbers_are_refused(kind: str, tail: str) -> None:
    expression = f"cel.bind(t, {_TEXT}.replace('a', '1') + '{tail}', {kind}(t) != {kind}(t))"
    assert evaluate(expression) == "runtime-error"


def test_messages_show_no_long_keys() -> None:
    assert len(runtime_message(f"{{'b': 1}}[{_TEXT}] == 1")) < 2000


def test_types_that_double_are_refused() -> None:
    assert "the type of the expression is too large" in compile_message(
        _grown("1", "{a: a}", 30, "true")
    )


def test_effort_is_no_cost() -> None:
    cost = "cel.bind(a, lists.range(1000), (a + a).size() == 2000)"
    assert compile_selector(cost).evaluate(GPU) == (True, 1016)
    heavy = "[1, 2].all(x, " + " && ".join(["true"] * 100) + ")"
    assert compile_selector(heavy).evaluate(GPU) == (True, 7)
    assert (
        compile_selector(
            f"[1, 2].map(x, {list(range(100))}).size() == 2"
        ).evaluate(GPU)[1]
        == 7
    )


def test_the_function_matches_costs_as_little_as_upstream_charges() -> None:
    pattern = "'(a|b|c|d|e|f|g|h)'"
    assert (
        compile_selector(f"matches({ATTRIBUTES}.model, {pattern})").evaluate(
            GPU
        )[1]
        == 5
    )
    assert (
        compile_selector(f"{ATTRIBUTES}.model.matches({pattern})").evaluate(
            GPU
        )[1]
        == 9
    )


def test_values_are_counted_as_often_as_they_occur() -> None:
    shared: tuple[object, ...] = (1, 2)
    assert value_count(shared) == 3
    assert value_count((shared, shared)) == 7
    assert value_count({"a": shared}) == 5
    for _ in range(40):
        shared = (shared, shared)
    assert value_count(shared) > 10**6


@pytest.mark.parametrize("limit", [0, 3])
def test_a_low_limit_holds(limit: int) -> None:
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"{ATTRIBUTES}.ecc").matches(GPU, cost_limit=limit)


def test_long_constants_are_refused_when_compiled() -> None:
    with pytest.raises(CelCompileError, match="type conversion error"):
        compile_selector("int('" + "1" * 99_980 + "') == 1")
