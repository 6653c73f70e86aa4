"""Ways to choose the nodes of a neighbourhood: in turn, far from the bound, or for somebody who waits."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dralloc.problem import NodeIndex
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import Appraisal
from dralloc.solve.optimum.improve.assembly import CommonUse
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.waiting import WaitingBlocks, weighted_order
from dralloc.solve.optimum.node_capabilities import NodeCapabilities

__all__ = ["Draft", "NodeDrafts"]


class Draft(NamedTuple):
    """Nodes to choose from, in order.

    Parameters
    ----------
    nodes
        More than are needed.
    block
        The block that waits for which they were chosen; None if they were not chosen for anybody.
    """

    nodes: Sequence[NodeIndex]
    block: int | None = None


class NodeDrafts:
    """Draws nodes, in a way that is asked for by its name.

    Parameters
    ----------
    common
        Who has to do with devices that several nodes can use.
    nodes
        Those that can be chosen; at least one.
    appraisal
        What demands and nodes are worth; None if that is not known.

    Attributes
    ----------
    ways
        The names of the ways.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        capabilities: NodeCapabilities,
        common: CommonUse,
        nodes: Sequence[NodeIndex],
        waiting: WaitingBlocks,
        appraisal: Appraisal | None,
        random: np.random.Generator,
    ) -> None:
        self._incumbent = incumbent
        self._bonds = bonds
        self._capabilities = capabilities
        self._common = common
        self._nodes = nodes
        self._waiting = waiting
        self._appraisal = appraisal
        self._random = random
        nodes_of_type = grouped(
            (capabilities.node_types[node], node) for node in nodes
        )
        self._alike: Mapping[NodeIndex, Sequence[NodeIndex]] = {
            node: members
            for members in nodes_of_type.values()
            for node in members
        }
        self._queue: list[NodeIndex] = []
        # Bound methods would keep the drafts, and the answer with them, alive until garbage is collected.
        cls = NodeDrafts
        self._ways: dict[str, Callable[[NodeDrafts], Draft]] = {
            "in turn": cls._in_turn,
            "for a waiting block": cls._for_waiting,
        }
        if appraisal is not None:
            self._ways["far from the bound"] = cls._far_from_bound
        self.ways = tuple(self._ways)

    def draw(self, way: str) -> Draft:
        """Draw nodes in a way."""
        return self._ways[way](self)

    def _in_turn(self) -> Draft:
        """Nodes in an order at random, each first once before any is again; those that are alike come together."""
        if not self._queue:
            self._queue = self._shuffled(self._nodes)
        first = self._queue.pop()
        alike = set(self._alike[first])
        following = [node for node in reversed(self._queue) if node in alike]
        in_line = {first, *following}
        similar = [node for node in self._alike[first] if node not in in_line]
        different = [node for node in self._nodes if node not in alike]
        return Draft(
            [
                first,
                *following,
                *self._shuffled(similar),
                *self._shuffled(different),
            ]
        )

    def _far_from_bound(self) -> Draft:
        """Nodes that are worth more than the demands on them pay, each the more likely the more that is.

        These are the nodes where the bound and the answer differ: others cannot be better used at these prices.
        """
        appraisal = self._appraisal
        if appraisal is None:
            return self._in_turn()
        unpaid = [
            appraisal.unpaid(node, self._incumbent.on_node(node))
            for node in self._nodes
        ]
        order = [
            self._nodes[index] for index in weighted_order(self._random, unpaid)
        ]
        alike = set(self._alike[order[0]])
        similar = [node for node in order if node in alike]
        different = [node for node in order if node not in alike]
        return Draft([*similar, *different])

    def _for_waiting(self) -> Draft:
        """Nodes that could serve a block that waits, in one domain if that is asked for."""
        if not self._waiting:
            return self._in_turn()
        [block, *_] = self._waiting.by_promise()
        demand = self._bonds.blocks[block][0]
        allowed = self._bonds.candidates(demand, set(self._nodes))
        nodes = [
            node
            for node in sorted(allowed)
            if self._capabilities.could_serve(node, demand)
        ]
        for role in self._incumbent.problem.demands[demand].roles:
            if role.carries and isinstance(role.rule, OneDomain):
                nodes = self._in_one_domain(role.rule, nodes)
        nodes = self._shuffled(nodes)
        if self._share_a_claim(block):
            nodes = self._common_reach_first(demand, nodes)
        return Draft(nodes, block)

    def _share_a_claim(self, block: int) -> bool:
        """Whether several demands of a block use one claim."""
        demands = self._incumbent.problem.demands
        users = Tally(
            claim.key
            for member in self._bonds.blocks[block]
            for claim in demands[member].claims
        )
        return any(count > 1 for count in users.values())

    def _common_reach_first(
        self, demand: DemandIndex, nodes: Sequence[NodeIndex]
    ) -> list[NodeIndex]:
        """The nodes in another order: first those that can use devices in common, of which some could serve a demand.

        Whoever shares such a device has to stand on one of its nodes; the other nodes are for those who make room
        there. Of several such sets of nodes, one is drawn. If there is none, the order stays.
        """
        reaches = sorted(
            sorted(stock.nodes) for stock in self._common.useful_to(demand)
        )
        if not reaches:
            return list(nodes)
        reach = set(reaches[int(self._random.integers(len(reaches)))])
        inside = [node for node in nodes if node in reach]
        outside = [node for node in nodes if node not in reach]
        return [*inside, *outside]

    def _in_one_domain(
        self, rule: OneDomain, nodes: Sequence[NodeIndex]
    ) -> list[NodeIndex]:
        """Those of the nodes that are in a domain, which is drawn."""
        names = [self._incumbent.problem.nodes[node].name for node in nodes]
        domains = grouped(
            (rule.domains[name], node)
            for name, node in zip(names, nodes, strict=True)
            if name in rule.domains
        )
        if not domains:
            return []
        return list(domains.values())[int(self._random.integers(len(domains)))]

    def _shuffled(self, nodes: Sequence[NodeIndex]) -> list[NodeIndex]:
        order = self._random.permutation(len(nodes))
        return [nodes[index] for index in order.tolist()]
