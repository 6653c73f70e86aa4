"""Rules about what claims and templates ask for: requests, constraints, configurations and how they refer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dralloc.api import DeviceClaim, DeviceConstraint, DeviceRequest
from dralloc.validate.names import dns_label, dns_subdomain, fully_qualified_name, qualified_name
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, unique, warning
from dralloc.validate.walk import Details, details, requests, specs

__all__ = ["RULES", "refers", "request_names"]

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_ALTERNATIVES: Final = 8
MAX_RESULTS: Final = 32


def request_names(spec: DeviceClaim) -> frozenset[str]:
    """What can be referred to: ``request`` and ``request/subrequest``."""
    subs = (f"{request.name}/{sub.name}" for request in spec.requests for sub in request.first_available)
    return frozenset((*(request.name for request in spec.requests), *subs))


def refers(names: Iterable[str], spec: DeviceClaim, path: str) -> Iterator[Issue]:
    """Issues with names that are none of a request or subrequest of the claim."""
    known = request_names(spec)
    for index, name in enumerate(names):
        if name not in known:
            text = f"is no request of the claim, and no request and subrequest: {', '.join(sorted(known)) or 'none'}"
            yield Issue(f"{path}[{index}]", f'"{name}" {text}')


def _constraints(scene: Scene) -> Iterator[Part[DeviceConstraint]]:
    for owner, path, spec in specs(scene):
        for index, constraint in enumerate(spec.constraints):
            yield Part(owner, f"{path}.constraints[{index}]", constraint)


def _request_lists(scene: Scene) -> Iterator[Part[tuple[str, ...]]]:
    """The lists of names in constraints and configurations."""
    for owner, path, spec in specs(scene):
        for index, constraint in enumerate(spec.constraints):
            yield Part(owner, f"{path}.constraints[{index}].requests", constraint.requests)
        for index, config in enumerate(spec.config):
            yield Part(owner, f"{path}.config[{index}].requests", config.requests)


def _request_limit(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_REQUESTS, spec.requests, f"{at}.requests", "requests")


def _request_unique(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    yield from unique((request.name for request in spec.requests), f"{at}.requests")


def _request_name(request: DeviceRequest, at: str) -> Iterator[Issue]:
    yield from named(request.name, f"{at}.name", dns_label)


def _alternative_limit(request: DeviceRequest, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_ALTERNATIVES, request.first_available, f"{at}.firstAvailable", "alternatives")


def _alternative_unique(request: DeviceRequest, at: str) -> Iterator[Issue]:
    yield from unique((sub.name for sub in request.first_available), f"{at}.firstAvailable")


def _alternative_name(request: DeviceRequest, at: str) -> Iterator[Issue]:
    for index, sub in enumerate(request.first_available):
        yield from named(sub.name, f"{at}.firstAvailable[{index}].name", dns_label)


def _class_name(request: Details, at: str) -> Iterator[Issue]:
    yield from named(request.device_class_name, f"{at}.deviceClassName", dns_subdomain)


def _mode(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode not in ("All", "ExactCount"):
        yield Issue(f"{at}.allocationMode", f'"{request.allocation_mode}" is not one of All, ExactCount')


def _count(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "ExactCount" and request.count <= 0:
        yield Issue(f"{at}.count", f"{request.count} is not greater than zero")


def _count_of_all(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "All" and "count" in request.model_fields_set:
        yield Issue(f"{at}.count", "must be left out with allocationMode All")


def _constraint_limit(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_CONSTRAINTS, spec.constraints, f"{at}.constraints", "constraints")


def _config_limit(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_CONFIGS, spec.config, f"{at}.config", "configurations")


def _list_limit(names: tuple[str, ...], at: str) -> Iterator[Issue]:
    yield from at_most(MAX_REQUESTS, names, at, "requests")


def _list_unique(names: tuple[str, ...], at: str) -> Iterator[Issue]:
    yield from unique(names, at)


def _constraint_references(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    for index, constraint in enumerate(spec.constraints):
        yield from refers(constraint.requests, spec, f"{at}.constraints[{index}].requests")


def _config_references(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    for index, config in enumerate(spec.config):
        yield from refers(config.requests, spec, f"{at}.config[{index}].requests")


def _constraint_kind(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if constraint.match_attribute is None and constraint.distinct_attribute is None:
        yield Issue(at, "exactly one of matchAttribute and distinctAttribute is required")


def _constraint_attribute(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if constraint.match_attribute is not None:
        yield from named(constraint.match_attribute, f"{at}.matchAttribute", fully_qualified_name)
    elif constraint.distinct_attribute is not None:
        yield from named(constraint.distinct_attribute, f"{at}.distinctAttribute", fully_qualified_name)


def _constraint_both(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
        yield Issue(f"{at}.distinctAttribute", "is ignored, as there is a matchAttribute: make it two constraints")


def _capacity_names(request: Details, at: str) -> Iterator[Issue]:
    for name in request.capacity.requests if request.capacity else ():
        yield from named(name, f"{at}.capacity.requests", qualified_name)


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

RULES: Final = (
    error("request-limit", specs, _request_limit, "A claim has at most 32 requests."),
    error("request-unique", specs, _request_unique, "The names of a claim's requests differ."),
    error("request-name", requests, _request_name, "A request's name is a DNS label."),
    error("alternative-limit", requests, _alternative_limit, "A request has at most 8 alternatives."),
    error("alternative-unique", requests, _alternative_unique, "The names of a request's alternatives differ."),
    error("alternative-name", requests, _alternative_name, "An alternative's name is a DNS label."),
    error("request-class", details, _class_name, "A request names a class, a DNS subdomain."),
    error("request-mode", details, _mode, "The allocation mode is All or ExactCount."),
    error("request-count", details, _count, "A request is for at least one device."),
    error("request-count-of-all", details, _count_of_all, "With allocationMode All there is no count."),
    error("constraint-limit", specs, _constraint_limit, "A claim has at most 32 constraints."),
    error("config-limit", specs, _config_limit, "A claim has at most 32 configurations."),
    error("reference-limit", _request_lists, _list_limit, "A list of requests has at most 32 names."),
    error("reference-unique", _request_lists, _list_unique, "A list of requests names each once."),
    error("constraint-request", specs, _constraint_references, "Constraints name requests of the claim."),
    error("config-request", specs, _config_references, "Configurations name requests of the claim."),
    error("constraint-kind", _constraints, _constraint_kind, "A constraint has an attribute to match or to differ."),
    error("constraint-attribute", _constraints, _constraint_attribute, "A constraint's attribute has a domain."),
    warning(
        "constraint-both",
        _constraints,
        _constraint_both,
        "Of matchAttribute and distinctAttribute only one counts.",
        f"{_TYPES}, DeviceConstraint",
    ),
    warning(
        "request-capacity-name",
        details,
        _capacity_names,
        "A requested capacity has a name that a capacity can have.",
        f"{_TYPES}, QualifiedName",
    ),
    warning(
        "request-result-limit",
        specs,
        _result_limit,
        "A claim gets at most 32 devices.",
        f"{_TYPES}, AllocationResultsMaxSize",
    ),
)
