"""The base of all answers: tables, text, display in a notebook, and JSON.

First what every JSON document is made of (`Fields`, `Document`), then the answers (`Answer`, `Documented`).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sized
from dataclasses import fields, is_dataclass
from functools import cache, reduce
from inspect import cleandoc, get_annotations, getsource
from itertools import pairwise
from operator import or_
from textwrap import dedent
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dralloc.objects.names import ClaimKey, DeviceID, PoolID
from dralloc.objects.notebook import cell_of, shortened
from dralloc.objects.quantity import NANOS, Quantity
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
    "Nanos",
    "Timings",
    "Word",
    "described",
]

# ----------------------------------------------------------------------------
# What every JSON document of dralloc is made of: models, from which the JSON and its
# JSON Schema both follow.
#
# Counts are integers, and so are amounts (of counters and capacities) that are whole;
# others are quantities as Kubernetes writes them, in strings: exact, and never floats.
# Prices are strings, too. Shares and gaps are numbers from 0 to 1; times are seconds.

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

_EXACT: Final = 2**53
"""Readers that have floats alone, as JavaScript and jq, know integers up to here."""


def _written(nanos: int) -> int | str:
    """Return an amount as an integer, in bytes for memory; one that is none, or too large, as a quantity."""
    whole, part = divmod(nanos, NANOS)
    return str(Quantity(nanos)) if part or abs(whole) > _EXACT else whole


Amount = Annotated[
    int,
    PlainSerializer(_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer"},
                {
                    "type": "string",
                    "format": "quantity",
                    "pattern": "^-?[0-9]+([numkMGTPE]|[KMGTPE]i)?$",
                },
            ]
        }
    ),
]
"""Nanos, written as a number where they are a whole one, and as a quantity where not."""

Nanos = Annotated[int, "nanos"]
"""An amount as answers hold it: documents write it as an `Amount`."""

Timings = Annotated[dict[str, float], Field(description="Seconds by phase.")]


def described(info: ValidationInfo) -> Any:
    """Return the answer that a document describes, for validators of its fields."""
    return info.context


class Fields(BaseModel):
    """A part of a document. It reads its fields from the attributes of what it describes.

    ``class GangFields(Fields, of=Gathering)`` has the fields of a `Gathering` in their order, with their names, their
    types and the docstrings below them. `shown` names which ones, in the order of the document, properties among them.
    What JSON says in another way is stated in the class: another name or type, or a docstring of its own.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        defer_build=True,
        from_attributes=True,
        frozen=True,
        json_schema_serialization_defaults_required=True,
    )

    _derived: ClassVar[Mapping[str, type]] = {}
    """By derived field the class whose docstring it has."""

    def __init_subclass__(
        cls, of: type | None = None, shown: str = "", **settings: Any
    ) -> None:
        super().__init_subclass__(**settings)
        if of is None:
            return
        _FORMS[of] = cls
        stated = cls.__annotations__
        by_attribute = {}
        for name in stated:
            alias = getattr(cls.__dict__.get(name), "validation_alias", None)
            by_attribute[alias if isinstance(alias, str) else name] = name
        derived: dict[str, Any] = {}
        for name in shown.split() or _field_names(of):
            if name in by_attribute:
                field = by_attribute.pop(name)
                derived[field] = stated[field]
            else:
                derived[name] = _in_json(_type_of(of, name))
        cls._derived = {
            **cls._derived,
            **dict.fromkeys(derived.keys() - stated.keys(), of),
        }
        # Pydantic looks at annotations only after this.
        cls.__annotations__ = {**derived, **stated}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe fields by the docstrings below them, derived ones as the answer's class does.

        Pydantic could do so itself, but would read the source of every document whenever one of them is imported.
        """
        reference = handler(schema)
        properties = handler.resolve_ref_schema(reference)["properties"]
        for name, field in cls.model_fields.items():
            description = _docstrings(cls._home_of(name)).get(name)
            if description:
                alias = field.serialization_alias or name
                properties[alias]["description"] = description
        return reference

    @classmethod
    def _home_of(cls, name: str) -> type:
        """Return the class below whose field of a name its docstring is."""
        if name in cls._derived:
            return cls._derived[name]
        return next(
            base for base in cls.__mro__ if name in get_annotations(base)
        )


_FORMS: Final[dict[type, type[Fields]]] = {}
"""What documents make of parts of answers."""


def _field_names(of: type) -> list[str]:
    """Return the fields of a dataclass or named tuple."""
    if is_dataclass(of):
        return [field.name for field in fields(of)]
    names: tuple[str, ...] = getattr(of, "_fields", ())
    return list(names)


def _type_of(of: type, name: str) -> Any:
    """Return the type of a field or property."""
    attribute = getattr(of, name, None)
    function = getattr(attribute, "fget", getattr(attribute, "func", None))
    if function is not None:
        return get_type_hints(function, include_extras=True)["return"]
    return get_type_hints(of, include_extras=True)[name]


def _in_json(hint: Any) -> Any:
    """Return the type that JSON has for values of a type.

    Names are keys, whatever can be counted through is a list, and parts of answers have forms of their own.
    """
    if hint in _FORMS:
        return _FORMS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Amount if inner[1:] == get_args(Nanos)[1:] else hint
    if origin in (Union, UnionType):
        return reduce(or_, map(_in_json, inner))
    if origin is not None and issubclass(origin, Mapping):
        return dict[_in_json(inner[0]), _in_json(inner[1])]  # type: ignore[misc] # as below
    if origin is not None and issubclass(origin, Iterable):
        return list[_in_json(inner[0])]  # type: ignore[misc] # known at run time
    if hint in (ClaimKey, DeviceID, PoolID):
        return Key
    if issubclass(hint, bool | int | float | str | NoneType):
        return hint
    raise TypeError(f"{hint} has no form in JSON: state the field")


@cache
def _docstrings(of: type) -> Mapping[str, str]:
    """Return the docstrings below the fields of a class, and those of its properties."""
    [tree] = ast.parse(dedent(getsource(of))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {
        statement.name: ast.get_docstring(statement)
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
    }
    for statement, follower in pairwise(tree.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(
            follower, ast.Expr
        ):
            assert isinstance(statement.target, ast.Name)
            texts[statement.target.id] = cleandoc(
                ast.literal_eval(follower.value)
            )
    return {name: text for name, text in texts.items() if text}


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
        """Return the names that the answer is about: the first column of its first table, each name once."""
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
