"""Rules about what was allocated: the results, configurations and reservations in the status of claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dralloc.api import DeviceClaim, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dralloc.validate.claims import refers, request_names
from dralloc.validate.names import dns_label, driver_name, pool_name, uuid
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, unique
from dralloc.validate.slices import skip_pairs, skip_values
from dralloc.validate.walk import claims

__all__ = ["RULES", "results"]

MAX_RESULTS: Final = 32
MAX_CONFIGS: Final = 64
MAX_REQUESTS: Final = 32
MAX_RESERVED: Final = 256
_AT: Final = "status.allocation.devices"


class _Result(NamedTuple):
    """A result and what its claim asked for."""

    result: DeviceRequestAllocationResult
    spec: DeviceClaim


def results(scene: Scene) -> Iterator[Part[_Result]]:
    """Every result, with the specification of its claim."""
    for owner, _, claim in claims(scene):
        allocation = claim.status.allocation
        for index, result in enumerate(allocation.devices.results if allocation else ()):
            yield Part(owner, f"{_AT}.results[{index}]", _Result(result, claim.spec.devices))


def _reservations(scene: Scene) -> Iterator[Part[ResourceClaimConsumerReference]]:
    for owner, _, claim in claims(scene):
        for index, one in enumerate(claim.status.reserved_for):
            yield Part(owner, f"status.reservedFor[{index}]", one)


def _limit(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.allocation is not None:
        yield from at_most(MAX_RESULTS, claim.status.allocation.devices.results, f"{_AT}.results", "results")


def _config_limit(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.allocation is not None:
        yield from at_most(MAX_CONFIGS, claim.status.allocation.devices.config, f"{_AT}.config", "configurations")


def _config_requests(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    for index, config in enumerate(claim.status.allocation.devices.config if claim.status.allocation else ()):
        yield from refers(config.requests, claim.spec.devices, f"{_AT}.config[{index}].requests")


def _config_lists(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    for index, config in enumerate(claim.status.allocation.devices.config if claim.status.allocation else ()):
        path = f"{_AT}.config[{index}].requests"
        yield from at_most(MAX_REQUESTS, config.requests, path, "requests")
        yield from unique(config.requests, path)


def _request(one: _Result, at: str) -> Iterator[Issue]:
    known = request_names(one.spec)
    if one.result.request not in known:
        text = f"is no request of the claim, and no request and subrequest: {', '.join(sorted(known)) or 'none'}"
        yield Issue(f"{at}.request", f'"{one.result.request}" {text}')


def _driver(one: _Result, at: str) -> Iterator[Issue]:
    yield from named(one.result.driver, f"{at}.driver", driver_name)


def _pool(one: _Result, at: str) -> Iterator[Issue]:
    yield from named(one.result.pool, f"{at}.pool", pool_name)


def _device(one: _Result, at: str) -> Iterator[Issue]:
    yield from named(one.result.device, f"{at}.device", dns_label)


def _share(one: _Result, at: str) -> Iterator[Issue]:
    if one.result.share_id is not None:
        yield from named(one.result.share_id, f"{at}.shareID", uuid)


def _skip_values(one: _Result, at: str) -> Iterator[Issue]:
    yield from skip_values(one.result.skip_node_operations, f"{at}.skipNodeOperations")


def _skip_unique(one: _Result, at: str) -> Iterator[Issue]:
    yield from unique(one.result.skip_node_operations, f"{at}.skipNodeOperations")


def _skip_pairs(one: _Result, at: str) -> Iterator[Issue]:
    yield from skip_pairs(one.result.skip_node_operations, f"{at}.skipNodeOperations")


def _reserved_limit(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    yield from at_most(MAX_RESERVED, claim.status.reserved_for, "status.reservedFor", "consumers")


def _reserved_unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if len(claim.status.reserved_for) <= MAX_RESERVED:
        uids = (one.uid or f"without UID: {index}" for index, one in enumerate(claim.status.reserved_for))
        yield from unique(uids, "status.reservedFor")


def _reserved_allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.reserved_for and claim.status.allocation is None:
        yield Issue("status.reservedFor", "is only allowed for a claim with an allocation")


def _reserved_fields(one: ResourceClaimConsumerReference, at: str) -> Iterator[Issue]:
    for field, value in (("resource", one.resource), ("name", one.name), ("uid", one.uid)):
        if not value:
            yield Issue(f"{at}.{field}", "is required")


RULES: Final = (
    error("result-limit", claims, _limit, "An allocation has at most 32 results."),
    error("result-request", results, _request, "A result names a request of the claim."),
    error("result-driver", results, _driver, "A driver's name is a DNS subdomain of at most 63 characters."),
    error("result-pool", results, _pool, "A pool's name is DNS subdomains joined by slashes."),
    error("result-device", results, _device, "A device's name is a DNS label."),
    error("result-share", results, _share, "A share's ID is a UUID."),
    error("result-skip-value", results, _skip_values, "skipNodeOperations lists known operations."),
    error("result-skip-unique", results, _skip_unique, "skipNodeOperations lists each operation once."),
    error("result-skip-pair", results, _skip_pairs, "Preparing is only skipped if unpreparing is."),
    error("result-config-limit", claims, _config_limit, "An allocation has at most 64 configurations."),
    error("result-config-request", claims, _config_requests, "Configurations name requests of the claim."),
    error("result-config-list", claims, _config_lists, "Configurations list at most 32 requests, each once."),
    error("reserved-limit", claims, _reserved_limit, "A claim is reserved for at most 256 consumers."),
    error("reserved-unique", claims, _reserved_unique, "A claim is reserved for each consumer once."),
    error("reserved-allocated", claims, _reserved_allocated, "Only an allocated claim is reserved."),
    error("reserved-field", _reservations, _reserved_fields, "A consumer has resource, name and uid."),
)
