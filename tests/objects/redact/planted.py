"""Objects with a marker wherever text can be: in every field of the API, every text of real objects, unknown fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import count
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from dralloc.objects.api import AttributeValue
from dralloc.objects.quantity import Quantity
from wire import Json

MARKER = re.compile(r"mk\d+x", re.IGNORECASE)


class Planter:
    """Makes objects with markers, each of which occurs once.

    Parameters
    ----------
    mistyped
        Whether numbers and truth values are markers, too.
    """

    def __init__(self, *, mistyped: bool = False) -> None:
        self.mistyped = mistyped
        self._numbers = count(1)

    def marker(self) -> str:
        return f"mk{next(self._numbers)}x"

    def full(self, model: Any) -> Json:
        """An object with every field of a model: text is a marker, and there are unknown fields at every level."""
        wire: Json = {
            "apiVersion": model.api_version,
            "kind": model.kind,
            **self._value(model),
        }
        return wire

    def grown(self, value: Any) -> Any:
        """The object with a marker behind every text, and with unknown fields and entries at every level."""
        if isinstance(value, str):
            return f"{value}-{self.marker()}"
        if isinstance(value, list):
            return [self.grown(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = {
            key: value[key]
            for key in ("apiVersion", "kind")
            if key in value and "metadata" in value
        }
        return (
            {key: self.grown(part) for key, part in value.items()}
            | self._unknown()
            | kind
        )

    def extended(self, value: Any, hint: Any) -> Any:
        """The object with unknown fields at every level; texts are as they were."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.extended(value, arguments[0])
        if origin is tuple and isinstance(value, list):
            return [self.extended(item, arguments[0]) for item in value]
        if origin is Mapping and isinstance(value, dict):
            return {
                key: self.extended(part, arguments[1])
                for key, part in value.items()
            }
        if NoneType in arguments:
            return self.extended(
                value,
                next(
                    argument
                    for argument in arguments
                    if argument is not NoneType
                ),
            )
        if _is_model(hint) and isinstance(value, dict):
            known = dict(_fields(hint))
            return {
                key: self.extended(part, known.get(key))
                for key, part in value.items()
            } | self._unknown()
        return value

    def _unknown(self) -> Json:
        """Fields that nobody knows; in a map, entries."""
        return {
            self.marker(): {self.marker(): self.marker()},
            self.marker(): self.marker(),
        }

    def _value(self, hint: Any) -> Any:
        origin, arguments = get_origin(hint), get_args(hint)
        if hint is AttributeValue:
            return {
                "string": self.marker(),
                "strings": [self.marker()],
                "version": self.marker(),
                **self._unknown(),
            }
        if origin is Annotated:
            return self._value(arguments[0])
        if origin is Literal:
            return self.marker()
        if origin is tuple:
            return [self._value(arguments[0]), self.marker(), self._unknown()]
        if origin is Mapping:
            return {self.marker(): self._value(arguments[1]), **self._unknown()}
        if NoneType in arguments:
            return self._value(
                next(
                    argument
                    for argument in arguments
                    if argument is not NoneType
                )
            )
        if _is_model(hint):
            return {
                alias: self._value(part) for alias, part in _fields(hint)
            } | self._unknown()
        return (
            self.marker()
            if self.mistyped
            else {bool: True, int: 1, Quantity: "1"}.get(hint) or self.marker()
        )


def _fields(model: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(model, include_extras=True)
    if is_dataclass(model):
        yield from (
            (to_camel(field.name), hints[field.name]) for field in fields(model)
        )
    else:
        yield from (
            (field.alias, hints[name])
            for name, field in model.model_fields.items()
        )


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and (
        is_dataclass(hint) or issubclass(hint, BaseModel)
    )


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Where markers are, and in which text: ``*`` stands for a key, ``[*]`` for any key of labels or with a marker."""
    if isinstance(value, dict):
        for key, part in value.items():
            if MARKER.search(key):
                yield ".".join((*path, "*")), key
            chosen = MARKER.search(key) or path[-1:] in (
                ("labels",),
                ("nodeSelector",),
            )
            yield from places(part, (*path, "[*]" if chosen else key))
    elif isinstance(value, list):
        for part in value:
            yield from places(part, path)
    elif isinstance(value, str) and MARKER.search(value):
        yield ".".join(path), value
