"""What a selector can name: the variable ``device``, types, and functions, depending on the features in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dralloc.features import Features
from dralloc.match.cel.overloads import FUNCTIONS, Overload
from dralloc.match.cel.types import ANY, DYN, QUANTITY, STRING, Type, list_of, map_of, optional_of, parse_type

__all__ = ["TYPE_NAMES", "Environment", "environment_for"]

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


@lru_cache(maxsize=8)
def _environment(*, multiple_allocations: bool, lists: bool) -> Environment:
    """The environment with or without the parts that features gate."""
    attribute = DYN if lists else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if multiple_allocations:
        fields["allowMultipleAllocations"] = parse_type("bool")
    functions = FUNCTIONS if lists else {name: found for name, found in FUNCTIONS.items() if name != "includes"}
    return Environment(fields, attribute, functions)


def environment_for(features: Features, *, new_expression: bool) -> Environment:
    """The environment of a selector: stored ones may use everything, new ones only what is switched on."""
    return _environment(
        multiple_allocations=features.ConsumableCapacity or not new_expression,
        lists=features.ListTypeAttributes or not new_expression,
    )
