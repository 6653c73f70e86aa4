"""The claims of a cluster that may move: their users, their devices, and what they may ask for anew.

Claims that pods share, and claims of one pod, are a *group*: whoever moves takes the pods along, and the claims of
these pods that stay must be usable from where the pods go. A pod that moves is a pod that is scheduled anew: whatever
it says about nodes, and what it takes of them, is asked again where it goes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product
from typing import Final

from networkx.utils import UnionFind

from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.moves.migration import (
    Migration,
    MovableClaim,
    MoveOption,
    irregular_rules,
    rules_counting,
    with_rules,
)
from dralloc.ask.whatif.moves.rearrange import MigrationPlan
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.demands import ConstraintsAcross, find_across
from dralloc.compile.compiler.extended import extended_claims
from dralloc.compile.compiler.topology import Topology
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api import Pod, ResourceClaim
from dralloc.objects.api.selecting import names_of, selector_matches
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import parsed_across
from dralloc.problem import (
    Charge,
    Claim,
    Constraint,
    Demand,
    DeviceIndex,
    NodeIndex,
    Numbered,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.ledger import Holding

__all__ = ["ClaimGroup", "ClaimUsers", "ClusterMigration", "devices_seen"]

# ----------------------------------------------------------------------------
# Who uses the allocated claims of a cluster, and from where they can be used.


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Allocated claims that have pods in common, and these pods.

    Parameters
    ----------
    parts
        Of groups that have a constraint in common, each of which can move without the others; none of any other group.
    """

    claims: tuple[ClaimKey, ...]
    pods: tuple[Pod, ...]
    parts: tuple[ClaimGroup, ...] = ()


