from __future__ import annotations

import pytest

from cel_helpers import answers, evaluate, lines, runtime_message, table

_STRINGS = r"""
    'aé'.upperAscii() == 'Aé' && 'AÉ'.lowerAscii() == 'aÉ'
    'hello'.charAt(1) == 'e' && 'hello'.charAt(5) == ''
    'hello'.indexOf('l') == 2 && 'hello'.indexOf('l', 3) == 3 && 'hello'.indexOf('z') == -1
    'hello'.indexOf('', 9) == 9 && 'a'.indexOf('', -1) == -1
    'hello'.indexOf('', 2) == 2 && 'hello'.indexOf('h', 9) == -1
    'hello'.lastIndexOf('l') == 3 && 'hello'.lastIndexOf('l', 2) == 2 && 'hello'.lastIndexOf('h', 9) == -1
    'hello'.lastIndexOf('') == 5 && 'hello'.lastIndexOf('', 2) == 2 && 'a'.lastIndexOf('', 9) == 9
    'a-b-c'.replace('-', '_') == 'a_b_c' && 'a-b-c'.replace('-', '', 1) == 'ab-c'
    'ab'.replace('', '-') == '-a-b-'
    'a-b'.replace('-', '_', 0) == 'a-b' && 'a-b'.replace('-', '_', -5) == 'a_b'
    'a-b-c'.split('-') == ['a', 'b', 'c'] && 'a-b-c'.split('-', 2) == ['a', 'b-c'] && 'a'.split('-', 0) == []
    'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc']
    'a-b'.split('-', -1) == ['a', 'b']
    'hello'.substring(3) == 'lo' && 'hello'.substring(1, 3) == 'el' && 'hello'.substring(5) == ''
    ' \t\u3000a\u2007 '.trim() == 'a'
    ['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join() == ''
    'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('')
    strings.quote("a\"\n") == '"a\\"\\n"'
    'abc'.matches('^a.c$') && matches('abc', 'b') && !'abc'.matches('^b')
    'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''
    'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]', 2) == ['1', '2']
    'a'.findAll('a', 0) == []
    'baab'.findAll('a*') == ['', 'aa', '']
"""


@pytest.mark.parametrize("expression", lines(_STRINGS))
def test_strings(expression: str) -> None:
    assert evaluate(expression) is True


_STRING_ERRORS = """
    'a'.charAt(2) == ''                ->  index out of range: 2
    'a'.charAt(-1) == ''               ->  index out of range: -1
    'a'.indexOf('a', -1) == 0          ->  index out of range: -1
    'a'.lastIndexOf('a', -1) == 0      ->  index out of range: -1
    'a'.substring(2) == ''             ->  index out of range: 2
    'a'.substring(1, 0) == ''          ->  invalid substring range. start: 1, end: 0
    'a'.substring(0, 5) == ''          ->  index out of range: 5
    ['a', 'b'].map(x, dyn(x == 'a' ? dyn('a') : dyn(1))).join() == ''  ->  join: invalid input
    'a'.matches('a' + '(')             ->  error parsing regexp
    'a'.find('a' + '(?=b)') == ''      ->  error parsing regexp
    dyn(1).startsWith('a')             ->  no such overload: startsWith
    'a'.startsWith(dyn(1))             ->  no such overload: startsWith
"""


@pytest.mark.parametrize(("expression", "message"), table(_STRING_ERRORS))
def test_string_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


