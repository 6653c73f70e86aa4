"""Rules about allocations and their users: the status of claims, and pods that refer to claims."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from ipaddress import ip_interface
from itertools import chain
from typing import Any, Final, NamedTuple

from dralloc.compile.inventory.usage import find_drift
from dralloc.lint.validate.checks import (
    Judge,
    at_most,
    distinct,
    dns_label,
    driver_name,
    form,
    label_name,
    limit,
    longest,
    named,
    not_negative,
    on,
    pool_name,
    raw_object,
    required,
    unique,
    uuid,
)
from dralloc.lint.validate.references import (
    MAX_REQUESTS,
    in_lists,
    refers,
    request_names,
)
from dralloc.lint.validate.rule import (
    ALLOCATIONS,
    CLAIMS,
    RESULTS,
    Check,
    Issue,
    RulePart,
    ValidationContext,
    errors,
    said,
    warnings,
)
from dralloc.objects.api import (
    ApiObject,
    Container,
    DeviceClaim,
    Pod,
    PodResourceClaim,
    ResourceClaim,
)
from dralloc.objects.api.workloads import ContainerClaim
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import did_you_mean
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import ACROSS, annotated

__all__ = ["POD_RULES", "STATUS_RULES"]

# ----------------------------------------------------------------------------
# Rules about the status of claims: what was allocated to whom, and what drivers
# report of it (KEP-4817).

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
        in_lists(
            allocation.devices.config if allocation else (), f"{_AT}.config"
        ),
        claim.spec.devices,
    )


def _request(claim: ResourceClaim, _at: str) -> Iterable[Issue]:
    names = (
        (f"{_AT}.results[{index}].request", result.request)
        for index, result in enumerate(claim.results)
    )
    return refers(names, claim.spec.devices)


def _reserved_unique(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    # Upstream compares UIDs. Dumps may have lost them: then nothing is equal.
    if len(claim.status.reserved_for) <= MAX_RESERVED:
        uids = (
            consumer.uid or f"without UID: {index}"
            for index, consumer in enumerate(claim.status.reserved_for)
        )
        yield from unique(uids, "status.reservedFor")


def _reserved_allocated(claim: ResourceClaim, _at: str) -> Iterator[Issue]:
    if claim.status.reserved_for and not claim.is_allocated:
        yield Issue(
            "status.reservedFor",
            "is only allowed for a claim with an allocation",
        )


def _key(result: Any) -> tuple[str, str, str, str | None]:
    return result.driver, result.pool, result.device, result.share_id


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
        (str(condition.get("type", "")) for condition in conditions),
        at,
        field=".type",
    )


def _reason(text: str) -> str:
    if not _REASON.fullmatch(text):
        return "must start with a letter, go on with letters, digits and '_,:', and not end with ',' or ':'"
    return (
        f"is longer than {MAX_REASON} characters"
        if len(text) > MAX_REASON
        else ""
    )


def _status(text: str) -> str:
    return "" if text in _STATUSES else f"is not one of {', '.join(_STATUSES)}"


def _present(field: str, judge: Judge) -> Check:
    """A field has a form; one that is absent is as good as empty."""
    return on(field, lambda text, at: named(text, at, judge), absent=True)


def _ips(network: Mapping[str, Any]) -> list[str]:
    addresses = network.get("ips")
    return (
        [str(address) for address in addresses]
        if isinstance(addresses, list)
        else []
    )


def _canonical(address: str) -> str:
    """Return the normal form of an address with its prefix length; empty for what is none, or has a zone."""
    try:
        interface = ip_interface(address) if "/" in address else None
    except ValueError:
        return ""
    if interface is None or "%" in address:
        return ""
    mapped = getattr(interface.ip, "ipv4_mapped", None)
    if mapped is None:
        return str(interface)
    # Of an address of IPv4 written as one of IPv6, the first 96 bits say no more than that.
    bits = interface.network.prefixlen
    return f"{mapped}/{bits - 96 if bits > 32 else bits}"


def _ip_form(network: Mapping[str, Any], at: str) -> Iterator[Issue]:
    # Only the normal form is accepted: no leading zeros, IPv6 in its shortest form.
    for index, address in enumerate(_ips(network)):
        canonical = _canonical(address)
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
    return lambda part, at: (
        issue for check in checks for issue in check(part, at)
    )


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
        RESULTS,
        *((f"result-{name}", check, help_) for name, check, help_ in _NAMES),
    ),
    *errors(
        ALLOCATIONS / "devices.config[]",
        (
            "result-config-list",
            _both(
                limit(MAX_REQUESTS, "requests", "requests"),
                distinct("requests"),
            ),
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
        *(
            (f"device-status-{name}", check, help_)
            for name, check, help_ in _NAMES
        ),
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
            _both(
                longest(256, "interfaceName"), longest(128, "hardwareAddress")
            ),
            "Interface names have at most 256 bytes, addresses 128.",
        ),
        (
            "network-ip-limit",
            lambda network, at: at_most(
                MAX_IPS, _ips(network), f"{at}.ips", "addresses"
            ),
            "A device has at most 16 addresses.",
        ),
        (
            "network-ip-unique",
            lambda network, at: unique(_ips(network), f"{at}.ips"),
            "Addresses differ.",
        ),
        (
            "network-ip",
            _ip_form,
            "Addresses have a prefix length and their normal form.",
        ),
    ),
)


# ----------------------------------------------------------------------------
# Pods that refer to what is not there, and claims that hold what is not published any
# more.
#
# No API server looks at the annotation with constraints over several claims.


class _Entry(NamedTuple):
    """An entry of a pod's claims."""

    entry: PodResourceClaim
    namespace: str
    cluster: Cluster

    @property
    def claim(self) -> DeviceClaim | None:
        """The specification of the claim or template that the entry names, if it is there."""
        if self.entry.resource_claim_name is not None:
            claim = self.cluster.claim(
                ClaimKey(self.namespace, self.entry.resource_claim_name)
            )
            return claim.spec.devices if claim else None
        key = ClaimKey(
            self.namespace, self.entry.resource_claim_template_name or ""
        )
        return next(
            (
                template.spec.spec.devices
                for template in self.cluster.templates
                if template.key == key
            ),
            None,
        )


