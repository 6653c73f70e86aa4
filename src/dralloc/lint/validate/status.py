"""Rules about the status of claims: what was allocated to whom, and what drivers report of it (KEP-4817)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_interface
from typing import Any, Final

from dralloc.lint.validate.checks import (
    at_most,
    distinct,
    form,
    limit,
    longest,
    named,
    not_negative,
    on,
    required,
    unique,
)
from dralloc.lint.validate.claims import MAX_REQUESTS, in_lists, refers
from dralloc.lint.validate.classes import raw_object
from dralloc.lint.validate.names import (
    Judge,
    dns_label,
    driver_name,
    label_name,
    pool_name,
    uuid,
)
from dralloc.lint.validate.places import ALLOCATIONS, CLAIMS, RESULTS
from dralloc.lint.validate.rule import Check, Issue, errors
from dralloc.objects.api import ResourceClaim

__all__ = ["STATUS_RULES"]

MAX_RESERVED: Final = 256
MAX_DATA: Final = 10 * 1024
MAX_IPS: Final = 16
MAX_REASON: Final = 1024
_AT: Final = "status.allocation.devices"
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_STATUSES: Final = ("False", "True", "Unknown")
_REPORTED: Final = CLAIMS / "status.devices[]"

_NAMES: Final = (
    (
        "driver",
        form("driver", driver_name),
        "A driver's name is a DNS subdomain of at most 63 characters.",
    ),
    (
        "pool",
        form("pool", pool_name),
        "A pool's name is DNS subdomains joined by slashes.",
    ),
    ("device", form("device", dns_label), "A device's name is a DNS label."),
    ("share", form("shareID", uuid), "A share's ID is a UUID."),
)
"""How results and reports name a device: rules, with ids to which it is added which of them."""


def _config_requests(claim: ResourceClaim, _at: str) -> Iterable[Issue]:
    allocation = claim.status.allocation
    return refers(
        in_lists(allocation.devices.config if allocation else (), f"{_AT}.config"),
        claim.spec.devices,
    )


def _request(claim: ResourceClaim, _at: str) -> Iterable[Issue]:
    names = (
        (f"{_AT}.results[{index}].request", result.request)
        for index, result in enumerate(claim.results)
    )
    return refers(names, claim.spec.devices)


def _reserved_unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if len(claim.status.reserved_for) <= MAX_RESERVED:
        uids = (
            one.uid or f"without UID: {index}"
            for index, one in enumerate(claim.status.reserved_for)
        )
        yield from unique(uids, "status.reservedFor")


def _reserved_allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.reserved_for and not claim.is_allocated:
        yield Issue(
            "status.reservedFor", "is only allowed for a claim with an allocation"
        )


def _key(one: Any) -> tuple[str, str, str, str | None]:
    return one.driver, one.pool, one.device, one.share_id


def _allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    allocated = set(map(_key, claim.results))
    for index, report in enumerate(claim.status.devices):
        at = f"status.devices[{index}]"
        if _key(report) not in allocated and not any(
            issue for _, check, _ in _NAMES for issue in check(report, at)
        ):
            shown = "/".join(part for part in _key(report) if part)
            yield Issue(at, f'"{shown}" is not allocated to the claim')


def _unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    yield from unique(map(_key, claim.status.devices), "status.devices")


def _condition_unique(
    conditions: tuple[Mapping[str, Any], ...], at: str
) -> Iterator[Issue]:
    yield from unique(
        (str(condition.get("type", "")) for condition in conditions), at, field=".type"
    )


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text):
        return "must start with a letter, go on with letters, digits and '_,:', and not end with ',' or ':'"
    return f"is longer than {MAX_REASON} characters" if len(text) > MAX_REASON else ""


def _status(text: str) -> str:
    return "" if text in _STATUSES else f"is not one of {', '.join(_STATUSES)}"


def _present(field: str, judge: Judge) -> Check:
    """A field has a form; one that is absent is as good as empty."""
    return on(field, lambda text, at: named(text, at, judge), absent=True)


def _ips(one: Mapping[str, Any]) -> list[str]:
    found = one.get("ips")
    return [str(address) for address in found] if isinstance(found, list) else []


def _ip_form(one: Mapping[str, Any], at: str) -> Iterator[Issue]:
    for index, address in enumerate(_ips(one)):
        try:
            canonical = str(ip_interface(address)) if "/" in address else ""
        except ValueError:
            canonical = ""
        if not canonical or address != canonical:
            text = (
                f"it is {canonical} in its normal form"
                if canonical
                else "e.g. 10.9.8.7/24 or 2001:db8::1/64"
            )
            yield Issue(
                f"{at}.ips[{index}]",
                f'"{address}" must be an address with its prefix length: {text}',
            )


def _both(*checks: Check) -> Check:
    return lambda one, at: (issue for check in checks for issue in check(one, at))


_CONDITION: Final = "apimachinery validation, ValidateConditions"

STATUS_RULES: Final = (
    *errors(
        ALLOCATIONS,
        (
            "result-limit",
            limit(32, "devices.results", "results"),
            "An allocation has at most 32 results.",
        ),
        (
            "result-config-limit",
            limit(64, "devices.config", "configurations"),
            "An allocation has at most 64 configurations.",
        ),
    ),
    *errors(
        CLAIMS,
        ("result-request", _request, "A result names a request of the claim."),
        (
            "result-config-request",
            _config_requests,
            "Configurations name requests of the claim.",
        ),
        (
            "reserved-limit",
            limit(MAX_RESERVED, "status.reservedFor", "consumers"),
            "A claim is reserved for at most 256 consumers.",
        ),
        (
            "reserved-unique",
            _reserved_unique,
            "A claim is reserved for each consumer once.",
        ),
        (
            "reserved-allocated",
            _reserved_allocated,
            "Only an allocated claim is reserved.",
        ),
    ),
    *errors(
        RESULTS, *((f"result-{name}", check, help_) for name, check, help_ in _NAMES)
    ),
    *errors(
        ALLOCATIONS / "devices.config[]",
        (
            "result-config-list",
            _both(limit(MAX_REQUESTS, "requests", "requests"), distinct("requests")),
            "Configurations list at most 32 requests, each once.",
        ),
    ),
    *errors(
        CLAIMS / "status.reservedFor[]",
        (
            "reserved-field",
            required("resource|name|uid"),
            "A consumer has resource, name and uid.",
        ),
    ),
    *errors(
        _REPORTED,
        *((f"device-status-{name}", check, help_) for name, check, help_ in _NAMES),
        (
            "device-status-data",
            raw_object("data", MAX_DATA),
            "Data is a JSON object of at most 10 KiB.",
        ),
        (
            "condition-limit",
            limit(8, "conditions", "conditions"),
            "A device has at most 8 conditions.",
        ),
    ),
    *errors(
        CLAIMS,
        (
            "device-status-allocated",
            _allocated,
            "Drivers report about allocated devices.",
        ),
        (
            "device-status-unique",
            _unique,
            "There is one report for each device or share.",
        ),
    ),
    *errors(
        _REPORTED,
        (
            "condition-unique",
            on("conditions", _condition_unique),
            "Conditions differ in their types.",
        ),
        origin=_CONDITION,
    ),
    *errors(
        _REPORTED / "conditions[]",
        (
            "condition-type",
            _present("type", label_name),
            "Types have the form of label keys.",
        ),
        (
            "condition-status",
            _present("status", _status),
            "A status is True, False or Unknown.",
        ),
        (
            "condition-reason",
            _present("reason", _reason),
            "A condition has a reason in one word.",
        ),
        (
            "condition-time",
            required("lastTransitionTime"),
            "A condition has the time of its last change.",
        ),
        (
            "condition-message",
            longest(32 * 1024, "message"),
            "A message has at most 32 KiB.",
        ),
        (
            "condition-generation",
            not_negative("observedGeneration"),
            "Generations are not negative.",
        ),
        origin=_CONDITION,
    ),
    *errors(
        _REPORTED / "networkData",
        (
            "network-length",
            _both(longest(256, "interfaceName"), longest(128, "hardwareAddress")),
            "Interface names have at most 256 bytes, addresses 128.",
        ),
        (
            "network-ip-limit",
            lambda one, at: at_most(MAX_IPS, _ips(one), f"{at}.ips", "addresses"),
            "A device has at most 16 addresses.",
        ),
        (
            "network-ip-unique",
            lambda one, at: unique(_ips(one), f"{at}.ips"),
            "Addresses differ.",
        ),
        (
            "network-ip",
            _ip_form,
            "Addresses have a prefix length and their normal form.",
        ),
    ),
)
