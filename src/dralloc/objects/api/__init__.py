"""The objects of ``resource.k8s.io/v1``, and the parts of other API groups that matter for placing pods.

Attributes are the snake_case of the Kubernetes names. Objects are frozen, are constructed by name in Python, and are
read from the wire by `ObjectReader`, which also understands older versions; `to_wire` is the way back.
"""

from dralloc.objects.api import (
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
from dralloc.objects.api.allocation import *
from dralloc.objects.api.capacity import *
from dralloc.objects.api.claims import *
from dralloc.objects.api.classes import *
from dralloc.objects.api.groups import *
from dralloc.objects.api.node_allocatable import *
from dralloc.objects.api.nodes import *
from dralloc.objects.api.objects import (
    DEFAULT_NAMESPACE,
    ApiObject,
    ObjectMeta,
    OwnerReference,
    PartialObject,
    ResourceObject,
    to_wire,
)
from dralloc.objects.api.owners import PodOwner, PodSet
from dralloc.objects.api.placement import *
from dralloc.objects.api.quotas import *
from dralloc.objects.api.reading import ObjectReader
from dralloc.objects.api.slices import *
from dralloc.objects.api.values import (
    UNSET,
    AttributeValue,
    Unset,
    Version,
    attribute_to_wire,
)
from dralloc.objects.api.workloads import *

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