class _Use(NamedTuple):
    """A container and the entries of its pod."""

    container: Container
    entries: dict[str, _Entry]


def _given_pods(context: ValidationContext) -> Iterator[Pod]:
    """Pods, one of those with the same owner that say the same of their claims: some owners have pods of two sorts."""
    seen: set[Hashable] = set()
    for pod in context.cluster.pods:
        controllers = [
            (owner.api_version, owner.kind, owner.name)
            for owner in pod.metadata.owner_references
            if owner.controller
        ]
        sort = (
            pod.key.namespace,
            tuple(controllers),
            pod.spec.resource_claims,
            _claims_used_by(pod.spec.init_containers),
            _claims_used_by(pod.spec.containers),
            pod.metadata.annotations.get(ACROSS),
        )
        if not controllers or sort not in seen:
            yield pod
        seen.add(sort)


def _claims_used_by(
    containers: Iterable[Container],
) -> tuple[tuple[ContainerClaim, ...], ...]:
    """Return what each container names of the claims of its pod."""
    return tuple(container.resources.claims for container in containers)


def _entries(context: ValidationContext) -> Iterator[RulePart[_Entry]]:
    for pod in _given_pods(context):
        for index, entry in enumerate(pod.spec.resource_claims):
            yield RulePart(
                pod,
                f"spec.resourceClaims[{index}]",
                _Entry(entry, pod.key.namespace, context.cluster),
            )


def _uses(context: ValidationContext) -> Iterator[RulePart[_Use]]:
    for pod in _given_pods(context):
        entries = {
            entry.name: _Entry(entry, pod.key.namespace, context.cluster)
            for entry in pod.spec.resource_claims
        }
        for field, containers in (
            ("initContainers", pod.spec.init_containers),
            ("containers", pod.spec.containers),
        ):
            for index, container in enumerate(containers):
                yield RulePart(
                    pod,
                    f"spec.{field}[{index}].resources.claims",
                    _Use(container, entries),
                )


def _claim_exists(use: _Entry, at: str) -> Iterator[Issue]:
    name = use.entry.resource_claim_name
    if name is not None and use.claim is None:
        claims = (claim.key for claim in use.cluster.claims)
        meant = did_you_mean(name, _names_in(use.namespace, claims))
        text = f'ResourceClaim "{name}" does not exist{meant}'
        yield Issue(f"{at}.resourceClaimName", text)


def _template_exists(use: _Entry, at: str) -> Iterator[Issue]:
    name = use.entry.resource_claim_template_name
    if (
        name is not None
        and use.entry.resource_claim_name is None
        and use.claim is None
    ):
        templates = (template.key for template in use.cluster.templates)
        meant = did_you_mean(name, _names_in(use.namespace, templates))
        text = f'ResourceClaimTemplate "{name}" does not exist{meant}'
        yield Issue(f"{at}.resourceClaimTemplateName", text)