class ClaimUsers:
    """The pods that use the allocated claims of a cluster.

    Parameters
    ----------
    nodes
        Names of the only nodes that count; all if there are none.
    """

    def __init__(self, cluster: Cluster, nodes: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.nodes: Numbered[NodeIndex, ApiNode] = tuple(
            node
            for node in cluster.nodes
            if not nodes or node.metadata.name in nodes
        )
        self.by_name = {
            node.metadata.name: NodeIndex(index)
            for index, node in enumerate(self.nodes)
        }
        # Pods do not name the claims that a scheduler made for their extended resources (KEP-5004): these name the pod.
        extended: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for owner, claim in extended_claims(cluster):
            extended[owner].append(claim.key)
        self.claims_of = {
            pod.key: tuple(
                dict.fromkeys(
                    (*cluster.pod_claims(pod), *extended.get(pod.key, ()))
                )
            )
            for pod in cluster.pods
        }
        self.users: dict[ClaimKey, list[Pod]] = defaultdict(list)
        for pod in cluster.pods:
            for key in self.claims_of[pod.key]:
                self.users[key].append(pod)

    def groups(self) -> Iterator[ClaimGroup]:
        """The allocated claims by what they have in common, in order."""
        allocated = dict.fromkeys(
            claim.key for claim in self.cluster.claims if claim.is_allocated
        )
        forest = UnionFind(allocated)
        for claims in self.claims_of.values():
            forest.union(*(key for key in claims if key in allocated))
        groups: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        for key in allocated:
            groups[forest[key]].append(key)
        for group in groups.values():
            pods = {pod.key: pod for key in group for pod in self.users[key]}
            yield ClaimGroup(
                tuple(group), tuple(pods[key] for key in sorted(pods))
            )

    def is_settled(self, group: ClaimGroup) -> bool:
        """Whether no pod of the group waits for a claim or to be scheduled, or is about to go."""
        claims = (
            self.cluster.claim(key)
            for pod in group.pods
            for key in self.claims_of[pod.key]
        )
        allocated = all(
            claim is not None and claim.is_allocated for claim in claims
        )
        leaving = any(
            self.cluster.is_leaving(self.claim(key)) for key in group.claims
        )
        return (
            allocated
            and not leaving
            and not any(pod.spec.scheduling_gates for pod in group.pods)
        )

    def claim(self, key: ClaimKey) -> ResourceClaim:
        """An allocated claim."""
        allocated_claim = self.cluster.claim(key)
        if allocated_claim is None:
            raise KeyError(key)
        return allocated_claim

    def reach(self, key: ClaimKey) -> tuple[NodeIndex, ...]:
        """The nodes, by index, from which an allocated claim can be used."""
        allocation = self.claim(key).status.allocation
        selector = allocation.node_selector if allocation is not None else None
        if selector is None:
            return tuple(indices(self.nodes))
        names = names_of(selector)
        named = (
            self.by_name.values()
            if names is None
            else sorted(
                self.by_name[name] for name in names & self.by_name.keys()
            )
        )
        return tuple(
            node
            for node in named
            if selector_matches(selector, self.nodes[node])
        )

    def home(self, key: ClaimKey) -> tuple[NodeIndex, ...]:
        """The nodes where an allocated claim is used: those of its pods, or else those from which it can be."""
        bound = [
            self.by_name.get(pod.spec.node_name or "")
            for pod in self.users[key]
            if pod.spec.node_name
        ]
        return (
            tuple(node for node in bound if node is not None)
            if bound
            else self.reach(key)
        )

    def holdings(
        self, compiled: CompiledCluster
    ) -> Mapping[ClaimKey, list[Holding]]:
        """Return the holdings of each allocated claim in a cluster that was compiled without some of them."""
        by_claim: dict[ClaimKey, list[Holding]] = defaultdict(list)
        for holding in compiled.inventory.holdings(self.cluster.claims):
            by_claim[holding.claim].append(holding)
        return by_claim


def devices_seen(
    problem: Problem, node: NodeIndex, holdings: Iterable[Holding]
) -> tuple[DeviceIndex, ...]:
    """Return the devices of holdings, as a node sees them if it does."""
    offered = {
        problem.devices[device].slot: device
        for device in problem.nodes[node].devices()
    }
    return tuple(
        offered.get(holding.slot, problem.versions[holding.slot][-1])
        for holding in holdings
    )


_MOST: Final = 3
"""Of so many claims of a group any may stay while the others move; of more, those tied to a node move together."""

_UNSEEN: Final = (
    "not all ways to move claims that depend on each other were looked at"
)


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
    kept
        Whether there are groups that could move and stay.
    """

    users: ClaimUsers
    groups: tuple[ClaimGroup, ...]
    must: frozenset[ClaimKey] = frozenset()
    cordoned: Collection[str] = ()
    pending: bool = True
    choices: Choices = field(default_factory=Choices)
    kept: bool = False

    @cached_property
    def compiled(self) -> CompiledCluster:
        """The cluster in which the groups are pending: their claims hold nothing, and their pods have no nodes."""
        scenario = (
            Scenario(self.users.cluster)
            .release(self._moving)
            .unbind(self._pods)
            .cordon(self.cordoned)
        )
        names = [node.metadata.name for node in self.users.nodes]
        compiled = compile_cluster(scenario.cluster, self.choices, nodes=names)
        # Their pods may tolerate the taint of a cordoned node, but this is about leaving it.
        outside = {
            index
            for index, node in numbered(compiled.problem.nodes)
            if node.name in self.cordoned
        }
        demands = (
            _leaving_out(outside, demand, compiled.problem)
            for demand in compiled.problem.demands
        )
        return replace(
            compiled, problem=replace(compiled.problem, demands=tuple(demands))
        )

    @cached_property
    def unmodelled(self) -> tuple[Finding, ...]:
        """The fields that the answer leaves out."""
        return self.compiled.unmodelled({Mode.OPTIMAL})

    @cached_property
    def migration(self) -> Migration:
        """The problem of moves: the claims that may move, and their options."""
        movers, running = tuple(self._movers()), list(self._running())
        names = self.compiled.problem.nodes
        present = [(pod.roles, names[pod.home].name) for pod in running]
        # Rules that are broken as things are go on to count all that are there, wherever these move.
        broken = irregular_rules(present)
        broken_roles = []
        for roles, node in present:
            broken_roles.append(
                ([role for role in roles if role.rule in broken], node)
            )
        counting_rules = rules_counting(broken_roles)
        pods = []
        for pod in running:
            regular = (
                role.running for role in pod.roles if role.rule not in broken
            )
            pods.append(replace(pod, roles=tuple(regular)))
        pending = (
            with_rules(demand, counting_rules) for demand in self._pending()
        )
        move_options = []
        for option in self._move_options(movers, pods):
            demands = (
                with_rules(demand, counting_rules) for demand in option.demands
            )
            move_options.append(replace(option, demands=tuple(demands)))
        return Migration(
            replace(self.compiled.whole, demands=tuple(pending)),
            movers,
            tuple(move_options),
            tuple(pods),
        )

    @cached_property
    def _across(self) -> ConstraintsAcross:
        """The constraints over several claims, whatever these hold."""
        compiled = self.compiled
        if not compiled.problem.has_scopes:
            return ConstraintsAcross()
        chosen = parsed_across(self.choices.across)
        return find_across(compiled.cluster, compiled.gangs, chosen)

    def united(self) -> ClusterMigration:
        """The migration whose groups have no constraint in common: where each moves depends on the others.

        Groups stay that have a constraint in common with pods which are pending: these go by what is held.
        """
        if not self._across.groups:
            return self
        compiled = self.compiled
        waiting = {
            demand.key
            for demand in compiled.problem.demands
            if not (self._is_moving(demand) or compiled.is_claim(demand))
        }
        group_of = {
            pod.key: index
            for index, group in enumerate(self.groups)
            for pod in group.pods
        }
        forest, staying = UnionFind(range(len(self.groups))), set[int]()
        for pods in self._across.groups.values():
            keys = [pod.key for pod in pods]
            bound = [group_of[key] for key in keys if key in group_of]
            forest.union(*bound)
            if self.pending and not waiting.isdisjoint(keys):
                staying.update(bound)
        unions: dict[int, list[ClaimGroup]] = defaultdict(list)
        for index, group in enumerate(self.groups):
            unions[forest[index]].append(group)
        for index in staying:
            unions.pop(forest[index], None)
        groups = tuple(map(_united, unions.values()))
        return replace(self, groups=groups, kept=bool(staying))

    @property
    def is_complete(self) -> bool:
        """Whether all ways to move claims are among the options: of large groups only a few are."""
        return not self.kept and all(map(self._has_all_choices, self.groups))

    def _has_all_choices(self, group: ClaimGroup) -> bool:
        if group.parts:
            return len(group.parts) <= _MOST and all(
                map(self._has_all_choices, group.parts)
            )
        return len(self._free(group)) <= _MOST

    def as_far_as_seen(self, plan: MigrationPlan) -> MigrationPlan:
        """Return a plan with what is proven of it, whether or not all ways to move were looked at."""
        if self.is_complete:
            return plan
        pending = (demand.weight for demand in self.migration.problem.demands)
        return plan.beside_others(sum(pending) + len(self.must), _UNSEEN)

    @property
    def unknown(self) -> int:
        """The number of claims that are reserved for a pod which is not in the input."""
        lone = (
            key
            for group in self.groups
            if not group.pods
            for key in group.claims
        )
        return sum(
            bool(self.users.claim(key).status.reserved_for) for key in lone
        )

    @cached_property
    def _moving(self) -> Mapping[ClaimKey, None]:
        return dict.fromkeys(
            key for group in self.groups for key in group.claims
        )

    @cached_property
    def _pods(self) -> Mapping[ClaimKey, Pod]:
        return {pod.key: pod for group in self.groups for pod in group.pods}

    @cached_property
    def _anew(self) -> Mapping[tuple[ClaimKey, bool], Demand]:
        """Return every demand, of running pods too, by name, and whether it is a claim that no pod uses."""
        compiled = self.compiled
        pairs = zip(
            compiled.problem.demands, compiled.whole.demands, strict=True
        )
        return {
            (demand.key, compiled.is_claim(demand)): with_pod_rules
            for demand, with_pod_rules in pairs
        }

    @cached_property
    def _current(self) -> CompiledCluster:
        """The cluster as it is, without devices: pods' gangs do not depend on them."""
        bare = Scenario(self.users.cluster).without_slices().cluster
        names = [node.metadata.name for node in self.users.nodes]
        return compile_cluster(bare, self.choices, nodes=names)

    @cached_property
    def _scattered(self) -> frozenset[ClaimKey]:
        """The pods that may go to no node: others of their group run in several domains, or in none (KEP-5732)."""
        cluster = self.users.cluster
        if not cluster.pod_groups:
            return frozenset()
        topology = Topology(cluster.nodes)
        scattered: set[ClaimKey] = set()
        for group in self._current.gangs.groups.values():
            if not group.topology:
                continue
            domain_of = topology.domains(group.topology)
            bound = [pod for pod in group.pods if pod.spec.node_name]
            homes = {
                pod.key: domain_of.get(pod.spec.node_name or "", "")
                for pod in bound
            }
            tally = Counter(homes.values())
            for pod, home in homes.items():
                # If it leaves, the others are there.
                domains_of_others = set(tally - Counter([home]))
                if len(domains_of_others) > 1 or domains_of_others == {""}:
                    scattered.add(pod)
        return frozenset(scattered)

    def _pending(self) -> Iterator[Demand]:
        """Yield the pending demands as they are now: running members of their gangs count."""
        if not self.pending:
            return
        asking = {
            name: demand
            for name, demand in self._anew.items()
            if not self._is_moving(demand)
        }
        has_gangs = any(demand.gang for demand in asking.values())
        if not (has_gangs or self.users.cluster.pod_groups):
            yield from asking.values()
            return
        # In the other cluster nobody runs, so that gangs would have to be placed with those
        # that run.
        demand_now = {
            (demand.key, self._current.is_claim(demand)): demand
            for demand in self._current.problem.demands
        }
        for name, demand in asking.items():
            with_gang = demand_now[name]
            # Nobody comes to a group whose pods run in several domains (KEP-5732), of which
            # the cluster without those that may move knows a part only.
            nodes = () if with_gang.nodes == () else demand.nodes
            yield replace(
                demand,
                nodes=nodes,
                gang=with_gang.gang,
                quorum=with_gang.quorum,
                parent=with_gang.parent,
            )

    def _is_moving(self, demand: Demand) -> bool:
        """Whether a demand asks for a claim that may move."""
        return any(claim.key in self._moving for claim in demand.claims)

    def _movers(self) -> Iterator[MovableClaim]:
        """Each claim at a node where it is used, if possible one that offers all that it holds."""
        held, problem = (
            self.users.holdings(self.compiled),
            self.compiled.problem,
        )
        for key in self._moving:
            holdings, homes = (
                held.get(key, ()),
                self.users.home(key) or (NodeIndex(0),),
            )
            for home in homes:
                devices = devices_seen(problem, home, holdings)
                if set(problem.nodes[home].devices()).issuperset(devices):
                    break
            else:
                home = homes[0]
                devices = devices_seen(problem, home, holdings)
            yield MovableClaim(key, home, tuple(holdings), devices)

    def _running(self) -> Iterator[MovableClaim]:
        """Yield the amounts that each running pod takes of its node, and its roles in rules between pods."""
        nodes = self.compiled.whole.nodes
        for key, pod in self._pods.items():
            home = self.users.by_name.get(pod.spec.node_name or "")
            demand = self._anew[key, False]
            if home is not None:
                holdings = [
                    self._taken(claim, home)
                    for claim in demand.claims
                    if claim.is_synthetic
                ]
                # A demand has one synthetic claim at most, for the only device of the node's last pool.
                devices = nodes[home].pools[-1].devices if holdings else ()
                yield MovableClaim(
                    _node_key(key), home, tuple(holdings), devices, demand.roles
                )

    def _taken(self, claim: Claim, node: NodeIndex) -> Holding:
        """Return the holding of a pod's synthetic claim on a node."""
        problem = self.compiled.whole
        [alternative] = claim.alternatives()
        device = problem.nodes[node].pools[-1].devices[0]
        charge = (
            problem.eligibility.charge(alternative.index, device) or Charge()
        )
        return Holding(
            claim.key, problem.devices[device].slot, share=True, charge=charge
        )

    def _move_options(
        self, movers: Sequence[MovableClaim], pods: Sequence[MovableClaim]
    ) -> Iterator[MoveOption]:
        mover_indices = {mover.key: index for index, mover in enumerate(movers)}
        pod_indices = {pod.key: index for index, pod in enumerate(pods)}
        for group_index, group in enumerate(self.groups):
            for chosen in self._choices(group):
                demands = tuple(self._demands(group, frozenset(chosen)))
                users = [
                    pod.key
                    for pod in group.pods
                    if not set(chosen).isdisjoint(self.users.claims_of[pod.key])
                ]
                # Pods without a node that counts hold nothing there: only the others give something back.
                going = tuple(
                    pod_indices[_node_key(key)]
                    for key in users
                    if _node_key(key) in pod_indices
                )
                yield MoveOption(
                    tuple(mover_indices[key] for key in chosen),
                    demands,
                    group_index,
                    len(self.must.intersection(chosen)),
                    going,
                )

    def _choices(self, group: ClaimGroup) -> Iterator[tuple[ClaimKey, ...]]:
        """Yield which claims of a group can move at once."""
        if group.parts:
            yield from self._choices_of_parts(group.parts)
            return
        must = tuple(key for key in group.claims if key in self.must)
        free = self._free(group)
        if len(free) <= _MOST:
            extras = [
                extra
                for size in range(len(free) + 1)
                for extra in combinations(free, size)
            ]
        else:
            tied = tuple(key for key in free if len(self.users.reach(key)) == 1)
            extras = list(dict.fromkeys([(), tied, tuple(free)]))
        for extra in extras:
            chosen = tuple(
                key for key in group.claims if key in must or key in extra
            )
            if chosen:
                yield chosen

    def _free(self, group: ClaimGroup) -> list[ClaimKey]:
        """The claims of a group that may stay while others of it move."""
        return [key for key in group.claims if key not in self.must]

    def _choices_of_parts(
        self, parts: Sequence[ClaimGroup]
    ) -> Iterator[tuple[ClaimKey, ...]]:
        """Yield which claims of united groups can move at once: of many, those of all, or of one of them."""
        by_part = [[(), *self._choices(part)] for part in parts]
        combined: Iterable[tuple[tuple[ClaimKey, ...], ...]] = product(*by_part)
        if len(parts) > _MOST:
            everybody = tuple(choices[-1] for choices in by_part)
            combined = [
                everybody,
                *((chosen,) for choices in by_part for chosen in choices),
            ]
        for of_parts in combined:
            if chosen := tuple(chain.from_iterable(of_parts)):
                yield chosen

    def _demands(
        self, group: ClaimGroup, moving: frozenset[ClaimKey]
    ) -> Iterator[Demand]:
        """Yield the demands of the users of these claims, on the nodes from which they can use their other claims."""
        across = self._across_beside(group, moving)
        for pod in group.pods:
            if moving.intersection(self.users.claims_of[pod.key]):
                demand = self._anew[pod.key, False]
                staying = [
                    key
                    for key in self.users.claims_of[pod.key]
                    if key not in moving
                ]
                goes_nowhere = (
                    pod.key in self._scattered or pod.key in across.defects
                )
                nodes = () if goes_nowhere else demand.nodes
                for key in staying:
                    nodes = _common(nodes, self.users.reach(key))
                constraints = across.of_pods.get(pod.key, ())
                claims = tuple(
                    _with_scopes(claim, constraints)
                    for claim in demand.claims
                    if claim.key not in staying
                )
                yield demand.by_itself(claims=claims, nodes=nodes)
        for key in group.claims:
            if key in moving and not self.users.users[key]:
                yield self._anew[key, True]

    def _across_beside(
        self, group: ClaimGroup, moving: frozenset[ClaimKey]
    ) -> ConstraintsAcross:
        """Return the constraints over several claims of a group, beside what those hold that do not move."""
        keys = {pod.key for pod in group.pods}
        of_pods = {
            pod: constraints
            for pod, constraints in self._across.of_pods.items()
            if pod in keys
        }
        if not of_pods:
            return ConstraintsAcross()
        now = Scenario(self.users.cluster).release(moving).cluster
        return replace(self._across, of_pods=of_pods).beside(
            now, self.compiled.inventory
        )


def _united(groups: Sequence[ClaimGroup]) -> ClaimGroup:
    """Groups as one, if they are several."""
    if len(groups) == 1:
        return groups[0]
    pods = {pod.key: pod for group in groups for pod in group.pods}
    return ClaimGroup(
        tuple(key for group in groups for key in group.claims),
        tuple(pods[key] for key in sorted(pods)),
        tuple(groups),
    )


def _with_scopes(claim: Claim, constraints: Sequence[Constraint]) -> Claim:
    """The claim whose constraints over several claims know what the others hold, as these do."""
    scopes = {
        (constraint.scope.number, constraint.scope.group): constraint.scope
        for constraint in constraints
        if constraint.scope
    }
    if not scopes:
        return claim
    return replace(
        claim,
        constraints=tuple(
            replace(
                constraint,
                scope=scopes[constraint.scope.number, constraint.scope.group],
            )
            if constraint.scope
            else constraint
            for constraint in claim.constraints
        ),
    )


def _node_key(pod: ClaimKey) -> ClaimKey:
    """Under which name a pod holds what it takes of its node: that of its synthetic claim."""
    return ClaimKey(pod.namespace, f"{pod.name}/node")


def _leaving_out(
    nodes: Collection[NodeIndex], demand: Demand, problem: Problem
) -> Demand:
    """The demand, but not for some nodes, even if its pod tolerates that they are cordoned."""
    if not nodes:
        return demand
    return replace(
        demand,
        nodes=tuple(
            node
            for node in problem.candidate_nodes(demand)
            if node not in nodes
        ),
    )


def _common(
    nodes: tuple[NodeIndex, ...] | None, reach: tuple[NodeIndex, ...] | None
) -> tuple[NodeIndex, ...] | None:
    """The nodes that are in both, in the order of the first; None stands for all."""
    if nodes is None or reach is None:
        return reach if nodes is None else nodes
    reached = frozenset(reach)
    return tuple(node for node in nodes if node in reached)
