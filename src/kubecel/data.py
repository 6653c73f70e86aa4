"""Values while a selector runs, and the error that logical operators absorb.

CEL values are Python's own where these behave: ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``None`` for null,
``tuple`` for lists and ``dict`` for maps. What Python lacks is defined here and in the modules of the extension types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kubecel.errors import CelRuntimeError

__all__ = [
    "EMPTY_MAP",
    "INT_MAX",
    "INT_MIN",
    "MAPS",
    "MAX_LIST",
    "MAX_TEXT",
    "MISSING",
    "NONE",
    "TEXT_KEYED",
    "UINT_MAX",
    "DomainMap",
    "Duration",
    "Empty",
    "EvalError",
    "Frame",
    "Optional",
    "Run",
    "TextMap",
    "TimestampValue",
    "TypeValue",
    "Uint",
    "Value",
    "no_overload",
]

Value: TypeAlias = Any
"""A CEL value."""

Frame: TypeAlias = list[Any]
"""The state of one evaluation: cost so far, cost limit, the device, then one slot per local variable."""

Run: TypeAlias = Callable[[Frame], Value]
"""A compiled expression."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
MAX_TEXT: Final = 2**24
MAX_LIST: Final = 2**22
"""Longer texts and lists are refused. Upstream shares parts between lists where Python copies them, and no sensible
selector comes near."""

MISSING: Final = object()
"""What is not there: the key of a map, the value of an optional."""


class EvalError(CelRuntimeError):
    """An error that is a value in CEL: ``&&``, ``||``, ``all`` and ``exists`` can absorb it."""


def no_overload(name: str = "") -> EvalError:
    """The error of a call with values that no overload takes."""
    return EvalError(f"no such overload: {name}" if name else "no such overload")


class Uint(int):
    """A CEL uint; its range is checked where it is computed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time in nanoseconds, within int64."""

    nanos: int


@dataclass(frozen=True, slots=True)
class TimestampValue:
    """A point in time in nanoseconds since 1970, and the zone offset in seconds that it was written with."""

    nanos: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Optional:
    """An ``optional_type``; `NONE` is the one without a value, and the value may be an error."""

    value: Value

    def held(self) -> Value:
        """The value, or `MISSING`.

        Raises
        ------
        EvalError
            The value is an error.
        """
        if isinstance(self.value, EvalError):
            raise self.value
        return self.value


NONE: Final = Optional(MISSING)
"""``optional.none()``."""


@dataclass(frozen=True, slots=True)
class Empty:
    """The message ``google.protobuf.Empty``."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """The value of ``type(x)``; only its name matters for equality."""

    name: str


EMPTY_MAP: Final[dict[Any, Any]] = {}
"""The empty map; never changed."""


class TextMap(dict[str, Value]):
    """What a device has in one domain: a map that only has texts as keys.

    Other maps hash what is looked up in them, and upstream fails there for values that have no hash. This one compares
    texts, and has nothing under anything else. Source: cel-go, ``stringIfaceMapAccessor`` and ``reflectMapAccessor``.
    """

    __slots__ = ()


class DomainMap(dict[str, dict[str, Value]]):
    """``device.attributes`` and ``device.capacity``: as `TextMap`, and reading an unknown domain gives an empty map."""

    __slots__ = ()

    def __missing__(self, key: object) -> dict[Any, Any]:
        return EMPTY_MAP


MAPS: Final = frozenset({dict, DomainMap, TextMap})
"""The Python types of maps."""
TEXT_KEYED: Final = frozenset({DomainMap, TextMap})
"""Those that only have texts as keys."""
