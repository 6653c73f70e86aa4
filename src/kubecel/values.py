"""Values while a selector runs: their types, maps, equality and order with upstream's quirks.

An error of evaluation is a value, too, so that logical operators can absorb it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kubecel.errors import CelRuntimeError
from kubecel.kubernetes_types.addresses import Cidr, Ip
from kubecel.kubernetes_types.quantities import Quantity
from kubecel.kubernetes_types.semantic_versions import Semver
from kubecel.kubernetes_types.urls import Url

__all__ = [
    "EMPTY_MAP",
    "EXTENSION_TYPES",
    "INT_MAX",
    "INT_MIN",
    "MAPS",
    "MAX_LIST",
    "MAX_TEXT",
    "MISSING",
    "NONE",
    "UINT_MAX",
    "DomainMap",
    "Duration",
    "Empty",
    "EvalError",
    "Frame",
    "NamedFormat",
    "Optional",
    "Run",
    "TextMap",
    "TimestampValue",
    "TypeValue",
    "Uint",
    "Value",
    "compare",
    "equal",
    "equal_numbers",
    "find",
    "go_name",
    "lookup",
    "map_items",
    "map_key",
    "map_keys",
    "no_overload",
    "order",
    "size_of",
    "type_name",
    "type_named",
    "unhashable",
]

# ----------------------------------------------------------------------------
# Values: Python's own where these behave as CEL's do (``bool``, ``int``, ``float``,
# ``str``, ``bytes``, ``None`` for null, ``tuple`` for lists and ``dict`` for maps).
# What Python lacks is defined here and in `kubecel.kubernetes_types`.

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
    return EvalError(
        f"no such overload: {name}" if name else "no such overload"
    )


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
    """The map of what a device has in one domain: only texts are keys.

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
_TEXT_KEYED: Final = frozenset({DomainMap, TextMap})
"""Those that only have texts as keys."""


# ----------------------------------------------------------------------------
# Types at run time: their names, and the sizes that costs are computed from.


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A named string format of Kubernetes.

    `validate` lists what is wrong with a text; ``cost`` is what that costs for each ten bytes.
    """

    name: str
    validate: Callable[[str], tuple[str, ...]]
    cost: int


_NAMES: Final[dict[type, tuple[str, str]]] = {
    bool: ("bool", "types.Bool"),
    int: ("int", "types.Int"),
    Uint: ("uint", "types.Uint"),
    float: ("double", "types.Double"),
    str: ("string", "types.String"),
    bytes: ("bytes", "types.Bytes"),
    type(None): ("null_type", "types.Null"),
    tuple: ("list", "*types.baseList"),
    **dict.fromkeys((dict, TextMap), ("map", "*types.baseMap")),
    DomainMap: ("map", "cel.mapper"),
    Duration: ("google.protobuf.Duration", "types.Duration"),
    TimestampValue: ("google.protobuf.Timestamp", "types.Timestamp"),
    Empty: ("google.protobuf.Empty", "*types.protoObj"),
    TypeValue: ("type", "*types.Type"),
    Optional: ("optional_type", "*types.Optional"),
    Quantity: ("kubernetes.Quantity", "cel.Quantity"),
    Semver: ("kubernetes.Semver", "cel.Semver"),
    NamedFormat: ("kubernetes.NamedFormat", "*cel.Format"),
    Ip: ("net.IP", "cel.IP"),
    Cidr: ("net.CIDR", "cel.CIDR"),
    Url: ("kubernetes.URL", "cel.URL"),
}


EXTENSION_TYPES: Final = frozenset(
    {Quantity, Semver, Ip, Cidr, Url, NamedFormat}
)
"""Kubernetes' own types."""

_KINDS: Final = {name: kind for kind, (name, _) in _NAMES.items()}


def type_name(value: Value) -> str:
    """The name of a value's type."""
    return _NAMES[type(value)][0]


def type_named(name: str) -> type | None:
    """The Python type of a CEL type, for maps one of them; None if no value has it."""
    return _KINDS.get(name)


