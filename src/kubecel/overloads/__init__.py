"""Every function of CEL as data: one table per library, joined here.

First the tables of Kubernetes' own functions: for its types, and its named string formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final

from kubecel import cost
from kubecel.cost import slow, tenths
from kubecel.kubernetes_types.addresses import Cidr, Ip, parse_cidr, parse_ip
from kubecel.kubernetes_types.quantities import (
    NANOS,
    Format,
    Quantity,
    parse_quantity,
)
from kubecel.kubernetes_types.semantic_versions import (
    Semver,
    normalize,
    parse_semver,
)
from kubecel.kubernetes_types.urls import is_url, parse_url
from kubecel.overloads.conversions import (
    CONVERSION_NAMES,
    CONVERSIONS,
    TEMPORAL,
)
from kubecel.overloads.lists import INCLUDES, LISTS
from kubecel.overloads.operators import OPERATORS
from kubecel.overloads.optionals import OPTIONALS
from kubecel.overloads.strings import REGEX, REGEX_NAMES, STRINGS, check_pattern
from kubecel.types import Impl, Overload, accepts, function, method
from kubecel.values import (
    INT_MAX,
    NONE,
    EvalError,
    NamedFormat,
    Optional,
    Value,
    order,
    size_of,
)

__all__ = [
    "CONVERSION_NAMES",
    "FUNCTIONS",
    "FUNCTION_NAMES",
    "REGEX_NAMES",
    "Overload",
    "check_pattern",
]


# ----------------------------------------------------------------------------
# Kubernetes' named string formats.

_Check = Callable[[str], tuple[str, ...]]
_BOUNDS: Final = "and must start and end with an alphanumeric character"
_LABEL: Final = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_BOUNDS}"
_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_BOUNDS}"
)
_LABEL_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character"
)
_NAME: Final = f"name part must consist of alphanumeric characters, '-', '_' or '.', {_BOUNDS}"
_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WORD: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}",
    re.ASCII | re.IGNORECASE,
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    re.ASCII,
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
# As upstream: any character may stand in front of a fraction, and any offset behind it.
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


def _pattern(
    pattern: str, limit: int, message: str, *, empty: bool = False
) -> _Check:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> tuple[str, ...]:
        problems = []
        if len(text.encode()) > limit:
            problems.append(f"must be no more than {limit} bytes")
        if not compiled.fullmatch(text) and not (empty and not text):
            problems.append(message)
        return tuple(problems)

    return check


def _prefix(check: _Check) -> _Check:
    """A prefix of a name may end with a dash."""

    def check_prefix(text: str) -> tuple[str, ...]:
        # As upstream (``maskTrailingDash``): a letter in the place of the dash and of the byte before it.
        if len(text) > 1 and text[-1] == "-":
            text = text.encode()[:-2].decode(errors="replace") + "a"
        return check(text)

    return check_prefix


_subdomain = _pattern(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", 253, _SUBDOMAIN)
_name = _pattern(_WORD, 63, _NAME)


def _qualified_name(text: str) -> tuple[str, ...]:
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        return (
            f"a qualified name {_NAME.removeprefix('name part ')} with an optional DNS subdomain prefix and '/'",
        )
    problems = []
    if prefixes:
        of_prefix = (
            _subdomain(prefixes[0]) if prefixes[0] else ("must be non-empty",)
        )
        problems += [f"prefix part {problem}" for problem in of_prefix]
    if not name:
        problems.append("name part must be non-empty")
    return (*problems, *_name(name))


_is_date = accepts(date.fromisoformat)


def _test(is_valid: Callable[[str], object], message: str) -> _Check:
    return lambda text: () if is_valid(text) else (message,)


def _is_full_date(text: str) -> bool:
    # Python also reads short forms such as "20240131", and does not know year 0, a leap year.
    if text.startswith("0000"):
        text = f"2000{text[4:]}"
    return bool(_DATE.fullmatch(text)) and _is_date(text)


def _is_datetime(text: str) -> bool:
    """Whether ``strfmt.IsDateTime`` says so, which never looks behind a second T."""
    day, *times = text.lower().split("t")
    if not times or not _is_full_date(day):
        return False
    clock = _TIME.fullmatch(times[0])
    return (
        clock is not None
        and clock[1] <= "23"
        and max(clock[2], clock[3]) <= "59"
    )


_label = _pattern(_DNS_LABEL, 63, _LABEL)
_label_1035 = _pattern("[a-z]([-a-z0-9]*[a-z0-9])?", 63, _LABEL_1035)
# The costs are those of upstream's patterns, also where there is none here.
_NAMED: Final = {
    name: NamedFormat(name, check, cost)
    for name, check, cost in (
        ("byte", _test(_BASE64.fullmatch, "invalid base64"), 21),
        ("date", _test(_is_full_date, "invalid date"), 18),
        ("datetime", _test(_is_datetime, "invalid datetime"), 18),
        ("dns1035Label", _label_1035, 8),
        ("dns1035LabelPrefix", _prefix(_label_1035), 8),
        ("dns1123Label", _label, 8),
        ("dns1123LabelPrefix", _prefix(_label), 8),
        ("dns1123Subdomain", _subdomain, 15),
        ("dns1123SubdomainPrefix", _prefix(_subdomain), 15),
        ("labelValue", _pattern(f"({_WORD})?", 63, _VALUE, empty=True), 10),
        ("qualifiedName", _qualified_name, 15),
        ("uri", _test(is_url, "invalid URI for request"), 276),
        ("uuid", _test(_UUID.fullmatch, "does not match the UUID format"), 18),
    )
}


def _validate(form: NamedFormat, text: str) -> Optional:
    problems = form.validate(text)
    return Optional(problems) if problems else NONE


def _validation_cost(args: Sequence[Value]) -> int:
    form, text = args
    return tenths(1 + size_of(text)) * int(form.cost)


def _named(name: str) -> Optional:
    form = _NAMED.get(name)
    return NONE if form is None else Optional(form)


FORMATS: Final = (
    *(
        function(
            f"format.{name}", "-> format", partial(_NAMED.__getitem__, name)
        )
        for name in _NAMED
    ),
    function("format.named", "string -> optional(format)", _named),
    method(
        "validate",
        "format, string -> optional(list(string))",
        _validate,
        _validation_cost,
        lambda args: slow(args[1:]),
    ),
)
"""The formats and what validates by them."""


# ----------------------------------------------------------------------------
# Functions of Kubernetes' types: quantities, versions, addresses, networks and URLs.


def _parser(parse: Callable[..., Value]) -> Impl:
    """A function that reads a text and raises `ValueError` becomes one of CEL."""

    def impl(*args: Value) -> Value:
        try:
            return parse(*args)
        except ValueError as error:
            raise EvalError(str(error)) from error

    return impl


def _new_quantity(text: str) -> Quantity:
    """A new object each time: upstream's maps know quantities by reference."""
    amount = parse_quantity(text)
    return Quantity(amount.nanos, amount.format, amount.scale)


