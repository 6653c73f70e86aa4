"""Rules about what objects of several kinds have: metadata, node selectors, and fields that the API server drops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import not_
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from dralloc.lint.validate.checks import (
    JUDGED,
    annotation_key,
    choice,
    dns_label,
    dns_subdomain,
    form,
    generated_prefix,
    keys,
    label_name,
    label_value,
    named,
    not_negative,
    told,
)
from dralloc.lint.validate.rule import (
    CLAIMS,
    CLASSES,
    CONSUMPTIONS,
    COUNTER_SETS,
    DETAILS,
    DEVICES,
    EXACT,
    METADATA,
    NODE_SELECTORS,
    OF_CLUSTER,
    RESOURCES,
    RESULTS,
    SLICES,
    TEMPLATES,
    Issue,
    Place,
    Places,
    errors,
    warnings,
)
from dralloc.objects.api import (
    UNSET,
    ApiObject,
    NodeSelectorRequirement,
    ObjectMeta,
    ResourceClaimTemplate,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import Features

__all__ = ["METADATA_RULES", "NODE_SELECTOR_RULES", "Stored"]

# ----------------------------------------------------------------------------
# Rules about object metadata, for every kind of ``resource.k8s.io``.
#
# Source: ``k8s.io/apimachinery/pkg/api/validation``, ValidateObjectMeta.

_METADATA_ORIGIN: Final = "apimachinery validation, ValidateObjectMeta"
_ANNOTATION_BYTES: Final = 256 * 1024


def _namespace(owner: ApiObject, _at: str) -> Iterator[Issue]:
    if owner.namespaced and owner.metadata.namespace:
        yield from named(
            owner.metadata.namespace, "metadata.namespace", dns_label
        )


def _generate_name(owner: ApiObject, _at: str) -> Iterator[Issue]:
    if owner.metadata.generate_name:
        yield from named(
            owner.metadata.generate_name,
            "metadata.generateName",
            generated_prefix,
        )


def _no_namespace(owner: ApiObject, _at: str) -> Iterator[Issue]:
    if owner.metadata.namespace:
        yield Issue(
            "metadata.namespace",
            f"is dropped by the API server: a {owner.kind} belongs to the whole cluster",
        )


def _labels(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for key, value in meta.labels.items():
        yield from named(key, f"{at}.labels", label_name)
        if reason := label_value(value):
            yield Issue(
                f"{at}.labels", f'the value "{value}" of "{key}" {reason}'
            )


def _annotation_size(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    size = sum(
        len(key.encode()) + len(value.encode())
        for key, value in meta.annotations.items()
    )
    if size > _ANNOTATION_BYTES:
        yield Issue(
            f"{at}.annotations",
            f"are {size} bytes together, at most {_ANNOTATION_BYTES} are allowed",
        )


def _owners(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for owner in meta.owner_references:
        required_fields = {
            "apiVersion": owner.api_version.rpartition("/")[2],
            "kind": owner.kind,
            "name": owner.name,
        }
        for name, value in required_fields.items():
            if not value:
                yield Issue(f"{at}.ownerReferences.{name}", "must not be empty")


def _owner_uid(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    if not all(owner.uid for owner in meta.owner_references):
        yield Issue(
            f"{at}.ownerReferences.uid",
            "is missing: a cluster would refuse this, a dump may have lost it",
        )


def _one_controller(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    controllers = [
        f"{owner.kind}/{owner.name}"
        for owner in meta.owner_references
        if owner.controller
    ]
    if len(controllers) > 1:
        yield Issue(
            f"{at}.ownerReferences",
            f"only one can be the controller, not {', '.join(controllers)}",
        )


def _template_fields(
    template: ResourceClaimTemplate, _at: str
) -> Iterator[Issue]:
    set_fields = template.spec.metadata.model_dump(
        by_alias=True, exclude_defaults=True
    )
    for name in set_fields.keys() - {"labels", "annotations"}:
        yield Issue(
            f"spec.metadata.{name}",
            "cannot be set: only labels and annotations are copied to the claims",
        )


_TEMPLATE: Final = "core validation, ValidateTemplateObjectMeta"

_NAMESPACE: Final = (
    "apiserver registry, EnsureObjectNamespaceMatchesRequestNamespace"
)
_GENERATIONS: Final = (CLAIMS | TEMPLATES) / "metadata"

METADATA_RULES: Final = (
    *errors(
        RESOURCES,
        (
            "metadata-name",
            form("metadata.name", dns_subdomain),
            "An object's name is a DNS subdomain.",
        ),
        (
            "metadata-generate-name",
            _generate_name,
            "What a name is generated from is a DNS subdomain, but for a dash at its end.",
        ),
        ("metadata-namespace", _namespace, "A namespace is a DNS label."),
        origin=_METADATA_ORIGIN,
    ),
    *warnings(
        OF_CLUSTER,
        (
            "metadata-no-namespace",
            _no_namespace,
            "Slices and classes have no namespace; the API server drops it.",
        ),
        origin=_NAMESPACE,
    ),
    *errors(
        _GENERATIONS,
        (
            "metadata-generation",
            not_negative("generation"),
            "A generation is not negative; of slices and classes the API server sets it.",
        ),
        origin=_METADATA_ORIGIN,
    ),
    *errors(
        METADATA,
        (
            "metadata-labels",
            _labels,
            "Labels have keys and values of the form that labels have.",
        ),
        (
            "metadata-annotations",
            keys("annotations", annotation_key),
            "Keys of annotations have the form of label keys.",
        ),
        (
            "metadata-annotation-size",
            _annotation_size,
            "Annotations have at most 256 KiB.",
        ),
        ("metadata-owner", _owners, "An owner has apiVersion, kind and name."),
        (
            "metadata-one-controller",
            _one_controller,
            "At most one owner is the controller.",
        ),
        (
            "metadata-finalizers",
            keys("finalizers", label_name),
            "Finalizers have the form of label keys.",
        ),
        origin=_METADATA_ORIGIN,
    ),
    *warnings(
        METADATA,
        (
            "metadata-owner-uid",
            _owner_uid,
            "An owner has a UID, unless a dump was stripped.",
        ),
        origin=_METADATA_ORIGIN,
    ),
    *errors(
        TEMPLATES,
        (
            "template-metadata",
            _template_fields,
            "The metadata of a template's claims has only labels and annotations.",
        ),
        origin=_TEMPLATE,
    ),
)


# ----------------------------------------------------------------------------
# Rules about node selectors.
#
# Source: ``pkg/apis/core/validation``, ValidateNodeSelector.

_SELECTOR_ORIGIN: Final = "core validation, ValidateNodeSelector"
_LISTS: Final = ("In", "NotIn")
_FLAGS: Final = ("Exists", "DoesNotExist")
_NUMBERS: Final = ("Gt", "Lt")
_NODE_NAME: Final = "metadata.name"
_LABELS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchExpressions[]"
_FIELDS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchFields[]"


def _count(requirement: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    if requirement.operator in _LISTS and not requirement.values:
        yield Issue(f"{at}.values", f"is required with {requirement.operator}")
    elif requirement.operator in _FLAGS and requirement.values:
        yield Issue(
            f"{at}.values", f"is not allowed with {requirement.operator}"
        )
    elif requirement.operator in _NUMBERS and len(requirement.values) != 1:
        yield Issue(
            f"{at}.values",
            f"must have a single value with {requirement.operator}",
        )


def _field_key(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    if requirement.key != _NODE_NAME:
        yield Issue(
            f"{at}.key",
            f'"{requirement.key}" is not {_NODE_NAME}, the only field that nodes can be selected by',
        )


def _field_operator(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    if requirement.operator not in _LISTS:
        yield Issue(
            f"{at}.operator",
            f'"{requirement.operator}" is not one of {", ".join(_LISTS)}',
        )
    elif len(requirement.values) != 1:
        yield Issue(
            f"{at}.values",
            f"must have a single value with {requirement.operator}",
        )


def _field_values(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    for index, value in enumerate(
        requirement.values if requirement.key == _NODE_NAME else ()
    ):
        yield from named(value, f"{at}.values[{index}]", dns_subdomain)


NODE_SELECTOR_RULES: Final = (
    *errors(
        NODE_SELECTORS,
        (
            "node-selector-terms",
            told("nodeSelectorTerms", not_, "needs at least one term"),
            "A node selector has terms.",
        ),
        origin=_SELECTOR_ORIGIN,
    ),
    *errors(
        _LABELS,
        (
            "node-selector-key",
            form("key", label_name),
            "Keys have the form of label keys.",
        ),
        (
            "node-selector-operator",
            choice("operator", (*_LISTS, *_FLAGS, *_NUMBERS)),
            "Operators are known.",
        ),
        (
            "node-selector-count",
            _count,
            "The operator says how many values there are.",
        ),
        (
            "node-selector-value",
            told("values[]", label_value, JUDGED),
            "Values have the form of label values.",
        ),
        origin=_SELECTOR_ORIGIN,
    ),
    *errors(
        _FIELDS,
        ("node-field-key", _field_key, "The only field is metadata.name."),
        (
            "node-field-operator",
            _field_operator,
            "Fields have In or NotIn with a single value.",
        ),
        (
            "node-field-value",
            _field_values,
            "A node's name is a DNS subdomain.",
        ),
        origin=_SELECTOR_ORIGIN,
    ),
)


# ----------------------------------------------------------------------------
# What an API server keeps of objects: it drops fields that its version does not know,
# or whose gate is off.
#
# Its validation sees the rest. Source: ``pkg/registry/resource/*/strategy.go``,
# dropDisabledFields.


class _Gated(NamedTuple):
    """Fields and the gate that they need; without one here, the minor version since when they are on by default.

    ``named``: the minor version since when they have their names. A server before that does not read what is in them.
    """

    fields: Places
    gate: str = ""
    since: float = float("inf")
    named: int = 0

    def is_kept(self, features: Features, minor: int | None) -> bool:
        """Return whether an API server keeps them."""
        if self.gate:
            return bool(getattr(features, self.gate))
        return minor is None or minor >= self.since

    def is_unread(self, path: str, minor: int | None) -> bool:
        """Return whether a path leads to what an API server does not even read."""
        return (
            minor is not None
            and minor < self.named
            and self.fields.lead_to(path)
        )

    def __str__(self) -> str:
        return (
            f"the feature {self.gate} is off"
            if self.gate
            else "this version does not have it, or not by default"
        )


_BINDING: Final = "bindingConditions|bindingFailureConditions"
_OPERATIONS: Final = "skipNodeOperations"

_GATED: Final = (
    _Gated(
        DEVICES / "taints" | (DETAILS | RESULTS) / "tolerations", "DeviceTaints"
    ),
    _Gated(
        SLICES / "sharedCounters|perDeviceNodeSelection", "PartitionableDevices"
    ),
    _Gated(
        DEVICES / "consumesCounters|nodeName|nodeSelector|allNodes",
        "PartitionableDevices",
    ),
    _Gated(
        DEVICES / f"{_BINDING}|bindsToNode" | RESULTS / _BINDING,
        "DeviceBindingAndStatus",
    ),
    _Gated(
        DEVICES / "allowMultipleAllocations"
        | DEVICES / "capacity[].requestPolicy",
        "ConsumableCapacity",
    ),
    _Gated(
        DETAILS / "capacity" | RESULTS / "shareID|consumedCapacity",
        "ConsumableCapacity",
    ),
    _Gated(DEVICES / "attributes[]", "ListTypeAttributes"),
    _Gated((EXACT | RESULTS) / "adminAccess", "AdminAccess"),
    _Gated(CLASSES / "spec.extendedResourceName", "ExtendedResource"),
    _Gated(
        COUNTER_SETS / "counters[].requestPolicy"
        | CONSUMPTIONS / "counters[].valueFrom",
        "SharedConsumableCapacity",
    ),
    _Gated(CONSUMPTIONS / "compatibilityGroups", "DeviceCompatibilityGroups"),
    _Gated(SLICES / "partitionTypeAttribute", since=37, named=37),
    _Gated(
        DEVICES / "nodeAllocatableResources",
        "NodeAllocatableResources",
        named=37,
    ),
    _Gated(DETAILS / "derivedAttributes" | (SLICES | RESULTS) / _OPERATIONS),
)


@dataclass
class Stored:
    """Objects as an API server with some gates, of some minor version, keeps them.

    ``dropped`` says for each object which fields it loses, once for all fields that go for one reason.
    """

    features: Features
    minor: int | None
    dropped: list[tuple[ApiObject, Issue]] = field(default_factory=list)

    def cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster without the fields that are dropped."""
        off = [
            gated
            for gated in _GATED
            if not gated.is_kept(self.features, self.minor)
        ]
        if not off:
            return cluster
        return replace(
            cluster,
            slices=tuple(
                self._object("slices", object_, off)
                for object_ in cluster.slices
            ),
            classes={
                name: self._object("classes", object_, off)
                for name, object_ in cluster.classes.items()
            },
            claims=tuple(
                self._object("claims", object_, off)
                for object_ in cluster.claims
            ),
            templates=tuple(
                self._object("templates", object_, off)
                for object_ in cluster.templates
            ),
        )

    def has_no(self, path: str) -> bool:
        """Return whether a path is in a field of a name that this version does not know: dropped, whatever is in it."""
        return any(gated.is_unread(path, self.minor) for gated in _GATED)

    def _object(self, kind: str, object_: Any, off: list[_Gated]) -> Any:
        for gated in off:
            paths: list[str] = []
            for steps in gated.fields.of(kind):
                object_ = _without(object_, steps, "", paths)
            if paths:
                further = (
                    f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                )
                self.dropped.append(
                    (
                        object_,
                        Issue(
                            paths[0],
                            f"the API server drops it{further}, as {gated}",
                        ),
                    )
                )
        return object_


