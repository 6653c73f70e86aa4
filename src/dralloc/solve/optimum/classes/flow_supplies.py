"""Many sizes of one consumable capacity: an arc-flow model of bin packing.

Source: Valerio de Carvalho 1999.

A shareable device with one capacity that matters is on a path through what can be
left of it: it starts with what is left now, and each requirement that it serves takes
it from ``r`` to ``r - size``. Devices are equal but for where they start, so only the
number of devices on each arc is decided::

    out[r] <= in[r] + (devices that start at r)
    sum of the requirements of a size that are served <= sum of the arcs of the size

Exact: what a device serves, sorted by size, largest first, is a path, so only arcs
that such paths use are needed; and a flow falls apart into paths, because at every
``r`` no more devices leave than arrive.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.problem.indices import summed
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import Served, Supply
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.solvers import cp_model

__all__ = [
    "FlowSource",
    "FlowSupply",
    "as_flow_source",
    "flow_arcs",
    "flow_supplies",
]


@dataclass(frozen=True, slots=True)
class FlowSource:
    """Bins of one device of which one capacity matters: how much is free, what each requirement takes, and the bins."""

    free: int
    sizes: Mapping[int, int]
    bins: Sequence[Bin]


def as_flow_source(
    space: StateSpace,
    requirements: Sequence[Requirement],
    asked_for: Iterable[int],
) -> FlowSource | None:
    """The bins of a class as a source of the flow; None if more than one amount matters, or a demand takes nothing."""
    layout = space.layouts[0]
    if len(space.layouts) > 1 or len(layout.groups) > 1:
        return None
    if len(space.bin_class.nodes) > 1:
        return None
    # A block begins with the devices of its groups: of two entries the other is the only
    # amount that matters.
    if len(layout.block) != 2 or not layout.groups[0].shareable:
        return None
    sizes = {}
    for requirement in asked_for:
        if space.may_serve(requirements[requirement]):
            item_groups = requirements[requirement].item_groups
            if len(item_groups) > 1 or item_groups[0].number > 1:
                return None
            uses = layout.groups[0].uses[item_groups[0].type]
            sizes[requirement] = sum(amount for _, amount in uses)
    if min(sizes.values(), default=0) > 0:
        return FlowSource(layout.block[1], sizes, space.bin_class.bins)
    return None


def flow_supplies(sources: Iterable[FlowSource]) -> list[FlowSupply]:
    """Put sources of which every requirement takes the same into one flow."""
    supplies: list[FlowSupply] = []
    for source in sorted(sources, key=lambda source: -source.free):
        supply = next(
            (supply for supply in supplies if supply.joins(source)), None
        )
        if supply is None:
            supply = FlowSupply()
            supplies.append(supply)
        supply.sources.append(source)
        supply.sizes.update(source.sizes)
    return supplies


@dataclass(slots=True)
class FlowSupply(Supply):
    """Devices on a common flow."""

    sources: list[FlowSource] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    arcs: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    served: dict[int, cp_model.IntVar] = field(default_factory=dict)

    def joins(self, source: FlowSource) -> bool:
        """Whether every requirement takes the same from the source as from those here, or finds too little free."""
        for requirement, size in self.sizes.items():
            if requirement in source.sizes:
                if source.sizes[requirement] != size:
                    return False
            elif size <= source.free:
                return False
        return self.sizes.keys() >= source.sizes.keys()

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per arc, and one per requirement: how many of its size are its own."""
        starting = summed(
            (source.free, len(source.bins)) for source in self.sources
        )
        bin_count = sum(starting.values())
        arcs = flow_arcs(set(starting), set(self.sizes.values()))
        self.arcs = {
            arc: cp.new_int_var(0, bin_count, f"arc {arc}") for arc in arcs
        }
        leaving: dict[int, list[Term]] = defaultdict(list)
        of_size: dict[int, list[Term]] = defaultdict(list)
        for (free, size), variable in self.arcs.items():
            leaving[free].append((variable, 1))
            leaving[free - size].append((variable, -1))
            of_size[size].append((variable, -1))
        # No more devices leave a state than arrive or start there.
        for free, terms in leaving.items():
            cp.add(sum_of(terms) <= starting.get(free, 0))
        # Requirements of one size share its arcs.
        for size, terms in of_size.items():
            most_served = bin_count * (max(starting) // size)
            for requirement, requirement_size in self.sizes.items():
                if requirement_size == size:
                    served = cp.new_int_var(
                        0, most_served, f"served {requirement}"
                    )
                    self.served[requirement] = served
                    terms.append((served, 1))
            cp.add(sum_of(terms) <= 0)
        return {
            requirement: [(served, 1)]
            for requirement, served in self.served.items()
        }

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Send the bins along the arcs, the fullest flows first; of a size, requirements are served in their order."""
        servings: dict[int, list[Served]] = defaultdict(list)
        waiting: dict[int, deque[Bin]] = defaultdict(deque)
        for source in self.sources:
            waiting[source.free] += source.bins
        # The fullest first: whoever arrives at a state is there before anybody leaves it.
        for free, size in sorted(self.arcs, key=lambda arc: -arc[0]):
            variable = self.arcs[free, size]
            for _ in range(values[variable.index]):
                bin_ = waiting[free].popleft()
                waiting[free - size].append(bin_)
                servings[size].append(Served((bin_.units[0],), bin_.nodes[0]))
        queues = {
            size: iter(sorted(of_size)) for size, of_size in servings.items()
        }
        for requirement, variable in self.served.items():
            for _ in range(values[variable.index]):
                yield requirement, next(queues[self.sizes[requirement]])


def flow_arcs(
    reached: set[int], sizes: Iterable[int]
) -> Iterator[tuple[int, int]]:
    """The arcs (free, size) of all paths from what is free on which sizes never grow; enters what they reach."""
    for size in sorted(sizes, reverse=True):
        walked: set[int] = set()
        for start in sorted(reached, reverse=True):
            free = start
            # Behind a state that was walked, the path is known.
            while free >= size and free not in walked:
                walked.add(free)
                yield free, size
                free -= size
                reached.add(free)
