"""Attribute values of devices as plain Python values.

On the wire an attribute is an object with one field, ``{"string": "A100"}``. Here it is the value itself, which takes
less room and compares directly: `bool`, `int`, `str`, `Version`, or a tuple of one of them for the list fields.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, GetPydanticSchema, StrictBool, StrictStr
from pydantic_core import PydanticCustomError, core_schema

from dralloc.objects.api.base import Int64, WireModel
from dralloc.objects.api.disclosure import Text, WireForm
from kubecel import UNSET, AttributeValue, Unset, Version

__all__ = [
    "TYPE_NAMES",
    "UNSET",
    "AttributeField",
    "AttributeValue",
    "Unset",
    "Version",
    "attribute_to_wire",
]


_Text = Annotated[StrictStr, Text.ATTRIBUTE]
_Version = Annotated[_Text, AfterValidator(Version)]


class _WireAttribute(WireModel):
    int: Int64 | None = None
    bool: StrictBool | None = None
    string: _Text | None = None
    version: _Version | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[StrictBool, ...] | None = None
    strings: tuple[_Text, ...] | None = None
    versions: tuple[_Version, ...] | None = None


def _from_wire(wire: _WireAttribute) -> AttributeValue:
    given = {field: value for field, value in wire if value is not None}
    if len(given) > 1:
        raise PydanticCustomError(
            "attribute", f"has more than one value: {', '.join(given)}"
        )
    return next(iter(given.values()), UNSET)


def attribute_to_wire(value: AttributeValue) -> dict[str, Any]:
    """The wire form of an attribute's value, e.g. ``{"int": 3}``."""
    if value is UNSET:
        return {}
    if isinstance(value, tuple):
        field = f"{TYPE_NAMES[type(value[0])]}s" if value else "strings"
        return {field: [str(item) if isinstance(item, str) else item for item in value]}
    return {TYPE_NAMES[type(value)]: str(value) if isinstance(value, str) else value}


TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    Version: "version",
    str: "string",
}
"""What the API calls the types of attributes."""

AttributeField = Annotated[
    AttributeValue,
    WireForm(_WireAttribute),
    GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_after_validator_function(
            _from_wire,
            handler.generate_schema(_WireAttribute),
            serialization=core_schema.plain_serializer_function_ser_schema(
                attribute_to_wire
            ),
        )
    ),
]
"""An attribute's value as a field of a model: reads and writes the wire form."""
