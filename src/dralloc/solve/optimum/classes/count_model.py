"""The formulation over counts: how many demands of each class are served in which mode.

With gangs, of which so many are admitted, and packing goals, which are sums over bins and servings.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace
from itertools import chain, combinations, pairwise
from typing import Final

from dralloc.objects.choices import Goal
from dralloc.objects.errors import DrallocError
from dralloc.objects.user_rules import Budget
from dralloc.problem import Charge, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.budgeted_amounts import BudgetedAmounts
from dralloc.solve.optimum.classes.demand_classes import (
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
from dralloc.solve.optimum.sharing import touched_before, units
from dralloc.solve.optimum.solvers import cp_model
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
# Gangs: so many of equal gangs are admitted, and each of these has the members that it
# needs.
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
    gangs: dict[int, list[GangMember]] = defaultdict(list)
    for cls, demand_class in enumerate(classes):
        gang = demand_class.gang
        if gang and bool(demand_class.topology) == in_domains:
            gangs[gang.gangs].append((cls, demand_class, gang))
    return gangs


def admit(
    cp: cp_model.CpModel,
    members: Sequence[GangMember],
    placed: Sequence[cp_model.LinearExprT],
    admitted: cp_model.IntVar,
) -> None:
    """Add the rows above: of each class so many are placed, and so many gangs are admitted."""
    quorum = None
    for (_, _, share), placed_members in zip(members, placed, strict=True):
        quorum = share.quorum
        admitted_members = share.number * admitted
        if quorum is None:
            cp.add(placed_members == admitted_members)
        else:
            cp.add(placed_members <= admitted_members)
    if quorum is not None:
        cp.add(cp_model.LinearExpr.sum(placed) >= quorum * admitted)


class AdmittedGangs:
    """The number of admitted gangs of each class, but for those that must be in one domain.

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
            gang_count = first.size // share.number
            admitted = cp.new_int_var(0, gang_count, f"admitted {gang}")
            self._admitted[gang] = admitted
            placed = [member.size - missed[cls] for cls, member, _ in members]
            admit(cp, members, placed, admitted)

    def placed_members(
        self,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
        values: Sequence[int],
    ) -> Iterator[Iterator[tuple[DemandIndex, ...]]]:
        """For each class the joint demands that are placed: the first; in gangs with a quorum the first of each."""
        dealt: dict[int, int] = defaultdict(int)
        for demand_class, missing in zip(classes, missed, strict=True):
            count = demand_class.size - values[missing.index]
            gang = demand_class.gang
            if gang is None or gang.quorum is None or demand_class.topology:
                yield iter(demand_class.joint_demands[:count])
                continue
            admitted = values[self._admitted[gang.gangs].index]
            turn = dealt[gang.gangs]
            dealt[gang.gangs] += count
            yield dealt_out(demand_class, count, admitted, turn)


def dealt_out(
    demand_class: DemandClass,
    count: int,
    admitted: int,
    turn: int,
    before: int = 0,
) -> Iterator[tuple[DemandIndex, ...]]:
    """Yield so many joint demands of a class, from the turn on to one admitted gang after the other.

    ``before``: how many gangs come before these.
    """
    assert demand_class.gang
    gang_size = demand_class.gang.number
    for position in range(count):
        gang = before + (turn + position) % admitted
        yield demand_class.joint_demands[
            gang * gang_size + position // admitted
        ]


# ----------------------------------------------------------------------------
# The formulation. For demand classes *c* with modes *m*, and requirements *k*::
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
    def demands(self) -> list[DemandIndex]:
        """All demands, in order."""
        members: list[DemandIndex] = []
        for demand_class in self.classes:
            members += demand_class.members
        return sorted(members)

    @property
    def has_budgets(self) -> bool:
        """Whether it has demands of namespaces with budgets."""
        return any(demand_class.namespace for demand_class in self.classes)