def _without(value: Any, steps: Place, at: str, paths: list[str]) -> Any:
    """Return a copy with the fields at a place emptied, and collect their paths; the value itself if there are none."""
    fields, steps_below = steps[0], steps[1:]
    for step in fields:
        below, path, before = (
            getattr(value, step.python),
            f"{at}.{step.wire}".removeprefix("."),
            len(paths),
        )
        absent = _default(value, step.python)
        if below is None or below == absent:
            continue
        if step.repeated:
            below = _each(below, partial(_item, steps_below, path, paths))
        elif steps_below:
            below = _without(below, steps_below, path, paths)
        else:
            paths.append(path)
            below = absent
        if len(paths) > before:
            value = _with(value, step.python, below, is_set=below is not absent)
    return value


def _each(items: Any, change: Callable[[object, Any], Any]) -> Any:
    if isinstance(items, Mapping):
        return {key: change(key, item) for key, item in items.items()}
    return tuple(change(index, item) for index, item in enumerate(items))


def _item(
    steps_below: Place, path: str, paths: list[str], key: object, item: Any
) -> Any:
    """Change an item of a list or map; where a path ends with an item, it is about the lists among the values there."""
    if steps_below:
        return _without(item, steps_below, f"{path}[{key}]", paths)
    if isinstance(item, tuple):
        paths.append(f"{path}[{key}]")
        return UNSET
    return item


def _default(value: Any, python: str) -> Any:
    fields = (
        type(value).model_fields
        if isinstance(value, BaseModel)
        else type(value).__dataclass_fields__
    )
    return fields[python].default


def _with(value: Any, python: str, new: Any, *, is_set: bool) -> Any:
    if not isinstance(value, BaseModel):
        return replace(value, **{python: new})
    copy = value.model_copy(update={python: new})
    if not is_set:
        copy.model_fields_set.discard(python)
    return copy
