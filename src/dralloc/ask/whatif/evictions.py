"""Preemption as a problem: whom to evict so that newcomers are placed, and what the answers mean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

from dralloc.ask.context.exclusions import pod_of
from dralloc.ask.explain.snapshot import find_demand
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.eviction_costs import (
    EvictionUnit,
    eviction_units,
    group_of,
    unit_weights,
)
from dralloc.ask.whatif.incumbents import Incumbents
from dralloc.ask.whatif.moves.cluster_migration import ClaimUsers
from dralloc.check.objects import Binding
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.worth import WeightLevel, Worth
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import Demand, DemandIndex, Problem, numbered
from dralloc.problem.solution import Solution, devices_only, with_node_grants
from dralloc.solve.optimum import solve

__all__ = ["Admission", "Newcomer", "Preemptor", "Staging"]


class Newcomer(NamedTuple):
    """The claim or pod that is to be admitted."""

    claim: ClaimKey | None
    pod: ClaimKey | None


class Admission(NamedTuple):
    """Where a claim of a pod goes (of no pod if none uses it), and what it gets."""

    pod: ClaimKey | None
    claim: ClaimKey
    node: str
    devices: tuple[DeviceID, ...]
    """Empty for a claim that gets its devices with another pod."""


def _newcomer_demands(
    compiled: CompiledCluster, newcomer: Newcomer
) -> tuple[Demand, ...]:
    """The demand that is asked for, and then the others of its gang, or of its tree of gangs (KEP-6012)."""
    demands = compiled.problem.demands
    leader = demands[find_demand(compiled, *newcomer)]
    together = leader.placed_with
    return leader, *(
        demand
        for demand in demands
        if together and demand.placed_with == together and demand is not leader
    )


def _priority(cluster: Cluster, newcomers: Sequence[Demand]) -> int:
    """Return the priority of the group if it has one, else the lowest of its pods (KEP-5710)."""
    pods = (pod_of(cluster, demand) for demand in newcomers)
    groups = [group_of(cluster, pod) for pod in pods if pod is not None]
    group_priorities = [
        group.spec.priority
        for group in groups
        if group is not None and group.spec.priority is not None
    ]
    return min(group_priorities or [demand.priority for demand in newcomers])


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A newcomer with its priority and gang, as the cluster is now.

    Parameters
    ----------
    newcomers
        The demand that is asked for, and those that are placed with it.
    priority
        Whoever may be evicted has a lower one.
    companions
        The pods of its group, or of its tree of groups, which counts on those that run: none of them is evicted.
    """

    newcomer: Newcomer
    newcomers: tuple[Demand, ...]
    priority: int
    companions: frozenset[ClaimKey]

    @classmethod
    def of(cls, compiled: CompiledCluster, newcomer: Newcomer) -> Preemptor:
        """The newcomer in the cluster as it is."""
        newcomers = _newcomer_demands(compiled, newcomer)
        is_claim = compiled.is_claim(newcomers[0])
        companions = (
            frozenset()
            if is_claim
            else compiled.gangs.companions(newcomers[0].key)
        )
        return cls(
            newcomer,
            newcomers,
            _priority(compiled.cluster, newcomers),
            companions,
        )

    def may_evict(self, users: ClaimUsers) -> Iterator[EvictionUnit]:
        """The units of lower priority whose pods all have nodes that count, and are no companions."""
        for unit in eviction_units(users.cluster):
            on_nodes = all(
                pod.spec.node_name in users.by_name for pod in unit.pods
            )
            if (
                on_nodes
                and unit.priority < self.priority
                and self.companions.isdisjoint(pod.key for pod in unit.pods)
            ):
                yield unit


