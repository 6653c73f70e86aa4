"""Object metadata: what ``k8s.io/apimachinery`` calls ObjectMeta."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import StrictBool, StrictStr

from dralloc.api.base import EMPTY, Int64, WireModel
from dralloc.api.disclosure import ANNOTATIONS, Name, NamespaceName, Removed, Terms, Time, Uid

__all__ = ["ObjectMeta", "OwnerReference"]

_OWNER_VERSIONS: Final = Terms("v1", "apps/v1", "batch/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1alpha3")
_OWNER_KINDS: Final = Terms(
    "CronJob", "DaemonSet", "Deployment", "Job", "Node", "Pod", "PodGroup", "ReplicaSet", "ResourceClaim", "StatefulSet"
)
_Dropped = Annotated[StrictStr, Removed.WHOLE]


class OwnerReference(WireModel):
    """The object that another one belongs to."""

    api_version: Annotated[StrictStr, _OWNER_VERSIONS] = ""
    kind: Annotated[StrictStr, _OWNER_KINDS] = ""
    name: Annotated[StrictStr, Name.OWNER] = ""
    uid: Uid = ""
    controller: StrictBool = False
    block_owner_deletion: StrictBool = False


class ObjectMeta(WireModel):
    """Name, namespace, labels and age of an object. ``managedFields`` are dropped when an object is read.

    What the name is, each kind says itself, and whether labels outlast redaction.
    """

    name: _Dropped = ""
    generate_name: _Dropped = ""
    namespace: NamespaceName = ""
    uid: Uid = ""
    labels: Annotated[Mapping[StrictStr, StrictStr], Removed.WHOLE] = EMPTY
    annotations: Annotated[Mapping[StrictStr, StrictStr], ANNOTATIONS] = EMPTY
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[_Dropped, ...] = ()
    generation: Int64 | None = None
    resource_version: _Dropped | None = None
    self_link: _Dropped | None = None