def _names_in(namespace: str, keys: Iterable[ClaimKey]) -> list[str]:
    return [key.name for key in keys if key.namespace == namespace]


def _says_what(use: _Entry, at: str) -> Iterator[Issue]:
    references = (
        use.entry.resource_claim_name,
        use.entry.resource_claim_template_name,
    )
    if (references[0] is None) is (references[1] is None):
        text = "exactly one of resourceClaimName and resourceClaimTemplateName is required"
        if references[0] is None:
            text += "; before Kubernetes 1.31 they stood below source"
        yield Issue(at, text)


def _entry_exists(use: _Use, at: str) -> Iterator[Issue]:
    for index, claim in enumerate(use.container.resources.claims):
        if claim.name not in use.entries:
            yield Issue(
                f"{at}[{index}]",
                f'"{claim.name}" is none of the pod\'s resourceClaims'
                + did_you_mean(claim.name, use.entries),
            )


def _request_exists(use: _Use, at: str) -> Iterator[Issue]:
    for index, claim in enumerate(use.container.resources.claims):
        spec = (
            use.entries[claim.name].claim if claim.name in use.entries else None
        )
        if (
            claim.request
            and spec is not None
            and claim.request not in request_names(spec)
        ):
            text = (
                f'"{claim.request}" is no request of the claim "{claim.name}"'
            )
            meant = did_you_mean(claim.request, request_names(spec))
            yield Issue(f"{at}[{index}].request", text + meant)


def _drifts(context: ValidationContext) -> Iterator[RulePart[str]]:
    if context.cluster.slices:
        claims = [claim for _, _, claim in CLAIMS(context)]
        for drift in find_drift(
            context.cluster.slices, claims, context.features
        ):
            yield RulePart(drift.claim, drift.path, drift.rule)


def _annotations(context: ValidationContext) -> Iterator[RulePart[str]]:
    groups = (
        context.cluster.pod_groups.values(),
        context.cluster.workloads.values(),
    )
    owners: Iterator[ApiObject] = chain(_given_pods(context), *groups)
    for owner in owners:
        if ACROSS in owner.metadata.annotations:
            yield RulePart(
                owner,
                f'metadata.annotations["{ACROSS}"]',
                owner.metadata.annotations[ACROSS],
            )


def _across_form(text: str, at: str) -> Iterator[Issue]:
    try:
        annotated(text, "")
    except ValueError as error:
        yield Issue(at, str(error))


def _across_requests(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Yield requests that annotations of pods name and that their claims do not have."""
    for owner, path, text in _annotations(context):
        if isinstance(owner, Pod) and not any(_across_form(text, path)):
            requests_of_pod: set[str] = set()
            for key in context.cluster.pod_claims(owner):
                claim = context.cluster.claim(key)
                if claim is not None:
                    requests_of_pod.update(request_names(claim.spec.devices))
            for constraint in annotated(text, ""):
                for request in constraint.requests:
                    if request not in requests_of_pod:
                        yield RulePart(
                            owner,
                            path,
                            f'"{request}" is no request of the pod\'s claims',
                        )


_POD: Final = "core validation, ValidatePodSpec"

POD_RULES: Final = (
    *warnings(
        _entries,
        ("pod-claim", _claim_exists, "The claims that pods name exist."),
        (
            "pod-template",
            _template_exists,
            "The templates that pods name exist.",
        ),
        origin="KEP-4381",
    ),
    *errors(
        _entries,
        (
            "pod-claim-source",
            _says_what,
            "A pod's entry names a claim or a template.",
        ),
        origin=_POD,
    ),
    *errors(
        _uses,
        (
            "container-claim",
            _entry_exists,
            "Containers use claims of their pod.",
        ),
        origin=_POD,
    ),
    *warnings(
        _uses,
        (
            "container-request",
            _request_exists,
            "Containers name requests of the claims.",
        ),
        origin="KEP-4381",
    ),
    *warnings(
        _drifts,
        ("allocation-drift", said, "Slices publish what claims hold."),
        origin="kubernetes/kubernetes#140802",
    ),
    *warnings(
        _annotations,
        (
            "across-form",
            _across_form,
            "Constraints over several claims have a kind and an attribute.",
        ),
        origin="dralloc",
    ),
    *warnings(
        _across_requests,
        (
            "across-request",
            said,
            "Constraints over several claims name requests of these.",
        ),
        origin="dralloc",
    ),
)
