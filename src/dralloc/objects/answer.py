"""What every answer can do: be shown as tables, as text and in a notebook, and be written as JSON.

First what every JSON document is made of (`Fields`, `Document`), then the answers (`Answer`, `Documented`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sized
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from dralloc.objects.notebook import cell_of, shortened
from dralloc.objects.quantity import Quantity
from dralloc.objects.report import Part, Table, as_text

__all__ = [
    "VERSION",
    "Amount",
    "Answer",
    "Count",
    "Document",
    "Documented",
    "Fields",
    "Key",
    "Timings",
    "Word",
    "described",
]

# ----------------------------------------------------------------------------
# What every JSON document of dralloc is made of: models, from which the JSON and its
# JSON Schema both follow.
#
# Counts are integers. Amounts (of counters and capacities) are quantities as
# Kubernetes writes them, in strings: exact, and never floats. Prices are strings,
# too. Shares and gaps are numbers from 0 to 1; times are seconds.

VERSION: Final = 2
"""Grows when a field changes its meaning or goes; new fields alone leave it as it is."""


def _counted(value: Any) -> Any:
    return len(value) if isinstance(value, Sized) else value


Key = Annotated[str, BeforeValidator(str)]
"""``namespace/name`` of a pod or claim, ``driver/pool/device`` of a device."""

Word = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""A text, or null where there is nothing to say."""

Count = Annotated[int, BeforeValidator(_counted)]
"""How many there are."""

Amount = Annotated[
    int,
    PlainSerializer(lambda nanos: str(Quantity(nanos)), return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "format": "quantity",
            "pattern": "^-?[0-9]+([numkMGTPE]|[KMGTPE]i)?$",
        }
    ),
]
"""Nanos, written as a quantity."""

Timings = Annotated[dict[str, float], Field(description="Seconds by phase.")]


def described(info: ValidationInfo) -> Any:
    """Return the answer that a document describes, for validators of its fields."""
    return info.context


class Fields(BaseModel):
    """A part of a document. It reads its fields from the attributes of what it describes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        defer_build=True,
        from_attributes=True,
        frozen=True,
        json_schema_serialization_defaults_required=True,
        use_attribute_docstrings=True,
    )


class Document(Fields):
    """A whole answer of one command."""

    schema_version: Literal[2] = VERSION
    """Version of this form."""

    @classmethod
    def of(cls, answer: object) -> Self:
        """Return the document that describes an answer."""
        return cls.model_validate(answer, context=answer)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) that every such document keeps."""
        schema = cls.model_json_schema(mode="serialization")
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema,
        }


_REPR: Final = 300


class Answer(ABC):
    """An answer that shows itself in a `headline` and in `parts`; everything else follows from these.

    ``print(answer)`` is a readable report in full, ``repr(answer)`` one line. A notebook shows tables, bounded in rows,
    and pictures if matplotlib is installed.
    """

    @property
    @abstractmethod
    def headline(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """Return the answer as tables and lines."""

    def names(self) -> Iterable[str]:
        """Return what it is about, by name: the first column of its first table, each name once."""
        tables = (part for part in self.parts() if isinstance(part, Table))
        first = next((table for table in tables if table.rows), None)
        cells = (row[0] for row in first.rows) if first else ()
        return dict.fromkeys(cell for cell in cells if cell)

    def __str__(self) -> str:
        return as_text(self.parts())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shortened(self.headline, _REPR)}>"

    def _repr_html_(self) -> str:
        return cell_of(self)


class Documented(Answer):
    """An answer that has a form in JSON, too: its `document`, whose JSON Schema ``dralloc schema`` prints."""

    document: ClassVar[type[Document]]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, ready for JSON."""
        return self.document.of(self).to_dict()
