"""Rules about what was allocated: the results, configurations and reservations in the status of claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import DeviceAllocationConfiguration, ResourceClaim
from dralloc.validate.checks import distinct, form, limit, required, unique
from dralloc.validate.claims import MAX_REQUESTS, refers, request_names
from dralloc.validate.names import dns_label, driver_name, pool_name, uuid
from dralloc.validate.places import ALLOCATIONS, CLAIMS, RESULTS
from dralloc.validate.rule import Issue, errors

__all__ = ["RULES"]

MAX_RESERVED: Final = 256
_AT: Final = "status.allocation.devices"


def _config_requests(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    for index, config in enumerate(claim.status.allocation.devices.config if claim.status.allocation else ()):
        yield from refers(config.requests, claim.spec.devices, f"{_AT}.config[{index}].requests")


def _config_lists(config: DeviceAllocationConfiguration, at: str) -> Iterator[Issue]:
    yield from limit(MAX_REQUESTS, "requests", "requests")(config, at)
    yield from distinct("requests")(config, at)


def _request(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    known = request_names(claim.spec.devices)
    for index, result in enumerate(claim.results):
        if result.request not in known:
            text = f"is no request of the claim, and no request and subrequest: {', '.join(sorted(known)) or 'none'}"
            yield Issue(f"{_AT}.results[{index}].request", f'"{result.request}" {text}')


def _reserved_unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if len(claim.status.reserved_for) <= MAX_RESERVED:
        uids = (one.uid or f"without UID: {index}" for index, one in enumerate(claim.status.reserved_for))
        yield from unique(uids, "status.reservedFor")


def _reserved_allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.reserved_for and not claim.is_allocated:
        yield Issue("status.reservedFor", "is only allowed for a claim with an allocation")


_RESERVATIONS: Final = CLAIMS / "status.reservedFor[]"
_CONFIGURATIONS: Final = ALLOCATIONS / "devices.config[]"

RULES: Final = (
    *errors(
        ALLOCATIONS,
        ("result-limit", limit(32, "devices.results", "results"), "An allocation has at most 32 results."),
        (
            "result-config-limit",
            limit(64, "devices.config", "configurations"),
            "An allocation has at most 64 configurations.",
        ),
    ),
    *errors(
        CLAIMS,
        ("result-request", _request, "A result names a request of the claim."),
        ("result-config-request", _config_requests, "Configurations name requests of the claim."),
        (
            "reserved-limit",
            limit(MAX_RESERVED, "status.reservedFor", "consumers"),
            "A claim is reserved for at most 256 consumers.",
        ),
        ("reserved-unique", _reserved_unique, "A claim is reserved for each consumer once."),
        ("reserved-allocated", _reserved_allocated, "Only an allocated claim is reserved."),
    ),
    *errors(
        RESULTS,
        ("result-driver", form("driver", driver_name), "A driver's name is a DNS subdomain of at most 63 characters."),
        ("result-pool", form("pool", pool_name), "A pool's name is DNS subdomains joined by slashes."),
        ("result-device", form("device", dns_label), "A device's name is a DNS label."),
        ("result-share", form("shareID", uuid), "A share's ID is a UUID."),
    ),
    *errors(
        _CONFIGURATIONS, ("result-config-list", _config_lists, "Configurations list at most 32 requests, each once.")
    ),
    *errors(_RESERVATIONS, ("reserved-field", required("resource|name|uid"), "A consumer has resource, name and uid.")),
)
