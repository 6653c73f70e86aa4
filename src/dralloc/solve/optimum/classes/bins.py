"""Bins: the parts of the inventory into which demands are packed. No serving of a demand reaches across two.

Two usable devices are in one bin if

- both draw on a counter (a GPU with its partitions, or devices that charge a node): they are in one *unit*;
- or one requirement could take both at once: it is for several devices, and a node reaches both. If a
  ``matchAttribute`` constraint covers all of it, it can only take both if they carry a common value.

So every serving lies within one bin, and what is served in one bin takes nothing away from another: an answer is any
choice, bin by bin, of demands that fit together there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from dralloc.problem import ConstraintKind, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.classes.demand_classes import DemandClasses, Requirement
from dralloc.solve.optimum.classes.disjoint_sets import DisjointSets
from dralloc.solve.optimum.classes.usable import UsableDevices
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Bin", "common_attributes", "find_bins"]


class Bin(NamedTuple):
    """The devices of a bin by unit, in search order, and the nodes that reach any of them."""

    units: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...]

    @property
    def devices(self) -> list[int]:
        """All devices."""
        return [device for unit in self.units for device in unit]


def find_bins(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices, stop: Stop
) -> list[Bin]:
    """Divide the usable devices into bins, in search order."""
    units = _units(problem, usable, stop)
    whole = units.copy()
    _join(problem, demand_classes, usable, whole, stop)
    bins = []
    for members in whole.groups(stop.hundreds(usable.order)):
        found = Bin(tuple(map(tuple, units.groups(members))), ())
        nodes = dict.fromkeys(
            [node for device in found.devices for node in usable.nodes_of[device]]
        )
        bins.append(found._replace(nodes=tuple(nodes)))
    return bins


def _units(problem: Problem, usable: UsableDevices, stop: Stop) -> DisjointSets:
    sets = DisjointSets(len(problem.devices))
    first: dict[int, int] = {}
    for device in stop.hundreds(usable.order):
        root = device
        for counter in chain(
            (counter for counter, _ in problem.devices[device].consumes),
            usable.charged[device],
        ):
            other = first.setdefault(counter, root)
            if other != root:
                root = sets.unite(other, root)
    return sets


def _join(
    problem: Problem,
    demand_classes: DemandClasses,
    usable: UsableDevices,
    sets: DisjointSets,
    stop: Stop,
) -> None:
    joint = dict.fromkeys(
        (
            frozenset(group.type for group in each.item_groups),
            common_attributes(each),
            each.nodes,
        )
        for each in demand_classes.requirements
        if each.devices > 1
    )
    if not joint:
        return
    types = frozenset().union(*(asked for asked, _, _ in joint))
    offered = [
        [type_ for type_, _ in profile if type_ in types] for profile in usable.profiles
    ]
    by_node: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for device in stop.hundreds(usable.order):
        for type_ in offered[usable.profile_of[device]]:
            for node in usable.nodes_of[device]:
                by_node[node][type_].append(device)
    for node, by_type in stop.each(by_node.items()):
        done: set[object] = set()
        for asked, common, nodes in joint:
            allowed = demand_classes.node_sets[nodes]
            if (
                (allowed is None or node in allowed)
                and asked <= by_type.keys()
                and (asked, common) not in done
            ):
                done.add((asked, common))
                every = [device for type_ in sorted(asked) for device in by_type[type_]]
                for members in (
                    _by_value(problem, by_type, common) if common else [every]
                ):
                    sets.unite_all(members)


def common_attributes(requirement: Requirement) -> frozenset[tuple[int, str]]:
    """By type, the attributes of which all devices of the requirement must have a common value; empty for none."""
    for rule in requirement.rules:
        if rule.kind is ConstraintKind.MATCH and len(rule.attributes) == len(
            requirement.item_groups
        ):
            return frozenset(
                (requirement.item_groups[position].type, name)
                for position, name in rule.attributes
            )
    return frozenset()


def _by_value(
    problem: Problem,
    by_type: Mapping[int, Sequence[int]],
    common: Iterable[tuple[int, str]],
) -> Iterable[list[int]]:
    return grouped(
        (value, device)
        for type_, attribute in sorted(common)
        for device in by_type[type_]
        for value in problem.devices[device].attributes[attribute]
    ).values()
