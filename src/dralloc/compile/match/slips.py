"""Suggestions for names in expressions that do not exist: functions, attributes, capacities and their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

from dralloc.objects.api import Device
from dralloc.objects.errors import did_you_mean
from dralloc.objects.report import listed
from kubecel import FUNCTION_NAMES

__all__ = [
    "Published",
    "capacity_slip",
    "capacity_slips",
    "compile_slip",
    "key_slip",
    "value_slips",
]

Published: TypeAlias = tuple[str, Device]
"""A driver and a device that it publishes."""

_UNKNOWN: Final = re.compile(r"undeclared reference to '([^']+)'")
_FIELD: Final = re.compile(r"undefined field '([^']+)'")
_KEY: Final = re.compile(r"no such key: (\S+)")
_DOMAIN: Final = re.compile(r"""(?:attributes|capacity)\[["']([^"']+)["']\]""")
_COMPARED: Final = re.compile(
    r"""(?:\.(\w+)|\[["']([^"']+)["']\])\s*==\s*["']([^"']*)["']"""
)
"""An attribute, by its name behind a dot or in brackets, that is compared with a text."""

_FIELDS: Final = (
    "driver",
    "attributes",
    "capacity",
    "allowMultipleAllocations",
)
_MACROS: Final = (
    "device",
    "all",
    "exists",
    "exists_one",
    "filter",
    "has",
    "map",
)
_SHOWN: Final = 6


def compile_slip(message: str) -> str:
    """Return a hint to add to the compiler's error about a function or field that does not exist."""
    if match := _UNKNOWN.search(message):
        return did_you_mean(match[1], (*FUNCTION_NAMES, *_MACROS))
    if match := _FIELD.search(message):
        return did_you_mean(match[1], _FIELDS)
    return ""


def key_slip(
    message: str, expression: str, devices: Iterable[Published]
) -> str:
    """Return a hint to add to a selector's failure on devices that lack the key that it looks up."""
    match = _KEY.search(message)
    if match is None:
        return ""
    domains: set[str] = set()
    names: set[str] = set()
    for driver, device in devices:
        domains.add(driver)
        for name in (*device.attributes, *device.capacity):
            domain, slash, local = name.rpartition("/")
            names.add(local)
            domains.update([domain] if slash else [])
    for domain in _DOMAIN.findall(expression):
        if domain not in domains:
            return f' of "{domain}"{_domain_slip(domain, domains)}'
    return did_you_mean(match[1].strip("'\""), names)


def _domain_slip(domain: str, known: Collection[str]) -> str:
    """Return what may be meant by a domain that no device has; attributes are looked up by domain, then by name."""
    before, _, name = domain.rpartition("/")
    if before in known:
        return f', did you mean ["{before}"].{name}?'
    return did_you_mean(domain, known)


def value_slips(expression: str, devices: Iterable[Published]) -> str:
    """Return the values that exist, for attributes that an expression compares with texts that none of them has."""
    published = [device for _, device in devices]
    hints = (
        _value_slip(match[1] or match[2], match[3], published)
        for match in _COMPARED.finditer(expression)
    )
    return "".join(dict.fromkeys(hints))


def _value_slip(name: str, value: str, devices: Iterable[Device]) -> str:
    values = set(_values(name, devices))
    if not values or value in values:
        return ""
    meant = did_you_mean(value, values)
    shown = listed([f'"{known}"' for known in sorted(values)], _SHOWN)
    return f'; no {name} is "{value}"' + (meant or f", only {shown}")


def _values(name: str, devices: Iterable[Device]) -> Iterator[str]:
    """Yield the texts that are values of an attribute."""
    for device in devices:
        for published, value in device.attributes.items():
            is_meant = published == name or published.endswith(f"/{name}")
            if is_meant and isinstance(value, str):
                yield value


def capacity_slips(names: Iterable[str], devices: Iterable[Published]) -> str:
    """Return the capacities that may be meant by names that no device has."""
    known = {name for _, device in devices for name in device.capacity}
    hints = (
        f'; none has "{name}"{capacity_slip(name, known)}'
        for name in names
        if name not in known
    )
    return "".join(hints)


def capacity_slip(name: str, known: Collection[str]) -> str:
    """Return the capacity that may be meant; a name with the driver's domain differs from the name alone."""
    local = name.rpartition("/")[2]
    for candidate in known:
        if candidate.rpartition("/")[2] == local:
            return f', did you mean "{candidate}"?'
    return did_you_mean(name, known)
