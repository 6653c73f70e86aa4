"""What the devices of a pod take of its node (KEP-5517), found out with the devices.

Source: ``framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`` of ``kubernetes/pkg/scheduler``, 1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.footprints import Footprints
from dralloc.compile.pods.kinds import PodInfo
from dralloc.objects.api import ResourceClaim
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem.node_footprint import footprint_of
from dralloc.problem.solution import Grant

__all__ = ["Granted", "PodFootprints"]

Granted = Callable[[ClaimKey], Sequence[Grant]]
"""What claims get that were not allocated before the run."""


class PodFootprints:
    """What devices of a cluster take of nodes."""

    def __init__(self, compiled: CompiledCluster) -> None:
        self._problem = compiled.problem
        self._footprints = Footprints(compiled.cluster, compiled.problem.devices)
        demands = (
            (one for one in compiled.problem.demands if not compiled.is_claim(one))
            if self._footprints
            else ()
        )
        self._demands = {demand.key: demand for demand in demands}
        self._pods = (
            {pod.key: pod for pod in compiled.cluster.pods} if self._footprints else {}
        )

    def __bool__(self) -> bool:
        return bool(self._footprints)

    def containers(self, pod: PodInfo) -> Mapping[ClaimKey, int]:
        """How many containers refer to each of the pod's claims."""
        return self._footprints.containers(self._pods[pod.key])

    def of(self, pod: PodInfo, granted: Granted) -> Mapping[str, int]:
        """What the devices of a pod take, by resource and in nanos.

        Raises
        ------
        FatalError
            A device follows a capacity, and nothing is consumed of any.
        """
        found: Counter[str] = Counter()
        if self._footprints:
            found.update(self._footprints.of_allocated(self._pods[pod.key]))
            for amounts in self._of_granted(pod, granted):
                found.update(amounts)
        return found

    def entered(self, pod: PodInfo, granted: Granted) -> PodInfo:
        """The pod with what its devices take of the node that it has."""
        return (
            replace(pod, of_devices=self.of(pod, granted)) if self._footprints else pod
        )

    def _of_granted(
        self, pod: PodInfo, granted: Granted
    ) -> Iterator[Mapping[str, int]]:
        demand = self._demands.get(pod.key)
        if demand is None:
            return
        containers = self.containers(pod)
        for claim in demand.claims:
            for request, choice, number in granted(claim.key):
                alternative, device = (
                    claim.requests[request].alternatives[choice],
                    self._problem.devices[number],
                )
                charge = self._problem.eligibility.charge(alternative.index, number)
                consumed = (
                    {name: amount.nanos for name, amount in charge.recorded}
                    if charge
                    else {}
                )
                amounts = footprint_of(
                    device.footprint, consumed, containers.get(claim.key, 0)
                )
                if amounts is None:
                    raise FatalError(
                        f"claim {claim.key}, device {device.id.device}: ConsumedCapacity is nil"
                    )
                yield amounts

    def is_mapped(self, claim: ResourceClaim, granted: Granted) -> bool:
        """Whether an allocated claim has a device that stands for a part of its node."""
        devices = (self._problem.devices[grant.device] for grant in granted(claim.key))
        return self._footprints.is_mapped(claim) or any(
            part.is_mapped for one in devices for part in one.footprint
        )
