"""The question whom to evict as a problem, and what its answers mean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from dralloc.ask.context.node_rules import pod_of
from dralloc.ask.explain.subject import find_demand
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.evictions.incumbents import Incumbents
from dralloc.ask.whatif.evictions.victims import (
    EvictionUnit,
    eviction_units,
    group_of,
    unit_weights,
)
from dralloc.ask.whatif.moves.claim_users import ClaimUsers
from dralloc.check.objects import Binding
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.worth import WeightLevel, Worth
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import Demand, Problem
from dralloc.problem.solution import Solution

__all__ = ["Admission", "Newcomer", "Preemptor", "Staging"]


class Newcomer(NamedTuple):
    """Who is to be admitted: a claim, or a pod."""

    claim: ClaimKey | None
    pod: ClaimKey | None


class Admission(NamedTuple):
    """Where a claim of a pod goes (of no pod if none uses it), and what it gets."""

    pod: ClaimKey | None
    claim: ClaimKey
    node: str
    devices: tuple[DeviceID, ...]


def wanted_demands(compiled: CompiledCluster, newcomer: Newcomer) -> tuple[Demand, ...]:
    """The demand that is asked for, and then the others of its gang, or of its tree of gangs (KEP-6012)."""
    demands = compiled.problem.demands
    asked = demands[find_demand(compiled, *newcomer)]
    together = asked.placed_with
    return asked, *(
        one
        for one in demands
        if together and one.placed_with == together and one is not asked
    )


def _priority(cluster: Cluster, wanted: Sequence[Demand]) -> int:
    """That of the group if it has one of its own, else the lowest of the pods (KEP-5710)."""
    pods = (pod_of(cluster, demand) for demand in wanted)
    groups = [group_of(cluster, pod) for pod in pods if pod is not None]
    own = [
        group.spec.priority
        for group in groups
        if group is not None and group.spec.priority is not None
    ]
    return min(own or [demand.priority for demand in wanted])


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Who is to be admitted, as things are.

    Parameters
    ----------
    wanted
        The demand that is asked for, and those that are placed with it.
    priority
        Whoever may be evicted has a lower one.
    companions
        The pods of its group, or of its tree of groups, which counts on those that run: none of them is evicted.
    """

    newcomer: Newcomer
    wanted: tuple[Demand, ...]
    priority: int
    companions: frozenset[ClaimKey]

    @classmethod
    def of(cls, compiled: CompiledCluster, newcomer: Newcomer) -> Preemptor:
        """The newcomer in the cluster as it is."""
        wanted = wanted_demands(compiled, newcomer)
        is_claim = compiled.is_claim(wanted[0])
        companions = (
            frozenset() if is_claim else compiled.gangs.companions(wanted[0].key)
        )
        return cls(newcomer, wanted, _priority(compiled.cluster, wanted), companions)

    def may_evict(self, users: ClaimUsers) -> Iterator[EvictionUnit]:
        """The units of lower priority whose pods all have nodes that count, and are no companions."""
        for unit in eviction_units(users.cluster):
            here = all(pod.spec.node_name in users.by_name for pod in unit.pods)
            if (
                here
                and unit.priority < self.priority
                and self.companions.isdisjoint(pod.key for pod in unit.pods)
            ):
                yield unit


@dataclass(frozen=True)
class Staging:
    """Newcomers beside everybody who may be evicted.

    Parameters
    ----------
    wanted
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
    wanted: tuple[Demand, ...]
    problem: Problem
    worth: Worth
    start: Solution
    left_out: tuple[ClaimKey, ...] = ()

    @classmethod
    def of(
        cls, users: ClaimUsers, preemptor: Preemptor, cost: str, choices: Choices
    ) -> Staging:
        """The problem in which everybody may be evicted who keeps the rules as things are."""
        units, left_out = tuple(preemptor.may_evict(users)), tuple[ClaimKey, ...]()
        while True:
            incumbents = Incumbents(users, units, choices)
            wanted = wanted_demands(incumbents.compiled, preemptor.newcomer)
            weights, levels = unit_weights(units, cost)
            most = 1 + sum(weights)
            leading = [
                replace(demand, weight=0 if number else most)
                for number, demand in enumerate(wanted)
            ]
            problem = incumbents.beside(leading, weights)
            irregular = incumbents.irregular(problem, len(wanted))
            if not irregular:
                worth = Worth((), (WeightLevel("admitted", most, 1), *levels))
                start = incumbents.staying(problem, len(wanted), range(len(units)))
                return cls(incumbents, wanted, problem, worth, start, left_out)
            left_out += tuple(
                pod.key for number in sorted(irregular) for pod in units[number].pods
            )
            units = tuple(
                unit for number, unit in enumerate(units) if number not in irregular
            )

    def victims(self, solution: Solution) -> Iterator[EvictionUnit]:
        """Who does not stay in an answer."""
        placed = {placement.demand for placement in solution.placements}
        number = len(self.wanted)
        for unit in self.incumbents.units:
            if number not in placed:
                yield unit
            number += len(unit.pods)

    def placed(self, solution: Solution) -> tuple[ClaimKey, ...]:
        """The newcomers that are placed in an answer."""
        numbers = (placement.demand for placement in solution.placements)
        return tuple(
            self.wanted[number].key for number in numbers if number < len(self.wanted)
        )

    def bindings(self, solution: Solution) -> list[Binding]:
        """Return the newcomers that are pods, each with the node that it gets in an answer."""
        placed = (one for one in solution.placements if one.demand < len(self.wanted))
        is_claim = self.incumbents.compiled.is_claim
        return [
            Binding(self.wanted[one.demand].key, self.problem.nodes[one.node].name)
            for one in placed
            if not is_claim(self.wanted[one.demand])
        ]

    def after(self, cluster: Cluster, solution: Solution) -> Cluster:
        """Return the cluster without the victims of an answer: what only they used is free."""
        victims = {pod.key for unit in self.victims(solution) for pod in unit.pods}
        freed = chain.from_iterable(self.freed(victims).values())
        return Scenario(cluster).release(set(freed)).without_pods(victims).cluster

    def freed(
        self, evicted: Collection[ClaimKey]
    ) -> Mapping[ClaimKey, tuple[ClaimKey, ...]]:
        """By evicted pod, its claims that nobody uses any more."""
        users = self.incumbents.users
        return {
            pod: tuple(
                key
                for key in users.claims_of[pod]
                if key in self.incumbents.freed
                and all(one.key in evicted for one in users.users[key])
            )
            for pod in evicted
        }

    def admissions(self, solution: Solution) -> Iterator[Admission]:
        """What the newcomers get in an answer; nothing if they are not admitted."""
        for placement in solution.placements:
            if placement.demand < len(self.wanted):
                demand, node = (
                    self.problem.demands[placement.demand],
                    self.problem.nodes[placement.node].name,
                )
                pod = (
                    None
                    if self.incumbents.compiled.is_claim(self.wanted[placement.demand])
                    else demand.key
                )
                for claim, grants in zip(demand.claims, placement.grants, strict=True):
                    if not claim.is_synthetic:
                        devices = tuple(
                            self.problem.devices[grant.device].id for grant in grants
                        )
                        yield Admission(pod, claim.key, node, devices)