_FORMAT = r"""
    '%s %s %s %s'.format(['a', 1, true, null]) == 'a 1 true null'
    '%d%%'.format([5]) == '5%' && '%d'.format([5u]) == '5'
    '%x %X %x'.format([255, 255, 'hi']) == 'ff FF 6869' && '%x'.format([b'hi']) == '6869'
    '%x'.format([-255]) == '-ff'
    '%b %b'.format([5, true]) == '101 1' && '%o'.format([8]) == '10'
    '%f'.format([1.5]) == '1.500000' && '%.2f'.format([12345.678]) == '12,345.68'
    '%.0f'.format([2.5]) == '2'
    '%e'.format([1234.5]) == '1.234500\u202f\u00d7\u202f10⁰³'
    '%.1e %.0e'.format([0.05, 0.05]) == '5.000000\u202f\u00d7\u202f10⁻⁰² 5.000000\u202f\u00d7\u202f10⁻⁰²'
    '%.20e'.format([-0.05]) == '   -5.000000\u202f\u00d7\u202f10⁻⁰²'
    '%f'.format(['NaN']) == 'NaN' && '%f'.format(['Infinity']) == '∞' && '%e'.format(['-Infinity']) == '    -∞'
    '%.3e|%.1e'.format(['Infinity', 'NaN']) == '  ∞|NaN'
    '%s'.format([[1.5, 'a', b'b']]) == '[1.500000, "a", b"b"]' && '%s'.format([1.5]) == '1.5'
    '%s'.format([{'b': 1, 'a': [2]}]) == '{"a":[2], "b":1}' && '%s'.format([{true: 1u}]) == '{true:1}'
    '%s'.format([[duration('1m')]]) == '[duration("60s")]' && '%s'.format([duration('1m')]) == '60s'
    '%s'.format([[timestamp('2024-01-01T00:00:00Z')]]) == '[timestamp("2024-01-01T00:00:00Z")]'
    '%s'.format([type(1)]) == 'int' && '%s'.format([b'a']) == 'a'
    '%s'.format([["\u00e9\n\u200b"]]) == '["é\\n\\u200b"]'
    '%s'.format(dyn([1])) == '1' && 'a'.format([]) == 'a'
"""


@pytest.mark.parametrize("expression", lines(_FORMAT))
def test_format(expression: str) -> None:
    assert evaluate(expression) is True


_FORMAT_ERRORS = """
    '%d'.format(dyn(['a'])) == ''          ->  decimal clause can only be used on integers, was given string
    '%f'.format(dyn([1])) == ''            ->  fixed-point clause can only be used on doubles, was given int
    '%x'.format(dyn([1.5])) == ''          ->  only integers, byte buffers, and strings can be formatted as hex
    '%b'.format(dyn(['a'])) == ''          ->  only integers and bools can be formatted as binary
    '%o'.format(dyn([true])) == ''         ->  octal clause can only be used on integers
    '%s'.format(dyn([quantity('1')])) == ''  ->  was given kubernetes.Quantity
    '%s'.format(dyn([b'\\xff'])) == ''     ->  invalid UTF-8 in bytes
    '%s'.format(dyn([{1.5: 1}])) == ''     ->  no formatting function for map key of type double
    '%s %s'.format(dyn([1])) == ''         ->  index 1 out of range
    ('%' + 'y').format([1]) == ''          ->  unrecognized formatting clause
    ('%' + '.9999f').format([1.0]) == ''   ->  is too large
"""


@pytest.mark.parametrize(("expression", "message"), table(_FORMAT_ERRORS))
def test_format_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


_LISTS = """
    [1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2]
    [[1], [2]].map(x, dyn(x)).flatten(5) == [1, 2]
    [[[1]]].flatten(0) == [[[1]]] && [[[1]]].flatten(1) == [[1]]
    [3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []
    [true, false].sort()[0] == false
    ['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb'] && [2, 1].sortBy(x, 0) == [2, 1]
    [1, 2, 1].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]
    lists.range(-1) == []
    [1, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()
    [1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5 && [1u].sum() == 1u
    [duration('1m')].sum() == duration('60s')
    [2, 1].min() == 1 && ['a', 'b'].max() == 'b' && [true, false].max()
    [timestamp(1), timestamp(0)].min() == timestamp(0)
    [1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1
    [1].lastIndexOf(5) == -1
    sets.contains([1, 2, 3], [1, 2]) && !sets.contains([1], [2]) && sets.contains([1], [])
    sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [2])
    [1, 2].first().value() == 1 && [1, 2].last() == optional.of(2) && ![].first().hasValue()
    optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]
    !optional.ofNonZeroValue('').hasValue() && !optional.ofNonZeroValue(0).hasValue()
    optional.ofNonZeroValue(1).hasValue()
    !optional.ofNonZeroValue(duration('0s')).hasValue() && !optional.ofNonZeroValue(null).hasValue()
    optional.ofNonZeroValue(timestamp(0)).hasValue() && !optional.ofNonZeroValue([]).hasValue()
    $A.features.includes('mig') && !$A.features.includes('m') && $A.model.includes('A100')
    !$A.model.includes(1)
    $A.apis.includes(semver('2.1.0')) && !$A.apis.includes('2.1.0') && {'a': 1}.includes({'a': 1})
    $A.numa.sum() == 1 && $A.numa.max() == 1 && $A.features.join(',') == 'nvlink,mig' && $A.numa.isSorted()
"""


