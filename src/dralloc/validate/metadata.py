"""Rules about object metadata, for every kind of ``resource.k8s.io``.

Source: ``k8s.io/apimachinery/pkg/api/validation``, ValidateObjectMeta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import ApiObject, ObjectMeta, ResourceClaimTemplate
from dralloc.validate.names import annotation_key, dns_label, dns_subdomain, label_name, label_value
from dralloc.validate.rule import Issue, error, named, warning
from dralloc.validate.walk import cluster_objects, metadata, objects, templates

__all__ = ["RULES"]

_ORIGIN: Final = "apimachinery validation, ValidateObjectMeta"
_ANNOTATION_BYTES: Final = 256 * 1024


def _name(one: ApiObject, _at: str) -> Iterator[Issue]:
    yield from named(one.name, "metadata.name", dns_subdomain)


def _namespace(one: ApiObject, _at: str) -> Iterator[Issue]:
    if one.namespaced and one.metadata.namespace:
        yield from named(one.metadata.namespace, "metadata.namespace", dns_label)


def _no_namespace(one: ApiObject, _at: str) -> Iterator[Issue]:
    if one.metadata.namespace:
        yield Issue("metadata.namespace", f"is not allowed: a {one.kind} belongs to the whole cluster")


def _generation(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    if meta.generation is not None and meta.generation < 0:
        yield Issue(f"{at}.generation", f"{meta.generation} is negative")


def _labels(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for key, value in meta.labels.items():
        yield from named(key, f"{at}.labels", label_name)
        if reason := label_value(value):
            yield Issue(f"{at}.labels", f'the value "{value}" of "{key}" {reason}')


def _annotations(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for key in meta.annotations:
        yield from named(key, f"{at}.annotations", annotation_key)


def _annotation_size(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in meta.annotations.items())
    if size > _ANNOTATION_BYTES:
        yield Issue(f"{at}.annotations", f"are {size} bytes together, at most {_ANNOTATION_BYTES} are allowed")


def _owners(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for owner in meta.owner_references:
        for field, value in {
            "apiVersion": owner.api_version.rpartition("/")[2],
            "kind": owner.kind,
            "name": owner.name,
        }.items():
            if not value:
                yield Issue(f"{at}.ownerReferences.{field}", "must not be empty")


def _owner_uid(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    if not all(owner.uid for owner in meta.owner_references):
        yield Issue(f"{at}.ownerReferences.uid", "is missing: a cluster would refuse this, a dump may have lost it")


def _one_controller(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    controllers = [f"{owner.kind}/{owner.name}" for owner in meta.owner_references if owner.controller]
    if len(controllers) > 1:
        yield Issue(f"{at}.ownerReferences", f"only one can be the controller, not {', '.join(controllers)}")


def _finalizers(meta: ObjectMeta, at: str) -> Iterator[Issue]:
    for name in meta.finalizers:
        yield from named(name, f"{at}.finalizers", label_name)


def _template_fields(template: ResourceClaimTemplate, _at: str) -> Iterator[Issue]:
    given = template.spec.metadata.model_dump(by_alias=True, exclude_defaults=True)
    for field in given.keys() - {"labels", "annotations"}:
        yield Issue(f"spec.metadata.{field}", "cannot be set: only labels and annotations are copied to the claims")


RULES: Final = (
    error("metadata-name", objects, _name, "An object's name is a DNS subdomain.", _ORIGIN),
    error("metadata-namespace", objects, _namespace, "A namespace is a DNS label.", _ORIGIN),
    error("metadata-no-namespace", cluster_objects, _no_namespace, "Slices and classes have no namespace.", _ORIGIN),
    error("metadata-generation", metadata, _generation, "A generation is not negative.", _ORIGIN),
    error("metadata-labels", metadata, _labels, "Labels have keys and values of the form that labels have.", _ORIGIN),
    error("metadata-annotations", metadata, _annotations, "Keys of annotations have the form of label keys.", _ORIGIN),
    error("metadata-annotation-size", metadata, _annotation_size, "Annotations have at most 256 KiB.", _ORIGIN),
    error("metadata-owner", metadata, _owners, "An owner has apiVersion, kind and name.", _ORIGIN),
    warning("metadata-owner-uid", metadata, _owner_uid, "An owner has a UID, unless a dump was stripped.", _ORIGIN),
    error("metadata-one-controller", metadata, _one_controller, "At most one owner is the controller.", _ORIGIN),
    error("metadata-finalizers", metadata, _finalizers, "Finalizers have the form of label keys.", _ORIGIN),
    error(
        "template-metadata",
        templates,
        _template_fields,
        "The metadata of a template's claims has only labels and annotations.",
        "core validation, ValidateTemplateObjectMeta",
    ),
)
