"""The cluster as a run sees it, and the independent checker's answer about what is planned or written there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.ask.allocate import allocate
from dralloc.ask.answer_checks import check_newcomers
from dralloc.ask.scenario import Scenario
from dralloc.check import violations
from dralloc.check.objects import Binding
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.pods.selectors import Selector, selector_of
from dralloc.live.apply.fence import FENCED_KINDS, without_fence
from dralloc.live.apply.fence_status import HeldFence, fences_of
from dralloc.live.apply.marks import GATE
from dralloc.live.apply.pods import claims_of, gates_of, gates_without
from dralloc.live.apply.units import (
    WriteUnit,
    WrittenClaim,
    WrittenDemand,
    same_allocation,
    sole_node,
)
from dralloc.live.snapshot import Json, key_of
from dralloc.objects.api import (
    AllocationResult,
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
)
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError, DrallocError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import (
    Claim,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.show.plan import Plan

__all__ = [
    "LiveView",
    "Question",
    "Selection",
    "Source",
    "parse_selector",
]

# ----------------------------------------------------------------------------
# The cluster as a run sees it: without its own fence, and without pending pods and
# claims that it is not about.

Source = Callable[[], Iterable[Json]]
"""Reads all that dralloc uses of a live cluster, as it is now."""

_SEVERAL: Final = re.compile(
    r"\s*([^\s!=<>,()]+)\s+(in|notin)\s+\(([^()]*)\)\s*"
)
_ONE: Final = re.compile(r"\s*([^\s!=<>,()]+)\s*(==|=|!=)\s*([^\s!=<>,()]*)\s*")
_THERE: Final = re.compile(r"\s*(!?)\s*([^\s!=<>,()]+)\s*")
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
    """Return a label selector as kubectl takes it: ``app=train,tier in (a,b),!canary``.

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
    if match := _SEVERAL.fullmatch(part) or _ONE.fullmatch(part):
        key, operator, values = match.groups()
        listed_values = tuple(value.strip() for value in values.split(","))
        return LabelSelectorRequirement(
            key=key, operator=_OPERATORS[operator], values=listed_values
        )
    if match := _THERE.fullmatch(part):
        return LabelSelectorRequirement(
            key=match[2], operator=_OPERATORS[match[1]]
        )
    raise DrallocError(
        f"--selector {text}: {part.strip()!r} is none of KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (VALUE,...)"
    )


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
        """Return the same without these, too."""
        return replace(self, without=self.without | frozenset(keys))

    def of(self, objects: Iterable[Json]) -> Iterator[Json]:
        """Yield the objects of a cluster without the pending pods and claims that are not selected.

        Selected pods are without the gate. A claim is selected with a pod that uses it; if no pod does, by itself.
        """
        resources = list(objects)
        pods = [resource for resource in resources if resource["kind"] == "Pod"]
        selected = {
            key_of(pod)
            for pod in pods
            if self._selects(pod)
            and (not self.gated or self.gate in gates_of(pod))
        }
        used = {
            key: key_of(pod) in selected
            for pod in pods
            for key in claims_of(pod)
        }
        # A claim is selected if any of the pods that use it is, whatever the others are.
        used |= {
            key: True
            for pod in pods
            if key_of(pod) in selected
            for key in claims_of(pod)
        }
        for resource in resources:
            key = key_of(resource)
            if resource["kind"] == "Pod":
                if key in selected:
                    yield self._ungated(resource)
                elif not _is_pending(resource):
                    yield resource
            elif not _is_unallocated(resource) or used.get(
                key, self._selects(resource) and not self.gated
            ):
                # A claim that no pod uses has no gate: it is not selected where only gated pods are.
                yield resource

    def _selects(self, resource: Json) -> bool:
        key = key_of(resource)
        return (
            key not in self.without
            and (not self.namespaces or key.namespace in self.namespaces)
            and (
                self.labels is None
                or self.labels.matches(resource["metadata"].get("labels") or {})
            )
        )

    def _ungated(self, pod: Json) -> Json:
        if self.gate not in gates_of(pod):
            return pod
        gates_after = gates_without(pod, self.gate)
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates_after}}


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
    begun
        The pod groups of which a pod has no gate, and is not bound yet.
    """

    cluster: Cluster
    gates: Mapping[ClaimKey, list[str]]
    foreign: tuple[HeldFence, ...]
    begun: frozenset[ClaimKey]

    @classmethod
    def of(
        cls,
        objects: Iterable[Json],
        selection: Selection,
        is_aside: Callable[[str], bool],
    ) -> LiveView:
        """Return what a run sees of a cluster's objects, the fences of some runs, by their names, aside."""
        bare = [
            unfenced
            for resource in objects
            if (unfenced := without_fence(resource, is_aside)) is not None
        ]
        gates = {
            key_of(unfenced): names
            for unfenced in bare
            if unfenced["kind"] == "Pod" and (names := gates_of(unfenced))
        }
        fences = fences_of(
            unfenced for unfenced in bare if unfenced["kind"] in FENCED_KINDS
        )
        begun = frozenset(
            group
            for unfenced in bare
            if unfenced["kind"] == "Pod"
            and _is_pending(unfenced)
            and not gates_of(unfenced)
            and (group := _group_of(unfenced)) is not None
        )
        return cls(load_documents(selection.of(bare)), gates, fences, begun)

    @property
    def awaited(self) -> list[ClaimKey]:
        """The claims that a controller is about to make of templates; those of extended resources a scheduler makes."""
        claims = (self.cluster.claim(key) for key in self.cluster.made)
        return [
            claim.key for claim in claims if claim and not claim.is_extended
        ]

    def ready(self, gate: str) -> Iterator[WriteUnit]:
        """Yield the gated pods that wait for no claim any more: nothing is to be written but the gate taken.

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
        waiting = {
            gated[key].pod_group for key in gated.keys() - set(ready)
        } - {None}
        for key in ready:
            if gated[key].pod_group not in waiting:
                yield WriteUnit(
                    (
                        WrittenDemand(
                            key,
                            self._node_of(gated[key]),
                            gated[key].metadata.uid,
                        ),
                    ),
                    (),
                )

    def _is_allocated(self, pod: Pod) -> bool:
        claims = map(self.cluster.claim, self.cluster.pod_claims(pod))
        return all(claim is not None and claim.is_allocated for claim in claims)

    def _node_of(self, pod: Pod) -> str:
        """Return the only node that a pod's allocations leave; empty if there may be several."""
        for key in self.cluster.pod_claims(pod):
            claim = self.cluster.claim(key)
            if claim is None or claim.status.allocation is None:
                continue
            node = sole_node(claim.status.allocation.wire_form())
            if node:
                return node
        return ""