class CountModel:
    """A model of a component over classes. No namespace takes more than its budget leaves."""

    def __init__(self, counted: Counted, budgets: Sequence[Budget]) -> None:
        self.counted = counted
        self._servings: dict[int, dict[int, cp_model.IntVar]] = {}
        self.budgets = budgets
        self.cp = cp_model.CpModel()
        classes = counted.classes
        self.missed = [
            self.cp.new_int_var(0, demand_class.size, f"missed {n}")
            for n, demand_class in enumerate(classes)
        ]
        self.placed: list[list[cp_model.IntVar]] = []
        for n, demand_class in enumerate(classes):
            placed = [
                self.cp.new_int_var(
                    0, demand_class.size, f"placed {n} {mode.picks}"
                )
                for mode in demand_class.modes
            ]
            self.placed.append(placed)
        for n, demand_class in enumerate(classes):
            counts = [self.missed[n], *self.placed[n]]
            self.cp.add(cp_model.LinearExpr.sum(counts) == demand_class.size)
        self._gangs = AdmittedGangs(self.cp, classes, self.missed)
        self._supplied = [supply.build(self.cp) for supply in counted.supplies]
        self._suffice(self._supplied)
        for by_domain in self._by_domain():
            by_domain.tie(self.cp, classes, self.placed)
        for budget in budgets:
            uses = list(self.uses(budget))
            if budget.left is not None and uses:
                name = f"cap {budget.namespace}={budget.resource}"
                fix_cost(self.cp, uses, budget.left, name)

    def _by_domain(self) -> Iterator[DomainSupply]:
        return (
            supply
            for supply in self.counted.supplies
            if isinstance(supply, DomainSupply)
        )

    def _suffice(
        self, supplied: Iterable[Mapping[int, Sequence[Term]]]
    ) -> None:
        """Of each requirement at least as much is supplied as is placed."""
        supply_of: dict[int, list[Term]] = defaultdict(list)
        for terms_by_requirement in supplied:
            for requirement, terms in terms_by_requirement.items():
                supply_of[requirement] += terms
        placed_of: dict[int, list[Term]] = defaultdict(list)
        for demand_class, mode, variable in self._modes():
            # Those that need a domain are bound to a supply of their own.
            if not demand_class.topology:
                placed_of[mode.requirement].append((variable, -1))
        for requirement, terms in placed_of.items():
            self.cp.add(sum_of([*supply_of[requirement], *terms]) >= 0)

    def limit_servings(
        self, supplies: Iterable[int]
    ) -> Mapping[int, Mapping[int, cp_model.IntVar]]:
        """Variables for how much some supplies really serve, by index of supply and requirement."""
        limited = list(self._supplied)
        for supply_index in supplies:
            servings_of = self._servings[supply_index] = {}
            for requirement, terms in self._supplied[supply_index].items():
                name = f"servings {supply_index} {requirement}"
                servings = self.cp.new_int_var(0, most_of(terms), name)
                servings_of[requirement] = servings
                self.cp.add(servings <= sum_of(terms))
            limited[supply_index] = {
                requirement: [(servings, 1)]
                for requirement, servings in servings_of.items()
            }
        self._suffice(limited)
        return self._servings

    def _modes(
        self,
    ) -> Iterator[tuple[DemandClass, ServingMode, cp_model.IntVar]]:
        for demand_class, placed in zip(
            self.counted.classes, self.placed, strict=True
        ):
            for mode, variable in zip(demand_class.modes, placed, strict=True):
                yield demand_class, mode, variable

    def uses(self, budget: Budget) -> Iterator[Term]:
        """Yield the uses of the budget's resource by demands of its namespace."""
        amounts = self.counted.amounts[budget.resource]
        for demand_class, mode, variable in self._modes():
            if (
                demand_class.namespace == budget.namespace
                and amounts[mode.requirement]
            ):
                yield variable, amounts[mode.requirement]

    def missed_weight(self, tier: WeightTier) -> list[Term]:
        """The cost of a tier of the weight."""
        terms: list[Term] = []
        for demand_class, missed in zip(
            self.counted.classes, self.missed, strict=True
        ):
            terms.append((missed, demand_class.missed_weight(tier)))
        for demand_class, mode, variable in self._modes():
            weight = demand_class.missed_weight(tier, mode)
            if weight:
                terms.append((variable, weight))
        return terms

    def ranks(self) -> list[Term]:
        """The cost of the last tier."""
        return [
            (variable, mode.rank)
            for _, mode, variable in self._modes()
            if mode.rank
        ]

    def placements(
        self, problem: Problem, values: Sequence[int]
    ) -> list[Placement]:
        """Give names to an answer: the first demands of each class are placed, in the order of the inventory.

        Raises
        ------
        DrallocError
            There is less than the variables say. It never happens unless the formulation is wrong.
        """
        queues, classes = self._served(values), self.counted.classes
        placements: list[Placement] = []
        for supply in self._by_domain():
            for joint, mode, served in supply.realise_gangs(classes, values):
                placements += placements_of(problem, joint, mode, served)
        members = self._gangs.placed_members(classes, self.missed, values)
        for demand_class, placed, named in zip(
            classes, self.placed, members, strict=True
        ):
            if demand_class.topology:
                continue
            for mode, variable in zip(demand_class.modes, placed, strict=True):
                for _ in range(values[variable.index]):
                    serving = next(queues[mode.requirement], None)
                    if serving is None:
                        raise DrallocError(
                            f"classes: fewer servings of requirement {mode.requirement} than were counted"
                        )
                    placements += placements_of(
                        problem, next(named), mode, serving
                    )
        return sorted(placements, key=lambda placement: placement.demand)

    def _served(self, values: Sequence[int]) -> dict[int, Iterator[Served]]:
        """By requirement: what is served, in the order of the inventory or evenly over nodes."""
        served: dict[int, list[Served]] = {
            mode.requirement: [] for _, mode, _ in self._modes()
        }
        on_node: Tally[int] = Tally()
        for supply_index, supply in enumerate(self.counted.supplies):
            limits = self._servings.get(supply_index, {})
            servings_of = grouped(supply.realise(values))
            # What few nodes can serve comes first, so that the rest goes around it.
            for requirement in sorted(
                servings_of, key=lambda n: len(servings_of[n])
            ):
                servings = servings_of[requirement]
                count = len(servings)
                if requirement in limits:
                    count = values[limits[requirement].index]
                if self.counted.evenly:
                    served[requirement] += _even(servings, count, on_node)
                else:
                    served[requirement] += servings[:count]
        return {
            requirement: iter(sorted(servings))
            for requirement, servings in served.items()
        }


