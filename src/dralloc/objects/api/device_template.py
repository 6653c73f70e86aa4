"""Lists of devices that are alike but for some texts, such as the UUIDs of otherwise equal nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields
from itertools import repeat
from typing import Any, Final

from dralloc.objects.api.slices import Device
from dralloc.objects.api.values import AttributeValue

__all__ = ["DeviceTemplate", "TemplateDevices", "common", "named"]

_SETTERS: Final[Mapping[str, Callable[[Device, Any], None]]] = {
    one.name: getattr(Device, one.name).__set__ for one in fields(Device)
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
    """What lists of devices have in common.

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

    def __init__(self, devices: Sequence[Device], blanks: Sequence[str]) -> None:
        numbers = {blank: number for number, blank in enumerate(blanks)}
        self._attributes = [
            (each.attributes, _places(each.attributes, numbers)) for each in devices
        ]
        if sorted(
            number for _, places in self._attributes for _, number in places
        ) != list(numbers.values()):
            raise ValueError("texts differ elsewhere than in attributes")
        self._columns = [
            (setter, [getattr(each, name) for each in devices])
            for name, setter in _OTHERS
        ]
        self.places = {each.name: place for place, each in enumerate(devices)}
        """Where the devices are, by name."""
        self.open = frozenset(
            name for _, places in self._attributes for name, _ in places
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
        """The devices with these texts in the blanks. Only what differs is made anew."""
        attributes = [
            _filled(known, places, texts) if places else known
            for known, places in self._attributes
        ]
        devices = TemplateDevices(map(object.__new__, repeat(Device, len(attributes))))
        for setter, column in (*self._columns, (_SETTERS["attributes"], attributes)):
            deque(map(setter, devices, column), maxlen=0)
        devices.template = self
        return devices


def common(devices: Sequence[Device]) -> object:
    """What a list of devices has in common with others: its template, or the list itself, as objects."""
    return devices.template if isinstance(devices, TemplateDevices) else devices


def named(devices: Sequence[Device], names: Set[str]) -> list[Device]:
    """The devices with some names; of several with one name, the last."""
    known = devices.template.places if isinstance(devices, TemplateDevices) else None
    places = known or {each.name: place for place, each in enumerate(devices)}
    return [devices[place] for name in names if (place := places.get(name)) is not None]


def _places(
    attributes: Attributes, numbers: Mapping[str, int]
) -> list[tuple[str, int]]:
    """The attributes that are blank, with the number of the blank."""
    return [
        (name, numbers[value])
        for name, value in attributes.items()
        if type(value) is str and value in numbers
    ]


def _filled(
    known: Attributes, places: Sequence[tuple[str, int]], texts: Sequence[str]
) -> Attributes:
    attributes = {**known}
    for name, number in places:
        attributes[name] = texts[number]
    return attributes
