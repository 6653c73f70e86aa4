"""What users should know about claims that are allocated already, and about what is asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from dralloc.compile.inventory import Drift
from dralloc.compile.inventory.compatibility_groups import (
    LEFT_ALONE,
    declares_groups,
)
from dralloc.compile.match import MatchTable
from dralloc.objects.api import (
    ApiObject,
    DeviceRequestAllocationResult,
    DeviceTaint,
)
from dralloc.objects.api.selecting import all_tolerated
from dralloc.objects.assembly.given_objects import Identity, identity
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.features import GATES, KNOWN_VERSIONS, Features
from dralloc.objects.user_rules import Cap

__all__ = ["other_version", "remarks"]

_NAMED = 3

_MINOR: Final = re.compile(r"v?1\.(\d+)")


def remarks(
    cluster: Cluster,
    table: MatchTable,
    drifts: Iterable[Drift],
    caps: Sequence[Cap],
) -> Iterator[Finding]:
    """Yield contradictions of allocated claims to published devices, and requests for what is not there."""
    yield from (
        cluster.remark(drift.claim, drift.path, drift.rule) for drift in drifts
    )
    yield from _evictions(cluster, table)
    if not table.features.DeviceCompatibilityGroups:
        yield from islice(_left_alone(cluster), 1)
    namespaces = set(cluster.namespaces)
    if caps:
        namespaces.update(claim.key.namespace for claim in cluster.claims)
        namespaces.update(pod.key.namespace for pod in cluster.pods)
    for cap in caps:
        name = cap.namespace
        if name not in namespaces:
            rule = f'--cap {name}={cap.resource}:{cap.most}: there is no claim and no pod in namespace "{name}"'
            yield Finding("", "", "", rule)


def other_version(cluster: Cluster, choices: Choices) -> Iterator[Finding]:
    """Yield that the cluster runs a version of Kubernetes in which gates are off by default that are on for the answer.

    The API server says it of itself where it was asked; else the oldest of the nodes counts.
    """
    who, versions = (
        "the nodes run",
        [node.status.node_info.kubelet_version for node in cluster.nodes],
    )
    if cluster.server_version:
        who, versions = "the API server runs", [cluster.server_version]
    minors = {
        int(match[1])
        for match in map(_MINOR.match, dict.fromkeys(versions))
        if match
    }
    if choices.kubernetes is not None or not minors:
        return
    version = f"1.{min(minors)}"
    if version not in KNOWN_VERSIONS:
        known = ", ".join(KNOWN_VERSIONS)
        rule = f"{who} Kubernetes {version}, whose feature gates are not known (those of {known} are)"
        yield Finding("", "", "", rule)
        return
    there = Features.of_kubernetes(version)
    off = [
        gate.upstream
        for name, gate in GATES.items()
        if getattr(choices.features, name) and not getattr(there, name)
    ]
    if off:
        further = f" and {len(off) - _NAMED} more" if len(off) > _NAMED else ""
        rule = f"{who} Kubernetes {version}, where {', '.join(off[:_NAMED])}{further} are off by default"
        yield Finding(
            "",
            "",
            "",
            f"{rule}; --kubernetes {version} answers as that version does",
        )


def _left_alone(cluster: Cluster) -> Iterator[Finding]:
    """Devices that no claim can get because a gate is off (KEP-5963)."""
    for slice_ in cluster.slices:
        for device_index, device in enumerate(slice_.spec.devices):
            if declares_groups(device):
                yield cluster.remark(
                    slice_,
                    f"spec.devices[{device_index}].consumesCounters",
                    LEFT_ALONE,
                )


def _evictions(cluster: Cluster, table: MatchTable) -> Iterator[Finding]:
    """Taints with effect ``NoExecute`` on allocated devices: pods that do not tolerate them are evicted (KEP-5055)."""
    evicted: dict[tuple[Identity, str], list[str]] = defaultdict(list)
    about: dict[tuple[Identity, str], ApiObject] = {}
    results = (
        (claim, result) for claim in cluster.claims for result in claim.results
    )
    for claim, result in results if table.features.DeviceTaints else ():
        for source, path, taint in _taints(result, table):
            if taint.effect == "NoExecute" and not all_tolerated(
                (taint,), result.tolerations
            ):
                about[identity(source), path] = source
                evicted[identity(source), path].append(
                    f"{claim.key} ({result.device_id})"
                )
    for key, claims in evicted.items():
        further = (
            f" and {len(claims) - _NAMED} more" if len(claims) > _NAMED else ""
        )
        names = ", ".join(claims[:_NAMED])
        rule = f"NoExecute: the pods of claims that do not tolerate it are evicted: {names}{further}"
        yield cluster.remark(about[key], key[1], rule)


def _taints(
    result: DeviceRequestAllocationResult, table: MatchTable
) -> Iterator[tuple[ApiObject, str, DeviceTaint]]:
    """The taints of an allocated device, each with the object and field that says it."""
    index = table.inventory.newest(result.device_id)
    if index is not None:
        source = table.inventory.sources[index]
        for taint_index, taint in enumerate(source.device.taints):
            position = source.slice.spec.devices.index(source.device)
            yield (
                source.slice,
                f"spec.devices[{position}].taints[{taint_index}]",
                taint,
            )
    for rule in table.rules_for(result.device_id):
        yield rule, "spec.taint", rule.spec.taint
