"""Kubernetes' own types: attribute values, quantities, versions, addresses and URLs.

All of them are read and compared as the Go libraries do that upstream uses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from fractions import Fraction
from functools import lru_cache, total_ordering
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import inf
from typing import Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from kubecel.errors import QuantitySyntaxError

__all__ = [
    "NANOS",
    "UNSET",
    "AttributeValue",
    "Cidr",
    "Format",
    "Ip",
    "Quantity",
    "Semver",
    "Unset",
    "Url",
    "Version",
    "is_url",
    "normalize",
    "parse_cidr",
    "parse_ip",
    "parse_quantity",
    "parse_semver",
    "parse_url",
]

# ----------------------------------------------------------------------------
# Attribute values of devices, as plain Python values.


class Version(str):
    """The text of a semantic version. It never equals a plain string, as the API keeps the two types apart."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Version, str(self)))

    def __repr__(self) -> str:
        return f"Version({str(self)!r})"


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""An attribute that has none of the known fields; every CEL selector fails on its device."""

AttributeValue: TypeAlias = (
    bool
    | int
    | str
    | Version
    | tuple[bool, ...]
    | tuple[int, ...]
    | tuple[str, ...]
    | tuple[Version, ...]
    | Unset
)
"""What an attribute holds. `Version` is a `str`, and `bool` an `int`: compare types before values."""


# ----------------------------------------------------------------------------
# Kubernetes quantities: exact values, the API's grammar, canonical text.
#
# Source: ``k8s.io/apimachinery/pkg/api/resource``. A quantity is a decimal number with
# a suffix (``m`` to ``E``, ``Ki`` to ``Ei``) or a decimal exponent. The finest step is
# one nano; finer text is rounded away from zero. Values never become floats.

NANOS: Final = 10**9
"""Nanos in one unit: the resolution of a quantity."""

_MAX: Final = (2**63 - 1) * NANOS
_SHAPE: Final = re.compile(
    r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([A-Za-z]*[0-9+-]*)", re.ASCII
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {
    exponent: suffix for suffix, exponent in _DECIMAL.items()
}
_BINARY_SUFFIX: Final = ("", *_BINARY)
_MOST_CHARACTERS: Final = 256
_MOST_DIGITS: Final = 4256
"""Upstream knows no limit; with this one before the point, Python still writes each quantity as decimal text.

