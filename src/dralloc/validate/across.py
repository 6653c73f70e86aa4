"""The annotation with constraints over several claims, which no API server looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.across import ACROSS, annotated
from dralloc.api import ApiObject, Pod
from dralloc.validate.claims import request_names
from dralloc.validate.pods import given_pods
from dralloc.validate.rule import Issue, Part, ValidationContext, warnings

__all__ = ["RULES"]

_PATH: Final = f'metadata.annotations["{ACROSS}"]'


def _annotations(context: ValidationContext) -> Iterator[Part[str]]:
    groups = (context.cluster.pod_groups, context.cluster.workloads)
    every: Iterator[ApiObject] = (
        one for objects in (given_pods(context), *(each.values() for each in groups)) for one in objects
    )
    for owner in every:
        if ACROSS in owner.metadata.annotations:
            yield Part(owner, _PATH, owner.metadata.annotations[ACROSS])


def _form(text: str, at: str) -> Iterator[Issue]:
    try:
        annotated(text, "")
    except ValueError as error:
        yield Issue(at, str(error))


def _requests(context: ValidationContext) -> Iterator[Part[tuple[str, frozenset[str]]]]:
    """What pods say, with the requests of their claims."""
    for owner, path, text in _annotations(context):
        if isinstance(owner, Pod) and not list(_form(text, path)):
            claims = (context.cluster.claim(key) for key in context.cluster.pod_claims(owner))
            known = frozenset(name for claim in claims if claim for name in request_names(claim.spec.devices))
            yield Part(owner, path, (text, known))


def _request_exists(part: tuple[str, frozenset[str]], at: str) -> Iterator[Issue]:
    text, known = part
    for one in annotated(text, ""):
        for request in one.requests:
            if request not in known:
                yield Issue(at, f'"{request}" is no request of the pod\'s claims')


_ORIGIN: Final = "dralloc"

RULES: Final = (
    *warnings(
        _annotations,
        ("across-form", _form, "Constraints over several claims have a kind and an attribute."),
        origin=_ORIGIN,
    ),
    *warnings(
        _requests,
        ("across-request", _request_exists, "Constraints over several claims name requests of these."),
        origin=_ORIGIN,
    ),
)
