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

from ortools.sat.python import cp_model

from dralloc.problem import Problem
from dralloc.problem.grouping import grouped, summed
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
# Bin packing with many sizes of one consumable capacity, as an arc-flow model (Valerio
# de Carvalho 1999).
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
    if min(sizes.values(), default=0) > 0:
        return FlowSource(layout.block[1], sizes, space.bin_class.bins)
    return None


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
"""By part (of each topology the domain, None for none), the bins by the place of their class."""

_At = tuple[int, int]
"""A part and a requirement."""


def bins_by_domain(
    problem: Problem, topologies: Sequence[Domains], spaces: Iterable[StateSpace]
) -> BinsByDomain | None:
    """The parts; None if the nodes of some bin are in different domains."""
    parts: dict[tuple[str | None, ...], dict[int, list[Bin]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for place, space in enumerate(spaces):
        for bin_ in space.bin_class.bins:
            names = [problem.nodes[node].name for node in bin_.nodes]
            [domains, *others] = {
                tuple(each.get(name) for each in topologies) for name in names
            }
            if others:
                return None
            parts[domains][place].append(bin_)
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
        self.supplies = [
            [
                PatternSupply(spaces[place], patterns[place], here)
                for place, here in bins.items()
            ]
            for bins in parts.values()
        ]
        self.domains: dict[int, dict[str, list[int]]] = {
            topology: defaultdict(list) for topology in topologies
        }
        for number, domains in enumerate(parts):
            for topology, domain in zip(topologies, domains, strict=True):
                if domain is not None:
                    self.domains[topology][domain].append(number)
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
        found: dict[int, list[Term]] = defaultdict(list)
        for (part, requirement), terms in self._supplied.items():
            free = self._free[part, requirement] = cp.new_int_var(
                0, most_of(terms), f"free {part} {requirement}"
            )
            found[requirement].append((free, 1))
        return found

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """Add gangs by domain."""
        taken: dict[_At, list[cp_model.IntVar]] = defaultdict(list)
        for cls, each in enumerate(classes):
            for mode, serving in enumerate(each.modes) if each.topology else ():
                mine = []
                for part in chain.from_iterable(self.domains[each.topology].values()):
                    if (part, serving.requirement) not in self._supplied:
                        continue
                    inside = cp.new_int_var(0, each.size, f"inside {cls} {mode} {part}")
                    self._inside[cls, mode, part] = inside
                    taken[part, serving.requirement].append(inside)
                    mine.append(inside)
                cp.add(cp_model.LinearExpr.sum(mine) == placed[cls][mode])
        for at, terms in self._supplied.items():
            cp.add(
                cp_model.LinearExpr.sum([self._free[at], *taken[at]]) <= sum_of(terms)
            )
        for gang, members in gangs_of(classes, in_domains=True).items():
            self._admit(cp, gang, members)

    def _admit(
        self, cp: cp_model.CpModel, gang: int, members: Sequence[GangMember]
    ) -> None:
        """As many gangs in each domain as have there all members that they need."""
        _, first, share = members[0]
        gangs, every = first.size // share.number, []
        for domain in self.domains[first.topology]:
            admitted = self._admitted[gang, domain] = cp.new_int_var(
                0, gangs, f"admitted {gang} {domain}"
            )
            every.append(admitted)
            inside = [
                [variable for _, _, variable in self._in(cls, each, domain)]
                for cls, each, _ in members
            ]
            admit(cp, members, list(map(cp_model.LinearExpr.sum, inside)), admitted)
        cp.add(cp_model.LinearExpr.sum(every) <= gangs)

    def _in(
        self, cls: int, each: DemandClass, domain: str
    ) -> Iterator[tuple[int, ServingMode, cp_model.IntVar]]:
        """What is placed of a class in a domain, by part and mode."""
        for part in self.domains[each.topology][domain]:
            for mode, serving in enumerate(each.modes):
                if (cls, mode, part) in self._inside:
                    yield part, serving, self._inside[cls, mode, part]

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """What gangs leave of their first servings."""
        free = {at: values[variable.index] for at, variable in self._free.items()}
        for (part, requirement), served in self._served(values).items():
            left = free[part, requirement]
            yield from ((requirement, each) for each in served[len(served) - left :])

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], ServingMode, Served]]:
        """The first gangs of a class are in the first domain, the next in the second."""
        queues = {at: iter(served) for at, served in self._served(values).items()}
        for gang, members in gangs_of(classes, in_domains=True).items():
            before = 0
            for domain in self.domains[members[0][1].topology]:
                admitted, turn = values[self._admitted[gang, domain].index], 0
                for cls, each, _ in members:
                    here = list(self._in(cls, each, domain))
                    number = sum(values[inside.index] for _, _, inside in here)
                    named = dealt_out(each, number, admitted, turn, before)
                    turn += number
                    for part, mode, inside in here:
                        for _ in range(values[inside.index]):
                            yield (
                                next(named),
                                mode,
                                next(queues[part, mode.requirement]),
                            )
                before += admitted

    def _served(self, values: Sequence[int]) -> Mapping[_At, list[Served]]:
        """By part and requirement, all that is served there."""
        return grouped(
            ((part, requirement), served)
            for part, supplies in enumerate(self.supplies)
            for supply in supplies
            for requirement, served in supply.realise(values)
        )


