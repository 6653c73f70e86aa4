"""The problem in which pods that run ask for just what they have: whoever is not placed in an answer is evicted.

So the fewest victims are the most placed, and what holds between pods and devices in `dralloc.problem.Problem` holds
between those who stay and those who come. What pods asked of others when they came does not bind them any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.eviction_costs import EvictionUnit
from dralloc.ask.whatif.moves.cluster_migration import ClaimUsers, devices_seen
from dralloc.ask.whatif.moves.migration import StayEligibility, stay_grants
from dralloc.check import violations
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api import Pod
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
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
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import Placement, Solution, with_node_grants

__all__ = ["Incumbents"]


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
                    # A claim that several pods use is granted to the first of them that stays.
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
                # Units that go have demands, too.
                demand = DemandIndex(demand + 1)
        return Solution(tuple(with_node_grants(problem, placements)))

    def sharing(self, slots: Collection[SlotIndex]) -> frozenset[ClaimKey]:
        """Return the freed claims that hold shares of devices with these slots."""
        sharing_claims: set[ClaimKey] = set()
        for claim in self.freed:
            for holding in self._holdings.get(claim, ()):
                if holding.share and holding.slot in slots:
                    sharing_claims.add(claim)
        return frozenset(sharing_claims)

    def using(self, claims: Collection[ClaimKey]) -> frozenset[int]:
        """Return the units, by index, of which some pod uses one of these claims."""
        return frozenset(
            index
            for index, unit in enumerate(self.units)
            for pod in unit.pods
            if not set(claims).isdisjoint(self.users.claims_of[pod.key])
        )

    def holding(
        self, problem: Problem, claims: Collection[ClaimKey]
    ) -> Problem:
        """Return the problem in which these claims hold what they have, and nobody asks for it any more."""
        ledger = ClaimLedger(problem)
        for key in sorted(claims):
            ledger.hold(self._holdings[key])
        demands = []
        for demand in problem.demands:
            open_claims = tuple(
                [claim for claim in demand.claims if claim.key not in claims]
            )
            demands.append(replace(demand, claims=open_claims))
        return replace(ledger.applied(), demands=tuple(demands))

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