def _comparisons(
    kind: str, order: Callable[[Any, Any], int]
) -> tuple[Overload, ...]:
    return (
        method(
            "isGreaterThan",
            f"{kind}, {kind} -> bool",
            lambda left, right: order(left, right) > 0,
        ),
        method(
            "isLessThan",
            f"{kind}, {kind} -> bool",
            lambda left, right: order(left, right) < 0,
        ),
        method("compareTo", f"{kind}, {kind} -> int", order),
    )


def _order_amounts(left: Quantity, right: Quantity) -> int:
    # Kubernetes makes a decimal of an int64 to compare it with a decimal, and keeps it.
    if right.scale is None and left.own:
        left.scale = None
    return order(left.nanos, right.nanos)


def _as_integer(value: Quantity) -> int:
    if not value.is_int64:
        raise EvalError("cannot convert value to integer")
    return value.nanos // NANOS


def _whole(value: int) -> Quantity:
    return Quantity(value * NANOS, Format.EXPONENT)


def _version(text: str, tolerant: bool = False) -> Semver:
    return parse_semver(normalize(text) if tolerant else text)


def _number(value: int) -> int:
    """Go converts the uint64 of a version bit by bit."""
    if value <= INT_MAX:
        return value
    return value - 2**64


def _contains_ip(network: Cidr, address: Ip) -> bool:
    return network.contains(address.address)


