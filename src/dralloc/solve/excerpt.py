"""Excerpts: parts of a problem as small problems of their own, and how to cut them out wherever that is done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.objects.user_rules import Budget
from dralloc.problem import (
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.inter_pod import InterPodRule
from dralloc.problem.problem import Remembered
from dralloc.problem.solution import Grant, Placement
from dralloc.problem.subproblem import PartInUse, cut, places
from dralloc.solve.backends import Parcel

__all__ = ["Cutting", "Excerpt"]

# ----------------------------------------------------------------------------
# Excerpts, with the way in and out for answers.


@dataclass(frozen=True)
class Excerpt:
    """An excerpt: some demands, nodes, devices and counters of a problem.

    Parameters
    ----------
    problem
        They alone, with numbers of their own.
    demands, nodes, devices
        Their numbers in the whole problem, in order; None if they stay as they are.
    """

    problem: Problem
    demands: Sequence[DemandIndex]
    nodes: Sequence[NodeIndex] | None = None
    devices: Sequence[DeviceIndex] | None = None

    def inward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the whole problem, in the numbers of the small one."""
        nodes = None if self.nodes is None else places(self.nodes)
        devices = None if self.devices is None else places(self.devices)
        return _renumbered(placements, self.place_of, nodes, devices)

    @cached_property
    def place_of(self) -> Mapping[DemandIndex, DemandIndex]:
        """By demand of the whole problem, its number in the small one."""
        return places(self.demands)

    def outward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the small problem, in the numbers of the whole one."""
        return _renumbered(placements, self.demands, self.nodes, self.devices)


_DemandNumbers = Mapping[DemandIndex, DemandIndex] | Sequence[DemandIndex]
_NodeNumbers = Mapping[NodeIndex, NodeIndex] | Sequence[NodeIndex]
_DeviceNumbers = Mapping[DeviceIndex, DeviceIndex] | Sequence[DeviceIndex]


def _renumbered(
    placements: Iterable[Placement],
    demands: _DemandNumbers,
    nodes: _NodeNumbers | None,
    devices: _DeviceNumbers | None,
) -> list[Placement]:
    def renumbered(grants: Sequence[Grant]) -> tuple[Grant, ...]:
        if devices is None:
            return tuple(grants)
        return tuple(
            grant._replace(device=devices[grant.device]) for grant in grants
        )

    moved = []
    for placement in placements:
        demand = demands[placement.demand]
        node = placement.node if nodes is None else nodes[placement.node]
        grants = tuple(map(renumbered, placement.grants))
        moved.append(Placement(demand, node, grants))
    return moved


# ----------------------------------------------------------------------------
# Where to cut.


@dataclass(frozen=True, slots=True)
class Cutting:
    """Where to cut an excerpt out of a problem. It is small, and can be sent: each process unpacks the problem once.

    Parameters
    ----------
    whole
        The problem.
    demands, nodes
        Those that are kept, in order.
    in_use
        What others have in use there.
    allowed
        By demand, the only nodes that it may go to here. Where a demand is not named, those that are open to it anyway.
    standing_by
        By demand of those that hold what they hold, where they are. They stay there, but keep their roles in the rules
        between pods that others here have a role in.
    budgets
        Those of the excerpt.
    """

    whole: Parcel[Problem]
    demands: Sequence[DemandIndex]
    nodes: Sequence[NodeIndex]
    in_use: PartInUse
    allowed: Mapping[DemandIndex, Sequence[NodeIndex]]
    standing_by: Mapping[DemandIndex, NodeIndex]
    budgets: tuple[Budget, ...] = ()

    def excerpt(self) -> Excerpt:
        """Cut it out."""
        part = cut(
            self.whole.content,
            self.nodes,
            demands=self._demands(),
            ledger=self.in_use,
        )
        problem = replace(
            part.problem,
            budgets=self.budgets,
            eligibility=Remembered(part.problem.eligibility),
        )
        return Excerpt(problem, self.demands, part.nodes, part.devices)

    def _demands(self) -> Iterator[Demand]:
        """Give out the demands with the nodes that they may go to, in the excerpt's numbers."""
        demands = self.whole.content.demands
        inside = places(self.nodes)
        # Many demands have the same selection of nodes, most often the same object.
        selections: dict[int, tuple[NodeIndex, ...]] = {}
        # Rules are compared by identity. So whoever stands by is made here, out of the same problem as the others: sent
        # as a demand of its own, it would come with copies of its rules, which nobody else here has a role in.
        rules = {
            role.rule
            for demand_index in self.demands
            if demand_index not in self.standing_by
            for role in demands[demand_index].roles
        }
        for demand_index in self.demands:
            demand = demands[demand_index]
            nodes = self.allowed.get(demand_index, demand.nodes)
            if demand_index in self.standing_by:
                yield _standing_by(
                    demand, inside[self.standing_by[demand_index]], rules
                )
            elif nodes is None:
                yield demand
            else:
                if id(nodes) not in selections:
                    selections[id(nodes)] = tuple(
                        [inside[node] for node in nodes if node in inside]
                    )
                yield replace(demand, nodes=selections[id(nodes)])


def _standing_by(
    demand: Demand, node: NodeIndex, rules: Collection[InterPodRule]
) -> Demand:
    """A demand that holds what it holds, stays where it is, and still has its roles in these rules."""
    roles = tuple(role for role in demand.roles if role.rule in rules)
    return demand.by_itself(claims=(), nodes=(node,), roles=roles)
