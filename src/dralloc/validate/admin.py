"""Rules about admin access: only in namespaces that allow it (KEP-5018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dralloc.api import DEFAULT_NAMESPACE, ExactDeviceRequest, Namespace
from dralloc.api.disclosure import ADMIN_LABEL
from dralloc.validate.rule import Issue, Part, Scene, error, info
from dralloc.validate.walk import exact_requests

__all__ = ["RULES"]

_ORIGIN: Final = "resource.k8s.io registry, AuthorizedForAdmin; KEP-5018"


class _Access(NamedTuple):
    """A request with admin access and the namespace of its claim, if that was given."""

    request: ExactDeviceRequest
    namespace: str
    given: Namespace | None


def _accesses(scene: Scene) -> Iterator[Part[_Access]]:
    for owner, path, request in exact_requests(scene):
        if request.admin_access:
            name = owner.metadata.namespace or DEFAULT_NAMESPACE
            yield Part(owner, path, _Access(request, name, scene.cluster.namespaces.get(name)))


def _allowed(access: _Access, at: str) -> Iterator[Issue]:
    if access.given is not None and access.given.metadata.labels.get(ADMIN_LABEL) != "true":
        label = f'the label {ADMIN_LABEL}: "true"'
        text = f"is only allowed in a namespace with {label}, which {access.namespace} does not have"
        yield Issue(f"{at}.adminAccess", text)


def _unknown(access: _Access, at: str) -> Iterator[Issue]:
    if access.given is None:
        text = f'needs the label {ADMIN_LABEL}: "true" on the namespace {access.namespace}, which was not found'
        yield Issue(f"{at}.adminAccess", text)


RULES: Final = (
    error("admin-access", _accesses, _allowed, "Admin access is for namespaces with its label.", _ORIGIN),
    info("admin-access-unknown", _accesses, _unknown, "Whether a namespace allows admin access is not known.", _ORIGIN),
)