@pytest.mark.parametrize("expression", lines(_LISTS))
def test_lists(expression: str) -> None:
    assert evaluate(expression) is True


_LIST_ERRORS = """
    [1].slice(0, 5) == []                  ->  cannot slice(0, 5), list is length 1
    [1].slice(1, 0) == []                  ->  start index must be less than or equal to end index
    [1].slice(-1, 0) == []                 ->  negative indexes not supported
    [1].map(x, dyn(x)).flatten(-1) == []   ->  level must be non-negative
    [].min() == 1                          ->  min called on empty list
    [1, 2].map(x, x == 1 ? dyn('a') : dyn(x)).sort() == []  ->  list elements must have the same type
    dyn(1).flatten() == []                 ->  no such overload: flatten
    dyn(1).reverse() == []                 ->  no such overload: reverse
    dyn('a').sum() == 1                    ->  no such overload: sum
    lists.range(49).includes(48)           ->  'includes' function cannot be applied to lists longer than 48 values
    lists.range(5000000).size() == 1       ->  actual cost limit exceeded
    optional.none().value() == 1           ->  optional.none() dereference
    dyn([1]).unwrapOpt() == []             ->  no such overload
"""


@pytest.mark.parametrize(("expression", "message"), table(_LIST_ERRORS))
def test_list_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


_CONVERSIONS = r"""
    int('42') == 42 && int('-7') == -7 && int(3.9) == 3 && int(-3.9) == -3 && int(5u) == 5
    int(timestamp(7)) == 7
    int(duration('1s')) == 1000000000 && uint('5') == 5u && uint(5) == 5u && uint(5.9) == 5u
    double('1_23.50_0_0e+1_2') == 1.235e14 && double('-0x_1_2.3_4_5p+1_2') == -74565.0 && double('0X.1P-2') == 0.015625
    double('1.5') == 1.5 && double(1) == 1.0 && double('-Inf') < 0.0 && double('1e3') == 1000.0
    string(1) == '1' && string(true) == 'true' && string(2u) == '2' && string(b'abc') == 'abc'
    bytes('é') == b'\xc3\xa9'
    string(1.5) == '1.5' && string(1e21) == '1e+21' && string(123456.0) == '123456'
    string(1234567.0) == '1.234567e+06'
    string(0.0001) == '0.0001' && string(0.00001) == '1e-05' && string(0.0) == '0' && string(-0.5) == '-0.5'
    string(100.0) == '100'
    string(double('NaN')) == 'NaN' && string(double('inf')) == '+Inf' && string(1e300) == '1e+300'
    bool('true') && bool('TRUE') && bool('t') && !bool('0') && bool(dyn(true))
    string(duration('90s')) == '90s' && string(duration('1.5s')) == '1.5s'
    string(duration('-1ms')) == '-0.001s'
    string(duration('1ns')) == '0.000000001s' && duration('1h2m3s4ms5us6ns') == duration('3723004005006ns')
    duration('0') == duration('0s')
    string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'
    string(timestamp(0)) == '1970-01-01T00:00:00Z'
    string(timestamp('2024-01-01T00:00:00+02:30')) == '2024-01-01T00:00:00+02:30'
    timestamp('2024-01-01T02:00:00+02:00') == timestamp('2024-01-01T00:00:00Z') && string(ip('::1')) == '::1'
    dyn('5') == '5' && int(dyn('5')) == 5 && string($A.index) == '3' && double($A.index) == 3.0
"""


@pytest.mark.parametrize("expression", lines(_CONVERSIONS))
def test_conversions(expression: str) -> None:
    assert evaluate(expression) is True