# ----------------------------------------------------------------------------
# Gangs in one domain each, where every pod takes so many equal devices of a node: an
# arc-flow over domains.
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

NOBODY: Final = -1
"""The class of those who are in no gang that needs a domain."""

_MOST_ARCS: Final = 200_000
"""With more of them, domains are better looked at one by one."""


class Boarding(NamedTuple):
    """What takes devices of one domain: members of a gang of a class (an index), or one other demand (`NOBODY`).

    ``layer``: the place of the number of devices that each takes; ``size``: what all take together.
    """

    requirement: int
    cls: int
    members: int
    layer: int
    size: int


class FlowState(NamedTuple):
    """Where domains of a sort are on their way: with so many devices left in a layer.

    ``growth``: by how much that grows from each layer to the next.
    """

    layer: int
    growth: tuple[int, ...]
    sort: int
    left: int


class _Trip(NamedTuple):
    """The way of a domain, or of a bin in none: its bins, and what boards there."""

    bins: Sequence[Bin]
    boarded: list[Boarding]

    def served(self, steps: Sequence[int]) -> Iterator[tuple[Boarding, list[Served]]]:
        """Those whose members take most come first, and take from the first bins that have enough."""
        left = [bin_.devices for bin_ in self.bins]
        for one in sorted(self.boarded, key=lambda each: each.layer):
            served, number = [], steps[one.layer]
            for _ in range(one.members):
                place = next(
                    place
                    for place, devices in enumerate(left)
                    if len(devices) >= number
                )
                taken, left[place] = left[place][:number], left[place][number:]
                served.append(
                    Served((tuple(sorted(taken)),), self.bins[place].nodes[0])
                )
            yield one, served


