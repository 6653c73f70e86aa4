"""Nodes, and the selectors that choose among them (core/v1)."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import StrictBool, StrictStr

from dralloc.objects.api.base import (
    EMPTY,
    Int64,
    PartialModel,
    QuantityField,
    WireModel,
)
from dralloc.objects.api.disclosure import (
    NAMESPACE_LABELS,
    NODE_LABELS,
    NODE_REQUIREMENT,
    Effect,
    ImageName,
    LabelName,
    Name,
    Operator,
    Refined,
    ResourceName,
    TaintKey,
    TaintValue,
)
from dralloc.objects.api.objects import ObjectMeta, PartialObject

__all__ = [
    "ContainerImage",
    "Namespace",
    "Node",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "Taint",
]


class NodeSelectorRequirement(WireModel):
    """A condition on one label or field of a node."""

    key: LabelName
    operator: Operator
    values: Annotated[tuple[StrictStr, ...], NODE_REQUIREMENT] = ()


class NodeSelectorTerm(WireModel):
    """Conditions on labels and fields that must all hold; without any, the term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(WireModel):
    """Terms of which at least one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class Namespace(PartialObject, api_version="v1"):
    """A namespace; its labels say what may be done in it."""

    metadata: Annotated[
        ObjectMeta, Refined(name=Name.NAMESPACE, labels=NAMESPACE_LABELS)
    ] = ObjectMeta()


class Taint(PartialModel):
    """A mark that keeps pods away which do not tolerate it."""

    key: TaintKey
    effect: Effect
    value: TaintValue = ""


class NodeSpec(PartialModel):
    """The part of a node's specification that matters for placing pods."""

    unschedulable: StrictBool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(PartialModel):
    """An image that the node has already, by all of its names."""

    names: tuple[ImageName, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(PartialModel):
    """What pods may use of the node, among it what device plugins offer, and the images that it has."""

    allocatable: Mapping[ResourceName, QuantityField] = EMPTY
    images: tuple[ContainerImage, ...] = ()


class Node(PartialObject, api_version="v1"):
    """A node of the cluster."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.NODE, labels=NODE_LABELS)] = (
        ObjectMeta()
    )
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
