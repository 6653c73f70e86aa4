from __future__ import annotations

import pytest

from cel_helpers import (
    ATTRIBUTES,
    GPU,
    answers,
    costs,
    evaluate,
    lines,
    runtime_message,
    table,
)
from kubecel import compile_selector, device_from_wire, explain
from kubecel.errors import CelRuntimeError

_OPERATORS = """
    7 / 2 == 3
    -7 / 2 == -3
    -7 % 3 == -1
    7 % -3 == 1
    7u / 2u == 3u
    7u % 4u == 3u
    2.5 * 2.0 == 5.0
    1.0 / 0.0 > 1.0
    -1.0 / 0.0 < 0.0
    0.0 / 0.0 != 0.0 / 0.0
    1u + 2u == 3u
    3u - 1u == 2u
    -(1.5) == -1.5
    9007199254740993 == dyn(9007199254740992.0)
    18446744073709551615u > -1
    1 < 1.5
    true > false
    'a' < 'b'
    b'a' + b'b' == b'ab'
    b'a' < b'b'
    'é'.size() == 1
    [1] + [2] == [1, 2]
    size({'a': 1}) == 1
    1 in [1, 2]
    !(3 in [1, 2])
    dyn(1.0) in [1]
    dyn(1) in [1u]
    !(dyn('1') in [1])
    !(dyn(true) in [1])
    'a' in {'a': 1}
    !(1 in [])
    !('x' in device.attributes)
    dyn(1) in [dyn(semver('1.0.0')), dyn(1)]
    {1: 'x'}[dyn(1u)] == 'x'
    {1: 'x'}[dyn(1.0)] == 'x'
    {true: 1}[true] == 1
    {'a': 1, 'a': 2}['a'] == 2
    !(dyn(true) in {1: 2})
    [1, 2][dyn(1.0)] == 2
    [1, 2][dyn(1u)] == 2
    {'a': {'b': true}}.a.b
    dyn(1) != dyn('1')
    dyn(true) != dyn(1)
    dyn([1]) == dyn([1.0])
    [1] != [1, 2]
    {'a': 1} == {'a': 1}
    {'a': 1} != {'b': 1}
    dyn({1: 1}) == dyn({1u: 1.0})
    optional.of(1) == optional.of(1)
    b'a' == b'a'
    optional.none() == optional.none()
    !(b'a' in {}) && !(semver('1.0.0') in {})
    optional.of(1) != optional.none()
    [dyn(semver('1.0.0'))] == [dyn('x')]
"""


@pytest.mark.parametrize("expression", lines(_OPERATORS))
def test_operators(expression: str) -> None:
    assert evaluate(expression) is True


_RUNTIME_ERRORS = """
    1 / 0 == 1  ->  division by zero
    1u / 0u == 1u  ->  division by zero
    1 % 0 == 1  ->  modulus by zero
    9223372036854775807 + 1 > 0  ->  integer overflow
    -(-9223372036854775808) > 0  ->  integer overflow
    9223372036854775807 * 2 > 0  ->  integer overflow
    -9223372036854775807 - 2 > 0  ->  integer overflow
    -9223372036854775808 / -1 == 0  ->  integer overflow
    -9223372036854775808 % -1 == 0  ->  integer overflow
    0u - 1u > 0u  ->  unsigned integer overflow
    18446744073709551615u * 2u > 0u  ->  unsigned integer overflow
    [1][1] == 1  ->  index out of bounds: 1
    [1][-1] == 1  ->  index out of bounds: -1
    {'a': 1}['b'] == 1  ->  no such key: b
    [1][dyn(1.5)] == 1  ->  unsupported index type 'double' in list
    dyn(1) + dyn('a') == 1  ->  no such overload
    dyn(1) < dyn('a')  ->  no such overload
    !dyn(1)  ->  no such
    dyn(semver('1.0.0')) == dyn('x')  ->  no such overload
    dyn(1).size() == 1  ->  no such overload
    dyn(1) ? true : false  ->  no such overload
    dyn('a').hasValue()  ->  no such overload: hasValue
    $A.driverVersion in ['1.0.0']  ->  hash of unhashable type cel.Semver
    $A.model  ->  CEL result of type string could not be converted to bool
    $A.features  ->  CEL result of type list could not be converted to bool: type conversion error
    $A.nosuch  ->  no such key: nosuch
    device.attributes["zz"].x  ->  no such key: x
    $A.index.exists(x, true)  ->  got 'types.Int', expected iterable type
    $A.model.exists(k, v, true)  ->  unsupported comprehension range type: types.String
    {b"a": 2}.size() == 1  ->  hash of unhashable type types.Bytes
    0.0 / 0.0 < 1.0  ->  NaN values cannot be ordered
    {'a': 1}[?dyn([$A.index])].hasValue() || {'a': 1}[dyn([$A.index])] == 1  ->  invalid qualifier type: *types.baseList
    google.protobuf.Int32Value{value: 4294967296} == 1  ->  integer overflow
    [?dyn(1)] == [1]  ->  cannot initialize optional
"""


