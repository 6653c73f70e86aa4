"""Which demands are solved over classes, and which are left to the per-device model.

Demand classes and cell classes that have to do with each other form components, found over the classes: all cells of a
class serve the same needs. A component is left to the per-device model if

- it shares a device or a counter with a demand that classes cannot express (see `Wants`), or
- generations of a pool disagree about one of its devices, or it has compatibility groups, or
- it has cells with more patterns than can be listed, and a store cannot express it (see
  `dralloc.solvers.cpsat.packing.store`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dralloc.problem import Problem
from dralloc.solvers.cpsat.candidates import Survey
from dralloc.solvers.cpsat.classes.arcflow import as_bin, flows
from dralloc.solvers.cpsat.classes.cells import Cells, find_cells
from dralloc.solvers.cpsat.classes.forest import Forest
from dralloc.solvers.cpsat.classes.live import Live, take_stock
from dralloc.solvers.cpsat.classes.machine import Machine
from dralloc.solvers.cpsat.classes.needs import DemandClass, Wants, read_wants
from dralloc.solvers.cpsat.classes.patterns import maximal_patterns
from dralloc.solvers.cpsat.classes.signature import Reader
from dralloc.solvers.cpsat.classes.supply import PatternSupply, Supply
from dralloc.solvers.cpsat.components import touched
from dralloc.solvers.cpsat.packing.store import Store, as_store

__all__ = ["Counted", "Division", "divide"]

_MOST_SIZES: Final = 8
"""With more sizes of one capacity a flow is smaller than patterns."""

_MOST_EFFORT: Final = 100_000
"""More devices are not looked at for the patterns of one cell."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A component over classes."""

    classes: tuple[DemandClass, ...]
    supplies: tuple[Supply, ...]

    @property
    def demands(self) -> list[int]:
        """All demands, in order."""
        return sorted(member for each in self.classes for member in each.members)


@dataclass(frozen=True, slots=True)
class Division:
    """The components over classes, the demands that are left, and the warnings met on the way.

    Parameters
    ----------
    counted
        Components whose cells have few patterns.
    packed
        Components whose cells have too many.
    left, warnings
        For the per-device model; and for the user.
    """

    counted: tuple[Counted, ...]
    packed: tuple[Store, ...]
    left: tuple[int, ...]
    warnings: tuple[str, ...]


def divide(problem: Problem, look: Callable[[Sequence[int]], Survey], *, strict_cel: bool = False) -> Division:
    """Divide a problem.

    Parameters
    ----------
    look
        Works out the candidates of demands that classes cannot express.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    """
    wants = read_wants(problem)
    if not wants.classes:
        return Division((), (), tuple(wants.others), ())
    live = take_stock(problem, wants, strict_cel=strict_cel)
    cells = find_cells(problem, wants, live)
    reader = Reader(problem, wants, live)
    class_of = [reader.enter(cell) for cell in cells.cells]
    machines = {id(each): Machine(each, live.profiles, tuple(reader.regions)) for each in reader.classes.values()}
    unfit = {id(class_of[cell]) for cell in _unfit(problem, live, cells, look(wants.others))}
    counted: list[Counted] = []
    packed: list[Store] = []
    left = [*wants.others]
    for component in _components(wants, list(machines.values())):
        found = None
        if not any(id(machine.cells) in unfit for machine in component.machines):
            found = component.formulate(wants)
        if found is None:
            left += [member for each in component.classes for member in each.members]
        elif isinstance(found, Counted):
            counted.append(found)
        else:
            packed.append(found)
    return Division(tuple(counted), tuple(packed), tuple(sorted(left)), tuple(live.warnings))


def _unfit(problem: Problem, live: Live, cells: Cells, others: Survey) -> Iterator[int]:
    """The cells that others reach into, and those whose devices have several versions or compatibility groups."""
    owners: dict[Hashable, int] = {}
    if not (others.sites or problem.several_versions or problem.has_compatibility_groups):
        return
    for device, view in enumerate(problem.devices):
        cell = cells.cell_of[device]
        if cell >= 0:
            if others.sites:
                owners["slot", view.slot] = cell
                charges = (charge for _, charge in live.profiles[live.profile_of[device]])
                drawn = (view.consumes, *(charge.counters for charge in charges))
                owners.update((("counter", counter), cell) for each in drawn for counter, _ in each)
            if view.slot in problem.several_versions or view.compatibility:
                yield cell
    for resource in touched(problem, others):
        if resource in owners:
            yield owners[resource]


@dataclass(frozen=True, slots=True)
class _Component:
    classes: tuple[DemandClass, ...]
    machines: tuple[Machine, ...]

    def formulate(self, wants: Wants) -> Counted | Store | None:
        """The smallest formulation; None if there is none."""
        supplied: dict[int, int] = defaultdict(int)
        for each in self.classes:
            for mode in each.modes:
                supplied[mode.need] += len(each.members)
        supplies: list[Supply] = []
        bins = []
        # The largest cells first: they are the first to have too many patterns.
        for machine in sorted(self.machines, key=lambda machine: -machine.size):
            bin_ = as_bin(machine, wants.needs, supplied)
            if bin_ and len(set(bin_.sizes.values())) > _MOST_SIZES:
                bins.append(bin_)
                continue
            patterns = maximal_patterns(machine, wants.needs, supplied, _MOST_EFFORT)
            if patterns is not None:
                supplies.append(PatternSupply(machine, patterns))
            elif bin_:
                bins.append(bin_)
            else:
                return as_store(self.classes, self.machines, wants.needs)
        return Counted(self.classes, (*supplies, *flows(bins)))


def _components(wants: Wants, machines: Sequence[Machine]) -> list[_Component]:
    """Demand classes with the cells that can serve them; modes and classes that nothing can serve are left out."""
    forest = Forest(len(wants.needs) + len(machines) + len(wants.classes))
    served = set()
    for number, machine in enumerate(machines):
        for need, spec in enumerate(wants.needs):
            if machine.serves(spec):
                served.add(need)
                forest.unite(need, len(wants.needs) + number)
    classes: dict[int, list[DemandClass]] = defaultdict(list)
    kept = []
    for number, each in enumerate(wants.classes):
        modes = tuple(mode for mode in each.modes if mode.need in served)
        for mode in modes:
            forest.unite(mode.need, len(wants.needs) + len(machines) + number)
        if modes:
            kept.append(replace(each, modes=modes))
    for each in kept:
        classes[forest.find(each.modes[0].need)].append(each)
    found: dict[int, list[Machine]] = defaultdict(list)
    for number, machine in enumerate(machines):
        found[forest.find(len(wants.needs) + number)].append(machine)
    return [_Component(tuple(members), tuple(found[root])) for root, members in classes.items()]
