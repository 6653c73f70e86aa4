"""Which neighbourhood comes next: some nodes, what stands on them, and who waits for room there.

There are several ways to choose nodes (`dralloc.solve.optimum.improve.drafts`), drawn by what they gained for the work
that they were. Freed are the blocks that stand on the nodes, as long as there is room, and beside them blocks that wait
(`dralloc.solve.optimum.improve.waiting`) and that one of the nodes could serve.

Source: Ropke and Pisinger 2006 for the choice by success, here by success for work, as neighbourhoods of many nodes
take ten times as long as those of few.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem import NodeIndex, SlotIndex
from dralloc.problem.indices import DemandIndex
from dralloc.problem.solution import APPRAISAL_UNIT, Appraisal
from dralloc.solve.optimum.improve.assembly import Assembly, CommonUse
from dralloc.solve.optimum.improve.drafts import NodeDrafts
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.waiting import WaitingBlocks
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.relax.levels import levels_of

__all__ = ["NeighbourhoodSelection", "Proposal"]

_BREADTHS: Final = (4, 24)
"""On so many nodes at most demands are freed. Where nodes have many demands, few nodes are most often enough; where
they have one or two, an exchange takes more of them."""

_TRUST: Final = 3000
"""Each way begins as if it had had one success for so much work, which is that of about twenty small neighbourhoods."""

_GANG_EFFORT: Final = 4.0
"""To make room for a gang takes so many times the work of the solver."""

_GANG_SIZE: Final = 40
"""So many demands at least are freed to make room for a gang."""

_ONE_MORE: Final = APPRAISAL_UNIT - APPRAISAL_UNIT // 1000
"""What the smallest gain is worth, a little less for what was rounded."""


class _Approach(NamedTuple):
    """A way to choose nodes, by its name, and on how many of them demands are freed at most."""

    way: str
    breadth: int


@dataclass(slots=True)
class _Experience:
    """How often an approach led to a better answer, and how much work that was."""

    successes: int = 0
    work: float = 0.0

    @property
    def gain(self) -> float:
        """Successes for work, as far as that is known; where nothing helps, all approaches get as much work."""
        return (1 + self.successes) / (_TRUST + self.work)


class Proposal(NamedTuple):
    """Blocks to free, for these nodes.

    Parameters
    ----------
    approach
        That which proposed them.
    withheld
        Devices that another neighbourhood has for itself.
    reserved
        All that no other neighbourhood may touch at the same time (see `Assembly.reserved`).
    work
        About how long it takes: the number of ways to put a demand on a node, times the effort. Counted and not
        measured, so that the search takes the same steps wherever it runs.
    effort
        How much work the solver may do about it, as a multiple of what it usually may.
    """

    approach: _Approach
    nodes: tuple[NodeIndex, ...]
    blocks: tuple[int, ...]
    withheld: frozenset[SlotIndex]
    reserved: frozenset[Hashable]
    work: float
    effort: float = 1.0


class NeighbourhoodSelection:
    """Chooses neighbourhoods.

    Parameters
    ----------
    demands
        Those that can be freed.
    largest_block
        Larger blocks are never freed.
    appraisal
        What demands and nodes are worth; None if that is not known.
    counts_weight_alone
        Whether nothing but more weight is a gain.

    Attributes
    ----------
    nodes
        Those that could serve any of the demands.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        demands: Sequence[DemandIndex],
        seed: int,
        largest_block: int,
        appraisal: Appraisal | None = None,
        *,
        counts_weight_alone: bool = False,
    ) -> None:
        self.incumbent = incumbent
        self.bonds = bonds
        self.problem = incumbent.problem
        self._capabilities = NodeCapabilities(self.problem)
        self._random = np.random.default_rng(seed)
        self._appraisal = appraisal
        self._counts_weight_alone = counts_weight_alone
        self._largest_block = largest_block
        levels = levels_of(
            self.problem.demands[demand].weight for demand in demands
        )
        self._highest_of_last_level = levels[-1].highest if levels else 0
        self._blocks = self._blocks_of(demands)
        self.nodes = self._serving_nodes()
        self._common = CommonUse(incumbent, self._capabilities)
        self._waiting = WaitingBlocks(
            incumbent,
            bonds,
            self._blocks,
            appraisal,
            self._random,
            counts_weight_alone=counts_weight_alone,
        )
        self._drafts = NodeDrafts(
            incumbent,
            bonds,
            self._capabilities,
            self._common,
            self.nodes,
            self._waiting,
            appraisal,
            self._random,
        )
        self._experience = {
            _Approach(way, breadth): _Experience()
            for way in self._drafts.ways
            for breadth in _BREADTHS
        }

    def _blocks_of(self, demands: Iterable[DemandIndex]) -> list[int]:
        """Return the blocks of demands that are not too large, and that nothing about their demands makes hopeless."""
        blocks = dict.fromkeys(
            self.bonds.block_of[demand] for demand in demands
        )
        return list(filter(self._may_be_freed, blocks))

    def _may_be_freed(self, block: int) -> bool:
        members = self.bonds.blocks[block]
        return len(members) <= self._largest_block and not any(
            self.problem.demands[demand].is_defective for demand in members
        )

    def _serving_nodes(self) -> list[NodeIndex]:
        """Return the nodes that could serve any of the demands."""
        samples = {
            self._capabilities.shape(demand): demand
            for block in self._blocks
            for demand in self.bonds.blocks[block]
        }

        def serves(node: NodeIndex) -> bool:
            return any(
                self._capabilities.could_serve(node, demand)
                for demand in samples.values()
            )

        return list(filter(serves, self.problem.all_nodes))

    def turns(self, size: int) -> int:
        """Return after about how many neighbourhoods of a size each node could have had a turn."""
        return (
            1
            + (len(self._blocks) + len(self.nodes)) // size
            + len(set(self._capabilities.node_types))
        )

    def assembly(self, busy: Set[Hashable] = frozenset()) -> Assembly:
        """Begin a neighbourhood, beside what others have reserved."""
        return Assembly(self.incumbent, self.bonds, self._common, busy)

    def propose(
        self, side_by_side: Sequence[Proposal], size: int
    ) -> Proposal | None:
        """Choose a neighbourhood that has nothing to do with the others; None if there is none.

        Parameters
        ----------
        side_by_side
            Those that are solved side by side with it, from the same answer.
        size
            About so many demands are freed.
        """
        if not self.nodes:
            return None
        busy = frozenset[Hashable]().union(
            *(proposal.reserved for proposal in side_by_side)
        )
        assembly = self.assembly(busy)
        approach = self._some_approach()
        draft = self._drafts.draw(approach.way)
        waiting_limit, effort = size // 2, 1.0
        if draft.block is not None:
            assembly.add_block(draft.block)
        if assembly.demand_count > 1:
            # A gang finds room where many leave, and is hard enough to place.
            size, waiting_limit = max(size, _GANG_SIZE), 0
            effort = _GANG_EFFORT
        self._free_nodes(assembly, draft.nodes, approach.breadth, size)
        if waiting_limit and assembly.nodes:
            self._add_waiting(assembly, waiting_limit)
        nodes, blocks = assembly.nodes, assembly.blocks
        if not nodes or not blocks or not self.may_gain(assembly):
            return None
        return Proposal(
            approach,
            tuple(nodes),
            tuple(blocks),
            assembly.withheld,
            assembly.reserved,
            assembly.demand_count * len(nodes) * effort,
            effort,
        )

    def learn(self, proposal: Proposal, *, better: bool) -> None:
        """Remember whether a proposal led to a better answer, and who waits after it."""
        experience = self._experience[proposal.approach]
        experience.successes += better
        experience.work += proposal.work
        self._waiting.look(proposal.blocks)

    def _some_approach(self) -> _Approach:
        """Draw an approach, in proportion to what it gained for its work so far."""
        approaches = list(self._experience)
        gains = np.array(
            [experience.gain for experience in self._experience.values()]
        )
        drawn = self._random.choice(len(approaches), p=gains / gains.sum())
        return approaches[int(drawn)]

    def _free_nodes(
        self,
        assembly: Assembly,
        nodes: Iterable[NodeIndex],
        breadth: int,
        size: int,
    ) -> None:
        """Add nodes with the blocks that stand on them, up to so many nodes or demands."""
        for node in nodes:
            if not assembly.add_node(node):
                continue
            for demand in self.incumbent.on_node(node):
                block = self.bonds.block_of[demand]
                if len(self.bonds.blocks[block]) <= size:
                    assembly.add_block(block)
            if len(assembly.nodes) >= breadth or assembly.demand_count >= size:
                break

    def _add_waiting(self, assembly: Assembly, limit: int) -> None:
        """Add demands that wait and that one of the nodes could serve, up to so many.

        One half are of those that most is to be gained by, one half of all.
        """
        shuffled = self._waiting.at_random()
        promising = self._waiting.by_promise()
        nodes = set(assembly.nodes)
        node_of_type = {
            self._capabilities.node_types[node]: node for node in assembly.nodes
        }
        freed_before = assembly.demand_count
        for blocks, limit_of_blocks in (
            (promising, limit // 2),
            (shuffled, limit),
        ):
            for block in blocks:
                if assembly.demand_count - freed_before >= limit_of_blocks:
                    break
                if self._could_go(block, nodes, node_of_type.values()):
                    assembly.add_block(block)

    def _could_go(
        self, block: int, nodes: Set[NodeIndex], samples: Iterable[NodeIndex]
    ) -> bool:
        """Return whether any of a block's demands could stand on any of the nodes, with one node of each type."""

        def is_served(demand: DemandIndex) -> bool:
            return any(
                self._capabilities.could_serve(node, demand) for node in samples
            )

        return any(
            is_served(demand) and self.bonds.candidates(demand, nodes)
            for demand in self.bonds.blocks[block]
        )

    def may_gain(self, assembly: Assembly) -> bool:
        """Whether the bound leaves room for one demand more, if a neighbourhood is placed anew.

        At the prices of the relaxation, all that is placed there is worth no more than what the nodes are worth beyond
        what those pay that stay, and what the demands are worth beyond what they pay. So it is worth more than now by
        no more than what is not paid for, what those have to gain that wait, and what those lose now that stand there.

        A demand of a higher level is worth less there than all below that could make room for it: where one waits, the
        neighbourhood is always tried. Where none does, a gain is one of the last level.
        """
        appraisal, placements = self._appraisal, self.incumbent.placements
        if appraisal is None or not self._counts_weight_alone:
            return True
        if assembly.opened:
            # What several nodes share is not counted to any of them.
            return True
        demands = assembly.demands
        if any(
            self.problem.demands[demand].weight > self._highest_of_last_level
            for demand in demands
            if demand not in placements
        ):
            return True
        room = sum(
            appraisal.unpaid(node, self.incumbent.on_node(node))
            for node in assembly.touched_nodes
        )
        for demand in demands:
            profit = appraisal.profits.get(demand, 0)
            room += max(0, -profit if demand in placements else profit)
        return room >= _ONE_MORE