_CONVERSION_ERRORS = """
    int('4x') == 4                     ->  compile-error
    int(' 4') == 4                     ->  compile-error
    int('9223372036854775808') == 4    ->  compile-error
    int(1e19) == 4                     ->  compile-error
    int(9223372036854775808u) == 4     ->  compile-error
    uint(-1) == 4u                     ->  compile-error
    uint('-1') == 4u                   ->  compile-error
    double('x') == 4.0                 ->  compile-error
    double('1e999') == 4.0             ->  compile-error
    double('0x1p1024') == 4.0          ->  compile-error
    double('0x1.8') == 4.0             ->  compile-error
    double('1__0') == 4.0              ->  compile-error
    double('1_.0') == 4.0              ->  compile-error
    double('0x1_p0') == 4.0            ->  compile-error
    bool('yes')                        ->  compile-error
    string(b'\\xff') == ''             ->  compile-error
    timestamp('2024-02-30T00:00:00Z') == timestamp(0)  ->  compile-error
    timestamp('0000-01-01T00:00:00Z') == timestamp(0)  ->  compile-error
    timestamp(253402300800) == timestamp(0)            ->  compile-error
    duration('1') == duration('1s')    ->  compile-error
    duration('') == duration('1s')     ->  compile-error
    duration('1x') == duration('1s')   ->  compile-error
    duration('9999999999h') == duration('1s')  ->  compile-error
    int(dyn(semver('1.0.0'))) == 1     ->  runtime-error
    int($A.model) == 1                 ->  runtime-error
    duration($A.index) == duration('1s')  ->  runtime-error
"""


@pytest.mark.parametrize(("expression", "answer"), answers(_CONVERSION_ERRORS))
def test_conversion_errors(expression: str, answer: object) -> None:
    assert evaluate(expression) == answer


_TIME = """
    timestamp('2024-03-01T12:30:45.678Z').getFullYear() == 2024
    timestamp('2024-03-01T12:30:45Z').getMonth() == 2
    timestamp('2024-03-01T12:30:45.678Z').getDate() == 1
    timestamp('2024-03-01T12:30:45Z').getDayOfMonth() == 0
    timestamp('2024-03-01T12:30:45.678Z').getDayOfYear() == 60
    timestamp('2024-03-03T00:00:00Z').getDayOfWeek() == 0
    timestamp('2024-03-01T12:30:45.678Z').getHours() == 12
    timestamp('2024-03-01T12:30:45.678Z').getMilliseconds() == 678
    timestamp('2024-03-01T12:30:45Z').getHours('+02:30') == 15
    timestamp(0).getHours('99:00') == 3 && timestamp(0).getDate('-24:30') == 30
    timestamp(0).getHours('1:99') == 2 && timestamp(0).getMinutes('-2:-10') == 10
    timestamp('2024-03-01T2:30:45Z').getHours() == 2
    timestamp('2024-03-01T02:30:45-24:60') == timestamp('2024-03-02T03:30:45Z')
    string(timestamp('2024-03-01T02:30:45+24:60')) == '2024-03-01T02:30:45+25:00'
    timestamp('2024-03-01T12:30:45Z').getMinutes('-00:15') == 15
    timestamp('2024-03-01T12:30:45Z').getHours('America/New_York') == 7
    timestamp(0).getSeconds('UTC') == 0
    timestamp('2024-01-01T00:00:00Z') + duration('1h') == timestamp('2024-01-01T01:00:00Z')
    duration('1h') + timestamp(0) == timestamp(3600) && timestamp(3600) - duration('1h') == timestamp(0)
    timestamp(1) - timestamp(0) == duration('1s') && duration('1h') > duration('30m')
    timestamp(1) > timestamp(0)
    duration('1h') - duration('30m') == duration('30m')
    duration('1h30m').getHours() == 1 && duration('-90s').getMinutes() == -1
    duration('1.5s').getMilliseconds() == 1500
"""


@pytest.mark.parametrize("expression", lines(_TIME))
def test_time(expression: str) -> None:
    assert evaluate(expression) is True