def _is_unallocated(resource: Json) -> bool:
    return resource["kind"] == "ResourceClaim" and not (
        resource.get("status") or {}
    ).get("allocation")


def _group_of(pod: Json) -> ClaimKey | None:
    group = pod.get("spec", {}).get("schedulingGroup") or {}
    name = group.get("podGroupName")
    return ClaimKey(key_of(pod).namespace, name) if name else None


def _is_pending(pod: Json) -> bool:
    return not pod.get("spec", {}).get("nodeName") and pod.get(
        "status", {}
    ).get("phase") in (None, "", "Pending")


# ----------------------------------------------------------------------------
# Holds what was planned, or what the API server holds, against a cluster: by the
# independent checker.


@dataclass(frozen=True)
class Question:
    """The question that is put to `dralloc.ask.allocate`, and that answers are held against."""

    mode: Mode = Mode.OPTIMAL
    choices: Choices = field(default_factory=Choices)

    def plan(self, cluster: Cluster, start: Plan | None = None) -> Plan:
        """Return the answer, which the checker has accepted; the search for the optimum goes on from an earlier one."""
        return allocate(cluster, self.mode, choices=self.choices, start=start)

    def homes(
        self,
        cluster: Cluster,
        waiting: Collection[ClaimKey],
        begun: Collection[ClaimKey] = (),
    ) -> Mapping[ClaimKey, str]:
        """Return where kube-scheduler would put pods whose claims are all allocated.

        Parameters
        ----------
        waiting
            The pods. Others that wait are left aside, and one that would be put nowhere is missing in the answer.
        begun
            Pod groups of which pods are released already. Those wait for the rest of their group, and are left aside
            here, so that each pod of the rest is put by itself.
        """
        pods = tuple(
            _by_itself(pod) if pod.pod_group in begun else pod
            for pod in cluster.pods
            if pod.spec.node_name or pod.key in waiting
        )
        plan = allocate(replace(cluster, pods=pods), Mode.SCHEDULER)
        return dict(plan.solution.bindings)

    def compiled(self, cluster: Cluster) -> CompiledCluster:
        """Return the problem of devices alone, with the rules that the mode knows."""
        compiled = compile_cluster(cluster, self.choices)
        problem = compiled.problem
        if self.mode is not Mode.OPTIMAL:
            problem = replace(problem, budgets=())
        if self.mode is Mode.SCHEDULER:
            free = (
                demand.by_itself(nodes=None, roles=())
                for demand in problem.demands
            )
            problem = replace(problem, demands=tuple(free))
        return replace(compiled, problem=problem)

    def is_lost(self, cluster: Cluster, unit: WriteUnit) -> bool:
        """Return whether a claim of a unit is gone, not allocated any more, or otherwise."""
        held = [cluster.claim(claim.key) for claim in unit.claims]
        is_taken_back = any(
            claim_held is None or not claim_held.is_allocated
            for claim_held in held
        )
        written = {claim.key: claim for claim in unit.claims}
        return is_taken_back or next(_lost(cluster, written), None) is not None

    def broken_rules(
        self, cluster: Cluster, units: Iterable[WriteUnit]
    ) -> list[str]:
        """Return what is wrong with the allocations of units beside everything else that the cluster holds.

        Claims that have their allocation already are looked at as if they got it now. One that has another, or is gone
        or another one of the same name, is wrong by that alone.
        """
        written_units = list(units)
        claims = {
            claim.key: claim for unit in written_units for claim in unit.claims
        }
        lost = list(_lost(cluster, claims))
        if lost:
            return lost
        # The checker judges an answer to what is pending: so written claims become pending, and what they got is it.
        bare = replace(
            cluster,
            claims=tuple(
                cluster_claim.unallocated()
                if cluster_claim.key in claims
                else cluster_claim
                for cluster_claim in cluster.claims
            ),
        )
        try:
            problem, solution = _Reading(self.compiled(bare), claims).solution(
                written_units
            )
        except LookupError as error:
            return [str(error.args[0])]
        return violations(problem, solution)

    def broken_by_pods(
        self, cluster: Cluster, units: Iterable[WriteUnit]
    ) -> list[str]:
        """Return what is wrong with the nodes of pods that are not bound yet, by what pods, nodes and groups say now.

        Where kube-scheduler's answer is written it is asked again when it binds a pod.
        """
        if self.mode is Mode.SCHEDULER:
            return []
        bindings = [
            Binding(demand.key, demand.node)
            for unit in units
            for demand in unit.demands
            if demand.pod and demand.node
        ]
        planned = {binding.pod for binding in bindings}
        compiled = self.compiled(cluster)
        # With the claims that the scheduler is about to make for extended resources.
        complete = compiled.cluster
        # Others that wait for devices are not what this run is about.
        others = {
            pod.key
            for pod in complete.pods
            if not pod.spec.node_name
            and pod.key not in planned
            and complete.pod_claims(pod)
        }
        beside = Scenario(complete).without_pods(others).cluster
        try:
            check_newcomers(compiled, self.choices, beside, bindings)
        except CheckError as error:
            return [str(error)]
        return []


