"""The formulation over counts: how many demands of each class are served in which mode.

With gangs, of which so many are admitted, and packing goals, which are sums over bins and servings.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace
from itertools import combinations, pairwise
from typing import Final

from ortools.sat.python import cp_model

from dralloc.objects.choices import Goal
from dralloc.objects.errors import DrallocError
from dralloc.objects.user_rules import Budget
from dralloc.problem import Charge, Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.candidates import touched_before, units
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import (
    BudgetedAmounts,
    DemandClass,
    GangShare,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.serving_modes import granted_with
from dralloc.solve.optimum.classes.state_space import (
    Costing,
    DomainSupply,
    Pattern,
    PatternSupply,
    Served,
    Supply,
)
from dralloc.solve.optimum.rows import Term, WeightTier, fix_cost, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "CountModel",
    "Counted",
    "GangMember",
    "admit",
    "dealt_out",
    "gangs_of",
    "goal_terms",
    "placements_of",
    "with_goal",
]

# ----------------------------------------------------------------------------
# Gangs over classes: so many of equal gangs are admitted, and each of these has the
# members that it needs.
#
# For a class *g* of equal gangs, with ``members[c]`` demands of class *c* in each of
# them, all of which are needed::
#
#     sum_m placed[c, m] = members[c] * admitted[g]
#
# If a quorum of them will do (KEP-4671)::
#
#     sum_m placed[c, m] <= members[c] * admitted[g]
#     sum_{c, m} placed[c, m] >= quorum * admitted[g]
#
# That is exact: dealing out the demands that are placed to the admitted gangs in turn,
# class after class, gives each of them no more than its members, and all of them the
# same number but for one.

GangMember = tuple[int, DemandClass, GangShare]
"""A demand class, with its number and its share of a gang."""


def gangs_of(
    classes: Sequence[DemandClass], *, in_domains: bool
) -> Mapping[int, list[GangMember]]:
    """The classes of members, by class of gangs: of those that need a domain, or of the others."""
    return grouped(
        (each.gang.gangs, (cls, each, each.gang))
        for cls, each in enumerate(classes)
        if each.gang and bool(each.topology) == in_domains
    )


def admit(
    cp: cp_model.CpModel,
    members: Sequence[GangMember],
    placed: Sequence[cp_model.LinearExprT],
    admitted: cp_model.IntVar,
) -> None:
    """Add the rows above: of each class so many are placed, and so many gangs are admitted."""
    quorum = None
    for (_, _, (_, number, quorum)), here in zip(members, placed, strict=True):
        cp.add(
            here == number * admitted if quorum is None else here <= number * admitted
        )
    if quorum is not None:
        cp.add(cp_model.LinearExpr.sum(placed) >= quorum * admitted)


class AdmittedGangs:
    """How many gangs of each class are admitted, but for those that must be in one domain.

    ``missed``: for each class, how many of its joint demands are not placed.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
    ) -> None:
        self._admitted: dict[int, cp_model.IntVar] = {}
        for gang, members in gangs_of(classes, in_domains=False).items():
            _, first, share = members[0]
            self._admitted[gang] = cp.new_int_var(
                0, first.size // share.number, f"admitted {gang}"
            )
            admit(
                cp,
                members,
                [each.size - missed[cls] for cls, each, _ in members],
                self._admitted[gang],
            )

    def placed_members(
        self,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
        values: Sequence[int],
    ) -> Iterator[Iterator[tuple[int, ...]]]:
        """For each class the joint demands that are placed: the first; in gangs with a quorum the first of each."""
        dealt: dict[int, int] = defaultdict(int)
        for each, missing in zip(classes, missed, strict=True):
            number = each.size - values[missing.index]
            if each.gang is None or each.gang.quorum is None or each.topology:
                yield iter(each.joint_demands[:number])
                continue
            admitted, turn = (
                values[self._admitted[each.gang.gangs].index],
                dealt[each.gang.gangs],
            )
            dealt[each.gang.gangs] += number
            yield dealt_out(each, number, admitted, turn)


