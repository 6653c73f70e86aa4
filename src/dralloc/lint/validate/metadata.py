"""Rules about object metadata, for every kind of ``resource.k8s.io``.

Source: ``k8s.io/apimachinery/pkg/api/validation``, ValidateObjectMeta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.lint.validate.checks import (
    annotation_key,
    dns_label,
    dns_subdomain,
    form,
    generated_prefix,
    keys,
    label_name,
    label_value,
    named,
    not_negative,
)
from dralloc.lint.validate.rule import (
    CLAIMS,
    METADATA,
    OF_CLUSTER,
    RESOURCES,
    TEMPLATES,
    Issue,
    errors,
    warnings,
)
from dralloc.objects.api import ApiObject, ObjectMeta, ResourceClaimTemplate

__all__ = ["METADATA_RULES"]

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
        # Of more than a group and a version, the API server reads neither.
        _, slash, version = owner.api_version.partition("/")
        version = version if slash else owner.api_version
        required_fields = {
            "apiVersion": "" if "/" in version else version,
            "kind": owner.kind,
            "name": owner.name,
        }
        for name, value in required_fields.items():
            if not value:
                yield Issue(f"{at}.ownerReferences.{name}", "must not be empty")


def _event_owner(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for owner in meta.owner_references:
        if owner.kind == "Event" and owner.api_version in ("v1", "/v1"):
            yield Issue(
                f"{at}.ownerReferences",
                f"Event/{owner.name} cannot be an owner: no event of v1 can",
            )


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
    for name in set_fields:
        if name not in ("labels", "annotations"):
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
            "Slices, classes and rules for taints have no namespace; the API server drops it.",
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
            "metadata-owner-event",
            _event_owner,
            "No event is an owner.",
        ),
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