class DivisibleFlow(DomainSupply):
    """Domains on a common flow. ``steps``: the numbers of devices that demands take, by layer."""

    def __init__(self, steps: Sequence[int], boardings: Sequence[Boarding]) -> None:
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
        mine = tuple(
            number
            for number, one in enumerate(self.boardings)
            if one.requirement in able and (is_domain or one.cls == NOBODY)
        )
        limits = [
            step * sum(len(bin_.units) // step for bin_ in bins) for step in self.steps
        ]
        growth = tuple(after - before for before, after in pairwise(limits))
        state = FlowState(0, growth, self._sorts.number(mine), limits[0])
        self._sources[state].append(bins)

    def connect(self) -> bool:
        """Find all arcs; returns whether they are few enough."""
        reached: dict[FlowState, set[int]] = defaultdict(set)
        for state in self._sources:
            reached[state._replace(left=0)].add(state.left)
        for layer in range(len(self.steps)):
            for here in [each for each in reached if each.layer == layer]:
                mine = (self.boardings[number] for number in self._sorts[here.sort])
                sizes = {one.size for one in mine if one.layer == layer}
                for left, size in flow_arcs(reached[here], sizes):
                    self._arcs.append(
                        (
                            here._replace(left=left),
                            size,
                            here._replace(left=left - size),
                        )
                    )
                for left in reached[here] if here.growth else ():
                    after = FlowState(
                        layer + 1, here.growth[1:], here.sort, left + here.growth[0]
                    )
                    self._arcs.append((here._replace(left=left), 0, after))
                    reached[after._replace(left=0)].add(after.left)
                if len(self._arcs) > _MOST_ARCS:
                    return False
        return True

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add one variable per arc, and one per boarding and sort of domains."""
        most = sum(map(len, self._sources.values()))
        self._flow = [
            cp.new_int_var(0, most, f"flow {arc}") for arc in range(len(self._arcs))
        ]
        leaving: dict[FlowState, list[Term]] = defaultdict(list)
        of_size: dict[tuple[int, int, int], list[Term]] = defaultdict(list)
        for (before, size, after), flow in zip(self._arcs, self._flow, strict=True):
            leaving[before].append((flow, 1))
            leaving[after].append((flow, -1))
            if size:
                of_size[before.sort, before.layer, size].append((flow, -1))
        for state, terms in leaving.items():
            cp.add(sum_of(terms) <= len(self._sources.get(state, ())))
        found: dict[int, list[Term]] = defaultdict(list)
        for sort, boardings in enumerate(self._sorts):
            for number in boardings:
                one = self.boardings[number]
                arcs = of_size.get((sort, one.layer, one.size))
                if arcs:
                    boarded = cp.new_int_var(
                        0,
                        sum(flow.domain.max() for flow, _ in arcs),
                        f"boarded {number} {sort}",
                    )
                    arcs.append((boarded, 1))
                    self._boarded[number, sort] = boarded
                    if one.cls == NOBODY:
                        found[one.requirement].append((boarded, 1))
        # As many, for a path without what nobody uses is a path as well.
        for terms in of_size.values():
            cp.add(sum_of(terms) == 0)
        return found

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """As many members are placed as board, of no more gangs than there are."""
        every = (
            (self.boardings[number], variable)
            for (number, _), variable in self._boarded.items()
        )
        boarded = grouped((one.cls, (variable, one.members)) for one, variable in every)
        for cls, each in enumerate(classes):
            if each.topology and each.gang:
                cp.add(sum_of(boarded[cls]) == placed[cls][0])
                gangs = cp_model.LinearExpr.sum(
                    [variable for variable, _ in boarded[cls]]
                )
                cp.add(gangs <= each.size // each.gang.number)

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Everything that boards alone."""
        for one, served in self._everything(values):
            if one.cls == NOBODY:
                yield one.requirement, served[0]

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], ServingMode, Served]]:
        """The first members of the first gangs of each class."""
        gangs: Tally[int] = Tally()
        for one, served in self._everything(values):
            if one.cls != NOBODY:
                each = classes[one.cls]
                assert each.gang
                first = gangs[one.cls] * each.gang.number
                gangs[one.cls] += 1
                for member, got in zip(
                    each.joint_demands[first:], served, strict=False
                ):
                    yield member, each.modes[0], got

    def _everything(
        self, values: Sequence[int]
    ) -> Iterator[tuple[Boarding, list[Served]]]:
        for trip in self._trips(values):
            yield from trip.served(self.steps)

    def _trips(self, values: Sequence[int]) -> list[_Trip]:
        """Send the domains along the arcs; of a size, boardings come in their order."""
        waiting = {
            state: [_Trip(bins, []) for bins in each]
            for state, each in self._sources.items()
        }
        trips = [trip for each in waiting.values() for trip in each]
        stops: dict[tuple[int, int, int], list[_Trip]] = defaultdict(list)
        arcs = sorted(
            zip(self._arcs, self._flow, strict=True),
            key=lambda each: (each[0][0].layer, -each[0][0].left),
        )
        for (before, size, after), flow in arcs:
            for _ in range(values[flow.index]):
                trip = waiting[before].pop()
                stops[before.sort, before.layer, size].append(trip)
                waiting.setdefault(after, []).append(trip)
        for (number, sort), variable in self._boarded.items():
            one = self.boardings[number]
            for _ in range(values[variable.index]):
                stops[sort, one.layer, one.size].pop().boarded.append(one)
        return trips


