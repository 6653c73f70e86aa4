"""Packing goals over counts: what they count is a sum over bins and servings, with counts in place of names.

- ``fewest-devices``, ``least-fragmentation``: where devices have one user each, every serving costs the devices that it
  takes (each is a unit of its own if it draws on nothing). Where a bin is a single device that is shared, or a single
  unit, it costs 1 as soon as it is used; those in use before cost nothing and are used first.
- ``fewest-nodes``: nodes with the same number of bins of each class are of one *node type*. With ``n[t]`` nodes of a
  type used, of ``N[t]``, and ``b[t, j]`` bins of class *j* on each: at most ``b[t, j] * n[t]`` of its bins are used.
- ``spread``: if no node has more than ``p`` demands, all servings on the nodes of a type are at most ``p * N[t]``, and
  a bin that is alone on its node serves at most ``p`` of its pattern. The value is a bound; names are given evenly, and
  what they cost is what counts.

Everything else (bins across nodes, several units or shared devices in a bin, arc-flows; with ``spread`` demands that
share claims, as a serving is no demand there) is left to the per-device model.
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
from itertools import chain, combinations, pairwise
from typing import Final

from dralloc.objects.choices import Goal
from dralloc.problem import Charge, Problem
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.count_model import Counted, CountModel
from dralloc.solve.optimum.classes.demand_classes import DemandClass
from dralloc.solve.optimum.classes.patterns import Pattern
from dralloc.solve.optimum.classes.supplies import (
    Costing,
    PatternSupply,
    Supply,
)
from dralloc.solve.optimum.rows import Term
from dralloc.solve.optimum.sharing import touched_before, units
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["goal_terms", "with_goal"]

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
    # Patterns only say how much can be served: what costs devices is what is.
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
        # At most, each bin of a node serves its largest pattern: no node exceeds the sum.
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
    # Where no node exceeds a level, no type serves more than that on each of its nodes, and a bin that is the only one
    # of its class there no more than that of its pattern.
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