def _even(
    servings: Sequence[Served], count: int, on_node: Tally[int]
) -> Iterator[Served]:
    """Yield so many servings, each from a node with the fewest so far."""
    by_node = grouped((serving.node, serving) for serving in servings)
    heap = [(on_node[node], node) for node in by_node]
    heapify(heap)
    for _ in range(count):
        _, node = heap[0]
        on_node[node] += 1
        yield by_node[node].pop()
        if by_node[node]:
            heapreplace(heap, (on_node[node], node))
        else:
            heappop(heap)


def placements_of(
    problem: Problem,
    joint: Sequence[DemandIndex],
    mode: ServingMode,
    served: Served,
) -> Iterator[Placement]:
    """Give a joint demand what has been found for it."""
    devices, picks = iter(served.devices), iter(mode.picks)
    members = [joint[position] for position in mode.places]
    demands = [problem.demands[member] for member in members]
    for member, demand, granted in zip(
        members, demands, granted_with(demands), strict=True
    ):
        grants = []
        for claim, is_granted in zip(demand.claims, granted, strict=True):
            claim_grants: list[Grant] = []
            # A shared claim is granted with the first that lists it.
            for request in range(len(claim.requests) if is_granted else 0):
                pick = next(picks)
                claim_grants += [
                    Grant(request, pick, device) for device in next(devices)
                ]
            grants.append(tuple(claim_grants))
        yield Placement(member, served.node, tuple(grants))


