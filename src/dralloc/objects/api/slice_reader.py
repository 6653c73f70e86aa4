"""A fast way to read ResourceSlices, for clusters with a million devices.

Most parts of a device equal those of other devices: capacities, consumed counters, taints. So do counter sets. Each
such part is validated by its model when it is seen first, and found by its JSON text from then on. Only names and
attributes are read by hand. Whatever looks unusual is left to the models, which know the right words for what is
wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from dralloc.objects.api.base import INT64
from dralloc.objects.api.capacity import CounterSet
from dralloc.objects.api.device_template import DeviceTemplate
from dralloc.objects.api.slices import Device, ResourceSlice
from dralloc.objects.api.values import AttributeField, AttributeValue
from dralloc.objects.api.versions.walk import Json

__all__ = ["LISTS", "SliceReader"]

LISTS: Final[Mapping[str, str]] = {
    "devices": "devices",
    "sharedCounters": "shared_counters",
}
"""The long lists of a slice on the wire, with their names here."""

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


_UNUSUAL: Final = (_UnusualError, ValidationError, orjson.JSONEncodeError)


@dataclass(slots=True)
class SliceReader:
    """Reads slices whose form is as expected; one reader keeps equal parts once among all slices it reads."""

    _parts: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    """Validated fields of devices and values of attributes, by field and JSON text."""
    _texts: dict[str, str] = field(default_factory=dict)

    def read(self, body: Json) -> ResourceSlice | None:
        """Read the body of a slice in v1 form, or return None when it must be validated step by step.

        Its lists may be tuples of what was read already, which are taken as they are.
        """
        spec = body.get("spec")
        if not isinstance(spec, dict):
            return None
        head = {key: value for key, value in spec.items() if key not in LISTS}
        try:
            lists = {
                name: self._items(key, spec[key])
                for key, name in LISTS.items()
                if key in spec
            }
            found = ResourceSlice.model_validate(
                {**body, "spec": head}, by_alias=True, by_name=False
            )
        except _UNUSUAL:
            return None
        return found.model_copy(update={"spec": found.spec.model_copy(update=lists)})

    def template(
        self, key: str, raw: Any, blanks: Sequence[str]
    ) -> Callable[[Sequence[str]], tuple[Any, ...]] | None:
        """What makes one of the `LISTS` of the texts that take the place of blanks; None for an unusual one."""
        try:
            items = self._items(key, raw)
            if key == "devices":
                return DeviceTemplate(items, blanks).filled
        except (*_UNUSUAL, ValueError):
            return None
        return None if blanks else lambda _: items

    def _items(self, key: str, raw: Any) -> tuple[Any, ...]:
        if type(raw) is list:
            return tuple(
                map(self._device if key == "devices" else self._counter_set, raw)
            )
        if isinstance(raw, tuple):
            return raw
        raise _UnusualError

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
            found = self._parts[identity] = (
                name,
                validator.validate_python(value, by_alias=True, by_name=False),
            )
        return found

    def _text(self, value: Any) -> str:
        if type(value) is not str:
            raise _UnusualError
        return (
            value
            if len(value) > _LONGEST_SHARED_TEXT
            else self._texts.setdefault(value, value)
        )

    def _attributes(self, raw: Any) -> dict[str, AttributeValue]:
        if type(raw) is not dict:
            raise _UnusualError
        values: dict[str, AttributeValue] = {}
        for name, wire in raw.items():
            if type(wire) is not dict or len(wire) != 1:
                raise _UnusualError
            [(kind, value)] = wire.items()
            values[name] = (
                self._text(value) if kind == "string" else self._value(kind, value)
            )
        return values

    def _value(self, kind: str, value: Any) -> AttributeValue:
        if (kind == "int" and type(value) is int and value in INT64) or (
            kind == "bool" and type(value) is bool
        ):
            return value
        identity = (kind, orjson.dumps(value))
        found = self._parts.get(identity)
        if found is None:
            found = self._parts[identity] = _ATTRIBUTE.validate_python({kind: value})
        return found
