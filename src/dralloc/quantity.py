"""Kubernetes quantities: exact values, the API's grammar, canonical text.

Source: ``k8s.io/apimachinery/pkg/api/resource``. A quantity is a decimal number with a suffix (``m`` to ``E``, ``Ki``
to ``Ei``) or a decimal exponent. The finest step is one nano; finer text is rounded away from zero. Values never
become floats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, total_ordering
from math import gcd
from typing import Final

from dralloc.errors import QuantityError

__all__ = ["NANOS", "Format", "Quantity", "common_unit", "parse_quantity"]

NANOS: Final = 10**9
"""Nanos in one unit: the resolution of a quantity."""

_MAX: Final = (2**63 - 1) * NANOS
_SHAPE: Final = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([A-Za-z]*[0-9+-]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", *_BINARY)
_MOST_CHARACTERS: Final = 256
_MOST_EXPONENT: Final = 100
_FAST_DIGITS: Final = 18
"""Up to this many digits Kubernetes keeps a decimal number as an int64 with a scale."""


class Format(StrEnum):
    """How a quantity was written, and hence how it is printed."""

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
    is_int64
        Whether Kubernetes holds the written form as a whole int64, which its ``AsInt64`` (CEL: ``isInteger``) reports.
        It depends on the text: ``1000m`` and ``1.0`` are not, ``1.e3`` is.
    is_big
        Whether Kubernetes holds the written form as a decimal of any length, as it does with ``1Ei`` and ``1.5Gi``.
        None if that may still change, as it does when Kubernetes compares a quantity with a big one.
    """

    __slots__ = ("format", "is_big", "is_int64", "nanos")

    def __init__(
        self, nanos: int, format: Format = Format.DECIMAL, is_int64: bool | None = None, *, is_big: bool | None = False
    ) -> None:
        self.nanos: Final = nanos
        self.format: Final = format
        self.is_big = is_big
        self.is_int64: Final = nanos % NANOS == 0 and abs(nanos) <= _MAX if is_int64 is None else is_int64

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Quantity('{self}')"

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format)

    def __str__(self) -> str:
        """The canonical text: no fraction, the largest suffix that keeps the value exact."""
        if self.nanos == 0:
            return "0"
        if self.format is Format.BINARY and self.nanos % NANOS == 0 and abs(self.nanos) >= 1024 * NANOS:
            return _binary_text(self.nanos // NANOS)
        return _decimal_text(self.nanos, self.format)

    def __float__(self) -> float:
        return float(Fraction(self.nanos, NANOS))


def _binary_text(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power + 1 < len(_BINARY_SUFFIX):
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_SUFFIX[power]}"


def _decimal_text(nanos: int, format: Format) -> str:
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos, exponent = nanos // 1000, exponent + 3
    if format is Format.EXPONENT and exponent:
        return f"{nanos}e{exponent}"
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Quantity:
    """Parse the text of a quantity.

    Raises
    ------
    QuantityError
        The text does not follow the grammar of Kubernetes quantities.
    """
    match = _SHAPE.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None or not (match[2] or match[4]):
        raise QuantityError(f"{_shown(text)} is not a quantity: a number with an optional suffix like m, k, Mi or e3")
    sign, whole, _, fraction, suffix = (part or "" for part in match.groups())
    digits = whole.lstrip("0") + fraction
    scale = -len(fraction)
    if suffix in _BINARY:
        return _binary(sign, digits, scale, _BINARY[suffix])
    if suffix in _DECIMAL:
        return _decimal(sign, digits, scale + _DECIMAL[suffix], Format.DECIMAL)
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantityError(f"{text!r} is not a quantity: unknown suffix {suffix!r}")
    power = int(exponent[1])
    if power > _MOST_EXPONENT:
        raise QuantityError(f"{text!r} is not a quantity: the exponent is above {_MOST_EXPONENT}")
    # Whatever is finer than a nano is rounded up to one, however fine it is.
    return _decimal(sign, digits, scale + max(power, -_MOST_CHARACTERS), Format.EXPONENT)


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _MOST_CHARACTERS else f"{text[:20]!r}... ({len(text)} characters)"


def _decimal(sign: str, digits: str, scale: int, format: Format) -> Quantity:
    value = int(digits or "0")
    fast = len(digits) <= _FAST_DIGITS and scale >= -9
    is_int64 = fast and scale >= 0 and value * 10 ** min(scale, 19) < 2**63
    return Quantity(_signed(sign, _nanos(value, scale + 9), capped=not fast), format, is_int64, is_big=not fast)


def _binary(sign: str, digits: str, scale: int, power: int) -> Quantity:
    value = int(digits or "0") << power
    fast = scale == 0 and len(digits) <= _FAST_DIGITS and value < 2**63 and power < 60
    return Quantity(_signed(sign, _nanos(value, scale + 9), capped=not fast), Format.BINARY, fast, is_big=not fast)


def _nanos(value: int, scale: int) -> int:
    """``value * 10**scale``, rounded up."""
    if scale >= 0:
        return value * int(10**scale)
    return -(-value // int(10**-scale))


def _signed(sign: str, nanos: int, *, capped: bool) -> int:
    magnitude = min(nanos, _MAX) if capped else nanos
    return -magnitude if sign == "-" else magnitude


def common_unit(quantities: Iterable[Quantity]) -> int:
    """The largest number of nanos of which all quantities are whole multiples (1 when there are none but zeros).

    Dividing by it turns the quantities of one counter or capacity into the smallest exact integers.
    """
    return gcd(*(quantity.nanos for quantity in quantities)) or 1
