"""Names for an answer made of columns: which demand goes to which node and gets which devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dralloc.problem import Problem
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.classes.count_model import placements_of
from dralloc.solve.optimum.classes.supply import Served
from dralloc.solve.optimum.packing.columns import PackingSolution, placed_of
from dralloc.solve.optimum.packing.construction import BinContent
from dralloc.solve.optimum.packing.instance import BinInstance, PackingInstance

__all__ = ["placements"]


class _PlacedOption(NamedTuple):
    """An option that is served: what it costs by tier first, to keep the best; then where."""

    costs: tuple[int, ...]
    node: int
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
    placed, costs = (
        placed_of(instance, answer),
        list(zip(*instance.option_costs, strict=True)),
    )
    by_class: dict[int, list[_PlacedOption]] = defaultdict(list)
    for bin_type, chosen in zip(instance.bin_types, answer, strict=True):
        contents = (
            column.packing.contents[column.number]
            for column, number in chosen
            for _ in range(number)
        )
        for bin_instance, content in zip(bin_type.instances, contents, strict=False):
            for serving in _servings(instance, bin_instance, content, costs):
                by_class[instance.options[serving.option].cls].append(serving)
    found: list[Placement] = []
    for cls, servings in by_class.items():
        for demand, serving in zip(
            instance.classes[cls].joint_demands[: placed[cls]],
            sorted(servings),
            strict=False,
        ):
            found += placements_of(
                problem, demand, instance.options[serving.option].mode, serving.served
            )
    return sorted(found, key=lambda each: each.demand)


def _servings(
    instance: PackingInstance,
    bin_instance: BinInstance,
    content: BinContent,
    costs: Sequence[tuple[int, ...]],
) -> Iterator[_PlacedOption]:
    """What a bin serves; ``costs``: of each option."""
    asked: list[list[int]] = [[] for _ in bin_instance.units]
    for option, suppliers in content:
        for item, unit in zip(instance.options[option].items, suppliers, strict=True):
            asked[unit].append(item.type)
    picked = [
        iter(unit.devices(types))
        for types, (_, unit) in zip(asked, bin_instance.units, strict=True)
    ]
    names = [
        [device for part in parts for device in bin_instance.bin.units[part]]
        for parts, _ in bin_instance.units
    ]
    for turn, (option, suppliers) in enumerate(content):
        requirement = instance.options[option].requirement
        given: list[list[int]] = [[] for _ in requirement.item_groups]
        for item, unit in zip(instance.options[option].items, suppliers, strict=True):
            for place, positions in zip(
                item.item_groups, next(picked[unit]), strict=True
            ):
                given[place] += [names[unit][position] for position in positions]
        node = next(
            node
            for node, sets in zip(
                bin_instance.bin.nodes, bin_instance.sets, strict=True
            )
            if requirement.nodes in sets
        )
        served = Served(tuple(tuple(sorted(each)) for each in given), node)
        yield _PlacedOption(costs[option], node, turn, option, served)
