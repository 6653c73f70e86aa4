"""Cells: parts of the inventory that no way to serve a demand reaches across.

Two live devices are in one cell if

- both draw on a counter (a GPU with its partitions): they are in one *unit*;
- or one need could take both at once: it asks for several devices, and a node reaches both. If a ``matchAttribute``
  constraint covers the whole need, it can only take both if they carry a common value.

So every serving lies within one cell, and what is served in one cell takes nothing away from another: an answer is any
choice, cell by cell, of demands that fit together there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.problem import ConstraintKind, Problem
from dralloc.solvers.cpsat.classes.forest import Forest
from dralloc.solvers.cpsat.classes.live import Live
from dralloc.solvers.cpsat.classes.needs import Need, Wants

__all__ = ["Cell", "Cells", "find_cells"]


class Cell(NamedTuple):
    """The devices of a cell by unit, in search order, and the nodes that reach any of them."""

    units: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """All cells, in search order, and by device the number of its cell (-1 for a device that is not live)."""

    cells: list[Cell]
    cell_of: list[int]


def find_cells(problem: Problem, wants: Wants, live: Live) -> Cells:
    """Divide the live devices."""
    units = _units(problem, live)
    whole = units.copy()
    joint = [need for need in wants.needs if need.devices > 1]
    if joint:
        _join(problem, wants, live, joint, whole)
    grouped: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for device in live.order:
        grouped[whole.find(device)][units.find(device)].append(device)
    cells: list[Cell] = []
    cell_of = [-1] * len(problem.devices)
    for members in grouped.values():
        nodes: dict[int, None] = {}
        for unit in members.values():
            for device in unit:
                cell_of[device] = len(cells)
                nodes.update(dict.fromkeys(live.homes[device]))
        cells.append(Cell(tuple(map(tuple, members.values())), tuple(nodes)))
    return Cells(cells, cell_of)


def _units(problem: Problem, live: Live) -> Forest:
    forest = Forest(len(problem.devices))
    first: dict[int, int] = {}
    charged = [
        tuple(entry for _, charge in profile for entry in charge.counters) if profile else ()
        for profile in live.profiles
    ]
    for device in live.order:
        root = device
        for counter, _ in problem.devices[device].consumes + charged[live.profile_of[device]]:
            other = first.setdefault(counter, root)
            if other != root:
                root = forest.unite(other, root)
    return forest


def _join(problem: Problem, wants: Wants, live: Live, joint: list[Need], forest: Forest) -> None:
    types = {ask.type for need in joint for ask in need.asks}
    offered = [[type_ for type_, _ in profile if type_ in types] for profile in live.profiles]
    by_node: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for device in live.order:
        for type_ in offered[live.profile_of[device]]:
            for node in live.homes[device]:
                by_node[node][type_].append(device)
    for node, by_type in by_node.items():
        done: set[object] = set()
        for need in joint:
            allowed = wants.node_sets[need.nodes]
            if (allowed is None or node in allowed) and all(ask.type in by_type for ask in need.asks):
                asked = frozenset(ask.type for ask in need.asks)
                attribute = _common_attribute(need)
                if (asked, attribute) not in done:
                    done.add((asked, attribute))
                    candidates = (device for type_ in sorted(asked) for device in by_type[type_])
                    _unite(problem, candidates, attribute, forest)


def _common_attribute(need: Need) -> str | None:
    """An attribute of which all devices of the need must have a common value."""
    for rule in need.rules:
        if rule.kind is ConstraintKind.MATCH and len(rule.asks) == len(need.asks):
            return rule.attribute
    return None


def _unite(problem: Problem, candidates: Iterable[int], attribute: str | None, forest: Forest) -> None:
    if attribute is None:
        forest.unite_all(candidates)
        return
    for members in _by_value(problem, candidates, attribute):
        forest.unite_all(members)


def _by_value(problem: Problem, candidates: Iterable[int], attribute: str) -> Iterator[list[int]]:
    values: dict[object, list[int]] = defaultdict(list)
    for device in candidates:
        for value in problem.devices[device].attributes[attribute]:
            values[value].append(device)
    return iter(values.values())
