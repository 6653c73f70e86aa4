"""The cluster as a run sees it: without its own fence, and without what it is not about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from dralloc.api import Pod
from dralloc.apply.fence import without_fence
from dralloc.apply.selection import Selection, gates_of
from dralloc.apply.units import WriteUnit, WrittenDemand
from dralloc.cluster import Cluster
from dralloc.load import load_documents
from dralloc.names import ClaimKey
from dralloc.snapshot import Json, key_of

__all__ = ["LiveView", "Source"]

Source = Callable[[], Iterable[Json]]
"""Reads all that dralloc uses of a live cluster, as it is now."""


@dataclass(frozen=True)
class LiveView:
    """One look at the cluster.

    Parameters
    ----------
    cluster
        What is to be placed, and all that is there.
    gates
        The scheduling gates of each pod that has any.
    """

    cluster: Cluster
    gates: Mapping[ClaimKey, list[str]]

    @classmethod
    def of(cls, objects: Iterable[Json], selection: Selection, runs: str) -> LiveView:
        """What a run sees of a cluster's objects, the fences of runs that are called so aside."""
        bare = [one for each in objects if (one := without_fence(each, runs)) is not None]
        gates = {key_of(one): names for one in bare if one["kind"] == "Pod" and (names := gates_of(one))}
        return cls(load_documents(selection.of(bare)), gates)

    @property
    def awaited(self) -> list[ClaimKey]:
        """The claims that a controller is about to make of templates; those of extended resources a scheduler makes."""
        made = (self.cluster.claim(key) for key in self.cluster.made)
        return [one.key for one in made if one and not one.is_extended]

    def ready(self, gate: str) -> Iterator[WriteUnit]:
        """The gated pods whose claims are all allocated already: nothing is to be written but the gate taken.

        A run that was ended may have left them, or somebody who allocates by hand. Pods of a group wait for each other.
        """
        pods = self.cluster.pods_by_key
        gated = {key: pods[key] for key in sorted(self.gates) if key in pods}
        ready = [key for key, pod in gated.items() if self.gates[key] == [gate] and self._is_allocated(pod)]
        waiting = {_group_of(gated[key]) for key in gated.keys() - set(ready)} - {None}
        for key in ready:
            if _group_of(gated[key]) not in waiting:
                yield WriteUnit((WrittenDemand(key, "", gated[key].metadata.uid),), ())

    def _is_allocated(self, pod: Pod) -> bool:
        claims = [self.cluster.claim(one) for one in self.cluster.pod_claims(pod)]
        return bool(claims) and all(one is not None and one.is_allocated for one in claims)


def _group_of(pod: Pod) -> ClaimKey | None:
    return ClaimKey(pod.key.namespace, pod.pod_group) if pod.pod_group else None
