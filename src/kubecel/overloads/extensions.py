"""Kubernetes' own types: quantities, versions, addresses, networks and URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubecel import cost, effort
from kubecel.compare import order
from kubecel.data import INT_MAX, EvalError, Value
from kubecel.network import Cidr, Ip, parse_cidr, parse_ip
from kubecel.overloads.registry import Impl, Overload, accepts, function, method
from kubecel.quantity import NANOS, Format, Quantity, parse_quantity
from kubecel.semver import Semver, normalize, parse_semver
from kubecel.url import is_url, parse_url

__all__ = ["EXTENSIONS"]


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


def _comparisons(kind: str, order: Callable[[Any, Any], int]) -> tuple[Overload, ...]:
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
    return value if value <= INT_MAX else value - 2**64


def _contains_ip(network: Cidr, address: Ip) -> bool:
    return network.contains(address.address)


def _contains_cidr(network: Cidr, other: Cidr) -> bool:
    return network.bits <= other.bits and network.contains(other.address)


def _canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def _is_global(address: Ip) -> bool:
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
    function("quantity", "string -> quantity", _parser(_new_quantity), cost.scanned),
    function("isQuantity", "string -> bool", accepts(parse_quantity), cost.scanned),
    function("sign", "quantity -> int", lambda value: order(value.nanos, 0)),
    *_comparisons("quantity", _order_amounts),
    method("isInteger", "quantity -> bool", lambda value: value.is_int64),
    method("asInteger", "quantity -> int", _as_integer),
    method("asApproximateFloat", "quantity -> double", float),
    method("add", "quantity, quantity -> quantity", lambda left, right: left + right),
    method(
        "add", "quantity, int -> quantity", lambda left, right: left + _whole(right)
    ),
    method("sub", "quantity, quantity -> quantity", lambda left, right: left - right),
    method(
        "sub", "quantity, int -> quantity", lambda left, right: left - _whole(right)
    ),
)
_SEMVER: Final = (
    function("semver", "string -> semver", _parser(_version), cost.scanned),
    function("semver", "string, bool -> semver", _parser(_version), cost.scanned),
    function("isSemver", "string -> bool", accepts(_version), cost.scanned),
    function("isSemver", "string, bool -> bool", accepts(_version), cost.scanned),
    *_comparisons("semver", order),
    method("major", "semver -> int", lambda value: _number(value.major)),
    method("minor", "semver -> int", lambda value: _number(value.minor)),
    method("patch", "semver -> int", lambda value: _number(value.patch)),
)
_ADDRESS: Final = (
    function("ip", "string -> ip", _ip, cost.scanned, effort.slow),
    function("isIP", "string -> bool", accepts(parse_ip), cost.scanned, effort.slow),
    function(
        "ip.isCanonical",
        "string -> bool",
        _parser(_canonical),
        cost.twice_scanned,
        effort.slow,
    ),
    method("family", "ip -> int", lambda value: value.address.version),
    method("isUnspecified", "ip -> bool", lambda value: value.address.is_unspecified),
    method("isLoopback", "ip -> bool", lambda value: value.address.is_loopback),
    method("isLinkLocalMulticast", "ip -> bool", _is_local_multicast),
    method(
        "isLinkLocalUnicast", "ip -> bool", lambda value: value.address.is_link_local
    ),
    method("isGlobalUnicast", "ip -> bool", _is_global),
    function("cidr", "string -> cidr", _cidr, cost.scanned, effort.slow),
    function(
        "isCIDR", "string -> bool", accepts(parse_cidr), cost.scanned, effort.slow
    ),
    method("containsIP", "cidr, ip -> bool", _contains_ip, cost.contains_ip),
    method(
        "containsIP",
        "cidr, string -> bool",
        lambda network, text: _contains_ip(network, _ip(text)),
        cost.parsing(cost.contains_ip),
    ),
    method("containsCIDR", "cidr, cidr -> bool", _contains_cidr, cost.contains_cidr),
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
    function("url", "string -> url", _parser(parse_url), cost.scanned, effort.slow),
    function("isURL", "string -> bool", is_url, effort=effort.slow),
    method("getScheme", "url -> string", lambda value: value.scheme),
    method("getHost", "url -> string", lambda value: value.host),
    method(
        "getHostname",
        "url -> string",
        lambda value: value.hostname,
        effort=effort.parts_of_url,
    ),
    method(
        "getPort", "url -> string", lambda value: value.port, effort=effort.parts_of_url
    ),
    method(
        "getEscapedPath",
        "url -> string",
        lambda value: value.escaped_path,
        effort=effort.parts_of_url,
    ),
    method(
        "getQuery",
        "url -> map(string, list(string))",
        lambda value: value.parameters,
        effort=effort.parts_of_url,
    ),
)

EXTENSIONS: Final = (*_QUANTITY, *_SEMVER, *_ADDRESS, *_URL)
"""Their functions."""
