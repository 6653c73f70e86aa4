"""Requests of pods of their nodes, in the scheduler's integers: CPU in thousandths, everything else in whole units.

Source: ``PodRequests`` of ``k8s.io/component-helpers/resource/helpers.go`` (KEP-753 for sidecars, KEP-2837 for requests
of the pod as a whole). Sums are exact; only they are rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from dralloc.objects.api import Container, PodSpec, PodStatus
from dralloc.objects.quantity import NANOS, Quantity

__all__ = [
    "CPU",
    "DEFAULT_REQUESTS",
    "EPHEMERAL",
    "MEMORY",
    "PODS",
    "amounts_of",
    "caps_of",
    "is_scalar",
    "requests_of",
    "taken_by_devices",
]

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_REQUESTS: Final[Mapping[str, int]] = {
    CPU: NANOS // 10,
    MEMORY: 200 * 1024 * 1024 * NANOS,
}
"""What a container counts for in scores that requests nothing, in nanos (``pod_resources.go``)."""

Nanos = dict[str, int]


def amounts_of(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Quantities in the scheduler's units."""
    return _rounded(_nanos(quantities))


def requests_of(
    spec: PodSpec,
    defaults: Mapping[str, int] | None = None,
    *,
    whole_pod: bool = True,
    of_devices: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The requests of a pod with its overhead.

    Parameters
    ----------
    defaults
        What counts for a container without a request, by resource, in nanos.
    whole_pod
        Whether requests of the pod as a whole replace those of its containers.
    of_devices
        What its devices take of the node, in nanos (KEP-5517); requests of the pod as a whole replace that, too.
    """
    of_containers = _of_containers(spec, defaults or {})
    of_pod = _of_whole_pod(spec, of_containers) if whole_pod else {}
    _add(of_containers, of_devices or {})
    total = {**of_containers, **of_pod}
    _add(total, _nanos(spec.overhead))
    return _rounded(total)


def caps_of(spec: PodSpec) -> dict[str, int]:
    """Return the amounts that the pod's own requests leave beside its containers, in nanos."""
    of_containers = _of_containers(spec, {})
    return {
        name: amount - of_containers.get(name, 0)
        for name, amount in _of_whole_pod(spec, of_containers).items()
    }


def taken_by_devices(status: PodStatus) -> dict[str, int]:
    """Return the amounts that a pod's devices take of its node, as the scheduler noted them, in nanos (KEP-5517)."""
    total: Counter[str] = Counter()
    for claim in status.node_allocatable_resource_claim_statuses:
        total.update(_nanos(claim.resources))
        for mapped in claim.mapping:
            if mapped.quantity:
                total[mapped.name] += mapped.quantity.nanos
        for overhead in claim.overhead:
            if overhead.per_pod:
                total[overhead.name] += overhead.per_pod.nanos
            if overhead.per_container:
                containers = len(claim.containers)
                total[overhead.name] += (
                    containers * overhead.per_container.nanos
                )
    return total


def is_scalar(resource: str) -> bool:
    """Whether a resource is neither CPU nor memory nor storage nor pods: huge pages, and what has a domain."""
    return resource not in (CPU, MEMORY, EPHEMERAL, PODS)


def _of_containers(spec: PodSpec, defaults: Mapping[str, int]) -> Nanos:
    """The larger of what runs in the end and of what each init container needs beside the sidecars before it."""
    running: Nanos = {}
    for container in spec.containers:
        _add(running, _requested(container, defaults))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in spec.init_containers:
        requested = _requested(container, defaults)
        if container.sidecar:
            _add(running, requested)
            _add(sidecars, requested)
            requested = sidecars
        else:
            _add(requested, sidecars)
        _raise(peak, requested)
    _raise(running, peak)
    return running


def _of_whole_pod(spec: PodSpec, of_containers: Nanos) -> dict[str, int]:
    """Requests of the pod as a whole; of what has only a limit, the containers' requests or else the limit count."""
    limits = {
        name: limit
        for name, limit in _nanos(spec.resources.limits).items()
        if name not in of_containers
    }
    return {
        name: amount
        for name, amount in {
            **limits,
            **_nanos(spec.resources.requests),
        }.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _requested(container: Container, defaults: Mapping[str, int]) -> Nanos:
    return {**defaults, **_nanos(container.resources.requested)}


def _nanos(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _add(total: Nanos, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)


def _rounded(nanos: Mapping[str, int]) -> dict[str, int]:
    return {
        name: -(-amount // (NANOS // 1000 if name == CPU else NANOS))
        for name, amount in nanos.items()
    }
