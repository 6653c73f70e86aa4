"""Attribute values of devices, as plain Python values."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["UNSET", "AttributeValue", "Unset", "Version"]


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