# ----------------------------------------------------------------------------
# Packing goals: what they count is a sum over bins and servings, with counts in place
# of names.
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
    supplies: list[Supply] = []
    classes: list[DemandClass] = []
    for component in components:
        supplies += component.supplies
        classes += component.classes
    patterns = [
        supply for supply in supplies if isinstance(supply, PatternSupply)
    ]
    if (
        not components
        or len(patterns) < len(supplies)
        or problem.several_versions
    ):
        return None
    # A serving of a joint demand is several demands on a node.
    has_joint_demands = any(
        len(demand_class.weights) > 1 for demand_class in classes
    )
    if goal is Goal.SPREAD and has_joint_demands:
        return None
    costed = _COSTED[goal](problem, patterns, stop)
    if None in costed:
        return None
    costed_supplies = [supply for supply in costed if supply is not None]
    evenly = goal is Goal.SPREAD
    return replace(
        components[0], classes=classes, supplies=costed_supplies, evenly=evenly
    )


def goal_terms(goal: Goal, counts: CountModel) -> list[Term]:
    """Return the terms that the goal counts, in the variables of the model, to which some are added."""
    return _TERMS[goal](counts)


def _opening(problem: Problem, supply: PatternSupply) -> PatternSupply | None:
    """With what ``fewest-devices`` counts."""
    devices = supply.bins[0].devices
    if not any(problem.devices[device].shareable for device in devices):
        return supply.costed(Costing(each_serving=True), supply.bins)
    if len(devices) > 1:
        return None
    open_before = []
    for bin_ in supply.bins:
        [device] = bin_.devices
        open_before.append(problem.devices[device].slot in problem.usage.shares)
    return _each_bin(supply, open_before)


def _touching(
    problem: Problem, supplies: Sequence[PatternSupply], stop: Stop
) -> Iterator[PatternSupply | None]:
    """With what ``least-fragmentation`` counts; a bin must be one unit, and no part of another one."""
    if any(map(_charges_by_request, supplies)):
        # What is charged by request is a unit, too, and classes know no names of counters.
        yield None
        return
    before = touched_before(problem)
    units_of_supplies: list[list[set[Hashable]]] = []
    bins_of_unit: Tally[Hashable] = Tally()
    for supply in supplies:
        units_of_bins = [
            _units(problem, bin_) for bin_ in stop.each(supply.bins)
        ]
        for bin_units in units_of_bins:
            bins_of_unit.update(bin_units)
        units_of_supplies.append(units_of_bins)
    shared_units = {unit for unit, count in bins_of_unit.items() if count > 1}
    for supply, units_of_bins in zip(supplies, units_of_supplies, strict=True):
        if _are_dedicated(problem, supply.bins, units_of_bins):
            yield supply.costed(Costing(each_serving=True), supply.bins)
            continue
        # One unit in each bin, and in no other bin.
        if any(
            len(bin_units) != 1 or not shared_units.isdisjoint(bin_units)
            for bin_units in units_of_bins
        ):
            yield None
            continue
        touched = [
            not before.isdisjoint(bin_units) for bin_units in units_of_bins
        ]
        yield _each_bin(supply, touched)


def _charges_by_request(supply: PatternSupply) -> bool:
    units_of_bin = supply.space.bin_class.units
    devices = chain.from_iterable(unit.devices for unit in units_of_bin)
    return any(device.charged for device in devices)


def _units(problem: Problem, bin_: Bin) -> set[Hashable]:
    """Return the units of a bin that ``least-fragmentation`` counts."""
    bin_units: set[Hashable] = set()
    for device in bin_.devices:
        bin_units.update(units(problem, device, Charge()))
    return bin_units


