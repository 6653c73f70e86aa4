"""Reads the ResourceSlices of clusters with a million devices, most of which are alike but for some texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from itertools import repeat
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from dralloc.objects.api.base import INT64
from dralloc.objects.api.slices import (
    AttributeField,
    AttributeValue,
    CounterSet,
    Device,
    ResourceSlice,
)
from dralloc.objects.api.versions import Json

__all__ = [
    "LISTS",
    "DeviceTemplate",
    "SliceReader",
    "TemplateDevices",
    "common",
    "named",
]

# ----------------------------------------------------------------------------
# Lists of devices that are alike but for some texts, such as the UUIDs of otherwise
# equal nodes.

_SETTERS: Final[Mapping[str, Callable[[Device, Any], None]]] = {
    part.name: getattr(Device, part.name).__set__ for part in fields(Device)
}
"""They write the fields of devices that are being made: the constructor of what is frozen takes twice as long."""

_OTHERS: Final = [
    (name, setter) for name, setter in _SETTERS.items() if name != "attributes"
]

Attributes = Mapping[str, AttributeValue]


class TemplateDevices(tuple[Device, ...]):
    """Devices made from a template: whatever depends on nothing else can be worked out once for the template."""

    template: DeviceTemplate


class DeviceTemplate:
    """The common part of lists of devices that differ in some texts only.

    Parameters
    ----------
    devices
        The first list that was read, with blanks for the texts that differ.
    blanks
        How the blanks are written: as values of attributes, and nowhere else.

    Raises
    ------
    ValueError
        A blank is somewhere else, or there several times.
    """

    def __init__(
        self, devices: Sequence[Device], blanks: Sequence[str]
    ) -> None:
        blank_indices = {
            blank: blank_index for blank_index, blank in enumerate(blanks)
        }
        self._attributes = [
            (
                template_device.attributes,
                _places(template_device.attributes, blank_indices),
            )
            for template_device in devices
        ]
        filled = [
            blank_index
            for _, slots in self._attributes
            for _, blank_index in slots
        ]
        if sorted(filled) != list(blank_indices.values()):
            raise ValueError("texts differ elsewhere than in attributes")
        # Field by field and not device by device: a loop in C then writes each column.
        self._columns: list[
            tuple[Callable[[Device, Any], None], list[Any]]
        ] = []
        for name, setter in _OTHERS:
            column = [getattr(device, name) for device in devices]
            self._columns.append((setter, column))
        self.places = {
            template_device.name: position
            for position, template_device in enumerate(devices)
        }
        """Where the devices are, by name."""
        self.open = frozenset(
            name for _, slots in self._attributes for name, _ in slots
        )
        """The attributes that differ."""
        self.by_request = any(
            consumed.value_from is not None
            for device in devices
            for consumption in device.consumes_counters
            for consumed in consumption.counters.values()
        )
        """Whether any device consumes counters by request (KEP-5941)."""

    def filled(self, texts: Sequence[str]) -> TemplateDevices:
        """Return the devices with these texts in the blanks. Only what differs is made anew."""
        attributes = [
            _filled(template_attributes, slots, texts)
            if slots
            else template_attributes
            for template_attributes, slots in self._attributes
        ]
        devices = TemplateDevices(
            map(object.__new__, repeat(Device, len(attributes)))
        )
        for setter, column in (
            *self._columns,
            (_SETTERS["attributes"], attributes),
        ):
            deque(map(setter, devices, column), maxlen=0)
        devices.template = self
        return devices


def common(devices: Sequence[Device]) -> object:
    """Return the common part of a list of devices, as objects: its template, or the list itself."""
    return devices.template if isinstance(devices, TemplateDevices) else devices


def named(devices: Sequence[Device], names: Set[str]) -> list[Device]:
    """Return the devices with some names; of several with one name, the last."""
    template_places = (
        devices.template.places
        if isinstance(devices, TemplateDevices)
        else None
    )
    positions = template_places or {
        device.name: position for position, device in enumerate(devices)
    }
    return [
        devices[position]
        for name in names
        if (position := positions.get(name)) is not None
    ]


def _places(
    attributes: Attributes, blank_indices: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Return the attributes that are blank, with the index of the blank."""
    return [
        (name, blank_indices[value])
        for name, value in attributes.items()
        if type(value) is str and value in blank_indices
    ]


