from __future__ import annotations

import pytest

from cel_helpers import ATTRIBUTES, compile_message, evaluate, lines, table
from kubecel import FeatureGates, compile_selector
from kubecel.type_parameters import assignable, more_general, substitute
from kubecel.types import parse_signature, parse_type


def test_the_notation_of_types() -> None:
    params, result = parse_signature(
        "map(K, list(quantity)), int -> optional(K)"
    )
    assert [str(param) for param in params] == [
        "map(K, list(kubernetes.Quantity))",
        "int",
    ]
    assert str(result) == "optional_type(K)"
    assert parse_signature("-> format") == (
        (),
        parse_type("kubernetes.NamedFormat"),
    )


@pytest.mark.parametrize(
    ("given", "wanted", "possible"),
    [
        *(
            ("int", "int", True),
            ("int", "uint", False),
            ("dyn", "int", True),
            ("int", "dyn", True),
        ),
        *(
            ("list(int)", "list(A)", True),
            ("list(int)", "map(A, B)", False),
            ("map(string, dyn)", "map(A, A)", True),
        ),
        *(
            ("null", "quantity", True),
            ("null", "int", False),
            ("type(int)", "type(string)", True),
            ("A", "list(A)", False),
        ),
    ],
)
def test_assignable(given: str, wanted: str, possible: bool) -> None:
    assert (
        assignable({}, (parse_type(given),), (parse_type(wanted),)) is not None
    ) is possible


def test_parameters_are_bound_to_the_more_general_type() -> None:
    bindings = assignable(
        {},
        (parse_type("int"), parse_type("dyn")),
        (parse_type("A"), parse_type("A")),
    )
    assert bindings is not None
    assert str(substitute(bindings, parse_type("list(A)"))) == "list(dyn)"
    assert (
        str(substitute({}, parse_type("list(A)"), free_to_dyn=True))
        == "list(dyn)"
    )
    assert (
        str(more_general(parse_type("list(int)"), parse_type("list(dyn)")))
        == "list(dyn)"
    )


_COMPILE_ERRORS = """
    nosuch == 1  ->  1:1: undeclared reference to 'nosuch' (in container '')
    device.nosuch == 1  ->  1:7: undefined field 'nosuch'
    device.driver.nofunc()  ->  1:21: undeclared reference to 'nofunc'
    math.greatest(1, 2) == 2  ->  undeclared reference to 'math'
    1 + 'a' == 2  ->  found no matching overload for '_+_' applied to '(int, string)'
    1 == 1.0  ->  found no matching overload for '_==_' applied to '(int, double)'
    $C.memory > quantity("1Gi")  ->  applied to '(kubernetes.Quantity, kubernetes.Quantity)'
    $C.memory.isGreaterThan("1Gi")  ->  'isGreaterThan' applied to 'kubernetes.Quantity.(string)'
    1 && true  ->  expected type 'bool' but found 'int'
    true ? true : 1  ->  found no matching overload for '_?_:_' applied to '(bool, bool, int)'
    'a'.b == 1  ->  type 'string' does not support field selection
    1.all(x, true)  ->  expression of type 'int' cannot be range of a comprehension
    [1].map(x, x, x) == [1]  ->  applied to '(int, dyn, dyn)'
    {1: 2}.transformMapEntry(k, v, v) == {}  ->  expected type 'map(
    [1, 'a'].size() == 2  ->  1:5: expected type 'int' but found 'string'
    [1, dyn(1)].size() == 2  ->  expected type 'int' but found 'dyn'
    {1: 'a', 1u: 'b'}.size() == 1  ->  expected type 'int' but found 'uint'
    [?1].size() == 1  ->  expected type 'optional_type(int)' but found 'int'
    1.optMap(x, x).hasValue()  ->  'hasValue' applied to 'int.()'
    optional.of(1).optFlatMap(x, x).hasValue()  ->  found no matching overload
    optional.of(1).orValue('a') == 1  ->  'orValue'
    nosuch{a: 1} == 1  ->  undeclared reference to 'nosuch'
    google.protobuf.Int64Value{value: 'a'} == 1  ->  expected type of field 'value' is 'int'
    google.protobuf.Int64Value{nosuch: 1} == 1  ->  undefined field 'nosuch'
    type(quantity('1')) == kubernetes.Quantity  ->  undeclared reference to 'kubernetes'
    device  ->  must evaluate to bool or the unknown type, not kubernetes.DRADevice
    1  ->  must evaluate to bool or the unknown type, not int
    'a'.matches('(')  ->  invalid matches argument
    matches('(', 'a')  ->  invalid matches argument
    'a'.find('(') == ''  ->  program instantiation failed: error parsing regexp
    true || int('4x') == 1  ->  program instantiation failed: type conversion error from 'string' to 'int'
    duration(1) == duration('1s')  ->  program instantiation failed
    '%d'.format(['a']) == ''  ->  decimal clause can only be used on integers, was given string
    '%s'.format([[quantity('1')]]) == ''  ->  was given kubernetes.Quantity
    '%s %s'.format([1]) == ''  ->  index 1 out of range
    '%s'.format([1, 2]) == ''  ->  too many arguments supplied to string.format (expected 1, got 2)
    '%y'.format([1]) == ''  ->  unrecognized formatting clause
    '%.1234567s'.format([1]) == ''  ->  is too large
"""


@pytest.mark.parametrize(("expression", "message"), table(_COMPILE_ERRORS))
def test_compile_errors(expression: str, message: str) -> None:
    assert message in compile_message(expression)


def test_every_error_is_reported() -> None:
    message = compile_message("a == 1 &&\n b == 2")
    assert message.count("ERROR") == 2
    assert "<input>:2:2: undeclared reference to 'b'" in message


_WHAT_IS_WELL_TYPED = """
    1 < 2.5
    1u < 2
    2u >= 1.5
    dyn(1) == dyn(1.0)
    dyn(1u) == 1
    type(1) == int
    int == type(1)
    type(type(1)) == type
    type(null) == null_type
    type([]) == list
    type(dyn({})) == map
    [].all(x, x)
    type(optional.none()) == optional_type
    type(duration('1s')) == google.protobuf.Duration
    type(ip('::1')) == net.IP
    [[], [1]].size() == 2
    cel.bind(int, 1, int == 1)
    cel.bind(device, 1, device == 1)
    cel.bind(a, {'b': true}, a.b)
    '%s %s'.format([1, 'a']) == '1 a'
    dyn([1]) == [1]
    null == dyn(null)
    device.?driver.hasValue()
    .device.driver != ''
    [1].all(device, .device.driver != '')
    true ? dyn(true) : false
    [optional.of(1), optional.none()].size() == 2
    $A.ecc
"""


@pytest.mark.parametrize("expression", lines(_WHAT_IS_WELL_TYPED))
def test_what_is_well_typed(expression: str) -> None:
    assert evaluate(expression) is True


def test_new_expressions_depend_on_gates() -> None:
    without = FeatureGates(consumable_capacity=False, list_attributes=False)
    new = {"gates": without}
    assert "undefined field" in compile_message(
        "device.allowMultipleAllocations", **new
    )
    assert "undeclared reference to 'includes'" in compile_message(
        f"{ATTRIBUTES}.model.includes('a')", **new
    )
    assert "expression of type 'any' cannot be range" in compile_message(
        f"{ATTRIBUTES}.numa.all(x, true)", **new
    )
    assert "not dyn" in compile_message("dyn(true)", **new)
    assert compile_selector(f"{ATTRIBUTES}.ecc", without)
    assert compile_selector("device.allowMultipleAllocations")
