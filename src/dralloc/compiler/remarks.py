"""What users should know about claims that are allocated already, and about what is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from dralloc.api import ApiObject, DeviceRequestAllocationResult, DeviceTaint
from dralloc.api.tolerating import all_tolerated
from dralloc.budget import Cap
from dralloc.choices import Ignored
from dralloc.cluster import Cluster
from dralloc.errors import Finding
from dralloc.features import Features
from dralloc.inventory import Drift
from dralloc.inventory.groups import LEFT_ALONE, declares_groups
from dralloc.match import MatchTable
from dralloc.names import ClaimKey

__all__ = ["cap_remarks", "drift_remarks", "eviction_remarks", "group_remarks", "ignored_remarks"]

_NAMED = 3


def drift_remarks(cluster: Cluster, drifts: Iterable[Drift]) -> Iterator[Finding]:
    """Where claims and the newest slices contradict each other."""
    return (cluster.remark(drift.claim, drift.path, drift.rule) for drift in drifts)


def cap_remarks(cluster: Cluster, caps: Sequence[Cap]) -> Iterator[Finding]:
    """Caps of namespaces in which nothing is."""
    if not caps:
        return
    claims, pods = ({one.key.namespace for one in every} for every in (cluster.claims, cluster.pods))
    known = claims | pods | cluster.namespaces.keys()
    for cap in caps:
        if cap.namespace not in known:
            name = cap.namespace
            rule = f'--cap {name}={cap.resource}:{cap.most}: there is no claim and no pod in namespace "{name}"'
            yield Finding("", "", "", rule)


def group_remarks(cluster: Cluster, features: Features) -> Iterator[Finding]:
    """Devices that nobody can get because a gate is off (KEP-5963)."""
    if features.DeviceCompatibilityGroups:
        return
    for one in cluster.slices:
        for number, device in enumerate(one.spec.devices):
            if declares_groups(device):
                yield cluster.remark(one, f"spec.devices[{number}].consumesCounters", LEFT_ALONE)
                return


def eviction_remarks(cluster: Cluster, table: MatchTable) -> Iterator[Finding]:
    """Taints with effect ``NoExecute`` on allocated devices: whoever does not tolerate them is evicted (KEP-5055)."""
    if not table.features.DeviceTaints:
        return
    evicted: dict[tuple[str, ClaimKey, str], list[str]] = defaultdict(list)
    about: dict[tuple[str, ClaimKey, str], ApiObject] = {}
    for claim in cluster.claims:
        for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
            for one, path, taint in _taints(result, table):
                if taint.effect == "NoExecute" and not all_tolerated((taint,), result.tolerations):
                    identity = one.kind, one.key, path
                    about[identity] = one
                    evicted[identity].append(f"{claim.key} ({result.device_id})")
    for identity, claims in evicted.items():
        more = f" and {len(claims) - _NAMED} more" if len(claims) > _NAMED else ""
        rule = f"NoExecute: the pods of claims that do not tolerate it are evicted: {', '.join(claims[:_NAMED])}{more}"
        yield cluster.remark(about[identity], identity[2], rule)


def _taints(result: DeviceRequestAllocationResult, table: MatchTable) -> Iterator[tuple[ApiObject, str, DeviceTaint]]:
    """The taints of an allocated device, each with the object and field that says it."""
    index = table.inventory.newest(result.device_id)
    if index is not None:
        source = table.inventory.sources[index]
        for number, taint in enumerate(source.device.taints):
            place = source.slice.spec.devices.index(source.device)
            yield source.slice, f"spec.devices[{place}].taints[{number}]", taint
    for rule in table.rules_for(result.device_id):
        yield rule, "spec.taint", rule.spec.taint


def ignored_remarks(ignored: Collection[Ignored]) -> Iterator[Finding]:
    """What does not bind pods because users want it so."""
    if ignored:
        yield Finding("", "", "", f"first fit and the optimum ignore, as asked: {', '.join(sorted(ignored))}")
