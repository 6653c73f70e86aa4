"""How the API models are configured, and how quantities are read and written."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    StrictInt,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from dralloc.objects.quantity import Quantity, parse_quantity

__all__ = [
    "EMPTY",
    "INT32",
    "INT64",
    "_WIRE",
    "Int32",
    "Int64",
    "PartialModel",
    "QuantityField",
    "WireData",
    "WireModel",
]

_WIRE: Final = ConfigDict(
    frozen=True,
    alias_generator=to_camel,
    validate_by_alias=True,
    validate_by_name=True,
    extra="forbid",
)
"""Frozen, camelCase on the wire, constructed by name in Python; a field that is not modelled is an error."""

INT32: Final = range(-(2**31), 2**31)
INT64: Final = range(-(2**63), 2**63)
"""What an ``int32`` and an ``int64`` of the API hold."""

# Kubernetes decodes into these types, so that a number outside of them is refused, whatever field it is for.
Int32 = Annotated[StrictInt, Field(ge=INT32[0], le=INT32[-1])]
Int64 = Annotated[StrictInt, Field(ge=INT64[0], le=INT64[-1])]


class _Empty(dict[Any, Any]):
    def __hash__(self) -> int:  # type: ignore[override]
        return 0

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return handler(dict[Any, Any])


EMPTY: Final[Mapping[Any, Any]] = _Empty()
"""The default of mappings. It has a hash, so that pydantic shares it, and does not make a copy for every object."""


class WireModel(BaseModel):
    """A part of an object of ``resource.k8s.io``: every field of the API is modelled."""

    model_config = _WIRE


class WireData:
    """A part of which a cluster has a million: a slotted dataclass, which pydantic validates like a `WireModel`."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = _WIRE


class PartialModel(BaseModel):
    """A part of an object of another API group: only the fields that matter here are modelled, others are ignored."""

    model_config = ConfigDict({**_WIRE, "extra": "ignore"})


_BLANKS: Final = " \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What the API trims off a quantity: what Go calls a space, but for those that JSON only has as escapes."""


def _read_quantity(value: Any) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, str):
        return parse_quantity(value.strip(_BLANKS))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse_quantity(repr(value))
    raise PydanticCustomError("quantity_type", "must be a quantity")


QuantityField = Annotated[
    Quantity,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_plain_validator_function(
            _read_quantity, serialization=core_schema.to_string_ser_schema()
        )
    ),
]
"""A quantity, given as text or as a number, which counts as its shortest text."""