@pytest.mark.parametrize(("expression", "message"), table(_RUNTIME_ERRORS))
def test_runtime_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


_ERRORS_ARE_ABSORBED_WHERE_THEY_DO_NOT_MATTER = """
    true || 1/0 == 1  ->  true
    1/0 == 1 || true  ->  true
    1/0 == 1 || false  ->  runtime-error
    false && 1/0 == 1  ->  false
    1/0 == 1 && false  ->  false
    1/0 == 1 && true  ->  runtime-error
    $A.index || true  ->  true
    $A.index && true  ->  runtime-error
    true && $A.index && true  ->  runtime-error
    false || false || 1/0 == 1  ->  runtime-error
    [0, 1].all(x, 1/x == 5)  ->  false
    [1, 0].exists(x, 1/x == 1)  ->  true
    [0].all(x, 1/x == 1)  ->  runtime-error
    [0, 1].exists_one(x, 1/x == 1)  ->  runtime-error
    [0].filter(x, 1/x == 1).size() == 0  ->  runtime-error
    [dyn(1)].all(x, x)  ->  runtime-error
    true ? true : 1/0 == 1  ->  true
    1/0 == 1 ? true : true  ->  runtime-error
    cel.bind(x, 1/0, true)  ->  true
    cel.bind(x, 1/0, x == 1 || true)  ->  true
    cel.bind(x, 1/0, x == x)  ->  runtime-error
    optional.of(1).orValue(1/0) == 1  ->  true
    optional.none().orValue(1/0) == 1  ->  runtime-error
    semver('1.0.0') != dyn('x')  ->  true
    dyn('x') == dyn(semver('1.0.0'))  ->  false
"""


@pytest.mark.parametrize(
    ("expression", "answer"),
    answers(_ERRORS_ARE_ABSORBED_WHERE_THEY_DO_NOT_MATTER),
)
def test_errors_are_absorbed_where_they_do_not_matter(
    expression: str, answer: object
) -> None:
    assert evaluate(expression) == answer