def dealt_out(
    each: DemandClass, number: int, admitted: int, turn: int, before: int = 0
) -> Iterator[tuple[int, ...]]:
    """So many joint demands of a class, from the turn on to one admitted gang after the other.

    ``before``: how many gangs come before these.
    """
    assert each.gang
    for place in range(number):
        gang = before + (turn + place) % admitted
        yield each.joint_demands[gang * each.gang.number + place // admitted]


# ----------------------------------------------------------------------------
# The formulation over counts: how many demands of each class are served in which mode.
#
# For demand classes *c* with modes *m*, and requirements *k*::
#
#     sum_m placed[c, m] + missed[c] = size[c]
#     sum_{(c, m) with requirement k} placed[c, m] <= supply[k]
#
# and gangs as in `dralloc.solve.optimum.classes.count_model` (those that must be in one
# domain: as their `DomainSupply` says), the supply in the variables of the bin classes
# (see `dralloc.solve.optimum.classes.state_space`). The first tiers are ``sum weight[c]
# * missed[c]`` and ``sum rank[m] * placed[c, m]``. A namespace with a budget uses ``sum
# amount[m] * placed[c, m]`` over its classes. Demands of a class are interchangeable,
# as are bins of a class, so every answer has an image here, and every image can be
# given names again at the same cost.


@dataclass(frozen=True, slots=True)
class Counted:
    """A component over classes.

    Parameters
    ----------
    classes
        The demand classes, each with the modes that have any supply.
    supplies
        What there is to serve them, by classes of equals.
    requirements
        What the numbers of requirements stand for.
    amounts
        What requirements use of what namespaces have budgets of.
    evenly
        Whether names are given such that nodes get about as many demands.
    """

    classes: Sequence[DemandClass]
    supplies: Sequence[Supply]
    requirements: Sequence[Requirement]
    amounts: BudgetedAmounts
    evenly: bool = False

    @property
    def demands(self) -> list[int]:
        """All demands, in order."""
        return sorted(member for each in self.classes for member in each.members)

    @property
    def has_budgets(self) -> bool:
        """Whether it has demands of namespaces with budgets."""
        return any(each.namespace for each in self.classes)


class CountModel:
    """A model of a component over classes. No namespace takes more than its budget leaves."""

    def __init__(self, counted: Counted, budgets: Sequence[Budget]) -> None:
        self.counted = counted
        self._servings: dict[int, dict[int, cp_model.IntVar]] = {}
        self.budgets = budgets
        self.cp = cp_model.CpModel()
        classes = counted.classes
        self.missed = [
            self.cp.new_int_var(0, each.size, f"missed {n}")
            for n, each in enumerate(classes)
        ]
        self.placed = [
            [
                self.cp.new_int_var(0, each.size, f"placed {n} {mode.picks}")
                for mode in each.modes
            ]
            for n, each in enumerate(classes)
        ]
        for each, missed, placed in zip(classes, self.missed, self.placed, strict=True):
            self.cp.add(cp_model.LinearExpr.sum([missed, *placed]) == each.size)
        self._gangs = AdmittedGangs(self.cp, classes, self.missed)
        self._supplied = [supply.build(self.cp) for supply in counted.supplies]
        self._suffice(self._supplied)
        for by_domain in self._by_domain():
            by_domain.tie(self.cp, classes, self.placed)
        for budget in budgets:
            uses = list(self.uses(budget))
            if budget.left is not None and uses:
                fix_cost(
                    self.cp,
                    uses,
                    budget.left,
                    f"cap {budget.namespace}={budget.resource}",
                )

    def _by_domain(self) -> Iterator[DomainSupply]:
        return (
            supply
            for supply in self.counted.supplies
            if isinstance(supply, DomainSupply)
        )

    def _suffice(self, supplied: Iterable[Mapping[int, Sequence[Term]]]) -> None:
        """Of each requirement at least as much is supplied as is placed."""
        all_of = grouped(
            (requirement, term)
            for each in supplied
            for requirement, mine in each.items()
            for term in mine
        )
        wanted = (
            (mode.requirement, (variable, -1))
            for cls, mode, variable in self._modes()
            if not cls.topology
        )
        for requirement, terms in grouped(wanted).items():
            self.cp.add(sum_of([*all_of[requirement], *terms]) >= 0)

    def limit_servings(
        self, supplies: Iterable[int]
    ) -> Mapping[int, Mapping[int, cp_model.IntVar]]:
        """Variables for how much some supplies really serve, by number of supply and requirement."""
        kept = list(self._supplied)
        for number in supplies:
            mine = self._servings[number] = {}
            for requirement, terms in self._supplied[number].items():
                mine[requirement] = self.cp.new_int_var(
                    0, most_of(terms), f"servings {number} {requirement}"
                )
                self.cp.add(mine[requirement] <= sum_of(terms))
            kept[number] = {
                requirement: [(servings, 1)] for requirement, servings in mine.items()
            }
        self._suffice(kept)
        return self._servings

    def _modes(self) -> Iterator[tuple[DemandClass, ServingMode, cp_model.IntVar]]:
        for each, placed in zip(self.counted.classes, self.placed, strict=True):
            for mode, variable in zip(each.modes, placed, strict=True):
                yield each, mode, variable

    def uses(self, budget: Budget) -> Iterator[Term]:
        """What the demands of the budget's namespace use."""
        amounts = self.counted.amounts[budget.resource]
        for each, mode, variable in self._modes():
            if each.namespace == budget.namespace and amounts[mode.requirement]:
                yield variable, amounts[mode.requirement]

    def missed_weight(self, tier: WeightTier) -> list[Term]:
        """The cost of a tier of the weight."""
        whole = [
            (missed, each.missed_weight(tier))
            for each, missed in zip(self.counted.classes, self.missed, strict=True)
        ]
        parts = (
            (variable, each.missed_weight(tier, mode))
            for each, mode, variable in self._modes()
        )
        return [*whole, *((variable, weight) for variable, weight in parts if weight)]

    def ranks(self) -> list[Term]:
        """The cost of the last tier."""
        return [
            (variable, mode.rank) for _, mode, variable in self._modes() if mode.rank
        ]

    def placements(self, problem: Problem, values: Sequence[int]) -> list[Placement]:
        """Give names to an answer: the first demands of each class are placed, in the order of the inventory.

        Raises
        ------
        DrallocError
            There is less than the variables say. It never happens unless the formulation is wrong.
        """
        queues, classes = self._served(values), self.counted.classes
        found: list[Placement] = []
        for supply in self._by_domain():
            for joint, mode, served in supply.realise_gangs(classes, values):
                found += placements_of(problem, joint, mode, served)
        members = self._gangs.placed_members(classes, self.missed, values)
        for each, placed, named in zip(classes, self.placed, members, strict=True):
            for mode, variable in (
                () if each.topology else zip(each.modes, placed, strict=True)
            ):
                for _ in range(values[variable.index]):
                    got = next(queues[mode.requirement], None)
                    if got is None:
                        raise DrallocError(
                            f"classes: fewer servings of requirement {mode.requirement} than were counted"
                        )
                    found += placements_of(problem, next(named), mode, got)
        return sorted(found, key=lambda placement: placement.demand)

    def _served(self, values: Sequence[int]) -> dict[int, Iterator[Served]]:
        """By requirement: what is served, in the order of the inventory or evenly over nodes."""
        served: dict[int, list[Served]] = {
            mode.requirement: [] for _, mode, _ in self._modes()
        }
        on_node: Tally[int] = Tally()
        for number, supply in enumerate(self.counted.supplies):
            mine = grouped(supply.realise(values))
            # What few nodes can serve comes first, so that the rest goes around it.
            for requirement, every in sorted(
                mine.items(), key=lambda item: len(item[1])
            ):
                limit = self._servings.get(number, {}).get(requirement)
                most = len(every) if limit is None else values[limit.index]
                served[requirement] += (
                    _even(every, most, on_node) if self.counted.evenly else every[:most]
                )
        return {requirement: iter(sorted(each)) for requirement, each in served.items()}


def _even(
    served: Sequence[Served], number: int, on_node: Tally[int]
) -> Iterator[Served]:
    """So many servings, each from a node with the fewest so far."""
    by_node = grouped((each.node, each) for each in served)
    heap = [(on_node[node], node) for node in by_node]
    heapify(heap)
    for _ in range(number):
        _, node = heap[0]
        on_node[node] += 1
        yield by_node[node].pop()
        if by_node[node]:
            heapreplace(heap, (on_node[node], node))
        else:
            heappop(heap)


def placements_of(
    problem: Problem, joint: Sequence[int], mode: ServingMode, served: Served
) -> Iterator[Placement]:
    """Give a joint demand what has been found for it."""
    devices, picks = iter(served.devices), iter(mode.picks)
    members = [joint[place] for place in mode.places]
    demands = [problem.demands[member] for member in members]
    for member, demand, granted in zip(
        members, demands, granted_with(demands), strict=True
    ):
        grants = []
        for claim, here in zip(demand.claims, granted, strict=True):
            mine: list[Grant] = []
            for request in range(len(claim.requests) if here else 0):
                pick = next(picks)
                mine += [Grant(request, pick, device) for device in next(devices)]
            grants.append(tuple(mine))
        yield Placement(member, served.node, tuple(grants))


# ----------------------------------------------------------------------------
# Packing goals over classes: what they count is a sum over bins and servings, with
# counts in place of names.
#
# - ``fewest-devices``, ``least-fragmentation``: where devices have one user each, every
#   serving costs the devices that it takes (each is a unit of its own if it draws on
#   nothing). Where a bin is a single device that is shared, or a single unit, it costs
#   1 as soon as it is used; those in use before cost nothing and are used first.
# - ``fewest-nodes``: nodes with the same number of bins of each class are of one *node
#   type*. With ``n[t]`` nodes of a type used, of ``N[t]``, and ``b[t, j]`` bins of
#   class *j* on each: at most ``b[t, j] * n[t]`` of its bins are used.
# - ``spread``: if no node has more than ``p`` demands, all servings on the nodes of a
#   type are at most ``p * N[t]``, and a bin that is alone on its node serves at most
#   ``p`` of its pattern. The value is a bound; names are given evenly, and what they
#   cost is what counts.
#
# Everything else (bins across nodes, several units or shared devices in a bin,
# arc-flows; with ``spread`` demands that share claims, as a serving is no demand there)
# is left to the per-device model.

_MOST_REQUIREMENTS: Final = 5
"""Of more, not every subset has a row."""


def with_goal(
    goal: Goal, problem: Problem, components: Sequence[Counted], stop: Stop
) -> Counted | None:
    """All components as one, with supplies that know what the goal counts; None if they cannot.

    Raises
    ------
    Stopped
        It is time to stop.
    """
    supplies = [supply for each in components for supply in each.supplies]
    patterns = [supply for supply in supplies if isinstance(supply, PatternSupply)]
    if not components or len(patterns) < len(supplies) or problem.several_versions:
        return None
    if goal is Goal.SPREAD and any(
        len(one.weights) > 1 for each in components for one in each.classes
    ):
        return None
    costed = _COSTED[goal](problem, patterns, stop)
    if None in costed:
        return None
    classes = [one for each in components for one in each.classes]
    found = [supply for supply in costed if supply is not None]
    return replace(
        components[0], classes=classes, supplies=found, evenly=goal is Goal.SPREAD
    )


def goal_terms(goal: Goal, counts: CountModel) -> list[Term]:
    """What the goal counts, in the variables of the model, to which some are added."""
    return _TERMS[goal](counts)


def _opening(problem: Problem, supply: PatternSupply) -> PatternSupply | None:
    """With what ``fewest-devices`` counts."""
    devices = supply.bins[0].devices
    if not any(problem.devices[device].shareable for device in devices):
        return supply.costed(Costing(each_serving=True), supply.bins)
    if len(devices) > 1:
        return None
    slots = [
        problem.devices[device].slot for bin_ in supply.bins for device in bin_.devices
    ]
    return _each_bin(supply, [slot in problem.usage.shares for slot in slots])


def _touching(
    problem: Problem, supplies: Sequence[PatternSupply], stop: Stop
) -> Iterator[PatternSupply | None]:
    """With what ``least-fragmentation`` counts; a bin must be one unit, and no part of another one."""
    if any(
        view.charged
        for supply in supplies
        for unit in supply.space.bin_class.units
        for view in unit.devices
    ):
        # What is charged by request is a unit, too, and classes know no names of counters.
        yield None
        return
    before = touched_before(problem)
    touched = [
        [
            {
                unit
                for device in bin_.devices
                for unit in units(problem, device, Charge())
            }
            for bin_ in stop.each(one.bins)
        ]
        for one in supplies
    ]
    bins_of = Tally(unit for each in touched for found in each for unit in found)
    for supply, each in zip(supplies, touched, strict=True):
        devices = [
            [problem.devices[device] for device in bin_.devices] for bin_ in supply.bins
        ]
        apart = all(
            found == {device.slot for device in bin_}
            for found, bin_ in zip(each, devices, strict=True)
        )
        if apart and not any(device.shareable for bin_ in devices for device in bin_):
            yield supply.costed(Costing(each_serving=True), supply.bins)
        elif all(
            len(found) == 1 and bins_of[min(found, key=repr)] == 1 for found in each
        ):
            yield _each_bin(supply, [not before.isdisjoint(found) for found in each])
        else:
            yield None


def _each_bin(supply: PatternSupply, before: Sequence[bool]) -> PatternSupply:
    """Bins that were in use before cost nothing, and come first."""
    order = sorted(range(len(before)), key=lambda place: not before[place])
    return supply.costed(
        Costing(free=sum(before)), [supply.bins[place] for place in order]
    )


def _by_node(
    supplies: Sequence[PatternSupply], *, evenly: bool
) -> Iterator[PatternSupply | None]:
    """The supplies apart for each node type."""
    if any(len(bin_.nodes) > 1 for supply in supplies for bin_ in supply.bins):
        yield None
    on_node: dict[int, dict[int, list[Bin]]] = defaultdict(lambda: defaultdict(list))
    for number, supply in enumerate(supplies):
        for bin_ in supply.bins:
            on_node[bin_.nodes[0]][number].append(bin_)
    types = grouped(
        (frozenset((number, len(bins)) for number, bins in on_node[node].items()), node)
        for node in sorted(on_node)
    )
    for type_, (content, nodes) in enumerate(types.items()):
        for number, per_node in sorted(content):
            columns = [on_node[node][number] for node in nodes]
            # In turn over all nodes, or node by node.
            rows = zip(*columns, strict=True) if evenly else columns
            costing = Costing(node_type=type_, nodes=len(nodes), per_node=per_node)
            yield supplies[number].costed(
                costing, [bin_ for row in rows for bin_ in row]
            )


_COSTED: Final[
    Mapping[
        Goal,
        Callable[[Problem, Sequence[PatternSupply], Stop], list[PatternSupply | None]],
    ]
] = {
    Goal.FEWEST_DEVICES: lambda problem, supplies, _: [
        _opening(problem, supply) for supply in supplies
    ],
    Goal.LEAST_FRAGMENTATION: lambda problem, supplies, stop: list(
        _touching(problem, supplies, stop)
    ),
    Goal.FEWEST_NODES: lambda _, supplies, __: list(_by_node(supplies, evenly=False)),
    Goal.SPREAD: lambda _, supplies, __: list(_by_node(supplies, evenly=True)),
}


def _costed(counts: CountModel) -> Iterator[tuple[int, PatternSupply]]:
    for number, supply in enumerate(counts.counted.supplies):
        assert isinstance(supply, PatternSupply)
        yield number, supply


def _devices_or_bins(counts: CountModel) -> list[Term]:
    by_serving = [
        number for number, supply in _costed(counts) if supply.costing.each_serving
    ]
    found = [
        (servings, counts.counted.requirements[requirement].devices)
        for mine in counts.limit_servings(by_serving).values()
        for requirement, servings in mine.items()
    ]
    for number, supply in _costed(counts):
        if not supply.costing.each_serving:
            costly = counts.cp.new_int_var(
                0, len(supply.bins) - supply.costing.free, f"opened {number}"
            )
            counts.cp.add(
                cp_model.LinearExpr.sum(supply.variables)
                <= costly + supply.costing.free
            )
            found.append((costly, 1))
    return found


def _used_nodes(counts: CountModel) -> list[Term]:
    used: dict[int, cp_model.IntVar] = {}
    for _, supply in _costed(counts):
        costing = supply.costing
        if costing.node_type not in used:
            used[costing.node_type] = counts.cp.new_int_var(
                0, costing.nodes, f"used {costing.node_type}"
            )
        counts.cp.add(
            cp_model.LinearExpr.sum(supply.variables)
            <= costing.per_node * used[costing.node_type]
        )
    return [(nodes, 1) for nodes in used.values()]


def _peak(counts: CountModel) -> list[Term]:
    """One for each number of demands that some node exceeds."""
    servings = counts.limit_servings(range(len(counts.counted.supplies)))
    types: dict[int, _Type] = {}
    for number, supply in _costed(counts):
        mine = servings[number]
        type_ = types.setdefault(supply.costing.node_type, _Type(supply.costing.nodes))
        type_.servings += mine.values()
        type_.most += supply.costing.per_node * max(
            (pattern.size for pattern in supply.patterns), default=0
        )
        if supply.costing.per_node == 1:
            type_.apart.append((supply, mine))
    most = max((type_.most for type_ in types.values()), default=0)
    exceeded = [
        counts.cp.new_bool_var(f"more than {number} on a node")
        for number in range(most)
    ]
    for fewer, more in pairwise(exceeded):
        counts.cp.add_implication(more, fewer)
    for number, over in enumerate(exceeded):
        for type_ in types.values():
            if number < type_.most:
                row = cp_model.LinearExpr.sum(type_.servings) <= type_.nodes * number
                counts.cp.add(row).only_enforce_if(~over)
            for supply, mine in type_.apart:
                for some in _subsets(mine):
                    within = [
                        min(_of(pattern, some), number) for pattern in supply.patterns
                    ]
                    supplied = cp_model.LinearExpr.weighted_sum(
                        supply.variables, within
                    )
                    served = cp_model.LinearExpr.sum(
                        [mine[requirement] for requirement in some]
                    )
                    counts.cp.add(served <= supplied).only_enforce_if(~over)
    return [(over, 1) for over in exceeded]


def _subsets(requirements: Collection[int]) -> Iterator[tuple[int, ...]]:
    """All subsets, so that there is a way to deal out servings (a cut for each); of many only the smallest and all."""
    sizes = (
        range(1, len(requirements) + 1)
        if len(requirements) <= _MOST_REQUIREMENTS
        else (1, len(requirements))
    )
    for size in sizes:
        yield from combinations(requirements, size)


def _of(pattern: Pattern, requirements: Collection[int]) -> int:
    return sum(
        count for requirement, count in pattern.counts if requirement in requirements
    )


@dataclass(slots=True)
class _Type:
    """A node type: how many nodes, servings there, the most on a node, and supplies with one bin per node."""

    nodes: int
    servings: list[cp_model.IntVar] = field(default_factory=list)
    most: int = 0
    apart: list[tuple[PatternSupply, Mapping[int, cp_model.IntVar]]] = field(
        default_factory=list
    )


_TERMS: Final[Mapping[Goal, Callable[[CountModel], list[Term]]]] = {
    Goal.FEWEST_DEVICES: _devices_or_bins,
    Goal.LEAST_FRAGMENTATION: _devices_or_bins,
    Goal.FEWEST_NODES: _used_nodes,
    Goal.SPREAD: _peak,
}
