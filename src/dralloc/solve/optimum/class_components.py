"""Components over classes: demand classes and the bin classes that can serve them, and how each is formulated.

They are found over the classes: all bins of a class serve the same requirements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from dralloc.objects.choices import Thresholds
from dralloc.problem import Problem
from dralloc.problem.indices import grouped
from dralloc.solve.optimum.classes.budgeted_amounts import BudgetedAmounts
from dralloc.solve.optimum.classes.count_model import Counted
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    DemandClasses,
)
from dralloc.solve.optimum.classes.divisible_flows import as_divisible_flow
from dralloc.solve.optimum.classes.domain_counts import (
    DomainCounts,
    bins_by_domain,
)
from dralloc.solve.optimum.classes.flow_supplies import (
    as_flow_source,
    flow_supplies,
)
from dralloc.solve.optimum.classes.numbering import DisjointSets
from dralloc.solve.optimum.classes.patterns import maximal_patterns
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import (
    DomainSupply,
    PatternSupply,
    Supply,
)
from dralloc.solve.optimum.packing.instance import (
    PackingInstance,
    as_packing_instance,
)
from dralloc.solve.optimum.stopping import Stop

__all__ = ["ClassComponent", "class_components"]

_MOST_SIZES: Final = 8
"""With more sizes of one capacity a flow is smaller than patterns."""


@dataclass(frozen=True, slots=True)
class ClassComponent:
    """Demand classes that have to do with each other, and the state spaces of the bin classes that can serve them."""

    classes: tuple[DemandClass, ...]
    spaces: tuple[StateSpace, ...]

    def is_apart(self, unfit: Set[int]) -> bool:
        """Whether none of its bin classes (by id) is unfit."""
        return not any(id(space.bin_class) in unfit for space in self.spaces)

    def formulate(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        amounts: BudgetedAmounts,
        stop: Stop,
    ) -> Counted | PackingInstance | None:
        """The smallest formulation; None if there is none."""
        requirements = demand_classes.requirements
        budgeted: set[int] = set()
        for demand_class in self.classes:
            if demand_class.namespace:
                budgeted.update(mode.requirement for mode in demand_class.modes)
        # What a requirement uses of a budget must not depend on who serves it.
        if not all(uses.keys() >= budgeted for uses in amounts.values()):
            return None
        if any(demand_class.topology for demand_class in self.classes):
            by_domain = self._by_domain(
                problem, demand_classes, thresholds, stop
            )
            if by_domain is None:
                return None
            return Counted(self.classes, (by_domain,), requirements, amounts)
        supplied = self._supplied()
        supplies: list[Supply] = []
        sources = []
        # The largest bins first: they are the first to have too many patterns.
        for space in stop.each(
            sorted(self.spaces, key=lambda space: -space.size)
        ):
            source = as_flow_source(space, requirements, supplied)
            if source and len(set(source.sizes.values())) > _MOST_SIZES:
                sources.append(source)
                continue
            patterns = maximal_patterns(
                space, requirements, supplied, thresholds.pattern_effort
            )
            if patterns is not None:
                supplies.append(PatternSupply(space, patterns))
            elif source:
                sources.append(source)
            else:
                return as_packing_instance(
                    self.classes,
                    self.spaces,
                    requirements,
                    thresholds.listed_patterns,
                    stop,
                )
        supplies += flow_supplies(sources)
        return Counted(self.classes, tuple(supplies), requirements, amounts)

    def _supplied(self) -> Mapping[int, int]:
        """By requirement, how many demands can make use of it."""
        users: dict[int, int] = defaultdict(int)
        for demand_class in self.classes:
            for mode in demand_class.modes:
                users[mode.requirement] += demand_class.size
        return users

    def _by_domain(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        stop: Stop,
    ) -> DomainSupply | None:
        topology_indices = sorted(
            {demand_class.topology for demand_class in self.classes} - {0}
        )
        topologies = [
            demand_classes.topologies[topology] for topology in topology_indices
        ]
        parts = bins_by_domain(problem, topologies, self.spaces)
        if parts is None:
            return None
        requirements, supplied = demand_classes.requirements, self._supplied()
        # The flow first: it hardly grows with the number of domains, while patterns are counted for each of them.
        flow = as_divisible_flow(self.classes, parts, self.spaces, requirements)
        if flow is not None:
            return flow
        patterns_of_spaces = []
        for space in stop.each(self.spaces):
            patterns = maximal_patterns(
                space, requirements, supplied, thresholds.pattern_effort
            )
            if patterns is None:
                return None
            patterns_of_spaces.append(patterns)
        return DomainCounts(
            topology_indices, parts, self.spaces, patterns_of_spaces
        )


def class_components(
    demand_classes: DemandClasses, spaces: Sequence[StateSpace], stop: Stop
) -> list[ClassComponent]:
    """Demand classes with the bins that can serve them; gangs, and all that budgets are about, with each other.

    Modes and classes that nothing can serve are left out, and gangs that need members of such classes.
    """
    bins = len(demand_classes.requirements)
    sets = DisjointSets(range(bins + len(spaces)))
    served = set()
    for space_index, space in enumerate(stop.each(spaces)):
        for requirement, spec in enumerate(demand_classes.requirements):
            if space.may_serve(spec):
                served.add(requirement)
                sets.unite(requirement, bins + space_index)
    servable: list[DemandClass] = []
    for demand_class in demand_classes.classes:
        modes = tuple(
            mode for mode in demand_class.modes if mode.requirement in served
        )
        servable.append(replace(demand_class, modes=modes))
    hopeless = _hopeless_gangs(servable)
    classes: list[DemandClass] = []
    for demand_class in servable:
        gang = demand_class.gang
        if demand_class.modes and not (gang and gang.gangs in hopeless):
            classes.append(demand_class)
    # A class stands in the set of its requirements; what links classes unites their sets.
    first: dict[Hashable, int] = {}
    for demand_class in classes:
        requirement = demand_class.modes[0].requirement
        sets.unite_all(mode.requirement for mode in demand_class.modes)
        if demand_class.gang:
            link: Hashable = ("gang", demand_class.gang.gangs)
            sets.unite(first.setdefault(link, requirement), requirement)
        if demand_class.namespace:
            sets.unite(first.setdefault("budgets", requirement), requirement)
    classes_by_root = grouped(
        (sets.find(demand_class.modes[0].requirement), demand_class)
        for demand_class in classes
    )
    spaces_by_root = grouped(
        (sets.find(bins + space_index), space)
        for space_index, space in enumerate(spaces)
    )
    return [
        ClassComponent(tuple(members), tuple(spaces_by_root[root]))
        for root, members in classes_by_root.items()
    ]


def _hopeless_gangs(classes: Sequence[DemandClass]) -> set[int]:
    """The classes of gangs that need more members than those that something can serve."""
    able: dict[int, int] = defaultdict(int)
    for demand_class in classes:
        if demand_class.gang and demand_class.modes:
            able[demand_class.gang.gangs] += demand_class.gang.number
    hopeless: set[int] = set()
    for demand_class in classes:
        gang = demand_class.gang
        if gang is None:
            continue
        too_few = able[gang.gangs] < (gang.quorum or 0)
        if too_few or (gang.quorum is None and not demand_class.modes):
            hopeless.add(gang.gangs)
    return hopeless
