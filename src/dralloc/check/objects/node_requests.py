"""Requests of pods of their nodes, by the text of the API: CPU in thousandths, everything else in whole units.

Sources: the comments of ``PodSpec`` in ``k8s.io/api/core/v1``, KEP-753 (sidecars), KEP-2837 (requests of the whole
pod), KEP-688 (overhead).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dralloc.objects.api import Container, PodSpec
from dralloc.objects.quantity import NANOS, Quantity

__all__ = [
    "PODS",
    "amounts_of",
    "extended_resources",
    "requests_of",
    "resource_of_class",
]

PODS: Final = "pods"
_CPU: Final = "cpu"
_OF_WHOLE_PODS: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"

Quantities = Mapping[str, Quantity]
Nanos = dict[str, int]


def resource_of_class(name: str) -> str:
    """The extended resource that every DeviceClass stands for by its name (KEP-5004)."""
    return f"{_OF_CLASS}{name}"


def extended_resources(spec: PodSpec) -> Iterator[str]:
    """The resources that containers ask for and that are not Kubernetes' own."""
    for container in (*spec.init_containers, *spec.containers):
        for name, amount in {
            **container.resources.limits,
            **container.resources.requests,
        }.items():
            is_native = (
                "/" not in name
                or "kubernetes.io/" in name
                or name.startswith("requests.")
            )
            if amount.nanos and (name.startswith(_OF_CLASS) or not is_native):
                yield name


def amounts_of(quantities: Quantities) -> dict[str, int]:
    """Quantities as the scheduler counts them: rounded up."""
    return _rounded_up(_nanos(quantities))


def requests_of(spec: PodSpec) -> dict[str, int]:
    """Return the requests of a pod of its node.

    Containers and sidecars run at the same time. Init containers run before, one after the other, each beside the
    sidecars that were started before it. So a node needs the most that is requested at any time.
    """
    peak: Nanos = {}
    sidecars: Nanos = {}
    for container in spec.init_containers:
        requested = _sum(sidecars, _requested(container))
        if container.restart_policy == "Always":
            sidecars = requested
        _raise(peak, requested)
    lasting = sidecars
    for container in spec.containers:
        lasting = _sum(lasting, _requested(container))
    _raise(peak, lasting)
    # What is requested for the pod as a whole counts in place of what its containers request.
    for name, amount in _of_whole_pod(spec, peak).items():
        if name in _OF_WHOLE_PODS or name.startswith(_HUGE_PAGES):
            peak[name] = amount
    return _rounded_up(_sum(peak, _nanos(spec.overhead)))


def _nanos(quantities: Quantities) -> Nanos:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _requested(container: Container) -> Nanos:
    """Return the requests of a container; a limit without request counts as the request."""
    resources = container.resources
    return _nanos({**resources.limits, **resources.requests})


def _sum(first: Nanos, second: Nanos) -> Nanos:
    if not first or not second:
        return first or second
    return {
        name: first.get(name, 0) + second.get(name, 0)
        for name in (first | second)
    }


def _raise(peak: Nanos, requested: Nanos) -> None:
    for name, amount in requested.items():
        peak[name] = max(peak.get(name, amount), amount)


def _of_whole_pod(spec: PodSpec, of_containers: Nanos) -> Nanos:
    """Return the requests of the pod as a whole; for what it only limits, its containers' count if there are any."""
    resources = spec.resources
    limits = {
        name: limit
        for name, limit in resources.limits.items()
        if name not in of_containers
    }
    return _nanos({**limits, **resources.requests})


def _rounded_up(nanos: Nanos) -> dict[str, int]:
    return {
        name: -(-amount // (NANOS // 1000 if name == _CPU else NANOS))
        for name, amount in nanos.items()
    }
