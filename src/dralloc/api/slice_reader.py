"""A fast way to read ResourceSlices, for clusters with a million devices.

Most parts of a device equal those of other devices: capacities, consumed counters, taints. So do counter sets. Each
such part is validated by its model when it is seen first, and found by its JSON text from then on. Only names and
attributes are read by hand. Whatever looks unusual is left to the models, which know the right words for what is
wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from dralloc.api.base import INT64
from dralloc.api.capacity import CounterSet
from dralloc.api.slices import Device, ResourceSlice
from dralloc.api.values import AttributeField, AttributeValue
from dralloc.api.versions.walk import Json

__all__ = ["SliceReader"]

_LONGEST_SHARED_TEXT: Final = 32
"""Longer texts are mostly identifiers of one device; looking for equal ones would only cost memory."""

_VALIDATORS: Final[Mapping[str, tuple[str, TypeAdapter[Any]]]] = {
    to_camel(part.name): (part.name, TypeAdapter(Device.__annotations__[part.name]))
    for part in fields(Device)
    if part.name not in ("name", "attributes")
} | {"sharedCounters": ("shared_counters", TypeAdapter(CounterSet))}
"""For each field of a device on the wire, and for counter sets: its name here, and the model of its value."""

_ATTRIBUTE: Final[TypeAdapter[AttributeValue]] = TypeAdapter(AttributeField)


class _UnusualError(Exception):
    """Something that the models must look at."""


@dataclass(slots=True)
class SliceReader:
    """Reads slices whose form is as expected; one reader keeps equal parts once among all slices it reads."""

    _parts: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    """Validated fields of devices and values of attributes, by field and JSON text."""
    _texts: dict[str, str] = field(default_factory=dict)

    def read(self, body: Json) -> ResourceSlice | None:
        """Read the body of a slice in v1 form, or return None when it must be validated step by step."""
        spec = body.get("spec")
        if not isinstance(spec, dict):
            return None
        readers = {"devices": self._device, "sharedCounters": self._counter_set}
        try:
            read = {key: tuple(map(reader, _list(spec[key]))) for key, reader in readers.items() if key in spec}
            return ResourceSlice.model_validate({**body, "spec": {**spec, **read}}, by_alias=True, by_name=False)
        except (_UnusualError, ValidationError, orjson.JSONEncodeError):
            return None

    def _counter_set(self, raw: Any) -> CounterSet:
        found: CounterSet = self._part("sharedCounters", raw)[1]
        return found

    def _device(self, raw: Any) -> Device:
        if type(raw) is not dict:
            raise _UnusualError
        parts: dict[str, Any] = {}
        for key, value in raw.items():
            if key == "attributes":
                parts["attributes"] = self._attributes(value)
            elif key == "name":
                parts["name"] = self._text(value)
            else:
                name, part = self._part(key, value)
                parts[name] = part
        if "name" not in parts:
            raise _UnusualError
        return Device(**parts)

    def _part(self, key: str, value: Any) -> tuple[str, Any]:
        """The validated value of one field of a device, the same object for equal values."""
        identity = (key, orjson.dumps(value))
        found = self._parts.get(identity)
        if found is None:
            if key not in _VALIDATORS:
                raise _UnusualError
            name, validator = _VALIDATORS[key]
            found = self._parts[identity] = name, validator.validate_python(value, by_alias=True, by_name=False)
        return found

    def _text(self, value: Any) -> str:
        if type(value) is not str:
            raise _UnusualError
        return value if len(value) > _LONGEST_SHARED_TEXT else self._texts.setdefault(value, value)

    def _attributes(self, raw: Any) -> dict[str, AttributeValue]:
        if type(raw) is not dict:
            raise _UnusualError
        values: dict[str, AttributeValue] = {}
        for name, wire in raw.items():
            if type(wire) is not dict or len(wire) != 1:
                raise _UnusualError
            [(kind, value)] = wire.items()
            values[name] = self._text(value) if kind == "string" else self._value(kind, value)
        return values

    def _value(self, kind: str, value: Any) -> AttributeValue:
        if (kind == "int" and type(value) is int and value in INT64) or (kind == "bool" and type(value) is bool):
            return value
        identity = (kind, orjson.dumps(value))
        found = self._parts.get(identity)
        if found is None:
            found = self._parts[identity] = _ATTRIBUTE.validate_python({kind: value})
        return found


def _list(raw: Any) -> list[Any]:
    if type(raw) is not list:
        raise _UnusualError
    return raw