_TIME_ERRORS = """
    timestamp(0).getHours('Nowhere/Land') == 0              ->  unknown time zone Nowhere/Land
    timestamp(0).getHours('1:') == 0                        ->  invalid time zone offset
    timestamp(0).getHours('99999999999:00') == 0            ->  invalid time zone offset
    timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)  ->  timestamp overflow
    timestamp('9999-12-31T23:59:59Z').getHours('+02:00') == 0           ->  out of range in this time zone
    duration('2562047h') + duration('2562047h') == duration('1s')       ->  duration overflow
    timestamp('9999-12-31T23:59:59Z') - timestamp(0) == duration('1s')  ->  duration overflow
    dyn(timestamp(0)) - dyn(1) == timestamp(0)              ->  no such overload
"""


@pytest.mark.parametrize(("expression", "message"), table(_TIME_ERRORS))
def test_time_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


_EXTENSIONS = """
    quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1').isLessThan(quantity('1001m'))
    isQuantity('1e3') && !isQuantity('x')
    quantity('5M').compareTo(quantity('5Mi')) == -1 && quantity('1').compareTo(quantity('1000m')) == 0
    sign(quantity('-1')) == -1
    quantity('1').add(quantity('500m')) == quantity('1.5') && quantity('3').sub(1) == quantity('2')
    quantity('1k').add(24) == quantity('1024')
    quantity('2').sub(quantity('3')) == quantity('-1') && quantity('10').asInteger() == 10
    quantity('1500m').asApproximateFloat() == 1.5
    quantity('10').isInteger() && !quantity('1000m').isInteger() && $C.cores.asInteger() == 108
    sign($C.memory) == 1
    semver('1.0.0').isLessThan(semver('1.0.1')) && semver('1.0.0-a').isLessThan(semver('1.0.0'))
    semver('2.0.0').compareTo(semver('10.0.0')) == -1
    semver('1.0.0-2').isLessThan(semver('1.0.0-a')) && semver('1.0.0-a').isLessThan(semver('1.0.0-a.1'))
    semver('1.0.0+a') == semver('1.0.0+b')
    semver('v1.2', true) == semver('1.2.0') && isSemver('01.01.01', true) && !isSemver('01.01.01')
    !isSemver('1-a', true) && !isSemver('1.0.0-01')
    semver('1.2.3-rc.1').patch() == 3 && $A.driverVersion.major() == 550 && $A.driverVersion.minor() == 54
    !isSemver('1.0.0+')
    isIP('::1') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('1.2.3') && !isIP('1.2.3.4/8')
    ip('1.2.3.4').family() == 4
    ip.isCanonical('::1') && !ip.isCanonical('::0001') && ip('::1').isLoopback()
    ip('0.0.0.0').isUnspecified() && ip('::1').family() == 6
    ip('169.254.1.1').isLinkLocalUnicast() && ip('ff02::1').isLinkLocalMulticast()
    ip('224.0.0.1').isLinkLocalMulticast()
    ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()
    !ip('ff00::1').isGlobalUnicast()
    cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))
    !cidr('10.0.0.0/8').containsIP('::1')
    cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16') && cidr('10.0.0.0/8').containsCIDR(cidr('10.0.0.0/8'))
    !cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')
    cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')
    cidr('::/0').prefixLength() == 0
    isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/08')
    string(cidr('10.0.0.0/8')) == '10.0.0.0/8'
    url('https://u:p@a.b:80/p%20q?k=a&k=b#f').getHost() == 'a.b:80'
    url('HTTPS://a').getScheme() == 'https' && url('/p').getHost() == ''
    url('https://a.b:80/p?k=a&k=b+c').getQuery() == {'k': ['a', 'b c']}
    url('https://a.b/a b').getEscapedPath() == '/a%20b'
    format.named('uuid').value().validate('x').hasValue() && !format.named('nope').hasValue()
    format.uuid() == format.uuid()
"""


@pytest.mark.parametrize("expression", lines(_EXTENSIONS))
def test_extensions(expression: str) -> None:
    assert evaluate(expression) is True


