"""Finds the parts of objects that rules are about. Objects that this program made for others are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from dralloc.api import (
    ApiObject,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    NodeSelector,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSliceSpec,
)
from dralloc.validate.rule import Part, Scene

__all__ = [
    "Details",
    "claims",
    "classes",
    "cluster_objects",
    "configurations",
    "details",
    "devices",
    "exact_requests",
    "metadata",
    "node_selectors",
    "objects",
    "opaque",
    "requests",
    "selectors",
    "slices",
    "specs",
    "statuses",
    "templates",
]

Details: TypeAlias = ExactDeviceRequest | DeviceSubRequest
"""What ``exactly`` and an entry of ``firstAvailable`` have in common."""


def _given_claims(scene: Scene) -> list[ResourceClaim]:
    return [claim for claim in scene.cluster.claims if scene.is_given(claim)]


def claims(scene: Scene) -> Iterator[Part[ResourceClaim]]:
    """Every claim that was read."""
    return (Part(claim, "", claim) for claim in scene.view(_given_claims))


def templates(scene: Scene) -> Iterator[Part[ResourceClaimTemplate]]:
    """Every template."""
    return (Part(template, "", template) for template in scene.cluster.templates)


def cluster_objects(scene: Scene) -> Iterator[Part[ApiObject]]:
    """Slices and classes, which belong to no namespace."""
    every: tuple[ApiObject, ...] = (*scene.cluster.slices, *scene.cluster.classes.values())
    return (Part(one, "", one) for one in every)


def objects(scene: Scene) -> Iterator[Part[ApiObject]]:
    """Every object of ``resource.k8s.io``."""
    yield from cluster_objects(scene)
    namespaced: tuple[ApiObject, ...] = (*scene.view(_given_claims), *scene.cluster.templates)
    yield from (Part(one, "", one) for one in namespaced)


def metadata(scene: Scene) -> Iterator[Part[ObjectMeta]]:
    """The metadata of every object, and of the claims in templates."""
    for owner, _, one in objects(scene):
        yield Part(owner, "metadata", one.metadata)
    for template in scene.cluster.templates:
        yield Part(template, "spec.metadata", template.spec.metadata)


def slices(scene: Scene) -> Iterator[Part[ResourceSliceSpec]]:
    """The specification of every slice."""
    return (Part(one, "spec", one.spec) for one in scene.cluster.slices)


def devices(scene: Scene) -> Iterator[Part[Device]]:
    """Every device of every slice."""
    for one in scene.cluster.slices:
        for index, device in enumerate(one.spec.devices):
            yield Part(one, f"spec.devices[{index}]", device)


def node_selectors(scene: Scene) -> Iterator[Part[NodeSelector]]:
    """The node selectors of slices, devices and allocations."""
    for owner, path, spec in slices(scene):
        if spec.node_selector is not None:
            yield Part(owner, f"{path}.nodeSelector", spec.node_selector)
    for owner, path, device in devices(scene):
        if device.node_selector is not None:
            yield Part(owner, f"{path}.nodeSelector", device.node_selector)
    for owner, path, status in statuses(scene):
        if status.allocation is not None and status.allocation.node_selector is not None:
            yield Part(owner, f"{path}.allocation.nodeSelector", status.allocation.node_selector)


def classes(scene: Scene) -> Iterator[Part[DeviceClass]]:
    """Every class."""
    return (Part(one, "", one) for one in scene.cluster.classes.values())


def specs(scene: Scene) -> Iterator[Part[DeviceClaim]]:
    """What claims and templates ask for."""
    for claim in scene.view(_given_claims):
        yield Part(claim, "spec.devices", claim.spec.devices)
    for template in scene.cluster.templates:
        yield Part(template, "spec.spec.devices", template.spec.spec.devices)


def requests(scene: Scene) -> Iterator[Part[DeviceRequest]]:
    """Every request."""
    for owner, path, spec in specs(scene):
        for index, request in enumerate(spec.requests):
            yield Part(owner, f"{path}.requests[{index}]", request)


def exact_requests(scene: Scene) -> Iterator[Part[ExactDeviceRequest]]:
    """Every ``exactly``."""
    for owner, path, request in requests(scene):
        if request.exactly is not None:
            yield Part(owner, f"{path}.exactly", request.exactly)


def details(scene: Scene) -> Iterator[Part[Details]]:
    """Every ``exactly`` and every entry of ``firstAvailable``."""
    for owner, path, request in requests(scene):
        if request.exactly is not None:
            yield Part(owner, f"{path}.exactly", request.exactly)
        for index, sub in enumerate(request.first_available):
            yield Part(owner, f"{path}.firstAvailable[{index}]", sub)


def selectors(scene: Scene) -> Iterator[Part[DeviceSelector]]:
    """Every selector of classes and requests."""
    for owner, _, one in classes(scene):
        yield from _listed(owner, "spec.selectors", one.spec.selectors)
    for owner, path, request in details(scene):
        yield from _listed(owner, f"{path}.selectors", request.selectors)


def _listed(owner: ApiObject, path: str, items: Sequence[Any]) -> Iterator[Part[Any]]:
    return (Part(owner, f"{path}[{index}]", item) for index, item in enumerate(items))


def configurations(scene: Scene) -> Iterator[Part[Any]]:
    """Every configuration of classes, claims and allocations."""
    for owner, _, one in classes(scene):
        yield from _listed(owner, "spec.config", one.spec.config)
    for owner, path, spec in specs(scene):
        yield from _listed(owner, f"{path}.config", spec.config)
    for owner, path, status in statuses(scene):
        if status.allocation is not None:
            yield from _listed(owner, f"{path}.allocation.devices.config", status.allocation.devices.config)


def opaque(scene: Scene) -> Iterator[Part[OpaqueDeviceConfiguration]]:
    """The parameters in configurations."""
    for owner, path, config in configurations(scene):
        if config.opaque is not None:
            yield Part(owner, f"{path}.opaque", config.opaque)


def statuses(scene: Scene) -> Iterator[Part[ResourceClaimStatus]]:
    """The status of every claim."""
    return (Part(claim, "status", claim.status) for claim in scene.view(_given_claims))
