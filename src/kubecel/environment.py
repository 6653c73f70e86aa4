"""What a selector can name: the variable ``device``, types, and functions, depending on the gates that are on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kubecel.overloads import FUNCTIONS, Overload
from kubecel.types import (
    ANY,
    DYN,
    QUANTITY,
    STRING,
    Type,
    list_of,
    map_of,
    optional_of,
    parse_type,
)

__all__ = ["ALL_GATES", "TYPE_NAMES", "Environment", "FeatureGates", "environment_for"]

TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{
        name: Type(name)
        for name in (
            *("bool", "bytes", "double", "int", "null_type", "string", "type", "uint"),
            *(f"google.protobuf.{name}" for name in ("Duration", "Empty", "Timestamp")),
            *("net.CIDR", "net.IP"),
        )
    },
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "optional_type": optional_of(DYN),
}
"""Names of types that an expression may use as values."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Declarations.

    Parameters
    ----------
    fields
        The fields of ``device``.
    attribute
        The type of an attribute: dyn, or any where lists are unknown.
    functions
        Overloads by name.
    """

    fields: Mapping[str, Type]
    attribute: Type
    functions: Mapping[str, tuple[Overload, ...]]


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """What an expression may use, by Kubernetes' feature gates.

    They matter when an object is created. The expressions of objects that are there may use everything (KEP-4381, the
    environment "StoredExpressions"), so that all gates are on unless something else is said.

    Parameters
    ----------
    consumable_capacity
        ``DRAConsumableCapacity``: the field ``device.allowMultipleAllocations``.
    list_attributes
        ``DRAListTypeAttributes``: attributes that are lists, and ``includes()``.
    """

    consumable_capacity: bool = True
    list_attributes: bool = True


ALL_GATES: Final = FeatureGates()


@lru_cache(maxsize=8)
def environment_for(gates: FeatureGates) -> Environment:
    """The environment with or without the parts that are gated."""
    attribute = DYN if gates.list_attributes else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if gates.consumable_capacity:
        fields["allowMultipleAllocations"] = parse_type("bool")
    functions = FUNCTIONS
    if not gates.list_attributes:
        functions = {
            name: found for name, found in FUNCTIONS.items() if name != "includes"
        }
    return Environment(fields, attribute, functions)