_EXTENSION_ERRORS = """
    quantity('x').isInteger()                        ->  is not a quantity
    quantity('0.5').asInteger() == 0                 ->  cannot convert value to integer
    semver('v1.0.0').major() == 1                    ->  Invalid character(s) found in major number
    semver('1.0').major() == 1                       ->  No Major.Minor.Patch elements found
    semver('').major() == 1                          ->  Version string empty
    semver('99999999999999999999.0.0').major() == 1  ->  out of range
    semver('1-a', true).major() == 1                 ->  short version cannot contain PreRelease/Build meta data
    ip('x').family() == 4                            ->  parse error during conversion from string
    ip.isCanonical('x')                              ->  parse error during conversion from string
    cidr('x').prefixLength() == 4                    ->  network address parse error
    cidr('10.0.0.0/8').containsIP('x')               ->  parse error
    url('x').getHost() == ''                         ->  URL parse error
    $A.model.isGreaterThan(semver('1.0.0'))          ->  no such overload: isGreaterThan
    $A.driverVersion.isGreaterThan(quantity('1'))    ->  no such overload: isGreaterThan
    dyn(1).isGreaterThan(dyn(2))                     ->  no such overload: isGreaterThan
"""


@pytest.mark.parametrize(("expression", "message"), table(_EXTENSION_ERRORS))
def test_extension_errors(expression: str, message: str) -> None:
    assert message in runtime_message(expression)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", "a-1", "A"),
        ("dns1123LabelPrefix", "a-", "-"),
        ("dns1123LabelPrefix", "A-", "AA-"),
        ("dns1123LabelPrefix", "a" * 63 + "-", "é-"),
        ("dns1123Subdomain", "a.b-c", "a..b"),
        ("dns1123SubdomainPrefix", "a.b-", "a."),
        ("dns1035Label", "a1", "1a"),
        ("dns1035LabelPrefix", "a-", "1a-"),
        ("dns1035LabelPrefix", "1-", "-1-"),
        ("qualifiedName", "a.b/C_d", "a/b/c"),
        ("qualifiedName", "A", "/a"),
        ("labelValue", "", "-a"),
        ("labelValue", "A_1", "a" * 64),
        ("uri", "https://a.b", "a.b"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("byte", "aGk=", "a"),
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "0000-02-29", "0000-02-30"),
        ("datetime", "2024-01-01T00:00:00Z", "2024-01-01"),
        ("datetime", "2024-01-01t00:00:00.5z", "2024-01-01T0:00:00Z"),
        ("datetime", "2024-01-01T00:00:00+99:99", "2024-01-01T00:00:60Z"),
        ("datetime", "2024-01-01T23:59:59_5Z", "2024-01-01T24:00:00Z"),
        ("datetime", "2024-01-01T00:00:00ZTail", "2023-02-29T00:00:00Z"),
    ],
)
def test_named_formats(name: str, good: str, bad: str) -> None:
    assert (
        evaluate(f"format.{name}().validate('{good}') == optional.none()")
        is True
    )
    assert (
        evaluate(f"format.{name}().validate('{bad}').value().size() > 0")
        is True
    )


def test_numbers_of_thousands_of_digits() -> None:
    number = "9" * 5000
    for offset in (f"{number}:00", f"0:{number}", f"-{number}:{number}"):
        message = runtime_message(f"timestamp(0).getHours('{offset}') == 0")
        assert "invalid time zone offset" in message
    message = runtime_message(f"('%.{number}' + 'f').format([1.5]) == ''")
    assert "is too large" in message
    assert evaluate("'%.00002f'.format([1.5]) == '1.50'")
    for version in (f"{number}.0.0", f"1.0.0-{number}"):
        message = runtime_message(f"semver('{version}').major() == 1")
        assert "out of range" in message


def test_any_byte_of_patterns() -> None:
    for pattern in (r"\C", r"a|\\\C", r"\Q\C\E\C"):
        message = runtime_message(f"'a'.matches('' + r'{pattern}')")
        assert r"invalid escape sequence: `\C`" in message
    for pattern in (r"\\C", r"a\Q\C", r"\Q\C\E\pC"):
        assert evaluate(f"'a'.matches('' + r'{pattern}')") is False
