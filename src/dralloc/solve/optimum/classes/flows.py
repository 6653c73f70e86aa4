"""Supplies that are not counted by patterns: arc-flows, and counts by topology domain.

An arc-flow (Valerio de Carvalho 1999) serves many sizes of one capacity. Gangs that need one topology domain each are
counted by domain, or, where every pod takes so many equal devices, by an arc-flow over domains.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final, NamedTuple

from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex, summed
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.count_model import (
    GangMember,
    admit,
    dealt_out,
    gangs_of,
)
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    Listed,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.state_space import (
    DomainSupply,
    Pattern,
    PatternSupply,
    Served,
    StateSpace,
    Supply,
)
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.solvers import cp_model

__all__ = [
    "DomainCounts",
    "FlowSource",
    "FlowSupply",
    "as_divisible_flow",
    "as_flow_source",
    "bins_by_domain",
    "flow_supplies",
]

# ----------------------------------------------------------------------------
# Many sizes of one consumable capacity: an arc-flow model of bin packing (Valerio de
# Carvalho 1999).
#
# A shareable device with one capacity that matters is on a path through what can be
# left of it: it starts with what is left now, and each requirement that it serves takes
# it from ``r`` to ``r - size``. Devices are equal but for where they start, so only the
# number of devices on each arc is decided::
#
#     out[r] <= in[r] + (devices that start at r)
#     sum of the requirements of a size that are served <= sum of the arcs of the size
#
# Exact: what a device serves, sorted by size, largest first, is a path, so only arcs
# that such paths use are needed; and a flow falls apart into paths, because at every
# ``r`` no more devices leave than arrive.


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
        arcs = _flow_arcs(set(starting), set(self.sizes.values()))
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


def _flow_arcs(
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


# ----------------------------------------------------------------------------
# Gangs in one topology domain each, whatever their members take: counted by domain.
#
# A *part* is what one domain of each topology has in common. With ``p[c, m, l]``
# demands of class *c* placed in mode *m* in part *l*, and ``a[g, t]`` gangs of class
# *g* admitted in domain *t*, gangs are whole in their domain::
#
#     sum_t a[g, t] <= gangs[g]
#     sum_{l in t, m} p[c, m, l] = members[c] * a[g, t]
#
# (with a quorum as in `dralloc.solve.optimum.classes.count_model`), and in every part
# patterns serve what is placed, and ``free[k, l]`` times requirement *k* for demands
# outside of such gangs::
#
#     sum_{(c, m) with requirement k} p[c, m, l] + free[k, l] <= sum_{j, i} count[i, k] * y[j, i, l]
#
# Exact, as long as no bin reaches into two parts: an answer is one choice of patterns
# for the bins of each part, and which gangs are in a domain together. Of equal gangs
# the first are in the first domain, the next in the second; within a domain members are
# dealt out to its gangs in turn, which gives each of them its quorum for the same
# reason as there.

BinsByDomain = Mapping[tuple[str | None, ...], Mapping[int, list[Bin]]]
"""By part (of each topology the domain, None for none), the bins by the index of their class."""

_At = tuple[int, int]
"""A part and a requirement."""


def bins_by_domain(
    problem: Problem,
    topologies: Sequence[Domains],
    spaces: Iterable[StateSpace],
) -> BinsByDomain | None:
    """The parts; None if the nodes of some bin are in different domains."""
    parts: dict[tuple[str | None, ...], dict[int, list[Bin]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for space_index, space in enumerate(spaces):
        for bin_ in space.bin_class.bins:
            domains_of_nodes = set()
            for node in bin_.nodes:
                name = problem.nodes[node].name
                domains = tuple([topology.get(name) for topology in topologies])
                domains_of_nodes.add(domains)
            if len(domains_of_nodes) > 1:
                return None
            parts[domains][space_index].append(bin_)
    return parts


class DomainCounts(DomainSupply):
    """All parts of a component, by some topologies (their numbers), each with patterns for its bins."""

    def __init__(
        self,
        topologies: Sequence[int],
        parts: BinsByDomain,
        spaces: Sequence[StateSpace],
        patterns: Sequence[Sequence[Pattern]],
    ) -> None:
        self.supplies: list[list[PatternSupply]] = []
        for bins_by_class in parts.values():
            supplies = [
                PatternSupply(spaces[space_index], patterns[space_index], bins)
                for space_index, bins in bins_by_class.items()
            ]
            self.supplies.append(supplies)
        self.domains: dict[int, dict[str, list[int]]] = {
            topology: defaultdict(list) for topology in topologies
        }
        for part, domains in enumerate(parts):
            for topology, domain in zip(topologies, domains, strict=True):
                if domain is not None:
                    self.domains[topology][domain].append(part)
        self._supplied: dict[_At, list[Term]] = defaultdict(list)
        self._free: dict[_At, cp_model.IntVar] = {}
        self._inside: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self._admitted: dict[tuple[int, str], cp_model.IntVar] = {}

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add patterns, and one variable per part and requirement for what is left to others."""
        for part, supplies in enumerate(self.supplies):
            for supply in supplies:
                for requirement, terms in supply.build(cp).items():
                    self._supplied[part, requirement] += terms
        supplied: dict[int, list[Term]] = defaultdict(list)
        for (part, requirement), terms in self._supplied.items():
            name = f"free {part} {requirement}"
            free = cp.new_int_var(0, most_of(terms), name)
            self._free[part, requirement] = free
            supplied[requirement].append((free, 1))
        return supplied

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """Add gangs by domain."""
        used: dict[_At, list[cp_model.IntVar]] = defaultdict(list)
        for cls, demand_class in enumerate(classes):
            if not demand_class.topology:
                continue
            domains = self.domains[demand_class.topology]
            for mode, serving in enumerate(demand_class.modes):
                in_parts = []
                for part in chain.from_iterable(domains.values()):
                    if (part, serving.requirement) not in self._supplied:
                        continue
                    name = f"inside {cls} {mode} {part}"
                    inside = cp.new_int_var(0, demand_class.size, name)
                    self._inside[cls, mode, part] = inside
                    used[part, serving.requirement].append(inside)
                    in_parts.append(inside)
                cp.add(cp_model.LinearExpr.sum(in_parts) == placed[cls][mode])
        for at, terms in self._supplied.items():
            total = cp_model.LinearExpr.sum([self._free[at], *used[at]])
            cp.add(total <= sum_of(terms))
        for gang, members in gangs_of(classes, in_domains=True).items():
            self._admit(cp, gang, members)

    def _admit(
        self, cp: cp_model.CpModel, gang: int, members: Sequence[GangMember]
    ) -> None:
        """Limit the gangs in each domain to those that have all members there which they need."""
        _, first, share = members[0]
        gangs = first.size // share.number
        in_domains = []
        for domain in self.domains[first.topology]:
            admitted = cp.new_int_var(0, gangs, f"admitted {gang} {domain}")
            self._admitted[gang, domain] = admitted
            in_domains.append(admitted)
            placed_inside = []
            for cls, demand_class, _ in members:
                inside = [
                    variable
                    for _, _, variable in self._in(cls, demand_class, domain)
                ]
                placed_inside.append(cp_model.LinearExpr.sum(inside))
            admit(cp, members, placed_inside, admitted)
        cp.add(cp_model.LinearExpr.sum(in_domains) <= gangs)

    def _in(
        self, cls: int, demand_class: DemandClass, domain: str
    ) -> Iterator[tuple[int, ServingMode, cp_model.IntVar]]:
        """Yield the variables of a class in a domain, by part and mode."""
        for part in self.domains[demand_class.topology][domain]:
            for mode, serving in enumerate(demand_class.modes):
                if (cls, mode, part) in self._inside:
                    yield part, serving, self._inside[cls, mode, part]

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Yield what gangs leave of their first servings."""
        free = {
            at: values[variable.index] for at, variable in self._free.items()
        }
        for (part, requirement), served in self._served(values).items():
            start = len(served) - free[part, requirement]
            for serving in served[start:]:
                yield requirement, serving

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[DemandIndex, ...], ServingMode, Served]]:
        """The first gangs of a class are in the first domain, the next in the second."""
        queues = {
            at: iter(served) for at, served in self._served(values).items()
        }
        for gang, members in gangs_of(classes, in_domains=True).items():
            before = 0
            for domain in self.domains[members[0][1].topology]:
                admitted, turn = values[self._admitted[gang, domain].index], 0
                for cls, demand_class, _ in members:
                    inside = list(self._in(cls, demand_class, domain))
                    count = sum(
                        values[variable.index] for _, _, variable in inside
                    )
                    named = dealt_out(
                        demand_class, count, admitted, turn, before
                    )
                    turn += count
                    for part, mode, variable in inside:
                        for _ in range(values[variable.index]):
                            served = next(queues[part, mode.requirement])
                            yield next(named), mode, served
                before += admitted

    def _served(self, values: Sequence[int]) -> Mapping[_At, list[Served]]:
        """By part and requirement, all that is served there."""
        servings: dict[_At, list[Served]] = defaultdict(list)
        for part, supplies in enumerate(self.supplies):
            for supply in supplies:
                for requirement, served in supply.realise(values):
                    servings[part, requirement].append(served)
        return servings


# ----------------------------------------------------------------------------
# Gangs in one domain each, where every pod takes so many equal devices: an arc-flow
# over domains.
#
# If the numbers of devices that pods take divide each other (1, 2, 4), nodes inside of
# a domain need no variables. Pods fit into the bins of a domain if and only if for each
# of these numbers *s*, with ``n[t]`` pods that take *t*::
#
#     sum_{t >= s} t * n[t] <= s * sum_bins floor(devices / s) = limit[s]
#
# For those who take most come first, and a bin that has given *d* devices, a multiple
# of *s*, still has room for ``floor(devices / s) - d / s`` pods that take *s*, however
# *d* came about (bin packing with divisible sizes: Coffman, Garey and Johnson 1987).
#
# So a domain is one bin, and its content a path: through one layer for each *s*, the
# largest first, in which a gang takes all that its members take together. What is left
# begins at ``limit[s]`` of the first layer and grows by the difference of limits from
# one layer to the next. As in `dralloc.solve.optimum.classes.flows` only the number of
# domains on each arc is decided::
#
#     out[state] <= in[state] + (domains that start at the state)
#     sum of the gangs of a size that are admitted = sum of the arcs of the size
#
# A state is a layer, what is left, the growth to come, and which requirements the
# domain can serve. Exact, because a flow falls apart into paths, and any path fits. A
# demand outside of such gangs is a gang of one; bins that are in no domain are sources
# by themselves, for those demands only.
#
# To be shown of a component, so that all this holds (`as_divisible_flow` returns None
# otherwise):
#
# - every requirement is one item group, under no rule, and the numbers of devices
#   divide each other;
# - all devices are dedicated and draw on no counter, and all devices of a domain can
#   serve the same requirements;
# - there is one topology, and all members of a gang that needs a domain of it are of
#   one class with one mode.

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
                for free, size in _flow_arcs(reached[origin], sizes):
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
