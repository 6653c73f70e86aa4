"""The estimate of the highest cost, and that nothing costs more."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings

from cel_helpers import ATTRIBUTES, EXPRESSIONS, GPU, costs
from cel_typed import TYPED
from examples import examples
from kubecel import FeatureGates, compile_selector, estimated_cost
from kubecel.errors import CelCompileError, CelRuntimeError

_RECORDED = """
    true  ->  0
    device.allowMultipleAllocations == true  ->  3
    cel.bind(dra, device.attributes["dra.example.com"], dra.name)  ->  15
    $A.name  ->  4
    "name" in device.capacity["dra.example.com"]  ->  4
    device.attributes.exists_one(x, x == "dra.example.com")  ->  164
    $A.exists_one(x, x == "services")  ->  133
    device.capacity.exists_one(x, x == "dra.example.com")  ->  164
    $C.exists_one(x, x == "memory")  ->  133
    device.driver == ""  ->  2
    device.driver == "dra.example.com"  ->  4
    1 in $A.names  ->  68
    $A.name.includes("fish")  ->  52
    $A.name.includes(semver("3.0.0"))  ->  53
    $A.name > 0  ->  5
    $A.names.size() == 2  ->  6
    $A.name.exists(x, x == true)  ->  389
    $A.name.exists(x, x.isGreaterThan(semver("0.0.1")))  ->  453
    $A.names.all(x, x.isGreaterThan(semver("0.0.1")))  ->  389
    $A.names.all(x, x != "")  ->  261
    $C.name.isGreaterThan(quantity("1Ki"))  ->  6
    $A.services.matches("[^a]?sym")  ->  18
    $A.services.split("example").size() >= 2  ->  19
"""

_BY_UPSTREAMS_RULES = """
    has($A.name)  ->  3
    $A.?name.orValue("") == "fish"  ->  6
    true ? device.driver == "" : false  ->  2
    dyn(1) == dyn(2)  ->  3
    matches(device.driver, "a")  ->  3
    device.driver.startsWith("gpu.")  ->  3
    device.driver.contains("gpu.")  ->  9
    device.driver + "a" == "b"  ->  10
    device.driver.replace("a", "bb") != ""  ->  15
    device.driver.upperAscii().lowerAscii() == "a"  ->  17
    [1, 2].map(x, x * 2).size() == 2  ->  51
    [1, 2].filter(x, x > 1) == [2]  ->  62
    ["a", "b"].exists(x, x.startsWith("a"))  ->  23
    [1, 2].transformMap(i, v, v).size() == 2  ->  51
    {"a": 1}.transformMapEntry(k, v, {v: k}).size() == 1  ->  97
    {"a": "bcdefghijklm"}.exists(k, v, v == "bcdefghijklm")  ->  38
    [1, 2].sort() == [1, 2]  ->  40
    ["a", "b"].sort().size() == 2  ->  32
    [2, 1].sortBy(x, x)[0] == 1  ->  80
    lists.range(10).sum() == 45  ->  32
    [1, 2, 3].slice(0, 2).size() == 2  ->  25
    [[1], [2]].flatten().size() == 2  ->  45
    sets.contains([1, 2], [1])  ->  23
    sets.equivalent([1, 2], [1])  ->  25
    "%s".format(["a"]) == "a"  ->  12
    strings.quote("abc") == "abc"  ->  2
    bytes("abc") == b"abc"  ->  2
    string(b"abc") == "abc"  ->  2
    ip("10.0.0.1") == ip("10.0.0.1")  ->  3
    cidr("10.0.0.0/8").containsIP("10.0.0.1")  ->  6
    cidr("10.0.0.0/8").containsCIDR(cidr("10.1.0.0/16"))  ->  10
    cidr("10.0.0.0/8").ip() == ip("10.0.0.0")  ->  4
    url("https://a.b/c") == url("https://a.b/c")  ->  6
    format.uuid() == format.uuid()  ->  9
    format.uuid().validate("abc").hasValue()  ->  34
    quantity("1") == quantity("2")  ->  3
    optional.of(1).optMap(x, x + 1).hasValue()  ->  18
    optional.of(1).optFlatMap(x, optional.of(x)).hasValue()  ->  17
    google.protobuf.Int64Value{value: 1} == 1  ->  41
    type(1) == int  ->  1844674407370955266
    device.attributes["a"].all(k, v, k == v)  ->  292
    "a,b".split(",", 1)[0] == "a"  ->  3
    "abc".find("b") == "b"  ->  2
    ["a", "b"].join(",") == ""  ->  1844674407370955274
"""


@pytest.mark.parametrize(("expression", "cost"), costs(_RECORDED))
def test_estimates_that_were_recorded(expression: str, cost: int) -> None:
    assert estimated_cost(expression) == cost


@pytest.mark.parametrize(("expression", "cost"), costs(_BY_UPSTREAMS_RULES))
def test_estimates_by_the_rules(expression: str, cost: int) -> None:
    assert estimated_cost(expression) == cost


def test_what_has_no_limit() -> None:
    expression = (
        "lists.range(device.driver.size()).all(x, lists.range(x).all(y, true))"
    )
    assert estimated_cost(expression) == 2**64 - 1


def test_what_does_not_compile_has_no_estimate() -> None:
    without = FeatureGates(list_attributes=False)
    with pytest.raises(
        CelCompileError, match="undeclared reference to 'includes'"
    ):
        estimated_cost(f"{ATTRIBUTES}.numa.includes(1)", without)
    assert estimated_cost(f"{ATTRIBUTES}.numa.includes(1)") == 52
    with pytest.raises(CelCompileError, match="program instantiation failed"):
        estimated_cost("int('x') == 1")


def test_deep_expressions_have_an_estimate() -> None:
    assert estimated_cost("[" * 200 + "]" * 200 + ".size() == 1") == 2002
    assert estimated_cost("(true ? " * 100 + "true" + " : false)" * 100) == 0


_UNDERESTIMATED = {
    r"(starts|ends)With": "the estimate is of the argument, the cost of the text",
    r"has\(": "of what is no variable, costs 1 more",
    r"[])}\"]\)*(\[|\.\??[a-z]+\b[^(])": "as do an index of it and a selection from it",
    r"join|quote": "the result's size is doubled, and may overflow",
}
"""What upstream itself estimates too low, and why."""


def _highest_and_actual(expression: str) -> tuple[int, int]:
    try:
        _, cost = compile_selector(expression).evaluate(GPU)
    except (CelCompileError, CelRuntimeError):
        assume(False)
    return estimated_cost(expression), cost


@given(EXPRESSIONS | TYPED.map("dyn({0}) == dyn({0})".format))
@settings(max_examples=examples(200), deadline=None)
def test_nothing_costs_more_than_estimated(expression: str) -> None:
    highest, cost = _highest_and_actual(expression)
    assume(
        not any(re.search(pattern, expression) for pattern in _UNDERESTIMATED)
    )
    assert cost <= highest


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver.startsWith('gpu.')",
        "has(dyn(device).driver)",
        "lists.range(3)[1] == 1",
        "dyn(device).driver == ''",
    ],
)
def test_what_upstream_estimates_too_low(expression: str) -> None:
    assert any(re.search(pattern, expression) for pattern in _UNDERESTIMATED)
    highest, cost = _highest_and_actual(expression)
    assert cost > highest
