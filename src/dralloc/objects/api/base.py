"""The base of all models of the API: their configuration, quantities, metadata, identity and the way to the wire."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    StrictBool,
    StrictInt,
    StrictStr,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from dralloc.objects.api.disclosure import (
    ANNOTATIONS,
    Name,
    NamespaceName,
    Removed,
    Terms,
    Time,
    Uid,
)
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity, parse_quantity

__all__ = [
    "DEFAULT_NAMESPACE",
    "EMPTY",
    "INT32",
    "INT64",
    "ApiObject",
    "Int32",
    "Int64",
    "ObjectMeta",
    "OwnerReference",
    "PartialModel",
    "PartialObject",
    "QuantityField",
    "ResourceObject",
    "WireData",
    "WireModel",
    "changed",
    "to_wire",
]

# ----------------------------------------------------------------------------
# How the API models are configured, and how quantities are read and written.

_WIRE: Final = ConfigDict(
    frozen=True,
    alias_generator=to_camel,
    validate_by_alias=True,
    validate_by_name=True,
    extra="forbid",
)
"""Frozen, camelCase on the wire, constructed by name in Python; a field that is not modelled is an error."""

INT32: Final = range(-(2**31), 2**31)
INT64: Final = range(-(2**63), 2**63)
"""What an ``int32`` and an ``int64`` of the API hold."""

# Kubernetes decodes into these types, so that a number outside of them is refused, whatever field it is for.
Int32 = Annotated[StrictInt, Field(ge=INT32[0], le=INT32[-1])]
Int64 = Annotated[StrictInt, Field(ge=INT64[0], le=INT64[-1])]


class _Empty(dict[Any, Any]):
    def __hash__(self) -> int:  # type: ignore[override]
        return 0

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return handler(dict[Any, Any])


EMPTY: Final[Mapping[Any, Any]] = _Empty()
"""The default of mappings. It has a hash, so that pydantic shares it, and does not make a copy for every object."""


class WireModel(BaseModel):
    """A part of an object of ``resource.k8s.io``: every field of the API is modelled."""

    model_config = _WIRE


class WireData:
    """A part of which a cluster has a million: a slotted dataclass, which pydantic validates like a `WireModel`."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = _WIRE


class PartialModel(BaseModel):
    """A part of an object of another API group: only the fields that matter here are modelled, others are ignored."""

    model_config = ConfigDict({**_WIRE, "extra": "ignore"})


_BLANKS: Final = " \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What the API trims off a quantity: what Go calls a space, but for those that JSON only has as escapes."""


def _read_quantity(value: Any) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, str):
        return parse_quantity(value.strip(_BLANKS))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse_quantity(repr(value))
    raise PydanticCustomError("quantity_type", "must be a quantity")


QuantityField = Annotated[
    Quantity,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_plain_validator_function(
            _read_quantity, serialization=core_schema.to_string_ser_schema()
        )
    ),
]
"""A quantity, given as text or as a number, which counts as its shortest text."""


# ----------------------------------------------------------------------------
# What top-level API objects share: metadata (ObjectMeta of ``k8s.io/apimachinery``),
# identity, the way to the wire.

M = TypeVar("M", bound=BaseModel)

DEFAULT_NAMESPACE = "default"
"""Where a namespaced object lives that does not say so."""


_OWNER_VERSIONS: Final = Terms(
    "v1",
    "apps/v1",
    "batch/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1alpha3",
)
_OWNER_KINDS: Final = Terms(
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Node",
    "Pod",
    "PodGroup",
    "ReplicaSet",
    "ResourceClaim",
    "StatefulSet",
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


class _Identity:
    """Kind, name and namespace of an object. A model is called like its kind, and says the rest where it begins."""

    api_version: ClassVar[str]
    kind: ClassVar[str]
    namespaced: ClassVar[bool] = False
    metadata: ObjectMeta

    def __init_subclass__(
        cls,
        *,
        api_version: str = "",
        namespaced: bool = False,
        **pydantic_words: Any,
    ) -> None:
        super().__init_subclass__(**pydantic_words)
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
        namespace = (
            metadata.namespace or DEFAULT_NAMESPACE if self.namespaced else ""
        )
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
    """Return a copy with other values."""
    return model.model_copy(update=update)


def to_wire(obj: ApiObject) -> dict[str, Any]:
    """Return the object as plain data in v1 wire form: camelCase, canonical quantities, no fields at their defaults.

    Of objects outside of ``resource.k8s.io`` only the modelled fields remain.
    """
    body = obj.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"apiVersion": obj.api_version, "kind": obj.kind, **body}