_LOOPS_AND_VARIABLES = """
    [1, 2].all(x, x > 0)
    ![1, 2].exists(x, x > 2)
    [1, 2, 2].exists_one(x, x == 1)
    {'a': 1}.all(k, k == 'a')
    [1, 2, 3].filter(x, x > 1) == [2, 3]
    [1, 2].map(x, x * 2) == [2, 4]
    [1, 2].map(x, x > 1, x) == [2]
    [1, 2].all(i, v, v == i + 1)
    {'a': 1}.exists(k, v, v == 1)
    ['a'].existsOne(i, v, i == 0 && v == 'a')
    ['a', 'b'].transformList(i, v, v + string(i)) == ['a0', 'b1']
    [5].transformList(i, v, i > 0, v) == []
    {'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 2) == {'b': 4}
    [7].transformMap(i, v, v)[0] == 7
    {'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}
    [[1, 2], [3]].all(l, l.exists(e, e > 0))
    [3, 1, 2].sortBy(x, -x) == [3, 2, 1]
    cel.bind(x, 1, cel.bind(y, x + 1, y == 2))
    [1].all(x, [2].all(x, x == 2) && x == 1)
    optional.of(2).optMap(x, x + 1).value() == 3
    !optional.none().optMap(x, x).hasValue()
    optional.of(2).optFlatMap(x, optional.of(x + 1)) == optional.of(3)
    device.attributes.map(d, d).size() == 2
    device.attributes.exists(d, 'pool' in device.attributes[d])
    device.capacity.all(d, c, c.all(n, q, q.isInteger() || true))
    {true: 1}.all(k, k)
    {duration('1s'): 1}.all(k, k == duration('1s'))
"""


@pytest.mark.parametrize("expression", lines(_LOOPS_AND_VARIABLES))
def test_loops_and_variables(expression: str) -> None:
    assert evaluate(expression) is True


_LOOKUPS = """
    $A.model == 'A100'  ->  true
    $A.model == 'H100'  ->  false
    $A.index == 3  ->  true
    $A.index == 3.0  ->  true
    $A.index == '3'  ->  false
    $A.index != '3'  ->  true
    '3' == $A.index  ->  false
    $A.driverVersion == 'x'  ->  runtime-error
    'x' == $A.driverVersion  ->  false
    $A.driverVersion != 'x'  ->  true
    $A.driverVersion == semver('550.54.15')  ->  true
    $A.numa == [0, 1]  ->  true
    device.attributes[device.driver].ecc  ->  true
    device.attributes['other.example.com'].pool == 'blue'  ->  true
    has(device.attributes.zz)  ->  true
    'zz' in device.attributes  ->  false
    device.attributes[?'zz'].hasValue()  ->  true
    device.attributes.zz == {}  ->  true
    device.attributes.size() == 2  ->  true
    size(device.capacity) == 1  ->  true
    has($A.model)  ->  true
    has($A.nosuch)  ->  false
    has($A.model.x)  ->  false
    has($A.nosuch.x)  ->  runtime-error
    has($A.?model.orValue({}).x)  ->  false
    $A.?nosuch.?deeper[?0].orValue(true)  ->  true
    $A.?features[0].orValue('') == 'nvlink'  ->  true
    $A.?features[9].hasValue()  ->  false
    $A.?model == optional.of('A100')  ->  true
    cel.bind(o, $A.?model, o.or(optional.of('')).value() == 'A100')  ->  true
    device == device  ->  true
    $C.memory == quantity('81920Mi')  ->  true
    $C.?memory.hasValue()  ->  true
    {'a': 1}.?b.hasValue()  ->  false
    device.allowMultipleAllocations  ->  true
    device.attributes == device.attributes  ->  true
    (true ? {'a': true} : {'a': false}).a  ->  true
    cel.bind(o, optional.of({'a': 1}), o.a.value() == 1)  ->  true
    dyn(optional.none()).a == optional.none()  ->  true
    google.protobuf.Int64Value{?value: optional.none()} == 0  ->  true
    google.protobuf.StringValue{value: 'a'} == 'a'  ->  true
"""


@pytest.mark.parametrize(("expression", "answer"), answers(_LOOKUPS))
def test_lookups(expression: str, answer: object) -> None:
    assert evaluate(expression) == answer


def test_a_broken_device_fails_every_selector() -> None:
    for broken in (
        {"version": "1.2"},
        {},
        {"int": 2**63},
        {"versions": ["1.0.0", "x"]},
        {"string": "\ud800"},
    ):
        device = device_from_wire("d", {"attributes": {"v": broken}})
        assert runtime_message("true", device).startswith(
            ("attribute v: ", "'utf-8' codec")
        )


