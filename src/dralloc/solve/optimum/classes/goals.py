"""Packing goals over classes: what they count is a sum over bins and servings, with counts in place of names.

- ``fewest-devices``, ``least-fragmentation``: where devices have one user each, every serving costs the devices that it
  takes (each is a unit of its own if it draws on nothing). Where a bin is a single device that is shared, or a single
  unit, it costs 1 as soon as it is used; those in use before cost nothing and are used first.
- ``fewest-nodes``: nodes with the same number of bins of each class are of one *node type*. With ``n[t]`` nodes of a
  type used, of ``N[t]``, and ``b[t, j]`` bins of class *j* on each: at most ``b[t, j] * n[t]`` of its bins are used.
- ``spread``: if no node has more than ``p`` demands, all servings on the nodes of a type are at most ``p * N[t]``, and
  a bin that is alone on its node serves at most ``p`` of its pattern. The value is a bound; names are given evenly,
  and what they cost is what counts.

Everything else (bins across nodes, several units or shared devices in a bin, arc-flows; with ``spread`` demands that
share claims, as a serving is no demand there) is left to the per-device model.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Final

from ortools.sat.python import cp_model

from dralloc.objects.choices import Goal
from dralloc.problem import Charge, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.count_model import Counted, CountModel
from dralloc.solve.optimum.classes.state_space import Pattern
from dralloc.solve.optimum.classes.supply import Costing, PatternSupply
from dralloc.solve.optimum.components import touched_before, units
from dralloc.solve.optimum.rows import Term
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
