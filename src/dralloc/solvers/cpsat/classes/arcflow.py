"""Consumable capacity with many sizes: how full devices become, as a flow (Valerio de Carvalho's arc-flow).

A shareable device with one capacity that matters is on a path through what can be left of it: it starts with what is
left now, and each need that it serves takes it from ``r`` to ``r - size``. Devices are equal but for where they start,
so only the number of devices on each arc is decided::

    out[r] <= in[r] + (devices that start at r)
    sum of the needs of a size that are served <= sum of the arcs of the size

Exact: what a device serves, sorted by size, largest first, is a path, so only arcs that such paths use are needed; and
a flow falls apart into paths, because at every ``r`` no more devices leave than arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.classes.cells import Cell
from dralloc.solvers.cpsat.classes.machine import Machine
from dralloc.solvers.cpsat.classes.needs import Need
from dralloc.solvers.cpsat.classes.supply import Served
from dralloc.solvers.cpsat.rows import Term

__all__ = ["Bin", "FlowSupply", "as_bin", "flows"]


@dataclass(frozen=True, slots=True)
class Bin:
    """Equal devices of which one capacity matters: how much is left, what each need takes, and the cells."""

    left: int
    sizes: Mapping[int, int]
    cells: Sequence[Cell]


def as_bin(machine: Machine, needs: Sequence[Need], wanted: Iterable[int]) -> Bin | None:
    """See the cells of a class as bins; None if more than one amount matters."""
    if len(machine.layouts) > 1 or len(machine.layouts[0].groups) > 1 or len(machine.cells.places) > 1:
        return None
    layout = machine.layouts[0]
    if len(layout.block) != 2 or not layout.groups[0].shareable:
        return None
    sizes = {}
    for number in wanted:
        if machine.serves(needs[number]):
            asks = needs[number].asks
            if len(asks) > 1 or asks[0].number > 1:
                return None
            sizes[number] = layout.groups[0].uses[asks[0].type][0][1]
    return Bin(layout.block[1], sizes, machine.cells.cells) if min(sizes.values(), default=0) > 0 else None


def flows(bins: Iterable[Bin]) -> list[FlowSupply]:
    """Put bins of which all needs take the same into one flow."""
    groups: list[FlowSupply] = []
    for each in sorted(bins, key=lambda each: -each.left):
        home = next((group for group in groups if group.takes(each)), None)
        if home is None:
            groups.append(home := FlowSupply())
        home.bins.append(each)
        home.sizes.update(each.sizes)
    return groups


@dataclass(slots=True)
class FlowSupply:
    """Devices on a common flow."""

    bins: list[Bin] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    arcs: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)
    quotas: dict[int, cp_model.IntVar] = field(default_factory=dict)

    def takes(self, other: Bin) -> bool:
        """Whether every need takes the same of the bin as of those here, or finds too little left."""
        return all(
            other.sizes[need] == size if need in other.sizes else size > other.left for need, size in self.sizes.items()
        ) and all(need in self.sizes for need in other.sizes)

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per arc, and one per need that says how many of its size are its own."""
        sources: dict[int, int] = defaultdict(int)
        for each in self.bins:
            sources[each.left] += len(each.cells)
        most = sum(sources.values())
        self.arcs = {arc: cp.new_int_var(0, most, "") for arc in self._arcs(sources)}
        leaving: dict[int, list[Term]] = defaultdict(list)
        of_size: dict[int, list[Term]] = defaultdict(list)
        for (left, size), variable in self.arcs.items():
            leaving[left].append((variable, 1))
            leaving[left - size].append((variable, -1))
            of_size[size].append((variable, -1))
        for left, terms in leaving.items():
            _at_most(cp, terms, sources.get(left, 0))
        for size, terms in of_size.items():
            for need in (need for need, takes in self.sizes.items() if takes == size):
                self.quotas[need] = cp.new_int_var(0, most * (max(sources) // size), "")
                terms.append((self.quotas[need], 1))
            _at_most(cp, terms, 0)
        return {need: [(quota, 1)] for need, quota in self.quotas.items()}

    def _arcs(self, sources: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """The arcs (left, size) of all paths on which sizes never grow."""
        reached = set(sources)
        for size in sorted(set(self.sizes.values()), reverse=True):
            walked: set[int] = set()
            for start in sorted(reached, reverse=True):
                left = start
                while left >= size and left not in walked:
                    walked.add(left)
                    yield left, size
                    left -= size
                    reached.add(left)

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Send the cells along the arcs, the fullest flows first; of a size, needs are served in their order."""
        served: dict[int, list[Served]] = defaultdict(list)
        waiting: dict[int, list[Cell]] = defaultdict(list)
        for each in self.bins:
            waiting[each.left] += each.cells
        by_left: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (left, size), variable in self.arcs.items():
            by_left[left].append((size, values[variable.index]))
        for left in sorted(by_left, reverse=True):
            here = iter(waiting[left])
            for size, number in by_left[left]:
                for _ in range(number):
                    cell = next(here)
                    waiting[left - size].append(cell)
                    served[size].append(Served((cell.units[0],), cell.nodes[0]))
        queues = {size: iter(sorted(each)) for size, each in served.items()}
        for need, quota in self.quotas.items():
            for _ in range(values[quota.index]):
                yield need, next(queues[self.sizes[need]])


def _at_most(cp: cp_model.CpModel, terms: Sequence[Term], limit: int) -> None:
    variables, factors = zip(*terms, strict=True)
    cp.add(cp_model.LinearExpr.weighted_sum(variables, factors) <= limit)