def go_name(value: Value) -> str:
    """The name of a value's type in upstream's implementation, which some of its messages show."""
    return _NAMES[type(value)][1]


def size_of(value: Value) -> int:
    """The size that costs are computed from: of strings, bytes, lists, maps and addresses; 1 for everything else."""
    kind = type(value)
    if kind is str or kind is tuple or kind in MAPS or kind is bytes:
        return len(value)
    if kind is Ip or kind is Cidr:
        size: int = value.size
        return size
    if kind is Optional and value.value is not MISSING:
        return size_of(value.value)
    return 1


# ----------------------------------------------------------------------------
# Maps: Python's dicts, with keys that tell apart what CEL tells apart.

# Python says that True == 1 == 1.0, and CEL does not. So a key of these types is kept
# with its type; strings, ints and null are so frequent that they stay as they are.
_BY_VALUE: Final = frozenset(
    {bool, Uint, float, Duration, TimestampValue, TypeValue, Ip, Cidr}
)
# Go panics where it hashes these: they hold a slice.
_UNHASHABLE: Final = frozenset({bytes, Semver, NamedFormat})


class _IdentityKey:
    """A key that equals only itself: of a type that upstream handles by reference, or NaN, which equals nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _IdentityKey)
            and self.value is other.value
            and type(self.value) is not float
        )

    def __hash__(self) -> int:
        return id(self.value)


def unhashable(value: Value) -> CelRuntimeError | None:
    """The error of looking up a value that upstream's hash tables crash on, or None."""
    if type(value) not in _UNHASHABLE:
        return None
    return CelRuntimeError(
        f"internal error: runtime error: hash of unhashable type {go_name(value)}"
    )


def map_key(key: Value) -> Value:
    """The Python key under which a map keeps a CEL key.

    Raises
    ------
    CelRuntimeError
        No map can have such a key.
    """
    kind = type(key)
    if kind is str or kind is int or key is None:
        return key
    if kind in _BY_VALUE and key == key:  # noqa: PLR0124 - NaN
        return kind, key
    if error := unhashable(key):
        raise error
    return _IdentityKey(key)


def map_keys(values: dict[Any, Any]) -> Iterator[Value]:
    """The CEL keys of a map."""
    for key in values:
        if type(key) is tuple:
            yield key[1]
        elif type(key) is _IdentityKey:
            yield key.value
        else:
            yield key


def map_items(values: dict[Any, Any]) -> Iterator[tuple[Value, Value]]:
    """The entries of a map, by their CEL keys."""
    return zip(map_keys(values), values.values(), strict=True)


def find(values: dict[Any, Any], key: Value) -> Value:
    """The value under a CEL key, or `MISSING`; a domain map has every key."""
    value = lookup(values, key)
    if value is MISSING and type(values) is DomainMap:
        return EMPTY_MAP
    return value


def lookup(values: dict[Any, Any], key: Value) -> Value:
    """Return the value that a map keeps under a CEL key or under an int or uint that equals it, or `MISSING`."""
    if type(key) is str:
        return values.get(key, MISSING)
    # An empty map hashes nothing, so that an unhashable key is no error.
    if not values or type(values) in _TEXT_KEYED:
        return MISSING
    value = values.get(map_key(key), MISSING)
    if value is MISSING:
        # No map has a double as a key, so only integers can stand for another number.
        for equal_key in equal_numbers(key):
            if type(equal_key) is not float and value is MISSING:
                value = values.get(map_key(equal_key), MISSING)
    return value


def equal_numbers(number: Value) -> Iterator[Value]:
    """The numbers of other types that equal a number; as doubles, large ints lose their last digits."""
    kind = type(number)
    if kind is float and number.is_integer():
        if INT_MIN < number < INT_MAX:
            yield int(number)
        if 0 <= number < UINT_MAX:
            yield Uint(int(number))
    elif kind is int:
        if number >= 0:
            yield Uint(number)
        yield float(number)
    elif kind is Uint:
        if number <= INT_MAX:
            yield int(number)
        yield float(number)


