"""Rules about admin access: only in namespaces that allow it (KEP-5018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dralloc.api import DEFAULT_NAMESPACE, ExactDeviceRequest, Namespace
from dralloc.api.disclosure import ADMIN_LABEL
from dralloc.validate.places import EXACT
from dralloc.validate.rule import Issue, Part, ValidationContext, errors, remarks

__all__ = ["RULES"]

_ORIGIN: Final = "resource.k8s.io registry, AuthorizedForAdmin; KEP-5018"


class _AdminRequest(NamedTuple):
    """A request with admin access and the namespace of its claim, if that was given."""

    request: ExactDeviceRequest
    namespace: str
    given: Namespace | None


def _admin_requests(context: ValidationContext) -> Iterator[Part[_AdminRequest]]:
    for owner, path, request in EXACT(context):
        if request.admin_access:
            name = owner.metadata.namespace or DEFAULT_NAMESPACE
            yield Part(owner, path, _AdminRequest(request, name, context.cluster.namespaces.get(name)))


def _allowed(asked: _AdminRequest, at: str) -> Iterator[Issue]:
    if asked.given is not None and asked.given.metadata.labels.get(ADMIN_LABEL) != "true":
        label = f'the label {ADMIN_LABEL}: "true"'
        text = f"is only allowed in a namespace with {label}, which {asked.namespace} does not have"
        yield Issue(f"{at}.adminAccess", text)


def _unknown(asked: _AdminRequest, at: str) -> Iterator[Issue]:
    if asked.given is None:
        text = f'needs the label {ADMIN_LABEL}: "true" on the namespace {asked.namespace}, which was not found'
        yield Issue(f"{at}.adminAccess", text)


RULES: Final = (
    *errors(
        _admin_requests, ("admin-access", _allowed, "Admin access is for namespaces with its label."), origin=_ORIGIN
    ),
    *remarks(
        _admin_requests,
        ("admin-access-unknown", _unknown, "Whether a namespace allows admin access is not known."),
        origin=_ORIGIN,
    ),
)
