"""Which neighbourhood comes next: several ways to choose nodes and those who wait, drawn by their success.

Each way names some nodes. Freed are the blocks that stand on them, as long as there is room, and beside them blocks
that wait and that one of the nodes could serve.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import OneDomain
from dralloc.solve.optimum.capabilities import NodeCapabilities
from dralloc.solve.optimum.improve.bonds import Bonds
from dralloc.solve.optimum.improve.incumbent import Incumbent

__all__ = ["NeighbourhoodSelection", "Proposal"]

_DECAY: Final = 0.9
"""How much of its reputation a way keeps when it is tried again (Ropke and Pisinger 2006)."""

_LEAST: Final = 0.1
"""No way is given up for good."""


class Proposal(NamedTuple):
    """Blocks to free, for these nodes.

    Parameters
    ----------
    way
        The name of the way that proposed them.
    reserved
        All that no other neighbourhood may touch at the same time: nodes, pools that several nodes can use, blocks, and
        rules between pods.
    """

    way: str
    nodes: tuple[int, ...]
    blocks: tuple[int, ...]
    reserved: frozenset[Hashable]


class NeighbourhoodSelection:
    """Chooses neighbourhoods.

    Parameters
    ----------
    demands
        Those that can be freed.
    most
        Larger blocks are never freed.
    """

    def __init__(
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        demands: Iterable[int],
        seed: int,
        most: int,
    ) -> None:
        self.incumbent = incumbent
        self.bonds = bonds
        self.problem = incumbent.problem
        self.capabilities = NodeCapabilities(self.problem)
        self.random = np.random.default_rng(seed)
        self._blocks = [
            block
            for block in dict.fromkeys(bonds.block_of[demand] for demand in demands)
            if len(bonds.blocks[block]) <= most and not self._is_hopeless(block)
        ]
        self._nodes = self._serving_nodes()
        self._waiting: Sequence[int] = ()
        nodes_of_type = grouped(
            (self.capabilities.node_types[node], node) for node in self._nodes
        )
        self._alike = {
            node: nodes for nodes in nodes_of_type.values() for node in nodes
        }
        seen_from = Tally(pool.id for node in self.problem.nodes for pool in node.pools)
        self._shared_pools = {
            index: [pool.id for pool in node.pools if seen_from[pool.id] > 1]
            for index, node in enumerate(self.problem.nodes)
        }
        self._queue: list[int] = []
        self._ways: dict[str, Callable[[], Sequence[int]]] = {
            "in turn": self._nodes_in_turn,
            "for a waiting block": self._nodes_for_waiting,
        }
        self._reputation = dict.fromkeys(self._ways, 1.0)

    def turns(self, size: int) -> int:
        """Return after about how many neighbourhoods of a size each node could have had a turn."""
        return (
            1
            + (len(self._blocks) + len(self._nodes)) // size
            + len(set(self.capabilities.node_types))
        )

    def propose(self, others: Sequence[Proposal], size: int) -> Proposal | None:
        """Choose a neighbourhood that has nothing to do with the others; None if there is none.

        Parameters
        ----------
        others
            Those that are solved side by side with it, from the same answer.
        size
            About so many demands are freed.
        """
        if not self._nodes:
            return None
        if not others:
            self._waiting = self._who_waits()
        busy = frozenset[Hashable]().union(*(proposal.reserved for proposal in others))
        ways = list(self._ways)
        weights = np.array([self._reputation[way] for way in ways])
        way = ways[int(self.random.choice(len(ways), p=weights / weights.sum()))]
        nodes: list[int] = []
        blocks: dict[int, None] = {}
        reserved: set[Hashable] = set()
        for node in self._ways[way]():
            here = self._of_node(node)
            if not busy.isdisjoint(here):
                continue
            nodes.append(node)
            reserved |= here
            for demand in self.incumbent.on_node(node):
                block = self.bonds.block_of[demand]
                taken = self._of_block(block)
                if len(self.bonds.blocks[block]) <= size and busy.isdisjoint(taken):
                    blocks[block] = None
                    reserved |= taken
            if len(nodes) >= size or self._number_of_demands(blocks) >= size:
                break
        if not nodes:
            return None
        for block in self._some_waiting(
            nodes, busy, max(size, self._number_of_demands(blocks)) // 2
        ):
            blocks[block] = None
            reserved |= self._of_block(block)
        return (
            Proposal(way, tuple(nodes), tuple(blocks), frozenset(reserved))
            if blocks
            else None
        )

    def learn(self, proposal: Proposal, *, better: bool) -> None:
        """Remember whether a proposal led to a better answer."""
        reputation = _DECAY * self._reputation[proposal.way] + (
            1 - _DECAY
        ) * better * len(self._ways)
        self._reputation[proposal.way] = max(_LEAST, reputation)

    def _is_hopeless(self, block: int) -> bool:
        return any(
            self.problem.demands[demand].is_defective
            for demand in self.bonds.blocks[block]
        )

    def _serving_nodes(self) -> list[int]:
        """The nodes that could serve any of the demands."""
        samples = {
            self.capabilities.shape(demand): demand
            for block in self._blocks
            for demand in self.bonds.blocks[block]
        }
        return [
            node
            for node in range(len(self.problem.nodes))
            if any(
                self.capabilities.could_serve(node, demand)
                for demand in samples.values()
            )
        ]

    def _number_of_demands(self, blocks: Iterable[int]) -> int:
        return sum(len(self.bonds.blocks[block]) for block in blocks)

    def _of_node(self, node: int) -> set[Hashable]:
        """What a neighbourhood with a node reserves."""
        return {("node", node), *(("pool", pool) for pool in self._shared_pools[node])}

    def _of_block(self, block: int) -> set[Hashable]:
        """What a neighbourhood with a block reserves: also the nodes where it stands."""
        reserved: set[Hashable] = {("block", block)}
        for demand in self.bonds.blocks[block]:
            reserved.update(
                ("rule", role.rule) for role in self.problem.demands[demand].roles
            )
            if demand in self.incumbent.placements:
                reserved |= self._of_node(self.incumbent.placements[demand].node)
        return reserved

    def _who_waits(self) -> list[int]:
        """Return the blocks of which somebody is not placed who is worth anything."""
        placed, demands = self.incumbent.placements, self.problem.demands
        return [
            block
            for block in self._blocks
            if any(
                demand not in placed and demands[demand].weight > 0
                for demand in self.bonds.blocks[block]
            )
        ]

    def _some_waiting(
        self, nodes: Sequence[int], busy: Set[Hashable], size: int
    ) -> list[int]:
        """Draw blocks that wait and that one of the nodes could serve.

        One half is of what has the most weight for its members, one half of all.
        """
        shuffled = [
            self._waiting[index]
            for index in self.random.permutation(len(self._waiting)).tolist()
        ]
        by_weight = sorted(shuffled, key=self._weight, reverse=True)
        here = set(nodes)
        types = list(
            {self.capabilities.node_types[node]: node for node in nodes}.values()
        )
        chosen: dict[int, None] = {}
        for pool, limit in ((by_weight, size // 2), (shuffled, size)):
            taken = self._number_of_demands(chosen)
            for block in pool:
                if taken >= limit:
                    break
                if (
                    block not in chosen
                    and self._could_go(block, here, types)
                    and busy.isdisjoint(self._of_block(block))
                ):
                    chosen[block] = None
                    taken += len(self.bonds.blocks[block])
        return list(chosen)

    def _could_go(self, block: int, nodes: Set[int], types: Sequence[int]) -> bool:
        """Return whether any of a block's demands could stand on any of the nodes, with one node of each type."""
        return any(
            any(self.capabilities.could_serve(node, demand) for node in types)
            and bool(self.bonds.candidates(demand, nodes))
            for demand in self.bonds.blocks[block]
        )

    def _weight(self, block: int) -> int:
        return max(
            self.problem.demands[demand].weight for demand in self.bonds.blocks[block]
        )

    # Ways to choose nodes: each gives out more than are needed.

    def _nodes_in_turn(self) -> Sequence[int]:
        """Nodes in an order at random, each first once before any is again; those that are alike come together."""
        if not self._queue:
            self._queue = self._shuffled(self._nodes)
        first = self._queue.pop()
        alike = set(self._alike[first])
        following = [node for node in reversed(self._queue) if node in alike]
        others = [
            node
            for node in self._alike[first]
            if node != first and node not in following
        ]
        different = [node for node in self._nodes if node not in alike]
        return [first, *following, *self._shuffled(others), *self._shuffled(different)]

    def _nodes_for_waiting(self) -> Sequence[int]:
        """Nodes that could serve somebody who waits, in one domain if that is asked for."""
        if not self._waiting:
            return self._nodes_in_turn()
        block = self._waiting[int(self.random.integers(len(self._waiting)))]
        demand = self.bonds.blocks[block][0]
        allowed = self.bonds.candidates(demand, set(self._nodes))
        nodes = [
            node
            for node in sorted(allowed)
            if self.capabilities.could_serve(node, demand)
        ]
        for role in self.problem.demands[demand].roles:
            if role.carries and isinstance(role.rule, OneDomain):
                nodes = self._of_one_domain(role.rule, nodes)
        return self._shuffled(nodes)

    def _of_one_domain(self, rule: OneDomain, nodes: Sequence[int]) -> list[int]:
        """Those of the nodes that are in a domain, which is drawn."""
        names = [self.problem.nodes[node].name for node in nodes]
        domains = grouped(
            (rule.domains[name], node)
            for name, node in zip(names, nodes, strict=True)
            if name in rule.domains
        )
        if not domains:
            return []
        return list(domains.values())[int(self.random.integers(len(domains)))]

    def _shuffled(self, nodes: Sequence[int]) -> list[int]:
        return [nodes[index] for index in self.random.permutation(len(nodes)).tolist()]
