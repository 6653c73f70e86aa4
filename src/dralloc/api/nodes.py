"""Nodes, and the selectors that choose among them (core/v1)."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import StrictBool, StrictStr

from dralloc.api.base import Int64, PartialModel, QuantityField, WireModel
from dralloc.api.objects import PartialObject

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

    key: StrictStr
    operator: StrictStr
    values: tuple[StrictStr, ...] = ()


class NodeSelectorTerm(WireModel):
    """Conditions on labels and fields that must all hold; without any, the term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(WireModel):
    """Terms of which at least one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class Namespace(PartialObject):
    """A namespace; its labels say what may be done in it."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Namespace"


class Taint(PartialModel):
    """A mark that keeps pods away which do not tolerate it."""

    key: StrictStr
    effect: StrictStr
    value: StrictStr = ""


class NodeSpec(PartialModel):
    """The part of a node's specification that matters for placing pods."""

    unschedulable: StrictBool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(PartialModel):
    """An image that the node has already, by all of its names."""

    names: tuple[StrictStr, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(PartialModel):
    """What pods may use of the node, among it what device plugins offer, and the images that it has."""

    allocatable: Mapping[StrictStr, QuantityField] = {}
    images: tuple[ContainerImage, ...] = ()


class Node(PartialObject):
    """A node of the cluster."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Node"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
