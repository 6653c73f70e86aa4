"""The objects of ``resource.k8s.io/v1``, and the parts of other API groups that matter for placing pods.

Attributes are the snake_case of the Kubernetes names. Objects are frozen, are constructed by name in Python, and are
read from the wire by `ObjectReader`, which also understands older versions; `to_wire` is the way back.
"""

from dralloc.api import (
    allocation,
    capacity,
    claims,
    classes,
    groups,
    node_allocatable,
    nodes,
    placement,
    quotas,
    slices,
    workloads,
)
from dralloc.api.allocation import *
from dralloc.api.capacity import *
from dralloc.api.claims import *
from dralloc.api.classes import *
from dralloc.api.groups import *
from dralloc.api.node_allocatable import *
from dralloc.api.nodes import *
from dralloc.api.objects import (
    DEFAULT_NAMESPACE,
    ApiObject,
    ObjectMeta,
    OwnerReference,
    PartialObject,
    ResourceObject,
    to_wire,
)
from dralloc.api.owners import PodOwner, PodSet
from dralloc.api.placement import *
from dralloc.api.quotas import *
from dralloc.api.reading import ObjectReader
from dralloc.api.slices import *
from dralloc.api.values import UNSET, AttributeValue, Unset, Version, attribute_to_wire
from dralloc.api.workloads import *

__all__ = [
    "DEFAULT_NAMESPACE",
    "UNSET",
    "ApiObject",
    "AttributeValue",
    "ObjectMeta",
    "ObjectReader",
    "OwnerReference",
    "PartialObject",
    "PodOwner",
    "PodSet",
    "ResourceObject",
    "Unset",
    "Version",
    "attribute_to_wire",
    "to_wire",
]
__all__ += allocation.__all__
__all__ += capacity.__all__
__all__ += claims.__all__
__all__ += classes.__all__
__all__ += groups.__all__
__all__ += node_allocatable.__all__
__all__ += nodes.__all__
__all__ += placement.__all__
__all__ += quotas.__all__
__all__ += slices.__all__
__all__ += workloads.__all__
