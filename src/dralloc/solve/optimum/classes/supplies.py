"""Supplies: integer variables, how many of each requirement they serve, and who gets what in the end."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dralloc.problem import DeviceIndex, NodeIndex
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    ServingMode,
)
from dralloc.solve.optimum.classes.patterns import Pattern
from dralloc.solve.optimum.classes.state_space import StateSpace, Transition
from dralloc.solve.optimum.classes.unit_layouts import UnitLayout
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.solvers import cp_model

__all__ = [
    "Costing",
    "DomainSupply",
    "PatternSupply",
    "Served",
    "Supply",
    "follow",
]


class Served(NamedTuple):
    """A requirement served on a node, with the devices for each item group."""

    devices: tuple[tuple[DeviceIndex, ...], ...]
    node: NodeIndex


class Supply(Protocol):
    """A part of the inventory in a formulation over counts."""

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add variables and rows; by requirement, terms that add up to how many can be served."""

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Every requirement that is served, given the values of all variables of the model."""


class DomainSupply(Supply):
    """A supply by topology domains: it also says which gangs are in which, of those that must be in one (KEP-5732).

    What it builds and realises as every supply is for demands that are not in such a gang.
    """

    @abstractmethod
    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """Add rows for how many demands of such gangs are placed in each mode of their classes, after `build`."""

    @abstractmethod
    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[DemandIndex, ...], ServingMode, Served]]:
        """Every joint demand of such a gang that is placed."""


@dataclass(frozen=True, slots=True)
class Costing:
    """The cost of a supply for a packing goal (see `dralloc.solve.optimum.classes.counted_goals`).

    Parameters
    ----------
    each_serving
        Whether each serving costs the devices that it takes; otherwise each bin in use costs 1.
    free
        How many bins cost nothing: the first ones.
    node_type, nodes, per_node
        A number for nodes with equal bins, how many nodes they are, and how many of these bins each has.
    """

    each_serving: bool = False
    free: int = 0
    node_type: int = 0
    nodes: int = 0
    per_node: int = 0


class PatternSupply(Supply):
    """Equal bins, each with one of the maximal patterns.

    In variables::

        sum_p y[p] <= number of bins,  0 <= y[p]
        servings of requirement k <= sum_p count[p, k] * y[p]

    ``bins``: those of the class if they are not given; ``costing``: what a goal counts.

    Exact: what an answer serves in a bin is part of a maximal pattern, and a pattern can be realised in every bin of
    the class, because the bins are equal up to names.
    """

    def __init__(
        self,
        space: StateSpace,
        patterns: Sequence[Pattern],
        bins: Sequence[Bin] | None = None,
        costing: Costing | None = None,
    ) -> None:
        self.space = space
        self.patterns = [pattern for pattern in patterns if pattern.counts]
        self.bins = space.bin_class.bins if bins is None else bins
        self.costing = costing or Costing()
        self.variables: list[cp_model.IntVar] = []

    def costed(self, costing: Costing, bins: Sequence[Bin]) -> PatternSupply:
        """Return some of the bins, in this order, with what a goal counts of them."""
        return PatternSupply(self.space, self.patterns, bins, costing)

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per pattern."""
        bin_count = len(self.bins)
        self.variables = [
            cp.new_int_var(0, bin_count, f"pattern {pattern.counts}")
            for pattern in self.patterns
        ]
        if len(self.variables) > 1:
            cp.add(cp_model.LinearExpr.sum(self.variables) <= bin_count)
        return grouped(
            (requirement, (variable, count))
            for variable, pattern in zip(
                self.variables, self.patterns, strict=True
            )
            for requirement, count in pattern.counts
        )

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Give the patterns to the bins, both in order."""
        bins = iter(self.bins)
        for variable, pattern in zip(
            self.variables, self.patterns, strict=True
        ):
            for _ in range(values[variable.index]):
                yield from follow(self.space, next(bins), pattern.transitions)


def _free_members(layout: UnitLayout) -> list[list[int]]:
    """Return the devices of each group, the first of them last."""
    return [list(reversed(group.members)) for group in layout.groups]


def follow(
    space: StateSpace, bin_: Bin, transitions: Sequence[Transition]
) -> Iterator[tuple[int, Served]]:
    """Follow the transitions in a bin: the n-th device of the class is the n-th device of the bin."""
    devices = bin_.devices
    free = [_free_members(layout) for layout in space.layouts]
    # Where the units of the state stand in the bin, as transitions change their order.
    units = list(range(len(free)))
    for transition in transitions:
        item_groups: dict[int, list[DeviceIndex]] = defaultdict(list)
        for use in transition.device_uses:
            unit = units[use.unit]
            members = free[unit][use.group]
            shareable = space.layouts[unit].groups[use.group].shareable
            member = members[-1] if shareable else members.pop()
            item_groups[use.item_group].append(devices[member])
        if transition.order:
            units = [units[unit] for unit in transition.order]
        devices_served = tuple(
            tuple(sorted(items)) for items in item_groups.values()
        )
        served = Served(devices_served, bin_.nodes[transition.node])
        yield transition.requirement, served
