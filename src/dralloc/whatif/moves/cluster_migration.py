"""From a cluster to the claims that may move: who uses them, where they are, and what they may ask for anew.

Claims that pods share, and claims of one pod, are a *group*: whoever moves takes the pods along, and the claims of
these pods that stay must be usable from where the pods go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Final

from dralloc.api import Node as ApiNode
from dralloc.api import Pod, ResourceClaim
from dralloc.api.objects import changed
from dralloc.choices import Choices
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.compiler.where import Where
from dralloc.errors import Finding
from dralloc.match.requests import compile_claim
from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand
from dralloc.whatif.moves.claim_users import ClaimGroup, ClaimUsers, devices_seen
from dralloc.whatif.moves.migration import Migration, MovableClaim, MoveOption

__all__ = ["ClusterMigration", "released", "unbound"]

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
        """The cluster without what the groups hold."""
        whole = self.users.cluster
        claims = tuple(released(claim) if claim.key in self._moving else claim for claim in whole.claims)
        nodes = tuple(_cordoned(node) if node.metadata.name in self.cordoned else node for node in whole.nodes)
        staged = replace(whole, claims=claims, nodes=nodes)
        names = [node.metadata.name for node in self.users.nodes]
        return compile_cluster(staged, self.choices, nodes=names)

    @cached_property
    def unmodelled(self) -> tuple[Finding, ...]:
        """What an answer about devices alone leaves out."""
        waiting = {demand.key for demand in self.migration.problem.demands}
        moving = {pod.key for group in self.groups for pod in group.pods}
        pods = [pod for pod in self.users.cluster.pods if pod.key in waiting | moving]
        return self.compiled.beside_devices(pods, strict=self.choices.strict)

    @cached_property
    def migration(self) -> Migration:
        """Who may move, and how."""
        movers = tuple(self._movers())
        pending = (
            demand
            for demand in self.compiled.problem.demands
            if self.pending and self._moving.keys().isdisjoint(claim.key for claim in demand.claims)
        )
        problem = replace(self.compiled.problem, demands=tuple(pending))
        return Migration(problem, movers, tuple(self._move_options(movers)))

    @property
    def unknown(self) -> int:
        """How many of the claims are reserved for somebody who was not given."""
        lone = (key for group in self.groups if not group.pods for key in group.claims)
        return sum(bool(self.users.claim(key).status.reserved_for) for key in lone)

    @cached_property
    def _moving(self) -> Mapping[ClaimKey, None]:
        return dict.fromkeys(key for group in self.groups for key in group.claims)

    def _movers(self) -> Iterator[MovableClaim]:
        """Each claim at a node where it is used, if possible one that offers all that it holds."""
        held, problem = self.users.holdings(self.compiled), self.compiled.problem
        for key in self._moving:
            holdings, homes = held.get(key, ()), self.users.home(key) or (0,)
            seen = ((home, devices_seen(problem, home, holdings)) for home in homes)
            whole = (each for each in seen if set(problem.nodes[each[0]].devices()).issuperset(each[1]))
            home, devices = next(whole, None) or (homes[0], devices_seen(problem, homes[0], holdings))
            yield MovableClaim(key, home, tuple(holdings), devices)

    def _move_options(self, movers: Sequence[MovableClaim]) -> Iterator[MoveOption]:
        numbers = {mover.key: number for number, mover in enumerate(movers)}
        for number, group in enumerate(self.groups):
            must = tuple(key for key in group.claims if key in self.must)
            for chosen in self._choices(group, must):
                demands = tuple(self._demands(group, frozenset(chosen)))
                yield MoveOption(tuple(numbers[key] for key in chosen), demands, number, weight=len(must))

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
            mine = [key for key in self.users.claims_of[pod.key] if key in moving]
            if mine:
                staying = (self.users.claim(key) for key in self.users.claims_of[pod.key] if key not in moving)
                kept = [claim.status.allocation.node_selector for claim in staying if claim.status.allocation]
                selectors = [one for one in kept if one is not None]
                nodes = self._where.of(unbound(pod), selectors, frozenset())
                yield Demand(pod.key, tuple(map(self._asked, mine)), pod.spec.priority or 0, nodes=nodes)
        for key in group.claims:
            if key in moving and not self.users.users[key]:
                yield Demand(key, (self._asked(key),), nodes=self._where.everywhere())

    @cached_property
    def _asked(self) -> Callable[[ClaimKey], Claim]:
        classes, table = self.users.cluster.classes, self.compiled.table
        return cache(lambda key: compile_claim(self.users.claim(key), classes, table, table.features))

    @cached_property
    def _where(self) -> Where:
        by_name = {node.metadata.name: node for node in self.compiled.cluster.nodes}
        return Where([by_name[node.name] for node in self.compiled.problem.nodes])


def released(claim: ResourceClaim) -> ResourceClaim:
    """The claim as it was before it was allocated; one for extended resources as any other."""
    return changed(claim.unallocated(), metadata=changed(claim.metadata, annotations={}))


def _cordoned(node: ApiNode) -> ApiNode:
    return changed(node, spec=changed(node.spec, unschedulable=True))


def unbound(pod: Pod) -> Pod:
    """The pod as it was before it had a node, but for the claims that it has for what its containers ask for.

    To a cordoned node it does not move, even if it may be placed there.
    """
    return changed(pod, spec=changed(pod.spec, node_name=None, containers=(), init_containers=(), tolerations=()))