def _contains_cidr(network: Cidr, subnet: Cidr) -> bool:
    return network.bits <= subnet.bits and network.contains(subnet.address)


def _canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def _is_global(address: Ip) -> bool:
    """Whether Go's ``IsGlobalUnicast`` says so, to which private addresses are global, too."""
    value = address.address
    broadcast = value.version == 4 and value.packed == b"\xff\xff\xff\xff"
    return not (
        broadcast
        or value.is_unspecified
        or value.is_loopback
        or value.is_multicast
        or value.is_link_local
    )


def _is_local_multicast(address: Ip) -> bool:
    packed = address.address.packed
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


_ip, _cidr = _parser(parse_ip), _parser(parse_cidr)
_QUANTITY: Final = (
    function(
        "quantity", "string -> quantity", _parser(_new_quantity), cost.scanned
    ),
    function(
        "isQuantity", "string -> bool", accepts(parse_quantity), cost.scanned
    ),
    function("sign", "quantity -> int", lambda value: order(value.nanos, 0)),
    *_comparisons("quantity", _order_amounts),
    method("isInteger", "quantity -> bool", lambda value: value.is_int64),
    method("asInteger", "quantity -> int", _as_integer),
    method("asApproximateFloat", "quantity -> double", float),
    method(
        "add",
        "quantity, quantity -> quantity",
        lambda left, right: left + right,
    ),
    method(
        "add",
        "quantity, int -> quantity",
        lambda left, right: left + _whole(right),
    ),
    method(
        "sub",
        "quantity, quantity -> quantity",
        lambda left, right: left - right,
    ),
    method(
        "sub",
        "quantity, int -> quantity",
        lambda left, right: left - _whole(right),
    ),
)
_SEMVER: Final = (
    function("semver", "string -> semver", _parser(_version), cost.scanned),
    function(
        "semver", "string, bool -> semver", _parser(_version), cost.scanned
    ),
    function("isSemver", "string -> bool", accepts(_version), cost.scanned),
    function(
        "isSemver", "string, bool -> bool", accepts(_version), cost.scanned
    ),
    *_comparisons("semver", order),
    method("major", "semver -> int", lambda value: _number(value.major)),
    method("minor", "semver -> int", lambda value: _number(value.minor)),
    method("patch", "semver -> int", lambda value: _number(value.patch)),
)
_ADDRESS: Final = (
    function("ip", "string -> ip", _ip, cost.scanned, cost.slow),
    function(
        "isIP", "string -> bool", accepts(parse_ip), cost.scanned, cost.slow
    ),
    function(
        "ip.isCanonical",
        "string -> bool",
        _parser(_canonical),
        cost.twice_scanned,
        cost.slow,
    ),
    method("family", "ip -> int", lambda value: value.address.version),
    method(
        "isUnspecified",
        "ip -> bool",
        lambda value: value.address.is_unspecified,
    ),
    method("isLoopback", "ip -> bool", lambda value: value.address.is_loopback),
    method("isLinkLocalMulticast", "ip -> bool", _is_local_multicast),
    method(
        "isLinkLocalUnicast",
        "ip -> bool",
        lambda value: value.address.is_link_local,
    ),
    method("isGlobalUnicast", "ip -> bool", _is_global),
    function("cidr", "string -> cidr", _cidr, cost.scanned, cost.slow),
    function(
        "isCIDR",
        "string -> bool",
        accepts(parse_cidr),
        cost.scanned,
        cost.slow,
    ),
    method("containsIP", "cidr, ip -> bool", _contains_ip, cost.contains_ip),
    method(
        "containsIP",
        "cidr, string -> bool",
        lambda network, text: _contains_ip(network, _ip(text)),
        cost.parsing(cost.contains_ip),
    ),
    method(
        "containsCIDR", "cidr, cidr -> bool", _contains_cidr, cost.contains_cidr
    ),
    method(
        "containsCIDR",
        "cidr, string -> bool",
        lambda network, text: _contains_cidr(network, _cidr(text)),
        cost.parsing(cost.contains_cidr),
    ),
    method("ip", "cidr -> ip", lambda value: Ip(value.address)),
    method("prefixLength", "cidr -> int", lambda value: value.bits),
    method("masked", "cidr -> cidr", Cidr.masked),
)
_URL: Final = (
    function(
        "url", "string -> url", _parser(parse_url), cost.scanned, cost.slow
    ),
    function("isURL", "string -> bool", is_url, effort=cost.slow),
    method("getScheme", "url -> string", lambda value: value.scheme),
    method("getHost", "url -> string", lambda value: value.host),
    method(
        "getHostname",
        "url -> string",
        lambda value: value.hostname,
        effort=cost.parts_of_url,
    ),
    method(
        "getPort",
        "url -> string",
        lambda value: value.port,
        effort=cost.parts_of_url,
    ),
    method(
        "getEscapedPath",
        "url -> string",
        lambda value: value.escaped_path,
        effort=cost.parts_of_url,
    ),
    method(
        "getQuery",
        "url -> map(string, list(string))",
        lambda value: value.parameters,
        effort=cost.parts_of_url,
    ),
)

