"""Which kinds the simulated API server serves, and what it refuses (pkg/apis/resource/validation, core/validation)."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import NamedTuple

from dralloc.lint.validate import validate
from dralloc.live.snapshot import Refused
from dralloc.objects.errors import InputError, Level
from dralloc.objects.load import load_text
from wire import Json

MAX_CONSUMERS = 256


class Kind(NamedTuple):
    """A kind that is served; ``status`` is written through a subresource."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = False
    status: bool = False


_RESOURCE = "resource.k8s.io"
KINDS = {
    kind.plural: kind
    for kind in (
        Kind("namespaces", "Namespace"),
        Kind("nodes", "Node", status=True),
        Kind("pods", "Pod", namespaced=True, status=True),
        Kind("events", "Event", namespaced=True),
        Kind("leases", "Lease", "coordination.k8s.io", namespaced=True),
        Kind("priorityclasses", "PriorityClass", "scheduling.k8s.io"),
        Kind(
            "podgroups",
            "PodGroup",
            "scheduling.k8s.io",
            "v1alpha2",
            namespaced=True,
            status=True,
        ),
        Kind("resourcequotas", "ResourceQuota", namespaced=True, status=True),
        Kind("deviceclasses", "DeviceClass", _RESOURCE),
        Kind("resourceslices", "ResourceSlice", _RESOURCE),
        Kind(
            "resourceclaims",
            "ResourceClaim",
            _RESOURCE,
            namespaced=True,
            status=True,
        ),
        Kind(
            "resourceclaimtemplates",
            "ResourceClaimTemplate",
            _RESOURCE,
            namespaced=True,
        ),
        Kind(
            "devicetaintrules",
            "DeviceTaintRule",
            _RESOURCE,
            "v1beta2",
            status=True,
        ),
    )
}


def invalid(document: Json, why: str) -> Refused:
    """What an API server answers to an object that breaks a rule."""
    return Refused(
        422,
        f'{document["kind"]} "{document["metadata"]["name"]}" is invalid: {why}',
    )


def check_object(document: Json) -> None:
    """Refuse what breaks a rule by itself."""
    if document.get("apiVersion", "").startswith(_RESOURCE):
        named = {
            key: document["metadata"][key]
            for key in ("name", "namespace")
            if key in document["metadata"]
        }
        errors = _errors(
            _TIME.sub(_SOME_TIME, json.dumps({**document, "metadata": named}))
        )
        if errors:
            raise invalid(document, errors)


_SOME_TIME = '"2026-01-01T00:00:00Z"'
_TIME = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"')
"""No rule tells one time from another, so that what was found is known for all of them."""


@cache
def _errors(text: str) -> str:
    try:
        validation = validate(load_text(text))
    except InputError as error:
        return str(error)
    return "; ".join(
        f"{violation.path}: {violation.message}"
        for violation in validation.violations
        if violation.level is Level.ERROR
    )


def check_change(old: Json, new: Json) -> None:
    """Refuse a change that breaks a rule."""
    before, after = (
        set(document["metadata"].get("finalizers", ()))
        for document in (old, new)
    )
    if old["metadata"].get("deletionTimestamp") and after - before:
        raise invalid(
            new,
            "metadata.finalizers: no new finalizers can be added if the object is being deleted",
        )
    rule = _RULES.get(new["kind"])
    if rule is not None:
        rule(old, new)


def _claim(old: Json, new: Json) -> None:
    if old.get("spec") != new.get("spec"):
        raise invalid(new, "spec: field is immutable")
    before, after = old.get("status", {}), new.get("status", {})
    if (
        before.get("allocation")
        and after.get("allocation")
        and before["allocation"] != after["allocation"]
    ):
        raise invalid(new, "status.allocation: field is immutable")
    reserved = after.get("reservedFor", ())
    if reserved and not after.get("allocation"):
        raise invalid(
            new,
            "status.reservedFor: may not be specified when `allocated` is not set",
        )
    if len(reserved) > MAX_CONSUMERS:
        raise invalid(
            new, f"status.reservedFor: must have at most {MAX_CONSUMERS} items"
        )
    added = [
        consumer
        for consumer in reserved
        if consumer not in before.get("reservedFor", ())
    ]
    if added and old["metadata"].get("deletionTimestamp"):
        raise invalid(
            new,
            "status.reservedFor: new entries may not be added while `deletionTimestamp` is set",
        )
    if before.get("allocation") != after.get("allocation"):
        check_object(new)


def _pod(old: Json, new: Json) -> None:
    gates = [gate["name"] for gate in old["spec"].get("schedulingGates", ())]
    if any(
        gate["name"] not in gates
        for gate in new["spec"].get("schedulingGates", ())
    ):
        raise invalid(new, "spec.schedulingGates: only deletion is allowed")
    free = {"schedulingGates", "tolerations", *(["affinity"] if gates else [])}
    fixed = [
        {key: part for key, part in pod["spec"].items() if key not in free}
        for pod in (old, new)
    ]
    if fixed[0] != fixed[1]:
        raise invalid(
            new, "spec: pod updates may not change fields other than those"
        )
    before, after = (pod["spec"].get("tolerations") or [] for pod in (old, new))
    if any(toleration not in after for toleration in before):
        raise invalid(
            new,
            "spec.tolerations: existing toleration can not be modified except its tolerationSeconds",
        )
    if gates and not _tighter(_terms(old), _terms(new)):
        raise invalid(
            new, "spec.affinity.nodeAffinity: only additions are allowed"
        )


def _terms(pod: Json) -> list[Json]:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required: list[Json] = affinity.get(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    ).get("nodeSelectorTerms", [])
    return required


def _tighter(old: list[Json], new: list[Json]) -> bool:
    """Whether every term only got conditions; where there was none, any term does. One without conditions gets none."""
    if not old:
        return True
    return len(old) == len(new) and all(
        before.get(name, []) == after.get(name, [])[: len(before.get(name, []))]
        and (any(before.values()) or not any(after.values()))
        for before, after in zip(old, new, strict=True)
        for name in ("matchExpressions", "matchFields")
    )


_RULES = {"ResourceClaim": _claim, "Pod": _pod}
