"""From a cluster to the claims that may move: who uses them, where they are, and what they may ask for anew.

Claims that pods share, and claims of one pod, are a *group*: whoever moves takes the pods along, and the claims of
these pods that stay must be usable from where the pods go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Final

from dralloc.api import Node as ApiNode
from dralloc.api import Pod, ResourceClaim
from dralloc.api.objects import changed
from dralloc.choices import Choices
from dralloc.compiler import CompiledCluster, beside_devices, compile_cluster
from dralloc.compiler.where import Where
from dralloc.errors import Finding
from dralloc.match.requests import compile_claim
from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand
from dralloc.problem.holdings import Holding
from dralloc.whatif.moves.claim_users import ClaimGroup, ClaimUsers
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
        moving = {key for group in self.groups for key in group.claims}
        whole = self.users.cluster
        claims = tuple(released(claim) if claim.key in moving else claim for claim in whole.claims)
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
        return beside_devices(self.compiled, pods, strict=self.choices.strict)

    @cached_property
    def migration(self) -> Migration:
        """Who may move, and how."""
        movers = tuple(self._movers())
        problem = replace(self.compiled.problem, demands=self._pending() if self.pending else ())
        return Migration(problem, movers, tuple(self._move_options(movers)))

    @property
    def unknown(self) -> int:
        """How many of the claims are reserved for somebody who was not given."""
        lone = (key for group in self.groups if not group.pods for key in group.claims)
        return sum(bool(self.users.claim(key).status.reserved_for) for key in lone)

    def _pending(self) -> tuple[Demand, ...]:
        moving = {key for group in self.groups for key in group.claims}
        demands = self.compiled.problem.demands
        return tuple(demand for demand in demands if moving.isdisjoint(claim.key for claim in demand.claims))

    def _movers(self) -> Iterator[MovableClaim]:
        held = self._holdings()
        for group in self.groups:
            for key in group.claims:
                holdings = held.get(key, [])
                home, devices = self._place(key, holdings)
                yield MovableClaim(key, home, tuple(holdings), devices)

    def _holdings(self) -> Mapping[ClaimKey, list[Holding]]:
        found: dict[ClaimKey, list[Holding]] = defaultdict(list)
        for holding in self.compiled.inventory.holdings(self.users.cluster.claims):
            found[holding.claim].append(holding)
        return found

    def _place(self, key: ClaimKey, holdings: Sequence[Holding]) -> tuple[int, tuple[int, ...]]:
        """A node where a claim is used, if possible one that offers all that it holds, and the devices it sees."""
        problem = self.compiled.problem
        homes = self.users.home(key) or (0,)
        for home in homes:
            offered = {problem.devices[device].slot: device for device in problem.nodes[home].devices()}
            if all(holding.slot in offered for holding in holdings):
                return home, tuple(offered[holding.slot] for holding in holdings)
        return homes[0], tuple(problem.versions[holding.slot][-1] for holding in holdings)

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
            extras: Iterable[tuple[ClaimKey, ...]] = (
                extra for size in range(len(free) + 1) for extra in combinations(free, size)
            )
        else:
            tied = tuple(key for key in free if len(self.users.reach(key)) == 1)
            extras = dict.fromkeys([(), tied, tuple(free)])
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

    def _asked(self, key: ClaimKey) -> Claim:
        if key not in self._compiled_claims:
            claim, table = self.users.claim(key), self.compiled.table
            self._compiled_claims[key] = compile_claim(claim, self.users.cluster.classes, table, table.features)
        return self._compiled_claims[key]

    @cached_property
    def _compiled_claims(self) -> dict[ClaimKey, Claim]:
        return {}

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
