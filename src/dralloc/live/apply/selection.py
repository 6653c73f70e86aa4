"""The cluster as a run sees it: without its own fence, and without pending pods and claims that it is not about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dralloc.compile.pods.selectors import Selector, selector_of
from dralloc.live.apply.fence import FENCED_KINDS, without_fence
from dralloc.live.apply.marks import GATE
from dralloc.live.apply.status import HeldFence, fences_of
from dralloc.live.apply.units import WriteUnit, WrittenDemand, sole_node
from dralloc.live.snapshot import Json, key_of
from dralloc.objects.api import LabelSelector, LabelSelectorRequirement, Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey

__all__ = ["LiveView", "Selection", "Source", "gates_of", "parse_selector"]

Source = Callable[[], Iterable[Json]]
"""Reads all that dralloc uses of a live cluster, as it is now."""

_SEVERAL: Final = re.compile(r"\s*([^\s!=,()]+)\s+(in|notin)\s+\(([^()]*)\)\s*")
_ONE: Final = re.compile(r"\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)\s*")
_THERE: Final = re.compile(r"\s*(!?)\s*([^\s!=,()]+)\s*")
_OPERATORS: Final = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    "in": "In",
    "notin": "NotIn",
    "": "Exists",
    "!": "DoesNotExist",
}


def parse_selector(text: str) -> Selector:
    """A label selector as kubectl takes it: ``app=train,tier in (a,b),!canary``.

    Raises
    ------
    DrallocError
        A part has another form.
    """
    parts = [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return selector_of(
        LabelSelector(
            match_expressions=tuple(_requirement(part, text) for part in parts)
        )
    )


def _requirement(part: str, text: str) -> LabelSelectorRequirement:
    if found := _SEVERAL.fullmatch(part) or _ONE.fullmatch(part):
        key, operator, values = found.groups()
        several = tuple(one.strip() for one in values.split(","))
        return LabelSelectorRequirement(
            key=key, operator=_OPERATORS[operator], values=several
        )
    if found := _THERE.fullmatch(part):
        return LabelSelectorRequirement(key=found[2], operator=_OPERATORS[found[1]])
    raise DrallocError(
        f"--selector {text}: {part.strip()!r} is none of KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (VALUE,...)"
    )


def gates_of(pod: Json) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [
        str(one.get("name")) for one in pod.get("spec", {}).get("schedulingGates") or ()
    ]


@dataclass(frozen=True)
class Selection:
    """Pods and claims, by namespace and labels.

    Parameters
    ----------
    namespaces
        Only of these; of all if there are none.
    labels
        Only with such labels.
    gated
        Only pods that are held back by the gate.
    gate
        The scheduling gate that a run takes away; pods with another one are not scheduled yet, and not planned.
    without
        Pods and claims that are left alone.
    """

    namespaces: frozenset[str] = frozenset()
    labels: Selector | None = None
    gated: bool = False
    gate: str = GATE
    without: frozenset[ClaimKey] = frozenset()

    def but(self, keys: Iterable[ClaimKey]) -> Selection:
        """The same without these, too."""
        return replace(self, without=self.without | frozenset(keys))

    def of(self, objects: Iterable[Json]) -> Iterator[Json]:
        """The objects of a cluster without the pending pods and claims that are not selected.

        Selected pods are without the gate. A claim is selected with a pod that uses it; if no pod does, by itself.
        """
        every = list(objects)
        pods = [one for one in every if one["kind"] == "Pod"]
        mine = {
            key_of(pod)
            for pod in pods
            if self._selects(pod) and (not self.gated or self.gate in gates_of(pod))
        }
        used = {key: key_of(pod) in mine for pod in pods for key in _claims_of(pod)}
        used |= {
            key: True for pod in pods if key_of(pod) in mine for key in _claims_of(pod)
        }
        for one in every:
            key = key_of(one)
            if one["kind"] == "Pod":
                if key in mine:
                    yield self._ungated(one)
                elif not _is_pending(one):
                    yield one
            elif not _is_unallocated(one) or used.get(
                key, self._selects(one) and not self.gated
            ):
                yield one

    def _selects(self, one: Json) -> bool:
        key = key_of(one)
        return (
            key not in self.without
            and (not self.namespaces or key.namespace in self.namespaces)
            and (
                self.labels is None
                or self.labels.matches(one["metadata"].get("labels") or {})
            )
        )

    def _ungated(self, pod: Json) -> Json:
        if self.gate not in gates_of(pod):
            return pod
        left = [
            one
            for one in pod["spec"]["schedulingGates"]
            if one.get("name") != self.gate
        ]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": left}}


@dataclass(frozen=True)
class LiveView:
    """One look at the cluster.

    Parameters
    ----------
    cluster
        What is to be placed, and all that is there.
    gates
        The scheduling gates of each pod that has any.
    foreign
        What other runs fence.
    """

    cluster: Cluster
    gates: Mapping[ClaimKey, list[str]]
    foreign: tuple[HeldFence, ...]

    @classmethod
    def of(cls, objects: Iterable[Json], selection: Selection, runs: str) -> LiveView:
        """What a run sees of a cluster's objects, the fences of runs that are called so aside."""
        bare = [
            one for each in objects if (one := without_fence(each, runs)) is not None
        ]
        gates = {
            key_of(one): names
            for one in bare
            if one["kind"] == "Pod" and (names := gates_of(one))
        }
        fences = fences_of(one for one in bare if one["kind"] in FENCED_KINDS)
        return cls(load_documents(selection.of(bare)), gates, fences)

    @property
    def awaited(self) -> list[ClaimKey]:
        """The claims that a controller is about to make of templates; those of extended resources a scheduler makes."""
        made = (self.cluster.claim(key) for key in self.cluster.made)
        return [one.key for one in made if one and not one.is_extended]

    def ready(self, gate: str) -> Iterator[WriteUnit]:
        """The gated pods that wait for no claim any more: nothing is to be written but the gate taken.

        A run that was ended may have left them, or somebody who allocates by hand; or they have no claims. Pods of a
        group wait for each other.
        """
        pods = self.cluster.pods_by_key
        gated = {key: pods[key] for key in sorted(self.gates) if key in pods}
        ready = [
            key
            for key, pod in gated.items()
            if self.gates[key] == [gate] and self._is_allocated(pod)
        ]
        waiting = {gated[key].pod_group for key in gated.keys() - set(ready)} - {None}
        for key in ready:
            if gated[key].pod_group not in waiting:
                yield WriteUnit(
                    (
                        WrittenDemand(
                            key, self._node_of(gated[key]), gated[key].metadata.uid
                        ),
                    ),
                    (),
                )

    def _is_allocated(self, pod: Pod) -> bool:
        claims = [self.cluster.claim(one) for one in self.cluster.pod_claims(pod)]
        return all(one is not None and one.is_allocated for one in claims)

    def _node_of(self, pod: Pod) -> str:
        """The only node that a pod's allocations leave; empty if there may be several."""
        claims = [self.cluster.claim(one) for one in self.cluster.pod_claims(pod)]
        held = [
            one.status.allocation
            for one in claims
            if one is not None and one.status.allocation is not None
        ]
        return next(filter(None, (sole_node(one.wire_form()) for one in held)), "")


def _is_unallocated(one: Json) -> bool:
    return one["kind"] == "ResourceClaim" and not (one.get("status") or {}).get(
        "allocation"
    )


def _is_pending(pod: Json) -> bool:
    return not pod.get("spec", {}).get("nodeName") and pod.get("status", {}).get(
        "phase"
    ) in (None, "", "Pending")


def _claims_of(pod: Json) -> Iterator[ClaimKey]:
    """The claims that a pod names, and those that were made for it."""
    namespace = key_of(pod).namespace
    entries: tuple[Mapping[str, str], ...] = (
        *(pod.get("spec", {}).get("resourceClaims") or ()),
        *(pod.get("status", {}).get("resourceClaimStatuses") or ()),
    )
    return (
        ClaimKey(namespace, one["resourceClaimName"])
        for one in entries
        if one.get("resourceClaimName")
    )