The limit is on the number and not on its exponent: what is written as ``1e4002`` may be given as ``1000e3999``.
"""

_FAST_DIGITS: Final = 18
"""Up to this many digits Kubernetes keeps a decimal number as an int64 with a scale."""

_FAST_BINARY_DIGITS: Final = 15
"""It keeps a number with a binary suffix so if it has fewer digits than this."""


class Format(StrEnum):
    """The format in which a quantity was written, and hence is printed."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An exact amount of something, in nanos, with the format it prints in.

    Equality, order and hash look at the value alone: ``1Ki`` equals ``1024``.

    Parameters
    ----------
    nanos
        The value in units of 10**-9.
    format
        The format of the canonical text.
    scale
        Kubernetes holds an amount as an int64 times a power of ten, which is this one, or as a decimal of any length,
        which is None. It depends on the text: ``1000m`` has the scale -3, ``1.e3`` has 3, ``1.5Gi`` and ``1Pi`` none.
    computed
        Whether it is a sum or a difference.
    own
        Whether nobody else has this object, so that its scale may change, as it does when Kubernetes compares it with
        an amount that has none.
    """

    __slots__ = ("computed", "format", "nanos", "own", "scale")

    def __init__(
        self,
        nanos: int,
        format: Format = Format.DECIMAL,
        scale: int | None = 0,
        *,
        computed: bool = False,
        own: bool = False,
    ) -> None:
        self.nanos: Final = nanos
        self.format: Final = format
        self.scale = scale
        self.computed: Final = computed
        self.own: Final = own

    @property
    def is_int64(self) -> bool:
        """Whether Kubernetes holds it as a whole int64, which its ``AsInt64`` (CEL: ``isInteger``) reports."""
        return (
            self.scale is not None
            and self.scale >= 0
            and _fits(self.nanos, NANOS)
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return self.nanos == other.nanos
        return NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Quantity('{self}')"

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format, self.scale)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, held as ``int64Amount.Add`` leaves it: with the finer scale, unless an int64 is too small for it."""
        nanos = self.nanos + other.nanos
        scale = _common_scale(self, other)
        if scale is not None:
            unit = 10 ** (scale + 9)
            amounts = (self.nanos, other.nanos, nanos)
            if not all(_fits(amount, unit) for amount in amounts):
                scale = None
        return Quantity(nanos, self.format, scale, computed=True)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __str__(self) -> str:
        """The canonical text: no fraction, the largest suffix that keeps the value exact."""
        if self.nanos == 0:
            return "0"
        if (
            self.format is Format.BINARY
            and self.nanos % NANOS == 0
            and abs(self.nanos) >= 1024 * NANOS
        ):
            return _binary_text(self.nanos // NANOS)
        return _decimal_text(self.nanos, self.format)

    def __float__(self) -> float:
        try:
            return float(Fraction(self.nanos, NANOS))
        except OverflowError:
            return inf if self.nanos > 0 else -inf


def _fits(nanos: int, unit: int) -> bool:
    """Whether an int64 can count so many units."""
    return -(2**63) <= nanos // unit < 2**63


def _common_scale(left: Quantity, right: Quantity) -> int | None:
    """Return the finer scale of both; a zero leaves the other one as it is."""
    if left.scale is None or right.scale is None:
        return None
    if not right.nanos:
        return left.scale
    if not left.nanos:
        return right.scale
    return min(left.scale, right.scale)


def _binary_text(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power + 1 < len(_BINARY_SUFFIX):
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_SUFFIX[power]}"


def _decimal_text(nanos: int, format: Format) -> str:
    exponent = -9
    # There is no suffix above E, but a decimal exponent may be as large as it needs.
    while nanos % 1000 == 0 and (exponent < 18 or format is Format.EXPONENT):
        nanos, exponent = nanos // 1000, exponent + 3
    if format is Format.EXPONENT and exponent:
        return f"{nanos}e{exponent}"
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Quantity:
    """Parse the text of a quantity. As in Kubernetes, one without digits is zero: ``Gi``, ``.`` and ``-`` are.

    Raises
    ------
    QuantitySyntaxError
        The text does not follow the grammar of Kubernetes quantities.
    """
    match = (
        _SHAPE.fullmatch(text) if 0 < len(text) <= _MOST_CHARACTERS else None
    )
    if match is None:
        raise QuantitySyntaxError(
            f"{_shown(text)} is not a quantity: a number with an optional suffix like m, k, Mi or e3"
        )
    sign, integer, _, fraction, suffix = (part or "" for part in match.groups())
    digits = integer.lstrip("0") + fraction
    scale = -len(fraction)
    if suffix in _BINARY:
        power = _BINARY[suffix]
        # A power of two takes three digits of ten bits off those that fit.
        fast = (
            scale == 0 and len(digits) + power * 3 // 10 < _FAST_BINARY_DIGITS
        )
        value = int(digits or "0") << power
        return _amount(sign, value, scale, Format.BINARY, fast=fast)
    if suffix in _DECIMAL:
        return _decimal(sign, digits, scale + _DECIMAL[suffix], Format.DECIMAL)
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantitySyntaxError(
            f"{text!r} is not a quantity: unknown suffix {suffix!r}"
        )
    power = int(exponent[1])
    if len(digits) + scale + power > _MOST_DIGITS:
        raise QuantitySyntaxError(
            f"{text!r} is not a quantity: it has more than {_MOST_DIGITS} digits"
        )
    # Whatever is finer than a nano is rounded up to one, however fine it is; so the
    # power of ten that is computed with stays small.
    power = max(power, -_MOST_CHARACTERS)
    return _decimal(sign, digits, scale + power, Format.EXPONENT)


def _shown(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return repr(text)
    return f"{text[:20]!r}... ({len(text)} characters)"


def _decimal(sign: str, digits: str, scale: int, format: Format) -> Quantity:
    value = int(digits or "0")
    fast = len(digits) <= _FAST_DIGITS and scale >= -9
    return _amount(sign, value, scale, format, fast=fast)


def _amount(
    sign: str, value: int, scale: int, format: Format, *, fast: bool
) -> Quantity:
    """``value * 10**scale``, rounded up to a nano, and capped where Kubernetes keeps no int64."""
    nano_scale = scale + 9
    nanos = value * int(10 ** max(nano_scale, 0))
    nanos = -(-nanos // int(10 ** max(-nano_scale, 0)))
    if not fast:
        nanos = min(nanos, _MAX)
    if sign == "-":
        nanos = -nanos
    return Quantity(nanos, format, scale if fast else None)


# ----------------------------------------------------------------------------
# Semantic versions, as the library behind Kubernetes' CEL type (blang/semver) reads and
# compares them.

_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_WORD: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_UINT64: Final = 2**64
_Part: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True, order=True)
class Semver:
    """A version. Build metadata is kept out of it: neither equality nor order looks at that.

    `release` is 1 without a pre-release and 0 with one, so that the fields compare in their order.
    """

    major: int
    minor: int
    patch: int
    release: int = 1
    pre: tuple[_Part, ...] = field(default=())

    def __str__(self) -> str:
        words = ".".join(word or str(number) for _, number, word in self.pre)
        return f"{self.major}.{self.minor}.{self.patch}" + (
            f"-{words}" if words else ""
        )


@lru_cache(maxsize=65536)
def parse_semver(text: str) -> Semver:
    """Read a version.

    Raises
    ------
    ValueError
        The text is not a version.
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    without_build, *build = parts[2].split("+", 1)
    patch_text, *pre_release = without_build.split("-", 1)
    major = _number("Major", parts[0])
    minor = _number("Minor", parts[1])
    patch = _number("Patch", patch_text)
    if build and not all(_WORD.fullmatch(word) for word in build[0].split(".")):
        raise ValueError(f"Invalid build metadata {build[0]!r}")
    if not pre_release:
        return Semver(major, minor, patch)
    words = tuple(_pre(word) for word in pre_release[0].split("."))
    return Semver(major, minor, patch, release=0, pre=words)


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(
            f"Invalid character(s) found in {name.lower()} number {text!r}"
        )
    if len(text) > 1 and text[0] == "0":
        raise ValueError(
            f"{name} number must not contain leading zeroes {text!r}"
        )
    if (value := int(text)) >= _UINT64:
        raise ValueError(f"{name} number {text!r} is out of range")
    return value


def _pre(word: str) -> _Part:
    """A part of the pre-release: numbers come before words."""
    if _NUMBER.fullmatch(word):
        if len(word) > 1 and word[0] == "0":
            raise ValueError(
                f"Numeric PreRelease version must not contain leading zeroes {word!r}"
            )
        if int(word) >= _UINT64:
            raise ValueError(f"PreRelease number {word!r} is out of range")
        return (0, int(word), "")
    if not _WORD.fullmatch(word):
        raise ValueError(f"Invalid character(s) found in prerelease {word!r}")
    return (1, 0, word)


def normalize(text: str) -> str:
    """Drop a leading ``v`` and leading zeroes, and fill up a missing minor and patch number.

    Raises
    ------
    ValueError
        A short version carries a pre-release or build metadata.
    """
    parts = [
        _strip_zeroes(part) for part in text.removeprefix("v").split(".", 2)
    ]
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise ValueError(
                "short version cannot contain PreRelease/Build meta data"
            )
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _strip_zeroes(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    if stripped and stripped[0] in "0123456789":
        return stripped
    return f"0{stripped}"


# ----------------------------------------------------------------------------
# IP addresses and networks, as Go's ``net/netip`` reads them.

_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ip:
    """An address."""

    address: IPv4Address | IPv6Address

    def __str__(self) -> str:
        return str(self.address)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.address.packed)


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its network prefix; the bits behind the prefix are kept."""

    address: IPv4Address | IPv6Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def size(self) -> int:
        """The number of bytes that the prefix touches."""
        return -(-self.bits // 8)

    def masked(self) -> Cidr:
        """The network itself: all bits behind the prefix are zero."""
        spare = self.address.max_prefixlen - self.bits
        return Cidr(
            type(self.address)(int(self.address) >> spare << spare), self.bits
        )

    def contains(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address is in the network."""
        if address.version != self.address.version:
            return False
        spare = self.address.max_prefixlen - self.bits
        return int(address) >> spare == int(self.address) >> spare


def parse_ip(text: str) -> Ip:
    """Read an address; zones and IPv4-mapped IPv6 addresses are refused.

    Raises
    ------
    ValueError
        The text is not such an address.
    """
    if "%" in text:
        raise ValueError(f"IP address {text!r} with zone value is not allowed")
    try:
        # Python takes digits of other scripts, too.
        address = ip_address(text) if text.isascii() else None
    except ValueError:
        address = None
    if address is None or "/" in text:
        raise ValueError(
            f"IP Address {text!r} parse error during conversion from string"
        )
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return Ip(address)


def parse_cidr(text: str) -> Cidr:
    """Read a network.

    Raises
    ------
    ValueError
        The text is not a network.
    """
    address_text, slash, bits_text = text.rpartition("/")
    try:
        address = parse_ip(address_text).address
    except ValueError as error:
        raise ValueError(
            f"network address parse error during conversion from string: {error}"
        ) from error
    if (
        not slash
        or not _PREFIX.fullmatch(bits_text)
        or int(bits_text) > address.max_prefixlen
    ):
        raise ValueError(
            f"network address parse error during conversion from string: {text!r}"
        )
    return Cidr(address, int(bits_text))


# ----------------------------------------------------------------------------
# URLs, as Go's ``net/url`` reads them.

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"\u0080-\U0010ffff]|%25|%[89A-Fa-f][0-9A-Fa-f])*"
)
_USER: Final = re.compile(r"(?:[A-Za-z0-9\-._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*")
_VALID_PATH: Final = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*"
)
_SAFE_IN_PATH: Final = "$&+,/:;=@"


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL or an absolute path, in parts. The path is kept as it was written."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""

    def _host_and_port(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(f":{port}"):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        return self._host_and_port()[0]

    @property
    def port(self) -> str:
        """The port's digits, or nothing."""
        return self._host_and_port()[1]

    @property
    def escaped_path(self) -> str:
        """The path as it was written if that is valid, otherwise escaped."""
        if _VALID_PATH.fullmatch(self.path):
            return self.path
        return quote(unquote_to_bytes(self.path), safe=_SAFE_IN_PATH)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The query's values by name; pairs that are not well formed are left out."""
        values: defaultdict[str, list[str]] = defaultdict(list)
        for pair in self.query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            name, _, value = pair.replace("+", " ").partition("=")
            values[_decoded(name)].append(_decoded(value))
        return {name: tuple(texts) for name, texts in values.items()}


def parse_url(text: str) -> Url:
    """Read an absolute URL or path.

    Raises
    ------
    ValueError
        The text is neither.
    """
    # The strict form knows no fragments, so what it accepts is read once more.
    try:
        _split(text, request=True)
        plain, _, fragment = text.partition("#")
        url = _split(plain, request=False)
    except ValueError as error:
        raise ValueError(
            f"URL parse error during conversion from string: parse {text!r}: {error}"
        ) from error
    return Url(url.scheme, url.user, url.host, url.path, url.query, fragment)


def is_url(text: str) -> bool:
    """Whether a text is an absolute URL or path."""
    try:
        _split(text, request=True)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def _split(text: str, *, request: bool) -> Url:
    """Take a URL apart as ``url.parse`` of Go does, with or without ``viaRequest``."""
    if not text or _CONTROL.search(text):
        raise ValueError("invalid URI for request")
    if text == "*":
        return Url(path="*")
    scheme, remainder = _scheme(text)
    path, _, query = remainder.partition("?")
    if not path.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        raise ValueError("invalid URI for request")
    user = host = ""
    # Without a scheme ``//host/path`` is a host only in the lenient form, and
    # ``///path`` never has one.
    may_have_host = scheme or not (request or path.startswith("///"))
    if path.startswith("//") and may_have_host:
        authority, slash, path_of_host = path[2:].partition("/")
        user, host = _authority(authority)
        path = slash + path_of_host
    if _BAD_ESCAPE.search(path):
        raise ValueError("invalid URL escape")
    return Url(scheme, user, host, path, query)


def _scheme(text: str) -> tuple[str, str]:
    head, colon, tail = text.partition(":")
    if colon and not head:
        raise ValueError("missing protocol scheme")
    if colon and _SCHEME.fullmatch(head):
        return (head.lower(), tail)
    return ("", text)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0 or not _PORT.fullmatch(host[closing + 1 :]):
            raise ValueError("missing ']' in host, or invalid port")
    elif ":" in host and not _PORT.fullmatch(host[host.rindex(":") :]):
        raise ValueError("invalid port")
    if not _HOST.fullmatch(host):
        raise ValueError("invalid character in host name")
    if "%" in host:
        host = _decoded(host)
    return user, host
