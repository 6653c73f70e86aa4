"""Rules about what drivers report of allocated devices (KEP-4817)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_interface
from typing import Any, Final, NamedTuple

from dralloc.api import AllocatedDeviceStatus, ResourceClaim
from dralloc.validate.names import dns_label, driver_name, label_name, pool_name, uuid
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, unique
from dralloc.validate.selectors import raw_object
from dralloc.validate.walk import claims

__all__ = ["RULES"]

MAX_CONDITIONS: Final = 8
MAX_DATA: Final = 10 * 1024
MAX_IPS: Final = 16
MAX_INTERFACE: Final = 256
MAX_HARDWARE: Final = 128
MAX_REASON: Final = 1024
MAX_MESSAGE: Final = 32 * 1024
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")

_Key = tuple[str, str, str, str | None]


class _Reported(NamedTuple):
    """What a driver reports, and the devices that the claim has."""

    status: AllocatedDeviceStatus
    allocated: frozenset[_Key]


def _key(one: Any) -> _Key:
    return one.driver, one.pool, one.device, one.share_id


def _reported(scene: Scene) -> Iterator[Part[_Reported]]:
    for owner, _, claim in claims(scene):
        results = claim.status.allocation.devices.results if claim.status.allocation else ()
        allocated = frozenset(map(_key, results))
        for index, status in enumerate(claim.status.devices):
            yield Part(owner, f"status.devices[{index}]", _Reported(status, allocated))


def _conditions(scene: Scene) -> Iterator[Part[Mapping[str, Any]]]:
    for owner, path, one in _reported(scene):
        for index, condition in enumerate(one.status.conditions):
            yield Part(owner, f"{path}.conditions[{index}]", condition)


def _networks(scene: Scene) -> Iterator[Part[Mapping[str, Any]]]:
    for owner, path, one in _reported(scene):
        if one.status.network_data is not None:
            yield Part(owner, f"{path}.networkData", one.status.network_data)


def _driver(one: _Reported, at: str) -> Iterator[Issue]:
    yield from named(one.status.driver, f"{at}.driver", driver_name)


def _pool(one: _Reported, at: str) -> Iterator[Issue]:
    yield from named(one.status.pool, f"{at}.pool", pool_name)


def _device(one: _Reported, at: str) -> Iterator[Issue]:
    yield from named(one.status.device, f"{at}.device", dns_label)


def _share(one: _Reported, at: str) -> Iterator[Issue]:
    if one.status.share_id is not None:
        yield from named(one.status.share_id, f"{at}.shareID", uuid)


def _names(one: _Reported, at: str) -> Iterator[Issue]:
    for rule in (_driver, _pool, _device, _share):
        yield from rule(one, at)


def _allocated(one: _Reported, at: str) -> Iterator[Issue]:
    if _key(one.status) not in one.allocated and not any(_names(one, at)):
        shown = "/".join(part for part in _key(one.status) if part)
        yield Issue(at, f'"{shown}" is not allocated to the claim')


def _unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    yield from unique(map(_key, claim.status.devices), "status.devices")


def _data(one: _Reported, at: str) -> Iterator[Issue]:
    if one.status.data is not None:
        yield from raw_object(one.status.data, f"{at}.data", MAX_DATA)


def _condition_limit(one: _Reported, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_CONDITIONS, one.status.conditions, f"{at}.conditions", "conditions")


def _condition_unique(one: _Reported, at: str) -> Iterator[Issue]:
    types = (str(condition.get("type", "")) for condition in one.status.conditions)
    yield from unique(types, f"{at}.conditions", field=".type")


def _condition_type(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    yield from named(str(one.get("type") or ""), f"{at}.type", label_name)


def _condition_status(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    if one.get("status") not in ("True", "False", "Unknown"):
        yield Issue(f"{at}.status", f'"{one.get("status", "")}" is not one of False, True, Unknown')


def _condition_reason(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    yield from named(str(one.get("reason") or ""), f"{at}.reason", _reason)


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text):
        return "must start with a letter, go on with letters, digits and '_,:', and not end with ',' or ':'"
    return f"is longer than {MAX_REASON} characters" if len(text) > MAX_REASON else ""


def _condition_time(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    if not one.get("lastTransitionTime"):
        yield Issue(f"{at}.lastTransitionTime", "is required")


def _condition_message(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    if len(str(one.get("message") or "").encode()) > MAX_MESSAGE:
        yield Issue(f"{at}.message", f"is longer than {MAX_MESSAGE} bytes")


def _condition_generation(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    generation = one.get("observedGeneration") or 0
    if isinstance(generation, int) and generation < 0:
        yield Issue(f"{at}.observedGeneration", f"{generation} is negative")


def _interface(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    for field, limit in (("interfaceName", MAX_INTERFACE), ("hardwareAddress", MAX_HARDWARE)):
        if len(str(one.get(field) or "").encode()) > limit:
            yield Issue(f"{at}.{field}", f"is longer than {limit} bytes")


def _ips(one: Mapping[str, Any]) -> list[str]:
    found = one.get("ips")
    return [str(address) for address in found] if isinstance(found, list) else []


def _ip_limit(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    yield from at_most(MAX_IPS, _ips(one), f"{at}.ips", "addresses")


def _ip_unique(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    yield from unique(_ips(one), f"{at}.ips")


def _ip_form(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    for index, address in enumerate(_ips(one)):
        try:
            canonical = str(ip_interface(address)) if "/" in address else ""
        except ValueError:
            canonical = ""
        if address != canonical:
            text = f"it is {canonical} in its normal form" if canonical else "e.g. 10.9.8.7/24 or 2001:db8::1/64"
            yield Issue(f"{at}.ips[{index}]", f'"{address}" must be an address with its prefix length: {text}')


_CONDITION: Final = "apimachinery validation, ValidateConditions"

RULES: Final = (
    error("device-status-driver", _reported, _driver, "A driver's name is a DNS subdomain of at most 63 characters."),
    error("device-status-pool", _reported, _pool, "A pool's name is DNS subdomains joined by slashes."),
    error("device-status-device", _reported, _device, "A device's name is a DNS label."),
    error("device-status-share", _reported, _share, "A share's ID is a UUID."),
    error("device-status-allocated", _reported, _allocated, "Drivers report about allocated devices."),
    error("device-status-unique", claims, _unique, "There is one report for each device or share."),
    error("device-status-data", _reported, _data, "Data is a JSON object of at most 10 KiB."),
    error("condition-limit", _reported, _condition_limit, "A device has at most 8 conditions."),
    error("condition-unique", _reported, _condition_unique, "Conditions differ in their types.", _CONDITION),
    error("condition-type", _conditions, _condition_type, "Types have the form of label keys.", _CONDITION),
    error("condition-status", _conditions, _condition_status, "A status is True, False or Unknown.", _CONDITION),
    error("condition-reason", _conditions, _condition_reason, "A condition has a reason in one word.", _CONDITION),
    error("condition-time", _conditions, _condition_time, "A condition has the time of its last change.", _CONDITION),
    error("condition-message", _conditions, _condition_message, "A message has at most 32 KiB.", _CONDITION),
    error("condition-generation", _conditions, _condition_generation, "Generations are not negative.", _CONDITION),
    error("network-length", _networks, _interface, "Interface names have at most 256 bytes, addresses 128."),
    error("network-ip-limit", _networks, _ip_limit, "A device has at most 16 addresses."),
    error("network-ip-unique", _networks, _ip_unique, "Addresses differ."),
    error("network-ip", _networks, _ip_form, "Addresses have a prefix length and their normal form."),
)