# ----------------------------------------------------------------------------
# Equality and order at run time, with upstream's quirks.


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1, by Python's own order."""
    return int(left > right) - int(left < right)


def equal(left: Value, right: Value) -> bool | None:
    """Whether two values are equal, or None if the left one cannot be compared with the right one."""
    if left is None or right is None:
        return left is right
    return _EQUAL[type(left)](left, right)


def _same_type(left: Value, right: Value) -> bool:
    return type(left) is type(right) and bool(left == right)


def _strict(left: Value, right: Value) -> bool | None:
    """The extension types refuse to be compared with anything else."""
    if type(left) is type(right):
        return bool(left == right)
    return None


def _quantity(left: Value, right: Value) -> bool | None:
    """Upstream's sums and differences are of another type of Go, which is not expected on the right."""
    if type(right) is Quantity and right.computed:
        return None
    return _strict(left, right)


def _number(left: Value, right: Value) -> bool:
    if type(right) not in _NUMBERS:
        return False
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return False
    return _order_numbers(left, right) == 0


def _list(left: Value, right: Value) -> bool:
    """Elements that cannot be compared count as equal."""
    if type(right) is not tuple or len(left) != len(right):
        return False
    # None, "cannot be compared", is no difference: upstream looks only for False here.
    pairs = zip(left, right, strict=True)
    return all(
        equal(left_item, right_item) is not False
        for left_item, right_item in pairs
    )


def _map(left: Value, right: Value) -> bool:
    if not isinstance(right, dict) or len(left) != len(right):
        return False
    for key in map_keys(left):
        right_value = find(right, key)
        if (
            right_value is MISSING
            or equal(find(left, key), right_value) is False
        ):
            return False
    return True


def _optional(left: Value, right: Value) -> bool | None:
    if type(right) is not Optional:
        return False
    left_value, right_value = left.held(), right.held()
    if left_value is MISSING or right_value is MISSING:
        return left_value is right_value
    return equal(left_value, right_value)


# By the type of the left value; what stands on the right is the function's business.
_EQUAL: Final[dict[type, Callable[[Any, Any], bool | None]]] = {
    **dict.fromkeys((bool, str, bytes, Duration, Empty, TypeValue), _same_type),
    **dict.fromkeys((int, Uint, float), _number),
    **dict.fromkeys(EXTENSION_TYPES, _strict),
    Quantity: _quantity,
    **dict.fromkeys(MAPS, _map),
    tuple: _list,
    Optional: _optional,
    TimestampValue: lambda left, right: (
        type(right) is TimestampValue and left.nanos == right.nanos
    ),
}


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1: the order of two values of one type, or of two numbers.

    Raises
    ------
    EvalError
        The values have no order.
    """
    kind = type(left)
    if kind in _NUMBERS and type(right) in _NUMBERS:
        return _order_numbers(left, right)
    if kind is not type(right):
        raise no_overload()
    if kind is str or kind is bool or kind is bytes:
        return order(left, right)
    if kind is Duration or kind is TimestampValue:
        return order(left.nanos, right.nanos)
    raise no_overload()


_NUMBERS: Final = frozenset({int, Uint, float})
_LOWEST: Final = {int: float(INT_MIN), Uint: 0.0}
_HIGHEST: Final = {int: float(INT_MAX), Uint: float(UINT_MAX)}


def _order_numbers(left: Value, right: Value) -> int:
    """Ints and doubles compare as doubles, so large ints lose their last digits."""
    if left != left or right != right:  # noqa: PLR0124 - NaN
        raise EvalError("NaN values cannot be ordered")
    if type(left) is float:
        return _order_double(left, right)
    if type(right) is float:
        return -_order_double(right, left)
    return order(left, right)


def _order_double(left: float, right: Value) -> int:
    if type(right) is not float:
        # float(right) could round beyond the range of the integer type.
        if left < _LOWEST[type(right)]:
            return -1
        if left > _HIGHEST[type(right)]:
            return 1
    return order(left, float(right))