def as_divisible_flow(
    classes: Sequence[DemandClass],
    parts: BinsByDomain,
    spaces: Sequence[StateSpace],
    requirements: Sequence[Requirement],
) -> DivisibleFlow | None:
    """The parts of a component as one flow; None if they are none (see above), or would have too many arcs."""
    wanted = {mode.requirement for each in classes for mode in each.modes}
    steps = sorted({requirements[number].devices for number in wanted}, reverse=True)
    gangs = [each for each in classes if each.topology]
    if (
        any(larger % smaller for larger, smaller in pairwise(steps))
        or any(
            len(requirements[number].item_groups) > 1 or requirements[number].rules
            for number in wanted
        )
        or any(len(each.modes) > 1 for each in gangs)
        or len({each.gang and each.gang.gangs for each in gangs}) < len(gangs)
        or len({each.topology for each in gangs}) > 1
    ):
        return None
    able = [_able(space, requirements, wanted) for space in spaces]
    flow = DivisibleFlow(steps, list(_boardings(classes, requirements, steps)))
    for domains, by_class in parts.items():
        [mine, *others] = {able[place] for place in by_class}
        if mine is None or others:
            return None
        every, is_domain = (
            [bin_ for bins in by_class.values() for bin_ in bins],
            domains[0] is not None,
        )
        for bins in [every] if is_domain else [[bin_] for bin_ in every]:
            flow.enter(bins, mine, is_domain=is_domain)
    return flow if flow.connect() else None


def _boardings(
    classes: Sequence[DemandClass],
    requirements: Sequence[Requirement],
    steps: Sequence[int],
) -> Iterator[Boarding]:
    alone = {
        mode.requirement for each in classes if not each.topology for mode in each.modes
    }
    for requirement in sorted(alone):
        devices = requirements[requirement].devices
        yield Boarding(requirement, NOBODY, 1, steps.index(devices), devices)
    for cls, each in enumerate(classes):
        if each.topology and each.gang:
            requirement = each.modes[0].requirement
            devices = requirements[requirement].devices
            fewest = (
                each.gang.number
                if each.gang.quorum is None
                else max(1, each.gang.quorum)
            )
            for members in range(fewest, each.gang.number + 1):
                yield Boarding(
                    requirement, cls, members, steps.index(devices), members * devices
                )


def _able(
    space: StateSpace, requirements: Sequence[Requirement], wanted: Iterable[int]
) -> frozenset[int] | None:
    """The requirements that devices of the bins can serve; None if one can and another cannot, or not alone."""
    units, profiles = space.bin_class.units, space.profiles
    if len(space.node_sets) > 1 or any(
        len(unit.devices) > 1 or unit.free for unit in units
    ):
        return None
    devices = [unit.devices[0] for unit in units]
    if any(device.shareable or device.consumes for device in devices):
        return None
    types = {
        frozenset(type_ for type_, _ in profiles[device.profile]) for device in devices
    }
    able = {
        frozenset(
            number
            for number in wanted
            if requirements[number].nodes in space.node_sets[0]
            and requirements[number].item_groups[0].type in each
        )
        for each in types
    }
    return able.pop() if len(able) == 1 else None