def _filled(
    template_attributes: Attributes,
    slots: Sequence[tuple[str, int]],
    texts: Sequence[str],
) -> Attributes:
    attributes = {**template_attributes}
    for name, blank_index in slots:
        attributes[name] = texts[blank_index]
    return attributes


# ----------------------------------------------------------------------------
# A fast way to read ResourceSlices, for clusters with a million devices.
#
# Most parts of a device equal those of other devices: capacities, consumed counters,
# taints. So do counter sets. Each such part is validated by its model when it is seen
# first, and found by its JSON text from then on. Only names and attributes are read
# by hand. Whatever looks unusual is left to the models, which know the right words
# for what is wrong.

LISTS: Final[Mapping[str, str]] = {
    "devices": "devices",
    "sharedCounters": "shared_counters",
}
"""The long lists of a slice on the wire, with their names here."""

_LONGEST_SHARED_TEXT: Final = 32
"""Longer texts are mostly identifiers of one device; looking for equal ones would only cost memory."""

_VALIDATORS: Final[Mapping[str, tuple[str, TypeAdapter[Any]]]] = {
    to_camel(part.name): (
        part.name,
        TypeAdapter(Device.__annotations__[part.name]),
    )
    for part in fields(Device)
    if part.name not in ("name", "attributes")
} | {"sharedCounters": ("shared_counters", TypeAdapter(CounterSet))}
"""For each field of a device on the wire, and for counter sets: its name here, and the model of its value."""

_ATTRIBUTE: Final[TypeAdapter[AttributeValue]] = TypeAdapter(AttributeField)


class _UnusualError(Exception):
    """Raised for a part that the models must look at."""


_UNUSUAL: Final = (_UnusualError, ValidationError, orjson.JSONEncodeError)


@dataclass(slots=True)
class SliceReader:
    """Reads slices whose form is as expected; one reader keeps equal parts once among all slices it reads."""

    _parts: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    """Validated fields of devices, by field and JSON text."""
    _values: dict[tuple[str, bytes], AttributeValue] = field(
        default_factory=dict
    )
    """Validated values of attributes, by type and JSON text."""
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
            headed = ResourceSlice.model_validate(
                {**body, "spec": head}, by_alias=True, by_name=False
            )
        except _UNUSUAL:
            return None
        return headed.model_copy(
            update={"spec": headed.spec.model_copy(update=lists)}
        )

    def template(
        self, key: str, raw: Any, blanks: Sequence[str]
    ) -> Callable[[Sequence[str]], tuple[Any, ...]] | None:
        """Return the function that makes a list of the texts in the place of blanks; None for an unusual list."""
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
                map(
                    self._device if key == "devices" else self._counter_set, raw
                )
            )
        if isinstance(raw, tuple):
            return raw
        raise _UnusualError

    def _counter_set(self, raw: Any) -> CounterSet:
        counter_set: CounterSet = self._part("sharedCounters", raw)[1]
        return counter_set

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
        """Return the validated value of one field of a device, the same object for equal values."""
        identity = (key, orjson.dumps(value))
        part = self._parts.get(identity)
        if part is None:
            if key not in _VALIDATORS:
                raise _UnusualError
            name, validator = _VALIDATORS[key]
            part = self._parts[identity] = (
                name,
                validator.validate_python(value, by_alias=True, by_name=False),
            )
        return part

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
                self._text(value)
                if kind == "string"
                else self._value(kind, value)
            )
        return values

    def _value(self, kind: str, value: Any) -> AttributeValue:
        if (kind == "int" and type(value) is int and value in INT64) or (
            kind == "bool" and type(value) is bool
        ):
            return value
        identity = (kind, orjson.dumps(value))
        attribute = self._values.get(identity)
        if attribute is None:
            attribute = self._values[identity] = _ATTRIBUTE.validate_python(
                {kind: value}
            )
        return attribute
