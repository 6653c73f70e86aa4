"""What top-level API objects share: identity, and the way back to the wire form."""

from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from dralloc.api.base import PartialModel, WireModel
from dralloc.api.meta import ObjectMeta
from dralloc.names import ClaimKey

__all__ = ["DEFAULT_NAMESPACE", "ApiObject", "PartialObject", "ResourceObject", "changed", "to_wire"]

M = TypeVar("M", bound=BaseModel)

DEFAULT_NAMESPACE = "default"
"""Where a namespaced object lives that does not say so."""


class _Identity:
    """Kind, name and namespace of an object. A model is called like its kind, and says the rest where it begins."""

    api_version: ClassVar[str]
    kind: ClassVar[str]
    namespaced: ClassVar[bool] = False
    metadata: ObjectMeta

    def __init_subclass__(cls, *, api_version: str = "", namespaced: bool = False, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.kind = cls.__name__
        cls.namespaced = namespaced or cls.namespaced
        if api_version:
            cls.api_version = api_version

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def key(self) -> ClaimKey:
        """Namespace and name; the namespace is empty for cluster-scoped objects and ``default`` when none is given."""
        metadata = self.metadata
        namespace = metadata.namespace or DEFAULT_NAMESPACE if self.namespaced else ""
        # The constructor of a named tuple takes twice as long, and this is asked for a dozen times per object.
        return tuple.__new__(ClaimKey, (namespace, metadata.name))

    @property
    def title(self) -> str:
        """Kind and name as messages show them, with the namespace if there is one."""
        return f"{self.kind} {'/'.join(part for part in (self.metadata.namespace, self.metadata.name) if part)}"

    def __repr__(self) -> str:
        return f"<{self.title}>"


class ResourceObject(_Identity, WireModel, api_version="resource.k8s.io/v1"):
    """An object of ``resource.k8s.io``; all of its fields are known."""

    metadata: ObjectMeta = ObjectMeta()


class PartialObject(_Identity, PartialModel):
    """An object of another API group, of which only some fields are known."""

    metadata: ObjectMeta = ObjectMeta()


ApiObject = ResourceObject | PartialObject
"""Any top-level object."""


def changed(model: M, **update: object) -> M:
    """A copy with other values."""
    return model.model_copy(update=update)


def to_wire(obj: ApiObject) -> dict[str, Any]:
    """The object as plain data in v1 wire form: camelCase, canonical quantities, fields at their defaults left out.

    Of objects outside of ``resource.k8s.io`` only the modelled fields remain.
    """
    body = obj.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"apiVersion": obj.api_version, "kind": obj.kind, **body}
