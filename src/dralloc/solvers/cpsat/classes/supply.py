"""What cell classes supply: integer variables, how many of each need they serve, and who gets what in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.classes.cells import Cell
from dralloc.solvers.cpsat.classes.machine import Machine, Step
from dralloc.solvers.cpsat.classes.patterns import Pattern
from dralloc.solvers.cpsat.rows import Term

__all__ = ["PatternSupply", "Served", "Supply"]


class Served(NamedTuple):
    """A need served on a node, with the devices for each ask."""

    devices: tuple[tuple[int, ...], ...]
    node: int


class Supply(Protocol):
    """A part of the inventory in a formulation over counts."""

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add variables and rows; by need, terms that add up to how many can be served."""

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Every need that is served, given the values of all variables of the model."""


class PatternSupply:
    """Equal cells, each with one of the maximal patterns.

    In variables::

        sum_p y[p] <= number of cells,  0 <= y[p]
        needs k served <= sum_p count[p, k] * y[p]

    Exact: what an answer serves in a cell is part of a maximal pattern, and a pattern can be realised in every cell of
    the class, because the cells are equal up to names.
    """

    def __init__(self, machine: Machine, patterns: Sequence[Pattern]) -> None:
        self.machine = machine
        self.patterns = [pattern for pattern in patterns if pattern.counts]
        self.variables: list[cp_model.IntVar] = []

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per pattern."""
        number = len(self.machine.cells.cells)
        self.variables = [cp.new_int_var(0, number, "") for _ in self.patterns]
        if len(self.variables) > 1:
            cp.add(cp_model.LinearExpr.sum(self.variables) <= number)
        terms: dict[int, list[Term]] = defaultdict(list)
        for variable, pattern in zip(self.variables, self.patterns, strict=True):
            for need, count in pattern.counts:
                terms[need].append((variable, count))
        return terms

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Give the patterns to the cells, both in order."""
        cells = iter(self.machine.cells.cells)
        for variable, pattern in zip(self.variables, self.patterns, strict=True):
            for _ in range(values[variable.index]):
                yield from _follow(self.machine, next(cells), pattern.steps)


def _follow(machine: Machine, cell: Cell, steps: Sequence[Step]) -> Iterator[tuple[int, Served]]:
    """Take the steps in a cell: the n-th device of the class is the n-th device of the cell."""
    devices = [device for unit in cell.units for device in unit]
    left = [[list(reversed(group.members)) for group in layout.groups] for layout in machine.layouts]
    units = list(range(len(left)))
    for step in steps:
        taken: dict[int, list[int]] = defaultdict(list)
        for take in step.takes:
            unit = units[take.unit]
            members = left[unit][take.group]
            shareable = machine.layouts[unit].groups[take.group].shareable
            taken[take.ask].append(devices[members[-1] if shareable else members.pop()])
        if step.order:
            units = [units[unit] for unit in step.order]
        yield step.need, Served(tuple(tuple(sorted(each)) for each in taken.values()), cell.nodes[step.place])
