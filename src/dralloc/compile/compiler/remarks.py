"""What users should know about claims that are allocated already, and about what is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dralloc.compile.inventory import Drift
from dralloc.compile.inventory.groups import LEFT_ALONE, declares_groups
from dralloc.compile.match import MatchTable
from dralloc.objects.api import ApiObject, DeviceRequestAllocationResult, DeviceTaint
from dralloc.objects.api.tolerating import all_tolerated
from dralloc.objects.assembly.objects import Identity, identity
from dralloc.objects.budget import Cap
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding

__all__ = ["remarks"]

_NAMED = 3


def remarks(
    cluster: Cluster, table: MatchTable, drifts: Iterable[Drift], caps: Sequence[Cap]
) -> Iterator[Finding]:
    """What allocated claims and published devices contradict, and what is asked for in vain."""
    yield from (cluster.remark(drift.claim, drift.path, drift.rule) for drift in drifts)
    yield from _evictions(cluster, table)
    if not table.features.DeviceCompatibilityGroups:
        yield from islice(_left_alone(cluster), 1)
    known = (
        {one.key.namespace for one in (*cluster.claims, *cluster.pods)}
        if caps
        else set()
    )
    for cap in caps:
        name = cap.namespace
        if name not in known and name not in cluster.namespaces:
            rule = f'--cap {name}={cap.resource}:{cap.most}: there is no claim and no pod in namespace "{name}"'
            yield Finding("", "", "", rule)


def _left_alone(cluster: Cluster) -> Iterator[Finding]:
    """Devices that nobody can get because a gate is off (KEP-5963)."""
    for one in cluster.slices:
        for number, device in enumerate(one.spec.devices):
            if declares_groups(device):
                yield cluster.remark(
                    one, f"spec.devices[{number}].consumesCounters", LEFT_ALONE
                )


def _evictions(cluster: Cluster, table: MatchTable) -> Iterator[Finding]:
    """Taints with effect ``NoExecute`` on allocated devices: whoever does not tolerate them is evicted (KEP-5055)."""
    evicted: dict[tuple[Identity, str], list[str]] = defaultdict(list)
    about: dict[tuple[Identity, str], ApiObject] = {}
    results = ((claim, result) for claim in cluster.claims for result in claim.results)
    for claim, result in results if table.features.DeviceTaints else ():
        for one, path, taint in _taints(result, table):
            if taint.effect == "NoExecute" and not all_tolerated(
                (taint,), result.tolerations
            ):
                about[identity(one), path] = one
                evicted[identity(one), path].append(f"{claim.key} ({result.device_id})")
    for key, claims in evicted.items():
        more = f" and {len(claims) - _NAMED} more" if len(claims) > _NAMED else ""
        rule = f"NoExecute: the pods of claims that do not tolerate it are evicted: {', '.join(claims[:_NAMED])}{more}"
        yield cluster.remark(about[key], key[1], rule)


def _taints(
    result: DeviceRequestAllocationResult, table: MatchTable
) -> Iterator[tuple[ApiObject, str, DeviceTaint]]:
    """The taints of an allocated device, each with the object and field that says it."""
    index = table.inventory.newest(result.device_id)
    if index is not None:
        source = table.inventory.sources[index]
        for number, taint in enumerate(source.device.taints):
            place = source.slice.spec.devices.index(source.device)
            yield source.slice, f"spec.devices[{place}].taints[{number}]", taint
    for rule in table.rules_for(result.device_id):
        yield rule, "spec.taint", rule.spec.taint
