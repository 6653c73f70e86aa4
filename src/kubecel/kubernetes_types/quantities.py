"""Kubernetes quantities: exact values, the API's grammar, canonical text.

Source: ``k8s.io/apimachinery/pkg/api/resource``. A quantity is a decimal number with a suffix (``m`` to ``E``, ``Ki``
to ``Ei``) or a decimal exponent. The finest step is one nano; finer text is rounded away from zero. Values never become
floats.
"""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, total_ordering
from math import inf
from typing import Final

from kubecel.errors import QuantitySyntaxError

__all__ = ["NANOS", "Format", "Quantity", "parse_quantity"]

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
    # As upstream counts: in front of a point stands at least one digit, a zero if need be.
    digits = (integer.lstrip("0") or "0") + fraction
    scale = -len(fraction)
    if suffix in _BINARY:
        power = _BINARY[suffix]
        # A power of two takes three digits of ten bits off those that fit.
        fast = (
            scale == 0 and len(digits) + power * 3 // 10 < _FAST_BINARY_DIGITS
        )
        value = int(digits) << power
        return _amount(sign, value, scale, Format.BINARY, fast=fast)
    if suffix in _DECIMAL:
        return _decimal(sign, digits, scale + _DECIMAL[suffix], Format.DECIMAL)
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantitySyntaxError(
            f"{text!r} is not a quantity: unknown suffix {suffix!r}"
        )
    power = int(exponent[1])
    if len(integer.lstrip("0")) + power > _MOST_DIGITS:
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
    value = int(digits)
    fast = len(digits) <= _FAST_DIGITS and scale >= -9
    return _amount(sign, value, scale, format, fast=fast)


def _amount(
    sign: str, value: int, scale: int, format: Format, *, fast: bool
) -> Quantity:
    """``value * 10**scale``, rounded up to a nano; Kubernetes caps what has a binary suffix, and nothing else."""
    nano_scale = scale + 9
    nanos = value * int(10 ** max(nano_scale, 0))
    nanos = -(-nanos // int(10 ** max(-nano_scale, 0)))
    if format is Format.BINARY:
        nanos = min(nanos, _MAX)
    if sign == "-":
        nanos = -nanos
    return Quantity(nanos, format, scale if fast else None)
