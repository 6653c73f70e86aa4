"""Rules about what claims and templates ask for: requests, constraints, configurations and how they refer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dralloc.api import DeviceClaim, DeviceConstraint
from dralloc.validate.checks import choice, distinct, form, keys, limit
from dralloc.validate.names import Judge, before_137, dns_label, dns_subdomain, fully_qualified_name, qualified_name
from dralloc.validate.places import DETAILS, REQUESTS, SPECS, Details
from dralloc.validate.rule import Check, Issue, errors, warnings

__all__ = ["MAX_REQUESTS", "RULES", "refers", "request_names"]

MAX_REQUESTS: Final = 32
MAX_RESULTS: Final = 32


def request_names(spec: DeviceClaim) -> frozenset[str]:
    """What can be referred to: ``request`` and ``request/subrequest``."""
    return frozenset((*(request.name for request in spec.requests), *(name for name, _ in spec.alternatives)))


def refers(names: Iterable[str], spec: DeviceClaim, path: str) -> Iterator[Issue]:
    """Issues with names that are none of a request or subrequest of the claim."""
    known = request_names(spec)
    for index, name in enumerate(names):
        if name not in known:
            text = f"is no request of the claim, and no request and subrequest: {', '.join(sorted(known)) or 'none'}"
            yield Issue(f"{path}[{index}]", f'"{name}" {text}')


def _count(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "ExactCount" and request.count <= 0:
        yield Issue(f"{at}.count", f"{request.count} is not greater than zero")


def _count_of_all(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "All" and "count" in request.model_fields_set:
        yield Issue(f"{at}.count", "must be left out with allocationMode All")


def _constraint_references(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    for index, constraint in enumerate(spec.constraints):
        yield from refers(constraint.requests, spec, f"{at}.constraints[{index}].requests")


def _config_references(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    for index, config in enumerate(spec.config):
        yield from refers(config.requests, spec, f"{at}.config[{index}].requests")


def _constraint_kind(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if constraint.match_attribute is None and constraint.distinct_attribute is None:
        yield Issue(at, "exactly one of matchAttribute and distinctAttribute is required")


def _compared(judge: Judge) -> Check:
    """The attribute that counts has a form."""
    match, distinct_ = form("matchAttribute", judge), form("distinctAttribute", judge)
    return lambda one, at: (distinct_ if one.match_attribute is None else match)(one, at)


def _constraint_both(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
        yield Issue(f"{at}.distinctAttribute", "is ignored, as there is a matchAttribute: make it two constraints")


def _result_limit(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    fewest = sum(
        _fewest(request.exactly) if request.exactly else min(map(_fewest, request.first_available), default=0)
        for request in spec.requests
    )
    if fewest > MAX_RESULTS:
        yield Issue(f"{at}.requests", f"ask for {fewest} devices, but a claim gets at most {MAX_RESULTS}")


def _fewest(request: Details) -> int:
    return 1 if request.allocation_mode == "All" else request.count


_TYPES: Final = "resource.k8s.io types"
_LISTS: Final = SPECS / "constraints[]|config[]"
_CONSTRAINTS: Final = SPECS / "constraints[]"
_FIRST: Final = "firstAvailable"

RULES: Final = (
    *errors(
        SPECS,
        ("request-limit", limit(MAX_REQUESTS, "requests", "requests"), "A claim has at most 32 requests."),
        ("request-unique", distinct("requests", "name"), "The names of a claim's requests differ."),
        ("constraint-limit", limit(32, "constraints", "constraints"), "A claim has at most 32 constraints."),
        ("config-limit", limit(32, "config", "configurations"), "A claim has at most 32 configurations."),
        ("constraint-request", _constraint_references, "Constraints name requests of the claim."),
        ("config-request", _config_references, "Configurations name requests of the claim."),
    ),
    *errors(
        REQUESTS,
        ("request-name", form("name", dns_label), "A request's name is a DNS label."),
        ("alternative-limit", limit(8, _FIRST, "alternatives"), "A request has at most 8 alternatives."),
        ("alternative-unique", distinct(_FIRST, "name"), "The names of a request's alternatives differ."),
    ),
    *errors(
        REQUESTS / "firstAvailable[]",
        ("alternative-name", form("name", dns_label), "An alternative's name is a DNS label."),
    ),
    *errors(
        DETAILS,
        ("request-class", form("deviceClassName", dns_subdomain), "A request names a class, a DNS subdomain."),
        ("request-mode", choice("allocationMode", ("All", "ExactCount")), "The allocation mode is All or ExactCount."),
        ("request-count", _count, "A request is for at least one device."),
        ("request-count-of-all", _count_of_all, "With allocationMode All there is no count."),
    ),
    *errors(
        _LISTS,
        ("reference-limit", limit(MAX_REQUESTS, "requests", "requests"), "A list of requests has at most 32 names."),
        ("reference-unique", distinct("requests"), "A list of requests names each once."),
    ),
    *errors(
        _CONSTRAINTS,
        ("constraint-kind", _constraint_kind, "A constraint has an attribute to match or to differ."),
        (
            "constraint-attribute",
            _compared(fully_qualified_name),
            "A constraint's attribute has a domain.",
            _compared(before_137(fully_qualified_name)),
        ),
    ),
    *warnings(
        _CONSTRAINTS,
        ("constraint-both", _constraint_both, "Of matchAttribute and distinctAttribute only one counts."),
        origin=f"{_TYPES}, DeviceConstraint",
    ),
    *warnings(
        DETAILS / "capacity",
        (
            "request-capacity-name",
            keys("requests", qualified_name),
            "A requested capacity has a name that a capacity can have.",
        ),
        origin=f"{_TYPES}, QualifiedName",
    ),
    *warnings(
        SPECS,
        ("request-result-limit", _result_limit, "A claim gets at most 32 devices."),
        origin=f"{_TYPES}, AllocationResultsMaxSize",
    ),
)
