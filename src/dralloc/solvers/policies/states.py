"""States of units and of nodes, as numbers: what is in the same state behaves the same, wherever it is.

A node's state says nothing about the order of its units. That is enough for whoever looks at units in the order of
their states, as `States.ordered` has them: on two nodes in one state he meets the same things in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Final

from dralloc.problem import PoolState, Problem
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.policies.units import Unit, Units

__all__ = ["WHOLE", "States"]

WHOLE: Final = 10**6
"""What is left of a unit that is not in use. Shares are in such parts, rounded down."""


class States:
    """Reads from the books in which state units and nodes are.

    Parameters
    ----------
    problem, ledger
        What there is, and what is left of it.
    """

    def __init__(self, problem: Problem, ledger: SearchLedger) -> None:
        self._problem = problem
        self._ledger = ledger
        take_apart = Units(problem).on
        self.units = [take_apart(node) for node in range(len(problem.nodes))]
        self._pools = [
            tuple(pool.state for pool in node.pools if pool.state is not PoolState.USABLE) for node in problem.nodes
        ]
        self._numbers: dict[Hashable, int] = {}
        self._ordered: dict[int, list[tuple[int, Unit]]] = {}
        self._keys: list[tuple[Any, ...]] = []
        self.left: list[int] = []
        """By the number of a unit's state: the part of the unit that is left."""
        self._nodes: dict[Hashable, int] = {}

    def of_node(self, node: int) -> int:
        """The number of the state in which a node is."""
        self._ordered.pop(node, None)
        units = sorted(state for state, _ in self.ordered(node))
        return self._nodes.setdefault((self._pools[node], *units), len(self._nodes))

    def ordered(self, node: int) -> Sequence[tuple[int, Unit]]:
        """The units of a node with their states when `of_node` was asked last; those with the least left first."""
        found = self._ordered.get(node)
        if found is None:
            found = self._ordered[node] = [(self.of_unit(unit), unit) for unit in self.units[node]]
            found.sort(key=lambda each: (self.left[each[0]], self._keys[each[0]]))
        return found

    def after(self, node: int, taken: Collection[int]) -> Sequence[tuple[int, Unit]]:
        """The units of a node with their states, now that some devices are taken that were not when it was ordered."""
        if self._problem.several_versions:
            return [(self.of_unit(unit), unit) for unit in self.units[node]]
        return [
            (self.of_unit(unit), unit) if any(device in taken for device in unit.devices) else (state, unit)
            for state, unit in self.ordered(node)
        ]

    def of_unit(self, unit: Unit) -> int:
        """The number of the state in which a unit is now."""
        ledger, devices = self._ledger, self._problem.devices
        uses: list[Hashable] = []
        for index in unit.devices:
            device = devices[index]
            if device.shareable:
                uses.append((ledger.is_in_use_before(device), ledger.is_open(device)))
                uses += (ledger.capacity_left(device, name) for name in device.capacity)
            else:
                uses.append(ledger.is_in_use_before(device))
        counters = [ledger.free[index] for index in unit.counters]
        closed = [ledger.is_overdrawn(group) for group in unit.groups]
        key = unit.nature, *uses, *counters, *closed
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.left)
            self._keys.append(key)
            self.left.append(self._left(unit))
        return number

    def _left(self, unit: Unit) -> int:
        """The part of a unit that is left: of its counters, or of its device's capacities, on average."""
        if unit.counters:
            counters = self._problem.counters
            return _average([(self._ledger.free[index], counters[index].total) for index in unit.counters])
        device = self._problem.devices[unit.devices[0]]
        if self._ledger.is_in_use_before(device):
            return 0
        if not device.shareable:
            return WHOLE
        consumable = [each for each in device.capacity.values() if each.consumable]
        return _average([(self._ledger.capacity_left(device, each.name), each.total) for each in consumable])


def _average(parts: Sequence[tuple[int, int]]) -> int:
    shares = [max(left, 0) * WHOLE // total for left, total in parts if total]
    return sum(shares) // len(shares) if shares else WHOLE