def test_a_selector_is_compiled_once() -> None:
    assert compile_selector("true") is compile_selector("true")


_COSTS = """
    true  ->  0
    device.driver == ''  ->  2
    device.driver == 'gpu'  ->  3
    device.driver == 'gpu.example.com.x'  ->  4
    $A.ecc  ->  4
    $A.index == 3  ->  5
    $A.index > 2  ->  5
    'x' in device.attributes  ->  3
    $C.memory.compareTo(quantity('1Ki')) > 0  ->  7
    has(device.attributes.d)  ->  2
    true ? device.driver == '' : false  ->  2
    device.driver == '' && $A.ecc  ->  2
    true || $A.ecc  ->  0
    true && $A.ecc  ->  4
    $A.numa.exists(x, x == 0)  ->  14
    $A.numa.all(x, x >= 0)  ->  15
    $A.numa.exists_one(x, x == 0)  ->  12
    $A.numa.map(x, x) == [0, 1]  ->  32
    $A.numa.filter(x, x > 0).size() == 1  ->  24
    'abc'.matches('b')  ->  1
    'abc'.contains('b')  ->  1
    'aaaaaaaaaa'.matches('aaaaa')  ->  4
    int('42') == 42  ->  1
    [1, 2] == [1, 2]  ->  1
    1 in [1, 2]  ->  0
    [1 + 1] == [2]  ->  12
    {1: 1 + 1} == {}  ->  31
    cel.bind(x, 1 + 1, true)  ->  0
    cel.bind(x, 1 + 1, x == x)  ->  4
    optional.of(1).hasValue()  ->  2
    device.?driver.orValue('') == ''  ->  2
    optional.of(1).optMap(x, x).hasValue()  ->  7
    lists.range(3).size() == 3  ->  16
    device.attributes[device.driver].size() == 0  ->  6
    (true ? device.driver : '') == ''  ->  1
    type(1) == int  ->  1
"""


@pytest.mark.parametrize(("expression", "cost"), costs(_COSTS))
def test_costs(expression: str, cost: int) -> None:
    assert compile_selector(expression).evaluate(GPU)[1] == cost


def test_upstreams_advice_where_a_key_is_missing() -> None:
    with pytest.raises(CelRuntimeError) as error:
        compile_selector(f"{ATTRIBUTES}.nosuch").matches(GPU)
    assert explain(error.value) == (
        "no such key: nosuch. consider using CEL optional chaining (.? followed by orValue()) or guarding the check"
        " with has() for optional fields"
    )
    assert explain(CelRuntimeError("division by zero")) == "division by zero"


def test_the_cost_limit_ends_an_evaluation() -> None:
    expensive = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
    assert (
        runtime_message(expensive)
        == "operation cancelled: actual cost limit exceeded"
    )
    assert (
        runtime_message(f"{expensive} || true")
        == "operation cancelled: actual cost limit exceeded"
    )
    with pytest.raises(CelRuntimeError, match="actual cost limit exceeded"):
        compile_selector(f"{ATTRIBUTES}.ecc").matches(GPU, cost_limit=3)
    assert compile_selector(f"{ATTRIBUTES}.ecc").matches(GPU, cost_limit=4)


def _nested(start: str, step: str) -> str:
    return (
        f"cel.bind(a, {start}, "
        + f"cel.bind(a, {step}, " * 20
        + "a == a"
        + ")" * 21
    )


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(999999).distinct().size() == 1",
        "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 12 + " == ''",
        _nested("'a'", "a + a + a + a"),
        _nested("[1]", "a + a + a + a"),
        _nested("'a'", "'%s%s%s%s'.format([a, a, a, a])"),
    ],
)
def test_what_grows_too_far_is_stopped(expression: str) -> None:
    assert evaluate(expression) == "runtime-error"
