"""The answer in hand of a search, and what ties its demands to each other."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

from networkx.utils import UnionFind

from dralloc.problem import Charge, DeviceIndex, NodeIndex, Problem
from dralloc.problem.all_devices import lacks_a_device, passed_over
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.inter_pod import InterPodRule, shared_orders
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants

__all__ = ["Bonds", "Incumbent"]


class Incumbent:
    """An answer to a problem that can be changed placement by placement.

    Attributes
    ----------
    placements
        By demand, of those that are placed.
    ledger
        What is in use with them.
    """

    def __init__(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> None:
        self.problem = problem
        self.placements: dict[DemandIndex, Placement] = {}
        self.ledger = Ledger(problem)
        # Demands with a claim for all devices that passed some over.
        self._passing_over: set[DemandIndex] = set()
        self._on_node: list[dict[DemandIndex, None]] = [
            {} for _ in problem.nodes
        ]
        for placement in placements:
            self.enter(placement)

    def enter(self, placement: Placement) -> None:
        """Add the placement of a demand that is not placed."""
        self.placements[placement.demand] = placement
        self._on_node[placement.node][placement.demand] = None
        if any(passed_over(self.problem, placement)):
            self._passing_over.add(placement.demand)
        for device, charge in self._charges(placement):
            self.ledger.enter(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )

    def withdraw(self, demand: DemandIndex) -> Placement:
        """Take out the placement of a demand, and return it."""
        placement = self.placements.pop(demand)
        del self._on_node[placement.node][demand]
        self._passing_over.discard(demand)
        for device, charge in self._charges(placement):
            self.ledger.revoke(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )
        return placement

    @contextmanager
    def without(self, demands: Iterable[DemandIndex]) -> Iterator[None]:
        """Inside of the block, these demands are not placed."""
        withdrawn = [
            self.withdraw(demand)
            for demand in demands
            if demand in self.placements
        ]
        try:
            yield
        finally:
            for placement in withdrawn:
                self.enter(placement)

    @property
    def keeps_all(self) -> bool:
        """Whether no claim for all devices lacks one that it passed over (see `dralloc.problem.all_devices`)."""
        for demand in list(self._passing_over):
            placement = self.placements[demand]
            with self.without([demand]):
                if lacks_a_device(self.problem, placement, self.ledger):
                    return False
        return True

    def on_node(self, node: NodeIndex) -> Sequence[DemandIndex]:
        """The demands that are placed on a node."""
        return tuple(self._on_node[node])

    def in_order(self) -> tuple[Placement, ...]:
        """The placements in the order of the demands."""
        return tuple(
            self.placements[demand] for demand in sorted(self.placements)
        )

    def _charges(
        self, placement: Placement
    ) -> Iterator[tuple[DeviceIndex, Charge]]:
        for _, device, charge in charged_grants(self.problem, (placement,)):
            yield device, charge


class Bonds:
    """What ties demands to each other beyond the nodes that they share.

    Parameters
    ----------
    together
        Further demands that have to be decided together.

    Attributes
    ----------
    blocks
        The demands in blocks: members of a gang or of a tree of gangs, users of a claim, and demands with a constraint
        in common are in the same block, and are freed together.
    block_of
        By demand, the index of its block.
    with_role
        By rule between pods, the demands that have a role in it. Those that stay where they are have to be known when
        others move.
    shared_orders
        Rules between pods that look at one order of arrival, a set for each order.
    """

    def __init__(
        self, problem: Problem, together: Iterable[Sequence[DemandIndex]] = ()
    ) -> None:
        users = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        forest: UnionFind[Hashable] = UnionFind()
        for demand_index, demand in numbered(problem.demands):
            shared_claims = [
                ("claim", claim.key)
                for claim in demand.claims
                if users[claim.key] > 1
            ]
            scopes = [("scope", scope) for scope in demand.group_scopes]
            gang = [("gang", demand.placed_with)] if demand.placed_with else []
            forest.union(
                ("demand", demand_index), *shared_claims, *scopes, *gang
            )
        for members in together:
            forest.union(
                *(("demand", demand_index) for demand_index in members)
            )
        blocks = grouped(
            (forest["demand", demand_index], demand_index)
            for demand_index in indices(problem.demands)
        )
        self.blocks: Sequence[tuple[DemandIndex, ...]] = [
            tuple(block) for block in blocks.values()
        ]
        self.block_of: Mapping[DemandIndex, int] = {
            demand: index
            for index, block in enumerate(self.blocks)
            for demand in block
        }
        self.with_role: Mapping[InterPodRule, Sequence[DemandIndex]] = grouped(
            _roles(problem)
        )
        self.shared_orders = shared_orders(problem.demands)
        self._problem = problem
        self._allowed: dict[int, frozenset[int]] = {}

    def candidates(
        self, demand: DemandIndex, nodes: Set[NodeIndex]
    ) -> Set[NodeIndex]:
        """Those of the nodes that the demand may go to."""
        allowed = self._problem.demands[demand].nodes
        if allowed is None:
            return nodes
        # Demands with the same selection of nodes most often have the same object.
        if id(allowed) not in self._allowed:
            self._allowed[id(allowed)] = frozenset(allowed)
        return nodes & self._allowed[id(allowed)]


def _roles(problem: Problem) -> Iterator[tuple[InterPodRule, DemandIndex]]:
    for index, demand in numbered(problem.demands):
        for role in demand.roles:
            yield role.rule, index