@dataclass(frozen=True)
class Staging:
    """Newcomers beside all pods that may be evicted.

    Parameters
    ----------
    newcomer
        Who is asked for.
    newcomers
        The demands of the newcomers, the first of the problem; after them come those of the incumbents.
    worth
        What weights mean: that the first newcomer is placed, for which its gang needs its quorum, is worth more than
        everybody else.
    start
        The answer in which everything stays as it is.
    left_out
        Pods of lower priority that may not be evicted: what they have breaks a rule as things are.
    """

    incumbents: Incumbents
    newcomer: Newcomer
    newcomers: tuple[Demand, ...]
    problem: Problem
    worth: Worth
    start: Solution
    left_out: tuple[ClaimKey, ...] = ()

    @classmethod
    def of(
        cls,
        users: ClaimUsers,
        preemptor: Preemptor,
        cost: str,
        choices: Choices,
    ) -> Staging:
        """The problem in which everybody may be evicted who keeps the rules as things are."""
        units, left_out = (
            tuple(preemptor.may_evict(users)),
            tuple[ClaimKey, ...](),
        )
        while True:
            # Whoever is left out runs on and keeps what it has. So each round compiles another cluster, and finds the
            # newcomers in that.
            incumbents = Incumbents(users, units, choices)
            newcomers = _newcomer_demands(
                incumbents.compiled, preemptor.newcomer
            )
            weights, levels = unit_weights(units, cost)
            admitted_weight = 1 + sum(weights)
            # The first newcomer outweighs all who stay. The others of its gang are worth nothing: it brings as many as
            # it needs.
            leading = [
                replace(demand, weight=0 if index else admitted_weight)
                for index, demand in enumerate(newcomers)
            ]
            problem = incumbents.beside(leading, weights)
            irregular = incumbents.irregular(problem, len(newcomers))
            # Anti-affinity by node is an amount of nodes at first. That leaves no room for pods that break it already;
            # as a rule between pods, it may be broken by those that run.
            if irregular:
                problem = incumbents.beside(leading, weights, by_host=False)
                irregular = incumbents.irregular(problem, len(newcomers))
            if not irregular:
                worth = Worth(
                    (), (WeightLevel("admitted", admitted_weight, 1), *levels)
                )
                start = incumbents.staying(
                    problem, len(newcomers), range(len(units))
                )
                return cls(
                    incumbents,
                    preemptor.newcomer,
                    newcomers,
                    problem,
                    worth,
                    start,
                    left_out,
                )
            left_out += tuple(
                pod.key
                for index in sorted(irregular)
                for pod in units[index].pods
            )
            units = tuple(
                unit
                for index, unit in enumerate(units)
                if index not in irregular
            )

    def victims(self, solution: Solution) -> Iterator[EvictionUnit]:
        """Yield the units that do not stay in an answer."""
        staying = self.staying(solution)
        for index, unit in enumerate(self.incumbents.units):
            if index not in staying:
                yield unit

    def staying(self, solution: Solution) -> frozenset[int]:
        """Return the units, by index, that stay in an answer."""
        placed = {placement.demand for placement in solution.placements}
        return frozenset(
            unit for unit, first in enumerate(self._firsts) if first in placed
        )

    @cached_property
    def _firsts(self) -> Sequence[int]:
        """Return for each unit the demand of its first pod."""
        sizes = [len(unit.pods) for unit in self.incumbents.units]
        return list(accumulate(sizes, initial=len(self.newcomers)))[
            : len(sizes)
        ]

    @cached_property
    def sharers(self) -> frozenset[int]:
        """The units, by index, whose claims hold shares of devices which newcomers could have with admin access."""
        return self.incumbents.using(self._shared)

    @cached_property
    def _shared(self) -> frozenset[ClaimKey]:
        """The claims that hold such shares."""
        problem = self.problem
        admin = {
            alternative.index
            for demand in self.newcomers
            for alternative in demand.alternatives()
            if alternative.admin
        }
        if not admin:
            return frozenset()
        slots = set()
        for device_index, device in numbered(problem.devices):
            if device.shareable and any(
                problem.eligibility.selects(index, device_index)
                for index in admin
            ):
                slots.add(device.slot)
        return self.incumbents.sharing(slots)

    def heaviest_first(self, units: Collection[int]) -> Sequence[int]:
        """Return units, by index, in the order of what it is worth that they stay."""
        demands = self.problem.demands
        return sorted(
            units,
            key=lambda unit: (
                -demands[DemandIndex(self._firsts[unit])].weight,
                unit,
            ),
        )

    def without(self, units: Collection[int]) -> Problem:
        """Return the problem in which some units, by index, have to go."""
        demands = list(self.problem.demands)
        for unit in units:
            first = self._firsts[unit]
            for demand in range(
                first, first + len(self.incumbents.units[unit].pods)
            ):
                demands[demand] = replace(demands[demand], nodes=())
        return replace(self.problem, demands=tuple(demands))

    def without_only(self, units: Collection[int]) -> Problem:
        """Return the problem in which some units, by index, have to go, and the shares of all others stay in use."""
        incumbents = self.incumbents
        evicted = {
            pod.key for unit in units for pod in incumbents.units[unit].pods
        }
        staying_claims: set[ClaimKey] = set()
        for claim in self._shared:
            users = {pod.key for pod in incumbents.users.users[claim]}
            if not users <= evicted:
                staying_claims.add(claim)
        return incumbents.holding(self.without(units), staying_claims)

    def alone(self) -> Problem:
        """Return the problem without newcomers."""
        demands = [
            replace(demand, nodes=()) if index < len(self.newcomers) else demand
            for index, demand in numbered(self.problem.demands)
        ]
        return replace(self.problem, demands=tuple(demands))

    def tried(self, solution: Solution) -> Solution | None:
        """Return an answer with newcomers as they come to the cluster without its victims; None if they cannot."""
        incumbents = self.incumbents
        cluster = self.after(incumbents.users.cluster, solution)
        compiled = compile_cluster(cluster, incumbents.choices)
        demands = _newcomer_demands(compiled, self.newcomer)
        all_demands = tuple(compiled.problem.demands)
        demand_indices = [
            DemandIndex(all_demands.index(demand)) for demand in demands
        ]
        # Nobody else that waits is asked about. The first newcomer alone counts: the others come with it as far as
        # their gang needs them.
        weighed = [
            replace(
                compiled.whole.demands[demand_index], weight=int(not position)
            )
            for position, demand_index in enumerate(demand_indices)
        ]
        problem = replace(compiled.whole, demands=tuple(weighed), budgets=())
        trial = solve(problem)
        if not trial.tiers[0].value:
            return None
        newcomers = with_node_grants(
            self.problem, devices_only(problem, trial.placements)
        )
        stayers = incumbents.staying(
            self.problem, len(self.newcomers), self.staying(solution)
        )
        # Tiers behind the weight are about placements that were given up.
        return replace(
            solution,
            placements=(*newcomers, *stayers.placements),
            tiers=solution.tiers[:1],
        )

    def placed(self, solution: Solution) -> tuple[ClaimKey, ...]:
        """The newcomers that are placed in an answer."""
        demands = (placement.demand for placement in solution.placements)
        return tuple(
            self.newcomers[demand].key
            for demand in demands
            if demand < len(self.newcomers)
        )

    def bindings(self, solution: Solution) -> list[Binding]:
        """Return the newcomers that are pods, each with the node that it gets in an answer."""
        bindings = []
        for placement in solution.placements:
            if placement.demand < len(self.newcomers):
                demand = self.newcomers[placement.demand]
                if not self.incumbents.compiled.is_claim(demand):
                    node = self.problem.nodes[placement.node].name
                    bindings.append(Binding(demand.key, node))
        return bindings

    def after(self, cluster: Cluster, solution: Solution) -> Cluster:
        """Return the cluster without the victims of an answer: what only they used is free."""
        victims = {
            pod.key for unit in self.victims(solution) for pod in unit.pods
        }
        freed = chain.from_iterable(self.freed(victims).values())
        return (
            Scenario(cluster).release(set(freed)).without_pods(victims).cluster
        )

    def freed(
        self, evicted: Collection[ClaimKey]
    ) -> Mapping[ClaimKey, tuple[ClaimKey, ...]]:
        """Return, by evicted pod, its claims that nobody uses any more."""
        users = self.incumbents.users
        freed: dict[ClaimKey, tuple[ClaimKey, ...]] = {}
        for pod in evicted:
            freed[pod] = ()
            for claim in users.claims_of[pod]:
                staying = {user.key for user in users.users[claim]}.difference(
                    evicted
                )
                if claim in self.incumbents.freed and not staying:
                    freed[pod] += (claim,)
        return freed

    def admissions(self, solution: Solution) -> Iterator[Admission]:
        """Yield the node and devices of each newcomer in an answer; nothing if they are not admitted."""
        for placement in solution.placements:
            if placement.demand < len(self.newcomers):
                demand, node = (
                    self.problem.demands[placement.demand],
                    self.problem.nodes[placement.node].name,
                )
                pod = (
                    None
                    if self.incumbents.compiled.is_claim(
                        self.newcomers[placement.demand]
                    )
                    else demand.key
                )
                for claim, grants in zip(
                    demand.claims, placement.grants, strict=True
                ):
                    if not claim.is_synthetic:
                        devices = tuple(
                            self.problem.devices[grant.device].id
                            for grant in grants
                        )
                        yield Admission(pod, claim.key, node, devices)
