"""How pods use the devices of their claims, as far as these take something of nodes (KEP-5517)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dralloc.compile.pods.requests import caps_of
from dralloc.objects.api import DeviceRequestAllocationResult, Pod, ResourceClaim
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import Device, NodeFootprint
from dralloc.problem.node_footprint import PodUse, footprint_of

__all__ = ["Footprints"]


class Footprints:
    """What devices of a cluster take of nodes for its pods.

    Parameters
    ----------
    devices
        All devices; with equal names, the last one counts.
    """

    def __init__(self, cluster: Cluster, devices: Iterable[Device]) -> None:
        self._cluster = cluster
        self._parts = {
            device.id: device.footprint for device in devices if device.footprint
        }

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def resources(self) -> frozenset[str]:
        """The resources that devices take something of."""
        return frozenset(
            part.resource for parts in self._parts.values() for part in parts
        )

    def use(self, pod: Pod) -> PodUse:
        """How a pod uses claims."""
        allocated = self.of_allocated(pod)
        return PodUse(
            self.containers(pod),
            {name: left - allocated[name] for name, left in caps_of(pod.spec).items()},
        )

    def held(self, pod: Pod) -> Mapping[str, int]:
        """What a pod takes of its node for its allocated claims, in nanos."""
        capped = caps_of(pod.spec)
        return {
            name: amount
            for name, amount in self.of_allocated(pod).items()
            if name not in capped
        }

    def of_allocated(self, pod: Pod) -> Counter[str]:
        """What the allocated claims of a pod take, by resource and in nanos."""
        found: Counter[str] = Counter()
        containers = self.containers(pod)
        for key in self._cluster.pod_claims(pod):
            claim = self._cluster.claim(key)
            for result, parts in self._results(claim) if claim is not None else ():
                consumed = {
                    name: amount.nanos
                    for name, amount in result.consumed_capacity.items()
                }
                found.update(footprint_of(parts, consumed, containers[key]) or {})
        return found

    def is_mapped(self, claim: ResourceClaim) -> bool:
        """Whether an allocated claim has a device that stands for a part of its node, which one pod alone can use."""
        return any(
            part.is_mapped for _, parts in self._results(claim) for part in parts
        )

    def _results(
        self, claim: ResourceClaim
    ) -> Iterator[tuple[DeviceRequestAllocationResult, Sequence[NodeFootprint]]]:
        return (
            (result, self._parts.get(result.device_id, ())) for result in claim.results
        )

    def containers(self, pod: Pod) -> Counter[ClaimKey]:
        """How many references of containers there are to each claim."""
        keys = self._keys(pod)
        used = (
            claim.name
            for one in (*pod.spec.init_containers, *pod.spec.containers)
            for claim in one.resources.claims
        )
        return Counter(keys[name] for name in used if name in keys)

    def _keys(self, pod: Pod) -> Mapping[str, ClaimKey]:
        """The claim of each entry of a pod: those of the cluster are in order, each once."""
        unneeded = {
            one.name
            for one in pod.status.resource_claim_statuses
            if one.resource_claim_name is None
        }
        asked = {
            entry.name: (
                entry.resource_claim_name or "",
                "" if entry.resource_claim_name else entry.name,
            )
            for entry in pod.spec.resource_claims
            if entry.name not in unneeded
        }
        keys = dict(
            zip(
                dict.fromkeys(asked.values()),
                self._cluster.pod_claims(pod),
                strict=False,
            )
        )
        return {name: keys[one] for name, one in asked.items() if one in keys}
