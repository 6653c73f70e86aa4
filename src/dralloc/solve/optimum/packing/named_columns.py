"""Names for an answer made of columns: which demand goes to which node and gets which devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dralloc.problem import DeviceIndex, NodeIndex, Problem
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.classes.count_model import placements_of
from dralloc.solve.optimum.classes.supplies import Served
from dralloc.solve.optimum.packing.columns import PackingSolution, placed_of
from dralloc.solve.optimum.packing.construction import BinContent
from dralloc.solve.optimum.packing.instance import BinInstance, PackingInstance

__all__ = ["placements"]


class _PlacedOption(NamedTuple):
    """An option that is served: what it costs by tier first, to keep the best; then where."""

    costs: tuple[int, ...]
    node: NodeIndex
    place: int
    option: int
    served: Served


def placements(
    problem: Problem, instance: PackingInstance, answer: PackingSolution
) -> list[Placement]:
    """Give names to an answer: servings of a class by cost and node, its demands in order. What is too much is dropped.

    Returns
    -------
    Sorted by demand.
    """
    costs = list(zip(*instance.option_costs, strict=True))
    by_class: dict[int, list[_PlacedOption]] = defaultdict(list)
    for bin_type, chosen in zip(instance.bin_types, answer, strict=True):
        contents: list[BinContent] = []
        for column, copies in chosen:
            contents += [column.packing.contents[column.number]] * copies
        # The last bins may have no column.
        for bin_instance, content in zip(
            bin_type.instances, contents, strict=False
        ):
            for serving in _servings(instance, bin_instance, content, costs):
                cls = instance.options[serving.option].cls
                by_class[cls].append(serving)
    placed = placed_of(instance, answer)
    named: list[Placement] = []
    for cls, servings in by_class.items():
        joint_demands = instance.classes[cls].joint_demands[: placed[cls]]
        for joint_demand, serving in zip(
            joint_demands, sorted(servings), strict=False
        ):
            mode = instance.options[serving.option].mode
            named += placements_of(problem, joint_demand, mode, serving.served)
    return sorted(named, key=lambda placement: placement.demand)


def _servings(
    instance: PackingInstance,
    bin_instance: BinInstance,
    content: BinContent,
    costs: Sequence[tuple[int, ...]],
) -> Iterator[_PlacedOption]:
    """Yield the servings of a bin; ``costs``: of each option."""
    types_by_unit: list[list[int]] = [[] for _ in bin_instance.units]
    for option, suppliers in content:
        items = instance.options[option].items
        for item, unit in zip(items, suppliers, strict=True):
            types_by_unit[unit].append(item.type)
    # Units are asked for all of their items at once, and hand them out in the same order below.
    picks = []
    devices_by_unit = []
    for item_types, (parts, classified) in zip(
        types_by_unit, bin_instance.units, strict=True
    ):
        picks.append(iter(classified.devices(item_types)))
        devices_by_unit.append(
            [
                device
                for part in parts
                for device in bin_instance.bin.units[part]
            ]
        )
    for content_index, (option, suppliers) in enumerate(content):
        assignment = instance.options[option]
        devices: list[list[DeviceIndex]] = [
            [] for _ in assignment.requirement.item_groups
        ]
        for item, unit in zip(assignment.items, suppliers, strict=True):
            for item_group, positions in zip(
                item.item_groups, next(picks[unit]), strict=True
            ):
                devices[item_group] += [
                    devices_by_unit[unit][position] for position in positions
                ]
        node = _first_node(bin_instance, assignment.requirement.nodes)
        served = Served(tuple(tuple(sorted(group)) for group in devices), node)
        yield _PlacedOption(costs[option], node, content_index, option, served)


def _first_node(bin_instance: BinInstance, node_set: int) -> NodeIndex:
    """Return the first node of a bin that belongs to a set of candidate nodes."""
    return next(
        node
        for node, sets in zip(
            bin_instance.bin.nodes, bin_instance.sets, strict=True
        )
        if node_set in sets
    )