EXTENSIONS: Final = (*_QUANTITY, *_SEMVER, *_ADDRESS, *_URL)
"""Their functions."""


# ----------------------------------------------------------------------------
# All tables, joined.


def _unused(*_: Value) -> Value:
    """The implementation of what the compiler knows by itself."""
    raise AssertionError("the compiler evaluates this by itself")


_KNOWN_TO_COMPILER: Final = (
    function("_==_", "A, A -> bool", _unused),
    function("_!=_", "A, A -> bool", _unused),
    function("_?_:_", "bool, A, A -> A", _unused),
    function("_[_]", "list(A), int -> A", _unused),
    function("_[_]", "map(A, B), A -> B", _unused),
    function("_[_]", "optional(list(V)), int -> optional(V)", _unused),
    function("_[_]", "optional(map(K, V)), K -> optional(V)", _unused),
    function("_[?_]", "list(V), int -> optional(V)", _unused),
    function("_[?_]", "optional(list(V)), int -> optional(V)", _unused),
    function("_[?_]", "map(K, V), K -> optional(V)", _unused),
    function("_[?_]", "optional(map(K, V)), K -> optional(V)", _unused),
    method("or", "optional(V), optional(V) -> optional(V)", _unused),
    method("orValue", "optional(V), V -> V", _unused),
)


_TABLES: Final = (
    *(_KNOWN_TO_COMPILER, OPERATORS, CONVERSIONS, REGEX, LISTS, STRINGS),
    *(INCLUDES, TEMPORAL, EXTENSIONS, FORMATS, OPTIONALS),
)
_function_name: Final = attrgetter("name")

FUNCTIONS: Final[Mapping[str, tuple[Overload, ...]]] = {
    name: tuple(overloads)
    for name, overloads in groupby(
        sorted(chain(*_TABLES), key=_function_name), _function_name
    )
}
"""Every overload by the function's name, in upstream's order where that matters."""

FUNCTION_NAMES: Final = tuple(filter(str.isidentifier, FUNCTIONS))
"""The functions that are called by a name, which is no operator and has no dot."""