def _by_itself(pod: Pod) -> Pod:
    """Return a pod as if it belonged to no group."""
    spec = pod.spec.model_copy(update={"scheduling_group": None})
    return pod.model_copy(update={"spec": spec})


def _lost(
    cluster: Cluster, claims: Mapping[ClaimKey, WrittenClaim]
) -> Iterator[str]:
    for key, written in claims.items():
        claim = cluster.claim(key)
        if claim is None or claim.metadata.uid != written.uid:
            yield f"claim {key}: is gone"
        elif claim.metadata.deletion_timestamp is not None:
            yield f"claim {key}: is being deleted"
        elif (held := claim.status.allocation) and not same_allocation(
            held.wire_form(), written.allocation
        ):
            yield f"claim {key}: is allocated otherwise"


class _Reading:
    """Reads allocations as grants of a problem."""

    def __init__(
        self, compiled: CompiledCluster, claims: Mapping[ClaimKey, WrittenClaim]
    ) -> None:
        self.compiled = compiled
        self.problem = compiled.problem
        self.claims = claims
        self.nodes = {
            node.name: index for index, node in numbered(self.problem.nodes)
        }
        self._given: set[ClaimKey] = set()

    def solution(self, units: Iterable[WriteUnit]) -> tuple[Problem, Solution]:
        """Return the problem with the claims that are written only, and the answer that they are.

        Raises
        ------
        LookupError
            A node, device, request or demand is not there.
        """
        # Pods whose node is left to the scheduler, which reads it in their claims, are no answer of ours.
        nodes = {
            (bool(demand_of_unit.pod), demand_of_unit.key): demand_of_unit.node
            for unit in units
            for demand_of_unit in unit.demands
            if demand_of_unit.node
        }
        demands = [
            self._written(demand_of_unit)
            for demand_of_unit in self.problem.demands
        ]
        placements = [
            self._placement(demand_index, demand, nodes[self._identity(demand)])
            for demand_index, demand in zip(
                indices(self.problem.demands), demands, strict=True
            )
            if self._identity(demand) in nodes and self._is_written(demand)
        ]
        missing = self.claims.keys() - self._given
        if missing:
            raise LookupError(
                f"claim {min(missing)}: the pod that waits for it is gone"
            )
        return replace(self.problem, demands=tuple(demands)), Solution(
            tuple(placements)
        )

    def _identity(self, demand: Demand) -> tuple[bool, ClaimKey]:
        return not self.compiled.is_claim(demand), demand.key

    def _written(self, demand: Demand) -> Demand:
        written_claims = tuple(
            claim for claim in demand.claims if claim.key in self.claims
        )
        return (
            replace(demand, claims=written_claims) if written_claims else demand
        )

    def _is_written(self, demand: Demand) -> bool:
        """Whether any of a demand's claims is written: those for extended resources the scheduler makes (KEP-5004)."""
        return any(claim.key in self.claims for claim in demand.claims)

    def _placement(
        self, demand_index: DemandIndex, demand: Demand, node: str
    ) -> Placement:
        index = self.nodes.get(node)
        if index is None:
            raise LookupError(f"{demand.key}: node {node} is gone")
        return Placement(
            demand_index,
            index,
            tuple(self._grants(claim, index) for claim in demand.claims),
        )

    def _grants(self, claim: Claim, node: NodeIndex) -> tuple[Grant, ...]:
        if claim.key in self._given:
            return ()
        self._given.add(claim.key)
        written = AllocationResult.model_validate(
            self.claims[claim.key].allocation
        )
        return tuple(
            Grant(
                *self._place(claim, result.request),
                self._device(result.device_id, node),
            )
            for result in written.devices.results
        )

    @staticmethod
    def _place(claim: Claim, name: str) -> tuple[int, int]:
        for request_index, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                if str(alternative.name) == name:
                    return request_index, choice
        raise LookupError(f"claim {claim.key}: has no request {name}")

    def _device(self, id_: DeviceID, node: NodeIndex) -> DeviceIndex:
        """Return the device as the node sees it, or as it was published last."""
        for pool in self.problem.nodes[node].pools:
            if pool.id == id_.pool_id:
                for index in pool.devices:
                    if self.problem.devices[index].id == id_:
                        return index
        newest = self.compiled.inventory.newest(id_)
        if newest is None:
            raise LookupError(f"device {id_}: is not published any more")
        return newest
