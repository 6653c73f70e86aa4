"""Holds what was planned, or what the API server holds, against a cluster: by the independent checker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dralloc.ask.allocate import allocate
from dralloc.check import violations
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.live.apply.units import WriteUnit, WrittenClaim, same_allocation
from dralloc.objects.api import AllocationResult
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import Claim, Demand, Problem
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.show.plan import Plan

__all__ = ["Question"]


@dataclass(frozen=True)
class Question:
    """How a cluster is planned for, and what answers are held against: what is given to `dralloc.ask.allocate`."""

    mode: Mode = Mode.OPTIMAL
    choices: Choices = field(default_factory=Choices)

    def plan(self, cluster: Cluster) -> Plan:
        """The answer, which the checker has accepted."""
        return allocate(cluster, self.mode, choices=self.choices)

    def homes(
        self, cluster: Cluster, waiting: Collection[ClaimKey]
    ) -> Mapping[ClaimKey, str]:
        """Return where kube-scheduler would put pods whose claims are all allocated.

        Parameters
        ----------
        waiting
            The pods. Others that wait are left aside, and one that would be put nowhere is missing in the answer.
        """
        pods = tuple(
            pod for pod in cluster.pods if pod.spec.node_name or pod.key in waiting
        )
        plan = allocate(replace(cluster, pods=pods), Mode.SCHEDULER)
        return dict(plan.solution.bindings)

    def compiled(self, cluster: Cluster) -> CompiledCluster:
        """The problem of devices alone, with the rules that the mode knows."""
        compiled = compile_cluster(cluster, self.choices)
        problem = compiled.problem
        if self.mode is not Mode.OPTIMAL:
            problem = replace(problem, budgets=())
        if self.mode is Mode.SCHEDULER:
            free = (one.by_itself(nodes=None, roles=()) for one in problem.demands)
            problem = replace(problem, demands=tuple(free))
        return replace(compiled, problem=problem)

    def is_lost(self, cluster: Cluster, unit: WriteUnit) -> bool:
        """Whether a claim of a unit is gone, not allocated any more, or otherwise."""
        held = [cluster.claim(claim.key) for claim in unit.claims]
        is_taken_back = any(one is None or not one.is_allocated for one in held)
        return is_taken_back or any(
            True for _ in _lost(cluster, {claim.key: claim for claim in unit.claims})
        )

    def broken_rules(self, cluster: Cluster, units: Iterable[WriteUnit]) -> list[str]:
        """What is wrong with the allocations of units beside everything else that the cluster holds.

        Claims that have their allocation already are looked at as if they got it now. One that has another, or is gone
        or another one of the same name, is wrong by that alone.
        """
        every = list(units)
        claims = {claim.key: claim for unit in every for claim in unit.claims}
        lost = list(_lost(cluster, claims))
        if lost:
            return lost
        bare = replace(
            cluster,
            claims=tuple(
                one.unallocated() if one.key in claims else one
                for one in cluster.claims
            ),
        )
        try:
            problem, solution = _Reading(self.compiled(bare), claims).solution(every)
        except LookupError as error:
            return [str(error.args[0])]
        return violations(problem, solution)


def _lost(cluster: Cluster, claims: Mapping[ClaimKey, WrittenClaim]) -> Iterator[str]:
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
        self.nodes = {node.name: index for index, node in enumerate(self.problem.nodes)}
        self._given: set[ClaimKey] = set()

    def solution(self, units: Iterable[WriteUnit]) -> tuple[Problem, Solution]:
        """The problem with the claims that are written only, and the answer that they are.

        Raises
        ------
        LookupError
            A node, device, request or demand is not there.
        """
        # Pods whose node is left to the scheduler, which reads it in their claims, are no answer of ours.
        nodes = {
            (bool(one.pod), one.key): one.node
            for unit in units
            for one in unit.demands
            if one.node
        }
        demands = [self._written(one) for one in self.problem.demands]
        placements = [
            self._placement(number, demand, nodes[self._identity(demand)])
            for number, demand in enumerate(demands)
            if self._identity(demand) in nodes and demand.claims
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
        mine = tuple(one for one in demand.claims if one.key in self.claims)
        return replace(demand, claims=mine) if mine else demand

    def _placement(self, number: int, demand: Demand, node: str) -> Placement:
        index = self.nodes.get(node)
        if index is None:
            raise LookupError(f"{demand.key}: node {node} is gone")
        return Placement(
            number, index, tuple(self._grants(claim, index) for claim in demand.claims)
        )

    def _grants(self, claim: Claim, node: int) -> tuple[Grant, ...]:
        if claim.key in self._given:
            return ()
        self._given.add(claim.key)
        written = AllocationResult.model_validate(self.claims[claim.key].allocation)
        return tuple(
            Grant(*self._place(claim, one.request), self._device(one.device_id, node))
            for one in written.devices.results
        )

    @staticmethod
    def _place(claim: Claim, name: str) -> tuple[int, int]:
        for number, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                if str(alternative.name) == name:
                    return number, choice
        raise LookupError(f"claim {claim.key}: has no request {name}")

    def _device(self, id_: DeviceID, node: int) -> int:
        """The device as the node sees it, or as it was published last."""
        for pool in self.problem.nodes[node].pools:
            if pool.id == id_.pool_id:
                for index in pool.devices:
                    if self.problem.devices[index].id == id_:
                        return index
        found = self.compiled.inventory.newest(id_)
        if found is None:
            raise LookupError(f"device {id_}: is not published any more")
        return found
