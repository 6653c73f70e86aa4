"""Parts of a problem that are searched side by side: nodes, common devices and demands, dealt out anew in each round.

Each node is in one part, with the nodes that it has devices in common with. Devices that many nodes can use would make
one part of them all; most often they are dealt out instead, as nodes are. Of demands, each is in the part where it
stands, or, if it waits, in one that is drawn. Who would have to be in two parts is in none, and stays where it is.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
    Set,
)
from typing import Final, NamedTuple

import numpy as np
from networkx.utils import UnionFind

from dralloc.problem import (
    NodeIndex,
    Problem,
    SlotIndex,
    indices,
    numbered,
)
from dralloc.problem.common import CommonDevices, common_devices, has_no_others
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Placement
from dralloc.solve.recreate.rule_groups import RuleGroups
from dralloc.solve.recreate.units import MovableUnit, serving_nodes

__all__ = ["PartDealer", "SearchPart"]

_FEW_NODES: Final = 50
"""Fewer nodes than this are never parted for the sake of those who work side by side."""

_MANY_NODES: Final = 125
"""A part has about so many nodes at most."""

_SIDE_BY_SIDE: Final = 8
"""Into so many parts at most nodes are parted for the sake of those who work side by side."""


_Tie = tuple[str, int]
"""What has to be in one part: a common supply or a group of rules between pods, and its index."""


class SearchPart(NamedTuple):
    """What one search has to itself.

    Parameters
    ----------
    members
        The demands that may move: those that stand there, and some that wait.
    kept_away
        Devices that its nodes can use and that came to other parts.
    bystanders
        Placed demands that stay, anywhere, and have a role in rules between pods that members have a role in.
    """

    nodes: Sequence[NodeIndex]
    members: Sequence[DemandIndex]
    kept_away: Set[SlotIndex]
    bystanders: Sequence[DemandIndex]


class PartDealer:
    """Deals a problem out to parts, in another way each time.

    Parameters
    ----------
    movable
        The demands that may move, in units that move together.
    random
        Decides who comes to which part.
    """

    def __init__(
        self,
        problem: Problem,
        movable: Sequence[MovableUnit],
        random: np.random.Generator,
    ) -> None:
        self._problem = problem
        self._movable = movable
        self._random = random
        dealt: list[CommonDevices] = []
        tying: list[CommonDevices] = []
        for common in common_devices(problem):
            kind = dealt if _can_be_dealt_out(problem, common) else tying
            kind.append(common)
        self._supplies = [
            supply for common in dealt for supply in common.supplies
        ]
        self._supply_of = {
            slot: supply_index
            for supply_index, supply in enumerate(self._supplies)
            for slot in supply
        }
        self._groups = _groups(problem, movable, tying)
        self._rule_groups = RuleGroups(problem, movable)

    def deal_nodes(
        self, chosen: Collection[NodeIndex] | None = None
    ) -> list[list[NodeIndex]]:
        """Deal the nodes out to parts that have about as many each.

        Parameters
        ----------
        chosen
            Only these, and those that have to do with them, in as few parts as may be; None for all.
        """
        groups, side_by_side = self._groups, _SIDE_BY_SIDE
        if chosen is not None:
            groups = [
                group for group in groups if not set(chosen).isdisjoint(group)
            ]
            side_by_side = 1
        nodes = sum(map(len, groups))
        part_count = max(
            min(nodes // _FEW_NODES, side_by_side), nodes // _MANY_NODES, 1
        )
        parts: list[list[NodeIndex]] = [[] for _ in range(part_count)]
        for turn, group_index in enumerate(
            self._random.permutation(len(groups)).tolist()
        ):
            parts[turn % part_count] += groups[group_index]
        return [sorted(part) for part in parts if part]

    def deal_demands(
        self,
        homes: Mapping[DemandIndex, Placement],
        nodes_of_parts: Sequence[Sequence[NodeIndex]],
    ) -> list[SearchPart]:
        """Deal demands and common devices out to parts that have their nodes already.

        Parameters
        ----------
        homes
            By demand, where it is now.
        """
        owners: dict[_Tie, int] = {}
        members = self._members(homes, nodes_of_parts, owners)
        for supply in range(len(self._supplies)):
            tie = "supply", supply
            if tie not in owners:
                drawn = self._random.integers(len(nodes_of_parts))
                owners[tie] = int(drawn)
        parts = []
        for part, nodes in enumerate(nodes_of_parts):
            kept_away = {
                slot
                for slot, supply in self._supply_of.items()
                if owners["supply", supply] != part
            }
            beside = self._rule_groups.beside(self._problem, members[part])
            # Rules are about who is placed: whoever waits elsewhere need not be known.
            bystanders = [demand for demand in beside if demand in homes]
            parts.append(
                SearchPart(nodes, members[part], kept_away, bystanders)
            )
        return parts

    def _members(
        self,
        homes: Mapping[DemandIndex, Placement],
        parts: Sequence[Sequence[NodeIndex]],
        owners: dict[_Tie, int],
    ) -> list[list[DemandIndex]]:
        """Return by part who stands there, and some of those who wait: each of them is in one part.

        Gangs that stand on nodes of several parts are in none: they stay where they are. So does whoever has something
        of a common supply that came to another part, or a role in rules between pods that did.

        Parameters
        ----------
        owners
            By common supply and group of rules, the part that it comes to, which is noted here: that of the first who
            has to do with it.
        """
        part_of = {
            node: part for part, nodes in enumerate(parts) for node in nodes
        }
        draws = self._random.integers(
            len(parts), size=len(self._movable)
        ).tolist()
        members: list[list[DemandIndex]] = [[] for _ in parts]
        for unit, draw in zip(self._movable, draws, strict=True):
            placements = [
                homes[member] for member in unit.members if member in homes
            ]
            standing = {part_of.get(placement.node) for placement in placements}
            ties = self._ties(unit, placements)
            # Who waits goes where the others are that rules are about.
            tied = next((owners[tie] for tie in ties if tie in owners), draw)
            part = standing.pop() if standing else tied
            if standing or part is None:
                continue
            if all(owners.setdefault(tie, part) == part for tie in ties):
                members[part] += unit.members
        return members

    def _ties(
        self, unit: MovableUnit, placements: Iterable[Placement]
    ) -> list[_Tie]:
        """Return what ties a unit to others, given where its demands are."""
        supplies = self._common_supplies_of(placements)
        ties: list[_Tie] = [("supply", supply) for supply in supplies]
        group = self._rule_groups.of_unit(unit)
        if group is not None:
            ties.append(("rules", group))
        return ties

    def _common_supplies_of(self, placements: Iterable[Placement]) -> list[int]:
        """Return of which common supplies some demands have something."""
        if not self._supplies:
            return []
        slots = [
            self._problem.devices[grant.device].slot
            for placement in placements
            for claim_grants in placement.grants
            for grant in claim_grants
        ]
        return [
            self._supply_of[slot] for slot in slots if slot in self._supply_of
        ]


def _can_be_dealt_out(problem: Problem, common: CommonDevices) -> bool:
    """Whether devices are for many nodes, and parts have something to do if the devices come to others.

    They have if there is enough for all parts, or if most nodes have other devices, too. Devices of one pool with
    counters are one supply, and all that some clusters have.
    """
    if len(common.nodes) < _FEW_NODES:
        return False
    relying = [
        node
        for node in common.nodes
        if has_no_others(problem, node, common.slots)
    ]
    is_enough_for_all = len(common.supplies) >= _SIDE_BY_SIDE
    return is_enough_for_all or 2 * len(relying) <= len(common.nodes)


def _groups(
    problem: Problem,
    units: Collection[MovableUnit],
    tying: Iterable[CommonDevices],
) -> list[list[NodeIndex]]:
    """Return the nodes in groups that have no devices in common, nor a small domain that a gang has to be in.

    Parameters
    ----------
    tying
        Devices that tie the nodes together which can use them. Others are dealt out as nodes are.

    Groups of which no node could serve any of the units are left out: dealt out with the others they would leave fewer
    nodes in each part between which demands can be exchanged. Most nodes of many clusters have no devices.
    """
    topologies = {
        id(unit.domain_rule.domains): unit.domain_rule.domains
        for unit in units
        if unit.domain_rule
    }
    forest: UnionFind[Hashable] = UnionFind()
    for common in tying:
        forest.union(*(("node", node_index) for node_index in common.nodes))
    for topology, domains in topologies.items():
        sizes = Tally(domains.values())
        for node_index, node in numbered(problem.nodes):
            domain = domains.get(node.name)
            # A large domain may be parted: what a part has of it is still one domain.
            if domain is not None and sizes[domain] < _FEW_NODES:
                forest.union(("node", node_index), ("domain", topology, domain))
    groups = grouped(
        (forest["node", node_index], node_index)
        for node_index in indices(problem.nodes)
    )
    serving = serving_nodes(problem, units)
    return [nodes for nodes in groups.values() if not serving.isdisjoint(nodes)]