def _are_dedicated(
    problem: Problem,
    bins: Sequence[Bin],
    units_of_bins: Sequence[set[Hashable]],
) -> bool:
    """Whether each device of the bins has one user, and is a unit by itself."""
    for bin_, bin_units in zip(bins, units_of_bins, strict=True):
        devices = [problem.devices[device] for device in bin_.devices]
        if bin_units != {device.slot for device in devices}:
            return False
        if any(device.shareable for device in devices):
            return False
    return True


def _each_bin(supply: PatternSupply, before: Sequence[bool]) -> PatternSupply:
    """Bins that were in use before cost nothing, and come first."""
    order = sorted(
        range(len(before)), key=lambda bin_index: not before[bin_index]
    )
    bins = [supply.bins[bin_index] for bin_index in order]
    return supply.costed(Costing(free=sum(before)), bins)


def _by_node(
    supplies: Sequence[PatternSupply], *, evenly: bool
) -> Iterator[PatternSupply | None]:
    """The supplies apart for each node type."""
    if any(len(bin_.nodes) > 1 for supply in supplies for bin_ in supply.bins):
        yield None
    on_node: dict[int, dict[int, list[Bin]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for supply_index, supply in enumerate(supplies):
        for bin_ in supply.bins:
            on_node[bin_.nodes[0]][supply_index].append(bin_)
    nodes_by_content: dict[frozenset[tuple[int, int]], list[int]] = defaultdict(
        list
    )
    for node in sorted(on_node):
        content = frozenset(
            (supply_index, len(bins))
            for supply_index, bins in on_node[node].items()
        )
        nodes_by_content[content].append(node)
    for type_, (content, nodes) in enumerate(nodes_by_content.items()):
        for supply_index, per_node in sorted(content):
            columns = [on_node[node][supply_index] for node in nodes]
            # In turn over all nodes, or node by node.
            rows = zip(*columns, strict=True) if evenly else columns
            costing = Costing(
                node_type=type_, nodes=len(nodes), per_node=per_node
            )
            yield supplies[supply_index].costed(
                costing, list(chain.from_iterable(rows))
            )


_COSTED: Final[
    Mapping[
        Goal,
        Callable[
            [Problem, Sequence[PatternSupply], Stop], list[PatternSupply | None]
        ],
    ]
] = {
    Goal.FEWEST_DEVICES: lambda problem, supplies, _: [
        _opening(problem, supply) for supply in supplies
    ],
    Goal.LEAST_FRAGMENTATION: lambda problem, supplies, stop: list(
        _touching(problem, supplies, stop)
    ),
    Goal.FEWEST_NODES: lambda _, supplies, __: list(
        _by_node(supplies, evenly=False)
    ),
    Goal.SPREAD: lambda _, supplies, __: list(_by_node(supplies, evenly=True)),
}


def _costed(counts: CountModel) -> Iterator[tuple[int, PatternSupply]]:
    for supply_index, supply in enumerate(counts.counted.supplies):
        assert isinstance(supply, PatternSupply)
        yield supply_index, supply


def _devices_or_bins(counts: CountModel) -> list[Term]:
    by_serving = [
        supply_index
        for supply_index, supply in _costed(counts)
        if supply.costing.each_serving
    ]
    terms: list[Term] = []
    for servings_of in counts.limit_servings(by_serving).values():
        for requirement, servings in servings_of.items():
            devices = counts.counted.requirements[requirement].devices
            terms.append((servings, devices))
    for supply_index, supply in _costed(counts):
        if supply.costing.each_serving:
            continue
        free = supply.costing.free
        opened = counts.cp.new_int_var(
            0, len(supply.bins) - free, f"opened {supply_index}"
        )
        used = cp_model.LinearExpr.sum(supply.variables)
        counts.cp.add(used <= opened + free)
        terms.append((opened, 1))
    return terms


def _used_nodes(counts: CountModel) -> list[Term]:
    used: dict[int, cp_model.IntVar] = {}
    for _, supply in _costed(counts):
        costing = supply.costing
        if costing.node_type not in used:
            name = f"used {costing.node_type}"
            used[costing.node_type] = counts.cp.new_int_var(
                0, costing.nodes, name
            )
        bins_used = cp_model.LinearExpr.sum(supply.variables)
        counts.cp.add(bins_used <= costing.per_node * used[costing.node_type])
    return [(nodes, 1) for nodes in used.values()]


def _peak(counts: CountModel) -> list[Term]:
    """Return a term for each number of demands that some node exceeds."""
    servings = counts.limit_servings(range(len(counts.counted.supplies)))
    types: dict[int, _Type] = {}
    for supply_index, supply in _costed(counts):
        costing = supply.costing
        type_ = types.setdefault(costing.node_type, _Type(costing.nodes))
        type_.servings += servings[supply_index].values()
        largest = max((pattern.size for pattern in supply.patterns), default=0)
        type_.capacity += costing.per_node * largest
        if costing.per_node == 1:
            type_.apart.append((supply, servings[supply_index]))
    highest = max((type_.capacity for type_ in types.values()), default=0)
    exceeded = [
        counts.cp.new_bool_var(f"more than {level} on a node")
        for level in range(highest)
    ]
    for lower, higher in pairwise(exceeded):
        counts.cp.add_implication(higher, lower)
    for level, over in enumerate(exceeded):
        for type_ in types.values():
            if level < type_.capacity:
                row = (
                    cp_model.LinearExpr.sum(type_.servings)
                    <= type_.nodes * level
                )
                counts.cp.add(row).only_enforce_if(~over)
            for supply, servings_of in type_.apart:
                for subset in _subsets(servings_of):
                    supplied = _supplied_within(supply, subset, level)
                    served = cp_model.LinearExpr.sum(
                        [servings_of[requirement] for requirement in subset]
                    )
                    counts.cp.add(served <= supplied).only_enforce_if(~over)
    return [(over, 1) for over in exceeded]


def _supplied_within(
    supply: PatternSupply, requirements: Collection[int], level: int
) -> cp_model.LinearExprT:
    """Return how often some requirements can be served with at most so many demands on each node."""
    counts = [
        min(_of(pattern, requirements), level) for pattern in supply.patterns
    ]
    return cp_model.LinearExpr.weighted_sum(supply.variables, counts)


def _subsets(requirements: Collection[int]) -> Iterator[tuple[int, ...]]:
    """All subsets, so that there is a way to deal out servings (a cut for each); of many only the smallest and all."""
    sizes: Iterable[int] = range(1, len(requirements) + 1)
    if len(requirements) > _MOST_REQUIREMENTS:
        sizes = (1, len(requirements))
    for size in sizes:
        yield from combinations(requirements, size)


def _of(pattern: Pattern, requirements: Collection[int]) -> int:
    return sum(
        count
        for requirement, count in pattern.counts
        if requirement in requirements
    )


@dataclass(slots=True)
class _Type:
    """A node type: how many nodes, servings there, the most on a node, and supplies with one bin per node."""

    nodes: int
    servings: list[cp_model.IntVar] = field(default_factory=list)
    capacity: int = 0
    apart: list[tuple[PatternSupply, Mapping[int, cp_model.IntVar]]] = field(
        default_factory=list
    )


_TERMS: Final[Mapping[Goal, Callable[[CountModel], list[Term]]]] = {
    Goal.FEWEST_DEVICES: _devices_or_bins,
    Goal.LEAST_FRAGMENTATION: _devices_or_bins,
    Goal.FEWEST_NODES: _used_nodes,
    Goal.SPREAD: _peak,
}
