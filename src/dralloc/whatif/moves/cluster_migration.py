"""From a cluster to the claims that may move: who uses them, where they are, and what they may ask for anew.

Claims that pods share, and claims of one pod, are a *group*: whoever moves takes the pods along, and the claims of
these pods that stay must be usable from where the pods go. A pod that moves is a pod that is scheduled anew: whatever
it says about nodes, and what it takes of them, is asked again where it goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Final

from dralloc.api import Pod, ResourceClaim
from dralloc.api.objects import changed
from dralloc.choices import Choices
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.errors import Finding
from dralloc.names import ClaimKey
from dralloc.problem import Charge, Demand, Problem
from dralloc.problem.holdings import Holding
from dralloc.scenario import Scenario
from dralloc.whatif.moves.claim_users import ClaimGroup, ClaimUsers, devices_seen
from dralloc.whatif.moves.migration import Migration, MovableClaim, MoveOption

__all__ = ["ClusterMigration", "released"]

_MOST: Final = 3
"""Of so many claims of a group any may stay while the others move; of more, those tied to a node move together."""


@dataclass(frozen=True)
class ClusterMigration:
    """Some groups of a cluster as a migration.

    Parameters
    ----------
    users
        The cluster as it is.
    groups
        Those that may move.
    must
        Claims that every move of their group has to take along; their number is what the move is worth.
    cordoned
        Names of nodes that are no target.
    pending
        Whether what is pending counts.
    """

    users: ClaimUsers
    groups: tuple[ClaimGroup, ...]
    must: frozenset[ClaimKey] = frozenset()
    cordoned: Collection[str] = ()
    pending: bool = True
    choices: Choices = field(default_factory=Choices)

    @cached_property
    def compiled(self) -> CompiledCluster:
        """The cluster in which the groups are pending: their claims hold nothing, and their pods have no nodes."""
        scenario = Scenario(self.users.cluster).release(self._moving).unbind(self._pods).cordon(self.cordoned)
        names = [node.metadata.name for node in self.users.nodes]
        compiled = compile_cluster(scenario.cluster, self.choices, nodes=names)
        outside = {number for number, node in enumerate(compiled.problem.nodes) if node.name in self.cordoned}
        demands = (_leaving_out(outside, demand, compiled.problem) for demand in compiled.problem.demands)
        return replace(compiled, problem=replace(compiled.problem, demands=tuple(demands)))

    @cached_property
    def unmodelled(self) -> tuple[Finding, ...]:
        """What the answer leaves out."""
        asking = [self.compiled.cluster.pods_by_key[key] for key in (*self._pods, *self._waiting)]
        return self.compiled.beside_pods_alone(asking, strict=self.choices.strict)

    @cached_property
    def migration(self) -> Migration:
        """Who may move, and how."""
        movers, pods = tuple(self._movers()), tuple(self._nodes_of_pods())
        problem = replace(self.compiled.whole, demands=tuple(self._pending()))
        return Migration(problem, movers, tuple(self._move_options(movers, pods)), pods)

    @property
    def unknown(self) -> int:
        """How many of the claims are reserved for somebody who was not given."""
        lone = (key for group in self.groups if not group.pods for key in group.claims)
        return sum(bool(self.users.claim(key).status.reserved_for) for key in lone)

    @cached_property
    def _moving(self) -> Mapping[ClaimKey, None]:
        return dict.fromkeys(key for group in self.groups for key in group.claims)

    @cached_property
    def _pods(self) -> Mapping[ClaimKey, Pod]:
        return {pod.key: pod for group in self.groups for pod in group.pods}

    @cached_property
    def _anew(self) -> Mapping[tuple[ClaimKey, bool], Demand]:
        """What everybody asks for, also who runs, by name, and whether it is a claim that no pod uses."""
        compiled = self.compiled
        pairs = zip(compiled.problem.demands, compiled.whole.demands, strict=True)
        return {(demand.key, compiled.is_claim(demand)): whole for demand, whole in pairs}

    @cached_property
    def _waiting(self) -> Sequence[ClaimKey]:
        """The pods that are pending as things are."""
        return [key for key, is_claim in self._anew if self.pending and not is_claim and key not in self._pods]

    def _pending(self) -> Iterator[Demand]:
        """What is pending as things are, for the gangs that pods are in beside those that run."""
        asking = {
            name: demand
            for name, demand in self._anew.items()
            if self.pending and self._moving.keys().isdisjoint(claim.key for claim in demand.claims)
        }
        if not any(demand.gang or demand.roles for demand in asking.values()):
            yield from asking.values()
            return
        bare = replace(self.users.cluster, slices=())
        now = compile_cluster(bare, self.choices, nodes=[node.metadata.name for node in self.users.nodes])
        given = {(demand.key, now.is_claim(demand)): demand for demand in now.problem.demands}
        for name, demand in asking.items():
            known = given[name]
            nodes = _common(demand.nodes, known.nodes)
            yield replace(
                demand, nodes=nodes, gang=known.gang, quorum=known.quorum, parent=known.parent, roles=known.roles
            )

    def _movers(self) -> Iterator[MovableClaim]:
        """Each claim at a node where it is used, if possible one that offers all that it holds."""
        held, problem = self.users.holdings(self.compiled), self.compiled.problem
        for key in self._moving:
            holdings, homes = held.get(key, ()), self.users.home(key) or (0,)
            seen = ((home, devices_seen(problem, home, holdings)) for home in homes)
            whole = (each for each in seen if set(problem.nodes[each[0]].devices()).issuperset(each[1]))
            home, devices = next(whole, None) or (homes[0], devices_seen(problem, homes[0], holdings))
            yield MovableClaim(key, home, tuple(holdings), devices)

    def _nodes_of_pods(self) -> Iterator[MovableClaim]:
        """What each pod takes of the node that it is on."""
        whole = self.compiled.whole
        for key, pod in self._pods.items():
            home = self.users.by_name.get(pod.spec.node_name or "")
            claim = next((one for one in self._anew[key, False].claims if one.is_synthetic), None)
            if claim is not None and home is not None:
                [alternative] = claim.alternatives()
                device = whole.nodes[home].pools[-1].devices[0]
                charge = whole.eligibility.charge(alternative.index, device) or Charge()
                holding = Holding(claim.key, whole.devices[device].slot, share=True, charge=charge)
                yield MovableClaim(claim.key, home, (holding,), (device,))

    def _move_options(self, movers: Sequence[MovableClaim], pods: Sequence[MovableClaim]) -> Iterator[MoveOption]:
        numbers = {mover.key: number for number, mover in enumerate(movers)}
        places = {pod.key: number for number, pod in enumerate(pods)}
        for number, group in enumerate(self.groups):
            must = tuple(key for key in group.claims if key in self.must)
            for chosen in self._choices(group, must):
                demands = tuple(self._demands(group, frozenset(chosen)))
                asked = (claim.key for demand in demands for claim in demand.claims if claim.is_synthetic)
                going = tuple(places[key] for key in asked if key in places)
                yield MoveOption(tuple(numbers[key] for key in chosen), demands, number, len(must), going)

    def _choices(self, group: ClaimGroup, must: tuple[ClaimKey, ...]) -> Iterator[tuple[ClaimKey, ...]]:
        """Which claims of a group can move at once."""
        free = [key for key in group.claims if key not in must]
        if len(free) <= _MOST:
            extras = [extra for size in range(len(free) + 1) for extra in combinations(free, size)]
        else:
            tied = tuple(key for key in free if len(self.users.reach(key)) == 1)
            extras = list(dict.fromkeys([(), tied, tuple(free)]))
        for extra in extras:
            chosen = tuple(key for key in group.claims if key in must or key in extra)
            if chosen:
                yield chosen

    def _demands(self, group: ClaimGroup, moving: frozenset[ClaimKey]) -> Iterator[Demand]:
        """What the users of these claims ask for, on the nodes from which they can use the rest of theirs."""
        for pod in group.pods:
            if moving.intersection(self.users.claims_of[pod.key]):
                demand = self._anew[pod.key, False]
                staying = [key for key in self.users.claims_of[pod.key] if key not in moving]
                nodes = demand.nodes
                for key in staying:
                    nodes = _common(nodes, self.users.reach(key))
                claims = tuple(claim for claim in demand.claims if claim.key not in staying)
                yield demand.by_itself(claims=claims, nodes=nodes, roles=())
        for key in group.claims:
            if key in moving and not self.users.users[key]:
                yield self._anew[key, True]


def released(claim: ResourceClaim) -> ResourceClaim:
    """The claim as it was before it was allocated; one for extended resources as any other."""
    return changed(claim.unallocated(), metadata=changed(claim.metadata, annotations={}))


def _leaving_out(nodes: Collection[int], demand: Demand, problem: Problem) -> Demand:
    """The demand, but not for some nodes, even if its pod tolerates that they are cordoned."""
    if not nodes:
        return demand
    return replace(demand, nodes=tuple(node for node in problem.candidate_nodes(demand) if node not in nodes))


def _common(nodes: tuple[int, ...] | None, others: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The nodes that are in both, in the order of the first; None stands for all."""
    if nodes is None or others is None:
        return others if nodes is None else nodes
    among = frozenset(others)
    return tuple(node for node in nodes if node in among)
