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
from dralloc.objects.load.json_text import json_value
from dralloc.objects.load.text import TextError, content, unpacked

__all__ = ["AllocationCase", "Json", "read_allocation_case", "read_lines"]

Json = Mapping[str, Any]

_POD = "pod"


def read_lines(path: Path) -> Iterator[Json]:
    """The objects of a file with one JSON object per line.

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
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _object(line, f"{path}: line {number}")


def _object(line: bytes, source: str) -> Json:
    try:
        value = json_value(line)
    except JSONDecodeError as error:
        raise InputError([Finding(source, "", "", f"is not JSON: {error}")]) from None
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
                "", f"case {name}", "", "has neither claims, pods nor claimsToAllocate"
            )
        ]
    )


def _recorded_case(case: Json) -> AllocationCase:
    batch = case.get("pods")
    pods = batch if batch is not None else [{"name": _POD, "claims": case["claims"]}]
    nodes = case["nodes"] if batch is not None else [case["node"]]
    documents = [
        *_typed("Node", nodes),
        *_typed("DeviceClass", case["classes"]),
        *_typed("ResourceSlice", case["slices"]),
        *_typed("ResourceClaim", case["allocatedClaims"]),
        *(document for pod in pods for document in _pod(pod["name"], pod["claims"])),
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
        load_documents([one], source=source).slices[0]
        for one in _typed("ResourceSlice", case["slices"] or ())
    ]
    expected_error = case.get("expectError")
    return AllocationCase(
        name=case["name"],
        profile=case["table"],
        cluster=replace(load_documents(documents, source=source), slices=tuple(slices)),
        features=ALL_FEATURES.switched(case["features"]),
        pods=(),
        expected=case.get("corrected") or case["actual"],
        exact=tuple(case.get("expectedResultIsExact") or ()),
        error_contains=expected_error["contains"] if expected_error else None,
    )


def _typed(kind: str, objects: Iterable[Json]) -> Iterator[Json]:
    version = "v1" if kind == "Node" else "resource.k8s.io/v1"
    return ({"apiVersion": version, "kind": kind, **one} for one in objects)


def _pod(name: str, claims: Sequence[Json]) -> Iterator[Json]:
    """A pod that uses the claims, and the claims."""
    entries = [
        {"name": f"c{i}", "resourceClaimName": one["metadata"]["name"]}
        for i, one in enumerate(claims)
    ]
    namespaces = {one["metadata"].get("namespace", "") for one in claims} or {""}
    metadata = {"name": name, "namespace": namespaces.pop()}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries},
    }
    yield from _typed("ResourceClaim", claims)


def _renamed(claims: Sequence[Json]) -> Iterator[Json]:
    """The claims, those that repeat a name with a number behind it."""
    seen: Counter[str] = Counter()
    for claim in claims:
        name = claim["metadata"]["name"]
        seen[name] += 1
        number = f"-{seen[name]}" if seen[name] > 1 else ""
        yield {**claim, "metadata": {**claim["metadata"], "name": f"{name}{number}"}}


def _holders(case: Json) -> Iterator[Json]:
    """Allocated claims that hold what a table row lists as allocated devices, shares and consumed capacity."""
    consumed = {
        _device(one): one["capacity"] for one in case["aggregatedCapacity"] or ()
    }
    held = [{**one, "request": "held"} for one in case["allocatedDevices"] or ()]
    shares = [
        {**one, "consumedCapacity": consumed.pop(_device(one), {})}
        for one in case["allocatedSharedDevices"] or ()
    ]
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
    for number, result in enumerate(
        (*held, *({**one, "request": "share"} for one in shares))
    ):
        allocation = {"devices": {"results": [result]}}
        yield {
            "metadata": {"name": f"holder-{number}", "namespace": "default"},
            "status": {"allocation": allocation},
        }


def _device(entry: Json) -> tuple[str, str, str]:
    return entry["driver"], entry["pool"], entry["device"]
