"""The types that values have at run time: their names, and sizes as costs see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubecel.data import (
    MAPS,
    MISSING,
    DomainMap,
    Duration,
    Empty,
    Optional,
    TextMap,
    TimestampValue,
    TypeValue,
    Uint,
    Value,
)
from kubecel.network import Cidr, Ip
from kubecel.quantity import Quantity
from kubecel.semver import Semver
from kubecel.url import Url

__all__ = [
    "EXTENSION_TYPES",
    "NamedFormat",
    "go_name",
    "size_of",
    "type_name",
    "type_named",
]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """One of Kubernetes' named string formats.

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


EXTENSION_TYPES: Final = frozenset({Quantity, Semver, Ip, Cidr, Url, NamedFormat})
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
