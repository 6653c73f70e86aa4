"""Rules about what drivers report of allocated devices (KEP-4817)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_interface
from typing import Any, Final

from dralloc.api import ResourceClaim
from dralloc.validate.checks import at_most, choice, form, limit, longest, not_negative, on, required, unique
from dralloc.validate.names import dns_label, driver_name, label_name, pool_name, uuid
from dralloc.validate.places import CLAIMS
from dralloc.validate.rule import Issue, errors
from dralloc.validate.selectors import raw_object

__all__ = ["RULES"]

MAX_DATA: Final = 10 * 1024
MAX_IPS: Final = 16
MAX_REASON: Final = 1024
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REPORTED: Final = CLAIMS / "status.devices[]"
_CONDITIONS: Final = _REPORTED / "conditions[]"
_NETWORKS: Final = _REPORTED / "networkData"

_NAMES: Final = {
    "driver": form("driver", driver_name),
    "pool": form("pool", pool_name),
    "device": form("device", dns_label),
    "share": form("shareID", uuid),
}


def _key(one: Any) -> tuple[str, str, str, str | None]:
    return one.driver, one.pool, one.device, one.share_id


def _allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    allocated = set(map(_key, claim.results))
    for index, report in enumerate(claim.status.devices):
        at = f"status.devices[{index}]"
        if _key(report) not in allocated and not any(issue for check in _NAMES.values() for issue in check(report, at)):
            shown = "/".join(part for part in _key(report) if part)
            yield Issue(at, f'"{shown}" is not allocated to the claim')


def _unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    yield from unique(map(_key, claim.status.devices), "status.devices")


def _condition_unique(conditions: tuple[Mapping[str, Any], ...], at: str) -> Iterator[Issue]:
    yield from unique((str(condition.get("type", "")) for condition in conditions), at, field=".type")


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text):
        return "must start with a letter, go on with letters, digits and '_,:', and not end with ',' or ':'"
    return f"is longer than {MAX_REASON} characters" if len(text) > MAX_REASON else ""


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


def _lengths(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    yield from longest(256, "interfaceName")(one, at)
    yield from longest(128, "hardwareAddress")(one, at)


_CONDITION: Final = "apimachinery validation, ValidateConditions"

RULES: Final = (
    *errors(
        _REPORTED,
        ("device-status-driver", _NAMES["driver"], "A driver's name is a DNS subdomain of at most 63 characters."),
        ("device-status-pool", _NAMES["pool"], "A pool's name is DNS subdomains joined by slashes."),
        ("device-status-device", _NAMES["device"], "A device's name is a DNS label."),
        ("device-status-share", _NAMES["share"], "A share's ID is a UUID."),
        ("device-status-data", raw_object("data", MAX_DATA), "Data is a JSON object of at most 10 KiB."),
        ("condition-limit", limit(8, "conditions", "conditions"), "A device has at most 8 conditions."),
    ),
    *errors(
        CLAIMS,
        ("device-status-allocated", _allocated, "Drivers report about allocated devices."),
        ("device-status-unique", _unique, "There is one report for each device or share."),
    ),
    *errors(
        _REPORTED,
        ("condition-unique", on("conditions", _condition_unique), "Conditions differ in their types."),
        origin=_CONDITION,
    ),
    *errors(
        _CONDITIONS,
        ("condition-type", form("type", label_name), "Types have the form of label keys."),
        ("condition-status", choice("status", ("False", "True", "Unknown")), "A status is True, False or Unknown."),
        ("condition-reason", form("reason", _reason), "A condition has a reason in one word."),
        ("condition-time", required("lastTransitionTime"), "A condition has the time of its last change."),
        ("condition-message", longest(32 * 1024, "message"), "A message has at most 32 KiB."),
        ("condition-generation", not_negative("observedGeneration"), "Generations are not negative."),
        origin=_CONDITION,
    ),
    *errors(
        _NETWORKS,
        ("network-length", _lengths, "Interface names have at most 256 bytes, addresses 128."),
        ("network-ip-limit", _ip_limit, "A device has at most 16 addresses."),
        ("network-ip-unique", _ip_unique, "Addresses differ."),
        ("network-ip", _ip_form, "Addresses have a prefix length and their normal form."),
    ),
)
