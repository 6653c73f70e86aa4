"""Recorded cases: one JSON object per line, in plain text or gzip.

Two forms of allocation cases are known, told apart by their fields: problems with claims in wire form (``claims`` or
``pods``), and rows of upstream's own test tables (``claimsToAllocate``). Both become a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.limits import LIMITS
from dralloc.objects.load import load_documents
from dralloc.objects.load.json_text import (
    TextError,
    content,
    json_value,
    unpacked,
)

__all__ = ["AllocationCase", "Json", "read_allocation_case", "read_lines"]

Json = Mapping[str, Any]

_POD = "pod"


def read_lines(path: Path) -> Iterator[Json]:
    """Yield the objects of a file with one JSON object per line.

    Raises
    ------
    InputError
        The file cannot be read, or a line is not a JSON object.
    """
    try:
        text = unpacked(content(path, LIMITS.unpacked), LIMITS.unpacked)
    except (OSError, TextError) as error:
        raise InputError(
            [Finding(str(path), "", "", f"cannot be read: {error}")]
        ) from None
    for line_number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _object(line, f"{path}: line {line_number}")


def _object(line: bytes, source: str) -> Json:
    try:
        value = json_value(line)
    except JSONDecodeError as error:
        raise InputError(
            [Finding(source, "", "", f"is not JSON: {error}")]
        ) from None
    if not isinstance(value, dict):
        raise InputError([Finding(source, "", "", "is not a JSON object")])
    return value


@dataclass(frozen=True)
class AllocationCase:
    """A case ready to run.

    Parameters
    ----------
    pods
        Names of the pods in order, for a batch; empty if all claims are to be allocated together on one node.
    expected
        The recorded answer under the corrected rules, in its own form.
    """

    name: str
    profile: str
    cluster: Cluster
    features: Features
    pods: tuple[str, ...]
    expected: Json
    exact: tuple[bool, ...] | None = None
    error_contains: str | None = None


def read_allocation_case(case: Json) -> AllocationCase:
    """Make a case ready to run.

    Raises
    ------
    InputError
        Its objects are not valid, or it has neither of the known forms.
    """
    if "claimsToAllocate" in case:
        return _table_case(case)
    if "claims" in case or "pods" in case:
        return _recorded_case(case)
    name = str(case.get("id") or case.get("name") or "")
    raise InputError(
        [
            Finding(
                "",
                f"case {name}",
                "",
                "has neither claims, pods nor claimsToAllocate",
            )
        ]
    )


def _recorded_case(case: Json) -> AllocationCase:
    batch = case.get("pods")
    # A case with claims and one node is a batch of one pod that has them all.
    pods = (
        batch
        if batch is not None
        else [{"name": _POD, "claims": case["claims"]}]
    )
    nodes = case["nodes"] if batch is not None else [case["node"]]
    documents = [
        *_typed("Node", nodes),
        *_typed("DeviceClass", case["classes"]),
        *_typed("ResourceSlice", case["slices"]),
        *_typed("ResourceClaim", case["allocatedClaims"]),
        *(
            document
            for pod in pods
            for document in _pod(pod["name"], pod["claims"])
        ),
    ]
    return AllocationCase(
        name=case["id"],
        profile=case["profile"],
        cluster=load_documents(documents, source=f"case {case['id']}"),
        features=ALL_FEATURES.switched(case.get("features") or {}),
        pods=tuple(pod["name"] for pod in pods) if batch is not None else (),
        expected=case["expected"],
    )


def _table_case(case: Json) -> AllocationCase:
    source = f"case {case['name']}"
    documents = [
        *_typed("Node", [case["node"]]),
        *_typed("DeviceClass", case["classes"] or ()),
        *_typed("ResourceClaim", _holders(case)),
        *_pod(_POD, list(_renamed(case["claimsToAllocate"] or ()))),
    ]
    # Rows give the same name to several slices, which no cluster could hold; one by one they are fine.
    slices = [
        load_documents([document], source=source).slices[0]
        for document in _typed("ResourceSlice", case["slices"] or ())
    ]
    expected_error = case.get("expectError")
    return AllocationCase(
        name=case["name"],
        profile=case["table"],
        cluster=replace(
            load_documents(documents, source=source), slices=tuple(slices)
        ),
        features=ALL_FEATURES.switched(case["features"]),
        pods=(),
        expected=case.get("corrected") or case["actual"],
        exact=tuple(case.get("expectedResultIsExact") or ()),
        error_contains=expected_error["contains"] if expected_error else None,
    )


def _typed(kind: str, objects: Iterable[Json]) -> Iterator[Json]:
    version = "v1" if kind == "Node" else "resource.k8s.io/v1"
    return (
        {"apiVersion": version, "kind": kind, **fields} for fields in objects
    )


def _pod(name: str, claims: Sequence[Json]) -> Iterator[Json]:
    """Yield a pod that uses the claims, and the claims."""
    entries = [
        {"name": f"c{i}", "resourceClaimName": claim["metadata"]["name"]}
        for i, claim in enumerate(claims)
    ]
    namespaces = {
        claim["metadata"].get("namespace", "") for claim in claims
    } or {""}
    metadata = {"name": name, "namespace": namespaces.pop()}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries},
    }
    yield from _typed("ResourceClaim", claims)


def _renamed(claims: Sequence[Json]) -> Iterator[Json]:
    """Yield the claims; those that repeat a name get a number behind it."""
    seen: Counter[str] = Counter()
    for claim in claims:
        name = claim["metadata"]["name"]
        seen[name] += 1
        suffix = f"-{seen[name]}" if seen[name] > 1 else ""
        yield {
            **claim,
            "metadata": {**claim["metadata"], "name": f"{name}{suffix}"},
        }


def _holders(case: Json) -> Iterator[Json]:
    """Yield allocated claims that hold what a table row lists as allocated devices, shares and consumed capacity."""
    consumed = {
        _device(entry): entry["capacity"]
        for entry in case["aggregatedCapacity"] or ()
    }
    held = [
        {**entry, "request": "held"} for entry in case["allocatedDevices"] or ()
    ]
    shares = [
        {**entry, "consumedCapacity": consumed.pop(_device(entry), {})}
        for entry in case["allocatedSharedDevices"] or ()
    ]
    # Capacity that no listed share accounts for is held by a share of its own.
    for (driver, pool, device), amounts in consumed.items():
        shares.append(
            {
                "driver": driver,
                "pool": pool,
                "device": device,
                "shareID": "all",
                "consumedCapacity": amounts,
            }
        )
    shared = [{**entry, "request": "share"} for entry in shares]
    for holder_index, result in enumerate((*held, *shared)):
        allocation = {"devices": {"results": [result]}}
        yield {
            "metadata": {
                "name": f"holder-{holder_index}",
                "namespace": "default",
            },
            "status": {"allocation": allocation},
        }


def _device(entry: Json) -> tuple[str, str, str]:
    return entry["driver"], entry["pool"], entry["device"]
