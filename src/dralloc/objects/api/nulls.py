"""What null stands for, as Go reads JSON: a field that is null is absent, and in lists and maps null is the zero value.

``values: [null]`` is one empty text, ``nodeSelectorTerms: [null]`` a term without conditions, and
``capacity: {memory: null}`` an amount of nothing. The types of the models say which value that is. Source:
``encoding/json`` of Go, and ``UnmarshalJSON`` of ``resource.Quantity``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from dralloc.objects.api.disclosure import WireForm
from dralloc.objects.quantity import Quantity

__all__ = ["without_nulls"]

Fill = Callable[[Any], Any]
"""What becomes of a value on the wire that is not null."""

_ZEROS: Final[Mapping[type, Any]] = {str: "", int: 0, bool: False, Quantity: "0"}


@dataclass(frozen=True)
class _Form:
    """How values of a type look on the wire: the zero value, and what null in other ones becomes."""

    zero: Any
    fill: Fill


def without_nulls(model: type[BaseModel], body: Any) -> Any:
    """A copy of the body of an object without null, but for what may hold anything."""
    return _form(model).fill(body)


def _form(hint: Any) -> _Form:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        wire_forms = [
            mark.model for mark in arguments[1:] if isinstance(mark, WireForm)
        ]
        return _form(wire_forms[0] if wire_forms else arguments[0])
    if origin in (Union, UnionType):
        # A pointer in Go, which null leaves at nil.
        pointed = [
            _form(argument) for argument in arguments if argument is not NoneType
        ]
        return _Form(None, pointed[0].fill if len(pointed) == 1 else _as_it_is)
    if origin is tuple:
        return _list_of(arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _map_of(arguments[1])
    if isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint)):
        return _object_of(hint)
    return _Form(_ZEROS.get(hint), _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def _list_of(hint: Any) -> _Form:
    form = _form(hint)

    def fill(value: Any) -> Any:
        # A tuple is of parts that were read already.
        return (
            [_filled(item, form) for item in value]
            if isinstance(value, list)
            else value
        )

    return _Form([], fill)


def _map_of(hint: Any) -> _Form:
    form = _form(hint)

    def fill(value: Any) -> Any:
        return (
            {key: _filled(item, form) for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )

    return _Form({}, fill)


def _filled(value: Any, form: _Form) -> Any:
    return form.zero if value is None else form.fill(value)


@cache
def _object_of(model: Any) -> _Form:
    hints = get_type_hints(model, include_extras=True)
    if issubclass(model, BaseModel):
        names = {
            field.alias or name: name for name, field in model.model_fields.items()
        }
    else:
        names = {to_camel(field.name): field.name for field in fields(model)}
    by_wire_name = {wire_name: _form(hints[name]) for wire_name, name in names.items()}
    unknown = _Form(None, _as_it_is)

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        given = {name: part for name, part in value.items() if part is not None}
        return {
            name: by_wire_name.get(name, unknown).fill(part)
            for name, part in given.items()
        }

    return _Form({}, fill)
