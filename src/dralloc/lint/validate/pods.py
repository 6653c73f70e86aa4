"""Pods that refer to what is not there, and claims that hold what is not published any more.

No API server looks at the annotation with constraints over several claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from dralloc.compile.inventory.drift import find_drift
from dralloc.lint.validate.claims import request_names
from dralloc.lint.validate.places import CLAIMS
from dralloc.lint.validate.rule import (
    Issue,
    Part,
    ValidationContext,
    errors,
    said,
    warnings,
)
from dralloc.objects.across import ACROSS, annotated
from dralloc.objects.api import ApiObject, Container, DeviceClaim, Pod, PodResourceClaim
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey

__all__ = ["POD_RULES"]


class _Entry(NamedTuple):
    """An entry of a pod's claims."""

    entry: PodResourceClaim
    namespace: str
    cluster: Cluster

    @property
    def claim(self) -> DeviceClaim | None:
        """What the entry stands for, if it is there."""
        if self.entry.resource_claim_name is not None:
            claim = self.cluster.claim(
                ClaimKey(self.namespace, self.entry.resource_claim_name)
            )
            return claim.spec.devices if claim else None
        key = ClaimKey(self.namespace, self.entry.resource_claim_template_name or "")
        return next(
            (one.spec.spec.devices for one in self.cluster.templates if one.key == key),
            None,
        )


class _Use(NamedTuple):
    """A container and the entries of its pod."""

    container: Container
    entries: dict[str, _Entry]


def _given_pods(context: ValidationContext) -> Iterator[Pod]:
    """Pods, one of those with the same owner."""
    seen: set[tuple[str, str, str]] = set()
    for pod in context.cluster.pods:
        for owner in pod.metadata.owner_references:
            identity = (owner.kind, pod.key.namespace, owner.name)
            if owner.controller and identity in seen:
                break
            seen.add(identity)
        else:
            yield pod


def _entries(context: ValidationContext) -> Iterator[Part[_Entry]]:
    for pod in _given_pods(context):
        for index, entry in enumerate(pod.spec.resource_claims):
            yield Part(
                pod,
                f"spec.resourceClaims[{index}]",
                _Entry(entry, pod.key.namespace, context.cluster),
            )


def _uses(context: ValidationContext) -> Iterator[Part[_Use]]:
    for pod in _given_pods(context):
        entries = {
            one.name: _Entry(one, pod.key.namespace, context.cluster)
            for one in pod.spec.resource_claims
        }
        for field, containers in (
            ("initContainers", pod.spec.init_containers),
            ("containers", pod.spec.containers),
        ):
            for index, container in enumerate(containers):
                yield Part(
                    pod,
                    f"spec.{field}[{index}].resources.claims",
                    _Use(container, entries),
                )


def _claim_exists(one: _Entry, at: str) -> Iterator[Issue]:
    name = one.entry.resource_claim_name
    if name is not None and one.claim is None:
        yield Issue(f"{at}.resourceClaimName", f'ResourceClaim "{name}" does not exist')


def _template_exists(one: _Entry, at: str) -> Iterator[Issue]:
    name = one.entry.resource_claim_template_name
    if name is not None and one.entry.resource_claim_name is None and one.claim is None:
        yield Issue(
            f"{at}.resourceClaimTemplateName",
            f'ResourceClaimTemplate "{name}" does not exist',
        )


def _says_what(one: _Entry, at: str) -> Iterator[Issue]:
    given = (one.entry.resource_claim_name, one.entry.resource_claim_template_name)
    if (given[0] is None) is (given[1] is None):
        yield Issue(
            at,
            "exactly one of resourceClaimName and resourceClaimTemplateName is required",
        )


def _entry_exists(use: _Use, at: str) -> Iterator[Issue]:
    for index, claim in enumerate(use.container.resources.claims):
        if claim.name not in use.entries:
            yield Issue(
                f"{at}[{index}]", f'"{claim.name}" is none of the pod\'s resourceClaims'
            )


def _request_exists(use: _Use, at: str) -> Iterator[Issue]:
    for index, claim in enumerate(use.container.resources.claims):
        spec = use.entries[claim.name].claim if claim.name in use.entries else None
        if (
            claim.request
            and spec is not None
            and claim.request not in request_names(spec)
        ):
            yield Issue(
                f"{at}[{index}].request",
                f'"{claim.request}" is no request of the claim "{claim.name}"',
            )


def _drifts(context: ValidationContext) -> Iterator[Part[str]]:
    if context.cluster.slices:
        given = [claim for _, _, claim in CLAIMS(context)]
        for drift in find_drift(context.cluster.slices, given, context.features):
            yield Part(drift.claim, drift.path, drift.rule)


def _annotations(context: ValidationContext) -> Iterator[Part[str]]:
    groups = (context.cluster.pod_groups.values(), context.cluster.workloads.values())
    owners: Iterator[ApiObject] = chain(_given_pods(context), *groups)
    for owner in owners:
        if ACROSS in owner.metadata.annotations:
            yield Part(
                owner,
                f'metadata.annotations["{ACROSS}"]',
                owner.metadata.annotations[ACROSS],
            )


def _across_form(text: str, at: str) -> Iterator[Issue]:
    try:
        annotated(text, "")
    except ValueError as error:
        yield Issue(at, str(error))


def _across_requests(context: ValidationContext) -> Iterator[Part[str]]:
    """What annotations of pods name that is no request of their claims."""
    for owner, path, text in _annotations(context):
        if isinstance(owner, Pod) and not any(_across_form(text, path)):
            claims = (
                context.cluster.claim(key) for key in context.cluster.pod_claims(owner)
            )
            known = {
                name
                for claim in claims
                if claim
                for name in request_names(claim.spec.devices)
            }
            for request in (
                request for one in annotated(text, "") for request in one.requests
            ):
                if request not in known:
                    yield Part(
                        owner, path, f'"{request}" is no request of the pod\'s claims'
                    )


_POD: Final = "core validation, ValidatePodSpec"

POD_RULES: Final = (
    *warnings(
        _entries,
        ("pod-claim", _claim_exists, "The claims that pods name exist."),
        ("pod-template", _template_exists, "The templates that pods name exist."),
        origin="KEP-4381",
    ),
    *errors(
        _entries,
        ("pod-claim-source", _says_what, "A pod's entry names a claim or a template."),
        origin=_POD,
    ),
    *errors(
        _uses,
        ("container-claim", _entry_exists, "Containers use claims of their pod."),
        origin=_POD,
    ),
    *warnings(
        _uses,
        (
            "container-request",
            _request_exists,
            "Containers name requests of the claims.",
        ),
        origin="KEP-4381",
    ),
    *warnings(
        _drifts,
        ("allocation-drift", said, "Slices publish what claims hold."),
        origin="kubernetes/kubernetes#140802",
    ),
    *warnings(
        _annotations,
        (
            "across-form",
            _across_form,
            "Constraints over several claims have a kind and an attribute.",
        ),
        origin="dralloc",
    ),
    *warnings(
        _across_requests,
        (
            "across-request",
            said,
            "Constraints over several claims name requests of these.",
        ),
        origin="dralloc",
    ),
)
