"""Preemption: which pods may be evicted, at what cost, and the problem in which each of them asks for what it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, chain
from operator import mul
from typing import NamedTuple

from dralloc.ask.context.node_bars import pod_of
from dralloc.ask.explain.snapshot import find_demand
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.moves.cluster_migration import ClaimUsers, devices_seen
from dralloc.ask.whatif.moves.migration import StayEligibility, stay_grants
from dralloc.check import violations
from dralloc.check.objects import Binding
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.worth import WeightLevel, Worth
from dralloc.objects.api import Pod, PodGroup
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import (
    Claim,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    SlotIndex,
    numbered,
)
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import (
    Placement,
    Solution,
    devices_only,
    with_node_grants,
)
from dralloc.solve.optimum import solve

__all__ = [
    "Admission",
    "EvictionCost",
    "EvictionUnit",
    "Newcomer",
    "Preemptor",
    "Staging",
]

# ----------------------------------------------------------------------------
# Who may be evicted, and what it costs.


class EvictionCost(StrEnum):
    """The objective of evictions, which is minimised.

    ``PODS``: how many pods are evicted; of equally many those of lower priority. ``PRIORITY``: how many pods of the
    highest priority are evicted, then how many of the next, and so on. Anything else is the key of an annotation of
    pods: the sum of its integers, 0 for pods without it; of equal sums as with ``PODS``.
    """

    PODS = "pods"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class EvictionUnit:
    """Pods that are evicted together: a single one, or all of a PodGroup that is disrupted as a whole.

    Parameters
    ----------
    group
        The PodGroup; None for a single pod.
    """

    pods: tuple[Pod, ...]
    priority: int
    group: ClaimKey | None = None


def _eviction_units(cluster: Cluster) -> Iterator[EvictionUnit]:
    """Yield all pods that have a node, in units that are evicted together (KEP-5710).

    Source: ``framework/preemption/types.go`` of ``kubernetes/pkg/scheduler``. A group without a priority of its own has
    the highest of its pods.
    """
    members: dict[ClaimKey, list[Pod]] = defaultdict(list)
    for pod in cluster.pods:
        group = _group_of(cluster, pod)
        if not pod.spec.node_name:
            continue
        if group is not None and group.spec.disrupted_as_whole:
            members[group.key].append(pod)
        else:
            yield EvictionUnit((pod,), pod.spec.priority or 0)
    for key, pods in members.items():
        group_priority = cluster.pod_groups[key].spec.priority
        highest = max(pod.spec.priority or 0 for pod in pods)
        yield EvictionUnit(
            tuple(pods),
            highest if group_priority is None else group_priority,
            key,
        )


def _group_of(cluster: Cluster, pod: Pod) -> PodGroup | None:
    """The PodGroup of a pod."""
    return (
        None if pod.pod_group is None else cluster.pod_groups.get(pod.pod_group)
    )


def _unit_weights(
    units: Sequence[EvictionUnit], cost: str
) -> tuple[list[int], list[WeightLevel]]:
    """Return the weight of each unit that stays, and the digits of these weights, the most important first.

    Raises
    ------
    DrallocError
        No pod has the annotation, or its value is no integer from 0.
    """
    priorities = sorted({unit.priority for unit in units}, reverse=True)
    # By digit, the most important first, how many of it each unit counts.
    columns: dict[str, list[int]] = {}
    if cost not in tuple(EvictionCost):
        columns[cost] = _annotated(units, cost)
    if cost != EvictionCost.PRIORITY:
        columns[EvictionCost.PODS.value] = [len(unit.pods) for unit in units]
    for priority in priorities:
        columns[f"pods@{priority}"] = [
            len(unit.pods) if unit.priority == priority else 0 for unit in units
        ]
    # One of a digit weighs more than all that there is of those behind it.
    levels: list[WeightLevel] = []
    scale = 1
    for name, column in reversed(columns.items()):
        levels.insert(0, WeightLevel(name, scale, sum(column)))
        scale *= 1 + sum(column)
    scales = [level.unit for level in levels]
    weights = [
        sum(map(mul, scales, digits))
        for digits in zip(*columns.values(), strict=True)
    ]
    return weights, levels


def _annotated(units: Sequence[EvictionUnit], name: str) -> list[int]:
    if units and not any(
        name in pod.metadata.annotations for unit in units for pod in unit.pods
    ):
        words = ", ".join(EvictionCost)
        raise DrallocError(
            f'cost "{name}": neither one of {words}, nor an annotation of a pod that could be evicted'
        )
    return [_value_of_unit(unit, name) for unit in units]


def _value_of_unit(unit: EvictionUnit, name: str) -> int:
    return sum(_value(pod, name) for pod in unit.pods)


def _value(pod: Pod, name: str) -> int:
    text = pod.metadata.annotations.get(name, "0")
    if not (text.isascii() and text.isdigit()):
        raise DrallocError(
            f'{pod.title}: metadata.annotations["{name}"]: "{text}" is no integer from 0'
        )
    return int(text)


# ----------------------------------------------------------------------------
# The problem in which pods that run ask for just what they have: whoever is not
# placed in its answer is evicted.
#
# So the fewest victims are the most placed, and what holds between pods and devices
# in `dralloc.problem.Problem` holds between those who stay and those who come. What
# pods asked of others when they came does not bind them any more.


@dataclass(frozen=True)
class Incumbents:
    """Units of running pods as demands beside others.

    Parameters
    ----------
    units
        Those that may be evicted; their pods run on nodes that count.
    """

    users: ClaimUsers
    units: tuple[EvictionUnit, ...]
    choices: Choices

    @cached_property
    def pods(self) -> Mapping[ClaimKey, Pod]:
        """The pods of all units."""
        return {pod.key: pod for unit in self.units for pod in unit.pods}

    @cached_property
    def freed(self) -> frozenset[ClaimKey]:
        """The claims that nobody uses any more once all units are evicted."""
        return frozenset(
            key
            for pod in self.pods
            for key in self.users.claims_of[pod]
            if self._is_theirs(key)
        )

    def _is_theirs(self, key: ClaimKey) -> bool:
        claim = self.users.cluster.claim(key)
        if claim is None or not claim.is_allocated:
            return False
        users = {pod.key for pod in self.users.users[key]}
        for consumer in claim.status.reserved_for:
            if consumer.resource != "pods":
                return False
            users.add(ClaimKey(key.namespace, consumer.name))
        return users <= self.pods.keys()

    @cached_property
    def compiled(self) -> CompiledCluster:
        """The cluster without the units."""
        scenario = (
            Scenario(self.users.cluster)
            .release(self.freed)
            .without_pods(self.pods)
        )
        return compile_cluster(scenario.cluster, self.choices)

    def beside(
        self,
        demands: Sequence[Demand],
        weights: Sequence[int],
        *,
        by_host: bool = True,
    ) -> Problem:
        """The whole problem: some demands of the compiled cluster, and then those of all pods, unit by unit.

        Parameters
        ----------
        by_host
            Whether anti-affinity by node is an amount of nodes, which leaves no room for pods that break it already.
        """
        compiled = self.compiled
        staying = StayEligibility(compiled.problem.eligibility)
        claims = {
            key: staying.claim(
                compiled.problem,
                key,
                self._holdings.get(key, ()),
                self._devices(key),
            )
            for key in self.freed
        }
        pods = [
            self._demand(pod, unit, weight, claims)
            for unit, weight in zip(self.units, weights, strict=True)
            for pod in unit.pods
        ]
        problem = replace(
            compiled.problem,
            demands=(*demands, *pods),
            eligibility=staying,
            budgets=(),
        )
        rules = compiled.pods.of(self._unbound())
        bound = rules.applied(problem, by_host=by_host)
        first = len(demands)
        # Who runs is where it is, even if others are there now whom it is to keep away from.
        bound_demands = tuple(bound.demands)
        running = (
            replace(demand.running, nodes=pod.nodes)
            for demand, pod in zip(bound_demands[first:], pods, strict=True)
        )
        return replace(bound, demands=(*bound_demands[:first], *running))

    def _demand(
        self,
        pod: Pod,
        unit: EvictionUnit,
        weight: int,
        claims: Mapping[ClaimKey, Claim],
    ) -> Demand:
        own_claims = tuple(
            claims[key]
            for key in self.users.claims_of[pod.key]
            if key in claims and claims[key].requests
        )
        first = pod is unit.pods[0]
        return Demand(
            pod.key,
            own_claims,
            unit.priority,
            weight if first else 0,
            nodes=(self._home(pod),),
            gang=""
            if unit.group is None
            else f"evicted together: {unit.group}",
        )

    def _home(self, pod: Pod) -> NodeIndex:
        return self._nodes[pod.spec.node_name or ""]

    @cached_property
    def _nodes(self) -> Mapping[str, NodeIndex]:
        return {
            node.name: index
            for index, node in numbered(self.compiled.problem.nodes)
        }

    @cached_property
    def _holdings(self) -> Mapping[ClaimKey, Sequence[Holding]]:
        return self.users.holdings(self.compiled)

    def _devices(self, key: ClaimKey) -> tuple[DeviceIndex, ...]:
        """Return the devices that a claim holds, as seen from a node of its users if it sees them."""
        home = self._home(self.users.users[key][0])
        return devices_seen(
            self.compiled.problem, home, self._holdings.get(key, ())
        )

    def staying(
        self, problem: Problem, first: int, units: Collection[int]
    ) -> Solution:
        """The answer in which some units, by index, stay, and nobody else is placed.

        Parameters
        ----------
        problem, first
            The whole problem (see `beside`), and where its demands of pods begin.
        """
        granted: set[ClaimKey] = set()
        placements: list[Placement] = []
        demand = DemandIndex(first)
        for unit_index, unit in enumerate(self.units):
            for pod in unit.pods:
                if unit_index in units:
                    claims = [
                        claim.key
                        for claim in problem.demands[demand].claims
                        if not claim.is_synthetic
                    ]
                    grants = tuple(
                        ()
                        if key in granted
                        else stay_grants(self._devices(key))
                        for key in claims
                    )
                    placements.append(
                        Placement(demand, self._home(pod), grants)
                    )
                    granted.update(claims)
                demand = DemandIndex(demand + 1)
        return Solution(tuple(with_node_grants(problem, placements)))

    def sharing(self, slots: Collection[SlotIndex]) -> frozenset[int]:
        """Return the units, by index, that hold shares of devices with these slots."""
        holders = set()
        for key, holdings in self._holdings.items():
            if any(
                holding.share and holding.slot in slots for holding in holdings
            ):
                holders.add(key)
        return frozenset(
            index
            for index, unit in enumerate(self.units)
            for pod in unit.pods
            if not holders.isdisjoint(self.users.claims_of[pod.key])
        )

    def irregular(self, problem: Problem, first: int) -> frozenset[int]:
        """Units, by index, without which the others could be allocated and placed again as they are."""
        regular: set[int] = set()

        def keep(units: Sequence[int]) -> None:
            """Keep those of the units that break no rule beside those that are kept, halving where some do."""
            solution = self.staying(problem, first, regular.union(units))
            if not violations(problem, solution):
                regular.update(units)
            elif len(units) > 1:
                keep(units[: len(units) // 2])
                keep(units[len(units) // 2 :])

        all_units = range(len(self.units))
        keep(all_units)
        return frozenset(all_units) - regular

    def _unbound(self) -> Cluster:
        """The cluster in which the pods are about to be placed, for what they take of nodes and mean for others."""
        # The compiled cluster knows the claims for extended resources of who comes; those who run have theirs.
        held = filter(None, map(self.users.cluster.claim, self.freed))
        pods = [
            (pod, self.users.claims_of[pod.key]) for pod in self.pods.values()
        ]
        return (
            Scenario(self.compiled.cluster)
            .settle(held, {})
            .with_pods(pods, ())
            .unbind_incumbents(self.pods)
            .cluster
        )


# ----------------------------------------------------------------------------
# The question whom to evict as a problem, and what its answers mean.


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
    groups = [_group_of(cluster, pod) for pod in pods if pod is not None]
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
        for unit in _eviction_units(users.cluster):
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
            incumbents = Incumbents(users, units, choices)
            newcomers = _newcomer_demands(
                incumbents.compiled, preemptor.newcomer
            )
            weights, levels = _unit_weights(units, cost)
            admitted_weight = 1 + sum(weights)
            leading = [
                replace(demand, weight=0 if index else admitted_weight)
                for index, demand in enumerate(newcomers)
            ]
            problem = incumbents.beside(leading, weights)
            irregular = incumbents.irregular(problem, len(newcomers))
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
        """The units, by index, that hold shares of devices which newcomers could have with admin access."""
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
