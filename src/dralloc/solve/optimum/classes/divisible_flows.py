"""Gangs in one domain each, where every pod takes so many equal devices: an arc-flow over domains.

If the numbers of devices that pods take divide each other (1, 2, 4), nodes inside of
a domain need no variables. Pods fit into the bins of a domain if and only if for each
of these numbers *s*, with ``n[t]`` pods that take *t*::

    sum_{t >= s} t * n[t] <= s * sum_bins floor(devices / s) = limit[s]

For those who take most come first, and a bin that has given *d* devices, a multiple
of *s*, still has room for ``floor(devices / s) - d / s`` pods that take *s*, however
*d* came about (bin packing with divisible sizes: Coffman, Garey and Johnson 1987).

So a domain is one bin, and its content a path: through one layer for each *s*, the
largest first, in which a gang takes all that its members take together. What is left
begins at ``limit[s]`` of the first layer and grows by the difference of limits from
one layer to the next. As in `dralloc.solve.optimum.classes.flow_supplies` only the number of
domains on each arc is decided::

    out[state] <= in[state] + (domains that start at the state)
    sum of the gangs of a size that are admitted = sum of the arcs of the size

A state is a layer, what is left, the growth to come, and which requirements the
domain can serve. Exact, because a flow falls apart into paths, and any path fits. A
demand outside of such gangs is a gang of one; bins that are in no domain are sources
by themselves, for those demands only.

To be shown of a component, so that all this holds (`as_divisible_flow` returns None
otherwise):

- every requirement is one item group, under no rule, and the numbers of devices
  divide each other;
- all devices are dedicated and draw on no counter, and all devices of a domain can
  serve the same requirements;
- there is one topology, and all members of a gang that needs a domain of it are of
  one class with one mode.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from dralloc.problem.indices import DemandIndex
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.domain_counts import BinsByDomain
from dralloc.solve.optimum.classes.flow_supplies import flow_arcs
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import DomainSupply, Served
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.solvers import cp_model

__all__ = ["as_divisible_flow"]

_MOST_ARCS: Final = 200_000
"""With more of them, domains are better looked at one by one."""


class Boarding(NamedTuple):
    """A demand for devices of one domain: of some members of a gang that needs one domain, or of one other demand.

    Parameters
    ----------
    gang_class
        The class of the gang's members, by index; None for a demand that may be in any domain.
    layer
        The place of the number of devices that each member takes.
    size
        The devices that all of them take together.
    """

    requirement: int
    gang_class: int | None
    members: int
    layer: int
    size: int


class FlowState(NamedTuple):
    """A state of domains of a sort on their way: with so many devices free in a layer.

    ``growth``: by how much that grows from each layer to the next.
    """

    layer: int
    growth: tuple[int, ...]
    sort: int
    free: int


class _Trip(NamedTuple):
    """The way of a domain, or of a bin in none: its bins, and what boards there."""

    bins: Sequence[Bin]
    boarded: list[Boarding]

    def served(
        self, steps: Sequence[int]
    ) -> Iterator[tuple[Boarding, list[Served]]]:
        """Serve the members with the largest requests first, from the first bins that have enough."""
        free = [bin_.devices for bin_ in self.bins]
        for boarding in sorted(
            self.boarded, key=lambda boarding: boarding.layer
        ):
            served, count = [], steps[boarding.layer]
            for _ in range(boarding.members):
                bin_index = 0
                while len(free[bin_index]) < count:
                    bin_index += 1
                devices, free[bin_index] = (
                    free[bin_index][:count],
                    free[bin_index][count:],
                )
                node = self.bins[bin_index].nodes[0]
                served.append(Served((tuple(sorted(devices)),), node))
            yield boarding, served


class DivisibleFlow(DomainSupply):
    """Domains on a common flow. ``steps``: the numbers of devices that demands take, by layer."""

    def __init__(
        self, steps: Sequence[int], boardings: Sequence[Boarding]
    ) -> None:
        self.steps = steps
        self.boardings = boardings
        self._sorts: Listed[tuple[int, ...]] = Listed()
        self._sources: dict[FlowState, list[Sequence[Bin]]] = defaultdict(list)
        self._arcs: list[tuple[FlowState, int, FlowState]] = []
        self._flow: list[cp_model.IntVar] = []
        self._boarded: dict[tuple[int, int], cp_model.IntVar] = {}

    def enter(
        self, bins: Sequence[Bin], able: Collection[int], *, is_domain: bool
    ) -> None:
        """Enter a domain, or a bin in none, by the requirements that it can serve."""
        possible = tuple(
            boarding_index
            for boarding_index, boarding in enumerate(self.boardings)
            if boarding.requirement in able
            and (is_domain or boarding.gang_class is None)
        )
        limits = []
        for step in self.steps:
            fitting = sum(len(bin_.units) // step for bin_ in bins)
            limits.append(step * fitting)
        growth = tuple(after - before for before, after in pairwise(limits))
        state = FlowState(0, growth, self._sorts.number(possible), limits[0])
        self._sources[state].append(bins)

    def connect(self) -> bool:
        """Find all arcs; returns whether they are few enough."""
        reached: dict[FlowState, set[int]] = defaultdict(set)
        # By state without what is free: the amounts with which it can be reached.
        for state in self._sources:
            reached[state._replace(free=0)].add(state.free)
        for layer in range(len(self.steps)):
            for origin in [state for state in reached if state.layer == layer]:
                boardings = [
                    self.boardings[n] for n in self._sorts[origin.sort]
                ]
                sizes = {
                    boarding.size
                    for boarding in boardings
                    if boarding.layer == layer
                }
                for free, size in flow_arcs(reached[origin], sizes):
                    before = origin._replace(free=free)
                    after = origin._replace(free=free - size)
                    self._arcs.append((before, size, after))
                if origin.growth:
                    # On to the next layer, in which more is free.
                    growth, *growth_behind = origin.growth
                    for free in reached[origin]:
                        before = origin._replace(free=free)
                        after = FlowState(
                            layer + 1,
                            tuple(growth_behind),
                            origin.sort,
                            free + growth,
                        )
                        self._arcs.append((before, 0, after))
                        reached[after._replace(free=0)].add(after.free)
                if len(self._arcs) > _MOST_ARCS:
                    return False
        return True

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per arc, and one per boarding and sort of domains."""
        domain_count = sum(map(len, self._sources.values()))
        self._flow = [
            cp.new_int_var(0, domain_count, f"flow {arc}")
            for arc in range(len(self._arcs))
        ]
        leaving: dict[FlowState, list[Term]] = defaultdict(list)
        of_size: dict[tuple[int, int, int], list[Term]] = defaultdict(list)
        for (before, size, after), flow in zip(
            self._arcs, self._flow, strict=True
        ):
            leaving[before].append((flow, 1))
            leaving[after].append((flow, -1))
            if size:
                of_size[before.sort, before.layer, size].append((flow, -1))
        for state, terms in leaving.items():
            cp.add(sum_of(terms) <= len(self._sources.get(state, ())))
        supplied: dict[int, list[Term]] = defaultdict(list)
        for sort, boardings in enumerate(self._sorts):
            for boarding_index in boardings:
                boarding = self.boardings[boarding_index]
                arcs = of_size.get((sort, boarding.layer, boarding.size))
                if not arcs:
                    continue
                most_boarded = sum(flow.domain.max() for flow, _ in arcs)
                name = f"boarded {boarding_index} {sort}"
                boarded = cp.new_int_var(0, most_boarded, name)
                arcs.append((boarded, 1))
                self._boarded[boarding_index, sort] = boarded
                if boarding.gang_class is None:
                    supplied[boarding.requirement].append((boarded, 1))
        # As many, for a path without what nobody uses is a path as well.
        for terms in of_size.values():
            cp.add(sum_of(terms) == 0)
        return supplied

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """As many members are placed as board, of no more gangs than there are."""
        boarded: dict[int, list[Term]] = defaultdict(list)
        for (boarding_index, _), variable in self._boarded.items():
            boarding = self.boardings[boarding_index]
            if boarding.gang_class is not None:
                terms = boarded[boarding.gang_class]
                terms.append((variable, boarding.members))
        for cls, demand_class in enumerate(classes):
            if demand_class.topology and demand_class.gang:
                cp.add(sum_of(boarded[cls]) == placed[cls][0])
                gangs = cp_model.LinearExpr.sum(
                    [variable for variable, _ in boarded[cls]]
                )
                cp.add(gangs <= demand_class.size // demand_class.gang.number)

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Yield everything that boards alone."""
        for boarding, served in self._everything(values):
            if boarding.gang_class is None:
                yield boarding.requirement, served[0]

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[DemandIndex, ...], ServingMode, Served]]:
        """The first members of the first gangs of each class."""
        gangs: Tally[int] = Tally()
        for boarding, servings in self._everything(values):
            if boarding.gang_class is None:
                continue
            demand_class = classes[boarding.gang_class]
            assert demand_class.gang
            first = gangs[boarding.gang_class] * demand_class.gang.number
            gangs[boarding.gang_class] += 1
            # With a quorum fewer may board than a gang has.
            members = demand_class.joint_demands[first:]
            for member, served in zip(members, servings, strict=False):
                yield member, demand_class.modes[0], served

    def _everything(
        self, values: Sequence[int]
    ) -> Iterator[tuple[Boarding, list[Served]]]:
        for trip in self._trips(values):
            yield from trip.served(self.steps)

    def _trips(self, values: Sequence[int]) -> list[_Trip]:
        """Send the domains along the arcs; of a size, boardings come in their order."""
        waiting: dict[FlowState, list[_Trip]] = defaultdict(list)
        trips: list[_Trip] = []
        for state, sources in self._sources.items():
            for bins in sources:
                trip = _Trip(bins, [])
                waiting[state].append(trip)
                trips.append(trip)
        stops: dict[tuple[int, int, int], list[_Trip]] = defaultdict(list)
        # Layer by layer, and the fullest first, so that all who come are there in time.
        arcs = sorted(zip(self._arcs, self._flow, strict=True), key=_arc_order)
        for (before, size, after), flow in arcs:
            for _ in range(values[flow.index]):
                trip = waiting[before].pop()
                stops[before.sort, before.layer, size].append(trip)
                waiting[after].append(trip)
        for (boarding_index, sort), variable in self._boarded.items():
            boarding = self.boardings[boarding_index]
            at_size = stops[sort, boarding.layer, boarding.size]
            for _ in range(values[variable.index]):
                at_size.pop().boarded.append(boarding)
        return trips


def _arc_order(
    entry: tuple[tuple[FlowState, int, FlowState], cp_model.IntVar],
) -> tuple[int, int]:
    (before, _, _), _ = entry
    return before.layer, -before.free


def as_divisible_flow(
    classes: Sequence[DemandClass],
    parts: BinsByDomain,
    spaces: Sequence[StateSpace],
    requirements: Sequence[Requirement],
) -> DivisibleFlow | None:
    """The parts of a component as one flow; None if they are none (see above), or would have too many arcs."""
    asked_for = {
        mode.requirement
        for demand_class in classes
        for mode in demand_class.modes
    }
    steps = sorted(
        {requirements[requirement].devices for requirement in asked_for},
        reverse=True,
    )
    if any(larger % smaller for larger, smaller in pairwise(steps)):
        return None
    for requirement in asked_for:
        if (
            len(requirements[requirement].item_groups) > 1
            or requirements[requirement].rules
        ):
            return None
    members = [
        demand_class for demand_class in classes if demand_class.topology
    ]
    if any(len(demand_class.modes) > 1 for demand_class in members):
        return None
    # All members of a gang are of one class.
    gangs = {member.gang and member.gang.gangs for member in members}
    if len(gangs) < len(members):
        return None
    if len({demand_class.topology for demand_class in members}) > 1:
        return None
    able = [_able(space, requirements, asked_for) for space in spaces]
    flow = DivisibleFlow(steps, list(_boardings(classes, requirements, steps)))
    for domains, by_class in parts.items():
        able_here = {able[space_index] for space_index in by_class}
        if len(able_here) > 1:
            return None
        [served_here] = able_here
        if served_here is None:
            return None
        bins = list(chain.from_iterable(by_class.values()))
        if domains[0] is not None:
            flow.enter(bins, served_here, is_domain=True)
            continue
        for bin_ in bins:
            flow.enter([bin_], served_here, is_domain=False)
    if flow.connect():
        return flow
    return None


def _boardings(
    classes: Sequence[DemandClass],
    requirements: Sequence[Requirement],
    steps: Sequence[int],
) -> Iterator[Boarding]:
    alone: set[int] = set()
    for demand_class in classes:
        if not demand_class.topology:
            alone.update(mode.requirement for mode in demand_class.modes)
    for requirement in sorted(alone):
        devices = requirements[requirement].devices
        layer = steps.index(devices)
        yield Boarding(requirement, None, 1, layer, devices)
    for cls, demand_class in enumerate(classes):
        gang = demand_class.gang
        if not demand_class.topology or gang is None:
            continue
        requirement = demand_class.modes[0].requirement
        devices = requirements[requirement].devices
        layer = steps.index(devices)
        fewest = gang.number if gang.quorum is None else max(1, gang.quorum)
        for members in range(fewest, gang.number + 1):
            yield Boarding(requirement, cls, members, layer, members * devices)


def _able(
    space: StateSpace,
    requirements: Sequence[Requirement],
    asked_for: Iterable[int],
) -> frozenset[int] | None:
    """The requirements that devices of the bins can serve; None if one can and another cannot, or not alone."""
    # The proof needs dedicated devices that draw on no counter, each a unit alone, within reach of one node.
    units, profiles = space.bin_class.units, space.profiles
    if len(space.node_sets) > 1:
        return None
    if any(len(unit.devices) > 1 or unit.free for unit in units):
        return None
    devices = [unit.devices[0] for unit in units]
    if any(device.shareable or device.consumes for device in devices):
        return None
    reachable = [
        requirement
        for requirement in asked_for
        if requirements[requirement].nodes in space.node_sets[0]
    ]
    # They must not differ in what they can serve: otherwise it would matter which of them a pod takes.
    able: set[frozenset[int]] = set()
    for profile in {device.profile for device in devices}:
        types = {item_type for item_type, _ in profiles[profile]}
        able.add(
            frozenset(
                requirement
                for requirement in reachable
                if requirements[requirement].item_groups[0].type in types
            )
        )
    return able.pop() if len(able) == 1 else None
