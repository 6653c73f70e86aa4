"""What devices take of CPU, memory and other resources of their node (KEP-5517)."""

from collections.abc import Mapping
from dataclasses import dataclass

from dralloc.objects.api.base import EMPTY, PartialModel, QuantityField, WireData
from dralloc.objects.api.disclosure import (
    AttributeName,
    ClaimName,
    ContainerName,
    ResourceName,
)

__all__ = [
    "NodeAllocatableClaimStatus",
    "NodeAllocatableMappedResources",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResource",
]


@dataclass(frozen=True, slots=True)
class NodeAllocatableMapping(WireData):
    """How much an allocation takes, whoever uses it: for what it consumes of a capacity, or for the device."""

    capacity_key: AttributeName | None = None
    capacity_multiplier: QuantityField | None = None
    device_multiplier: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class NodeAllocatableOverhead(WireData):
    """How much each pod takes that uses a device, and each of its containers that does."""

    per_pod: QuantityField | None = None
    per_container: QuantityField | None = None


@dataclass(frozen=True, slots=True)
class NodeAllocatableResource(WireData):
    """What a device takes of one resource of its node."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class NodeAllocatableMappedResources(PartialModel):
    """What a pod takes of a resource by mappings."""

    name: ResourceName
    quantity: QuantityField | None = None


class NodeAllocatableOverheadResources(PartialModel):
    """What a pod takes of a resource as overhead, for itself and for each container."""

    name: ResourceName
    per_pod: QuantityField | None = None
    per_container: QuantityField | None = None


class NodeAllocatableClaimStatus(PartialModel):
    """What a pod on a node takes of it for one of its claims, and for which containers.

    ``resources`` is what Kubernetes 1.36 has in the place of ``mapping`` and ``overhead``.
    """

    resource_claim_name: ClaimName = ""
    containers: tuple[ContainerName, ...] = ()
    resources: Mapping[ResourceName, QuantityField] = EMPTY
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()
