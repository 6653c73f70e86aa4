"""Footprints: what the devices of a pod take of its node (KEP-5517), found out with the devices.

Source: ``framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`` of ``kubernetes/pkg/scheduler``, 1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.node_amounts import Footprints
from dralloc.compile.pods import PodInfo
from dralloc.objects.api import Pod, ResourceClaim
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand
from dralloc.problem.node_footprints import footprint_of
from dralloc.problem.solution import Grant

__all__ = ["Granted", "PodFootprints"]

Granted = Callable[[ClaimKey], Sequence[Grant]]
"""What claims get that were not allocated before the run."""


class PodFootprints:
    """The amounts that devices of a cluster take of nodes."""

    def __init__(self, compiled: CompiledCluster) -> None:
        self._problem = compiled.problem
        self._footprints = Footprints(
            compiled.cluster, compiled.problem.devices
        )
        self._demands: dict[ClaimKey, Demand] = {}
        self._pods: dict[ClaimKey, Pod] = {}
        if self._footprints:
            self._pods = {pod.key: pod for pod in compiled.cluster.pods}
            for demand in compiled.problem.demands:
                if not compiled.is_claim(demand):
                    self._demands[demand.key] = demand

    def __bool__(self) -> bool:
        return bool(self._footprints)

    def containers(self, pod: PodInfo) -> Mapping[ClaimKey, int]:
        """Return how many containers refer to each of the pod's claims."""
        return self._footprints.containers(self._pods[pod.key])

    def of(self, pod: PodInfo, granted: Granted) -> Mapping[str, int]:
        """Return what the devices of a pod take, by resource and in nanos.

        Raises
        ------
        FatalError
            A device follows a capacity, and nothing is consumed of any.
        """
        total: Counter[str] = Counter()
        if self._footprints:
            total.update(self._footprints.of_allocated(self._pods[pod.key]))
            for amounts in self._of_granted(pod, granted):
                total.update(amounts)
        return total

    def entered(self, pod: PodInfo, granted: Granted) -> PodInfo:
        """The pod with what its devices take of the node that it has."""
        if self._footprints:
            return replace(pod, of_devices=self.of(pod, granted))
        return pod

    def _of_granted(
        self, pod: PodInfo, granted: Granted
    ) -> Iterator[Mapping[str, int]]:
        demand = self._demands.get(pod.key)
        if demand is None:
            return
        containers = self.containers(pod)
        for claim in demand.claims:
            for request, choice, device_index in granted(claim.key):
                alternative = claim.requests[request].alternatives[choice]
                device = self._problem.devices[device_index]
                charge = self._problem.eligibility.charge(
                    alternative.index, device_index
                )
                # The claim does not say yet what is consumed: it is what the allocation would record.
                recorded = charge.recorded if charge else ()
                consumed = {name: amount.nanos for name, amount in recorded}
                count = containers.get(claim.key, 0)
                amounts = footprint_of(device.footprint, consumed, count)
                if amounts is None:
                    raise FatalError(
                        f"claim {claim.key}, device {device.id.device}: ConsumedCapacity is nil"
                    )
                yield amounts

    def is_mapped(self, claim: ResourceClaim, granted: Granted) -> bool:
        """Whether an allocated claim has a device that stands for a part of its node."""
        if self._footprints.is_mapped(claim):
            return True
        for grant in granted(claim.key):
            footprint = self._problem.devices[grant.device].footprint
            if any(part.is_mapped for part in footprint):
                return True
        return False
