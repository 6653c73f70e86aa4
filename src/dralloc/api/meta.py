"""Object metadata: what ``k8s.io/apimachinery`` calls ObjectMeta."""

from collections.abc import Mapping

from pydantic import StrictBool, StrictStr

from dralloc.api.base import Int64, WireModel

__all__ = ["ObjectMeta", "OwnerReference"]


class OwnerReference(WireModel):
    """The object that another one belongs to."""

    api_version: StrictStr = ""
    kind: StrictStr = ""
    name: StrictStr = ""
    uid: StrictStr = ""
    controller: StrictBool = False
    block_owner_deletion: StrictBool = False


class ObjectMeta(WireModel):
    """Name, namespace, labels and age of an object. ``managedFields`` are dropped when an object is read."""

    name: StrictStr = ""
    generate_name: StrictStr = ""
    namespace: StrictStr = ""
    uid: StrictStr = ""
    labels: Mapping[StrictStr, StrictStr] = {}
    annotations: Mapping[StrictStr, StrictStr] = {}
    creation_timestamp: StrictStr | None = None
    deletion_timestamp: StrictStr | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[StrictStr, ...] = ()
    generation: Int64 | None = None
    resource_version: StrictStr | None = None
    self_link: StrictStr | None = None
