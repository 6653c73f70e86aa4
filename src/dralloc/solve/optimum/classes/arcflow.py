"""Bin packing with many sizes of one consumable capacity, as an arc-flow model (Valerio de Carvalho 1999).

A shareable device with one capacity that matters is on a path through what can be left of it: it starts with what is
left now, and each requirement that it serves takes it from ``r`` to ``r - size``. Devices are equal but for where they
start, so only the number of devices on each arc is decided::

    out[r] <= in[r] + (devices that start at r)
    sum of the requirements of a size that are served <= sum of the arcs of the size

Exact: what a device serves, sorted by size, largest first, is a path, so only arcs that such paths use are needed; and
a flow falls apart into paths, because at every ``r`` no more devices leave than arrive.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from dralloc.problem.grouping import summed
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supply import Served, Supply
from dralloc.solve.optimum.rows import Term, sum_of

__all__ = ["FlowSource", "FlowSupply", "as_flow_source", "flow_arcs", "flow_supplies"]


@dataclass(frozen=True, slots=True)
class FlowSource:
    """Bins of one device of which one capacity matters: how much is left, what each requirement takes, and the bins."""

    left: int
    sizes: Mapping[int, int]
    bins: Sequence[Bin]


def as_flow_source(
    space: StateSpace, requirements: Sequence[Requirement], wanted: Iterable[int]
) -> FlowSource | None:
    """The bins of a class as a source of the flow; None if more than one amount matters, or somebody takes nothing."""
    if (
        len(space.layouts) > 1
        or len(space.layouts[0].groups) > 1
        or len(space.bin_class.nodes) > 1
    ):
        return None
    layout = space.layouts[0]
    if len(layout.block) != 2 or not layout.groups[0].shareable:
        return None
    sizes = {}
    for number in wanted:
        if space.serves(requirements[number]):
            item_groups = requirements[number].item_groups
            if len(item_groups) > 1 or item_groups[0].number > 1:
                return None
            sizes[number] = sum(
                amount for _, amount in layout.groups[0].uses[item_groups[0].type]
            )
    return (
        FlowSource(layout.block[1], sizes, space.bin_class.bins)
        if min(sizes.values(), default=0) > 0
        else None
    )


def flow_supplies(sources: Iterable[FlowSource]) -> list[FlowSupply]:
    """Put sources of which every requirement takes the same into one flow."""
    supplies: list[FlowSupply] = []
    for each in sorted(sources, key=lambda each: -each.left):
        supply = next((supply for supply in supplies if supply.joins(each)), None)
        if supply is None:
            supplies.append(supply := FlowSupply())
        supply.sources.append(each)
        supply.sizes.update(each.sizes)
    return supplies


@dataclass(slots=True)
class FlowSupply(Supply):
    """Devices on a common flow."""

    sources: list[FlowSource] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    arcs: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    served: dict[int, cp_model.IntVar] = field(default_factory=dict)

    def joins(self, other: FlowSource) -> bool:
        """Whether every requirement takes the same from the source as from those here, or finds too little left."""
        return all(
            other.sizes[requirement] == size
            if requirement in other.sizes
            else size > other.left
            for requirement, size in self.sizes.items()
        ) and all(requirement in self.sizes for requirement in other.sizes)

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per arc, and one per requirement: how many of its size are its own."""
        starting = summed((each.left, len(each.bins)) for each in self.sources)
        most = sum(starting.values())
        arcs = flow_arcs(set(starting), set(self.sizes.values()))
        self.arcs = {arc: cp.new_int_var(0, most, f"arc {arc}") for arc in arcs}
        leaving: dict[int, list[Term]] = defaultdict(list)
        of_size: dict[int, list[Term]] = defaultdict(list)
        for (left, size), variable in self.arcs.items():
            leaving[left].append((variable, 1))
            leaving[left - size].append((variable, -1))
            of_size[size].append((variable, -1))
        for left, terms in leaving.items():
            cp.add(sum_of(terms) <= starting.get(left, 0))
        for size, terms in of_size.items():
            for requirement in (
                requirement
                for requirement, takes in self.sizes.items()
                if takes == size
            ):
                self.served[requirement] = cp.new_int_var(
                    0, most * (max(starting) // size), f"served {requirement}"
                )
                terms.append((self.served[requirement], 1))
            cp.add(sum_of(terms) <= 0)
        return {
            requirement: [(number, 1)] for requirement, number in self.served.items()
        }

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Send the bins along the arcs, the fullest flows first; of a size, requirements are served in their order."""
        places: dict[int, list[Served]] = defaultdict(list)
        waiting: dict[int, deque[Bin]] = defaultdict(deque)
        for each in self.sources:
            waiting[each.left] += each.bins
        for (left, size), variable in sorted(
            self.arcs.items(), key=lambda arc: -arc[0][0]
        ):
            for _ in range(values[variable.index]):
                bin_ = waiting[left].popleft()
                waiting[left - size].append(bin_)
                places[size].append(Served((bin_.units[0],), bin_.nodes[0]))
        queues = {size: iter(sorted(each)) for size, each in places.items()}
        for requirement, variable in self.served.items():
            for _ in range(values[variable.index]):
                yield requirement, next(queues[self.sizes[requirement]])


def flow_arcs(reached: set[int], sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The arcs (left, size) of all paths from what is left on which sizes never grow; enters what they reach."""
    for size in sorted(sizes, reverse=True):
        walked: set[int] = set()
        for start in sorted(reached, reverse=True):
            left = start
            while left >= size and left not in walked:
                walked.add(left)
                yield left, size
                left -= size
                reached.add(left)
