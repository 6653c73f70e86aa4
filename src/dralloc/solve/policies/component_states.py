"""States of components and of nodes, as numbers, and which nodes are in which.

What is in the same state behaves the same, wherever it is. A node's state says nothing about the order of its
components. That is enough for a scan of the components in the order of their states (`ComponentStates.ordered`): on two
nodes in one state it meets the same things in one order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Container, Hashable, Sequence
from typing import Any, Final

from dralloc.problem import (
    DeviceIndex,
    Node,
    NodeIndex,
    PoolState,
    Problem,
    indices,
    numbered,
)
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.policies.node_components import NodeComponent, NodeComponents

__all__ = ["Census", "ComponentStates"]


def _unusable_pools(node: Node) -> tuple[PoolState, ...]:
    return tuple(
        pool.state for pool in node.pools if pool.state is not PoolState.USABLE
    )


_WHOLE: Final = 10**6
"""What is left of a component that is not in use. Shares are in such parts, rounded down."""


class ComponentStates:
    """Reads from the ledger in which state components and nodes are.

    Parameters
    ----------
    problem, ledger
        What there is, and what is left of it.
    """

    def __init__(self, problem: Problem, ledger: SearchLedger) -> None:
        self._problem = problem
        self._ledger = ledger
        take_apart = NodeComponents(problem).on
        self.components = [take_apart(node) for node in indices(problem.nodes)]
        self._pools = [_unusable_pools(node) for node in problem.nodes]
        self._numbers: dict[Hashable, int] = {}
        self._ordered: dict[int, list[tuple[int, NodeComponent]]] = {}
        self._keys: list[tuple[Any, ...]] = []
        self.left: list[int] = []
        """By the number of a component's state: the part of the component that is left."""
        self._nodes: dict[Hashable, int] = {}

    def of_node(self, node: NodeIndex) -> int:
        """The number of the state in which a node is."""
        self._ordered.pop(node, None)
        components = sorted(state for state, _ in self.ordered(node))
        return self._nodes.setdefault(
            (self._pools[node], *components), len(self._nodes)
        )

    def ordered(self, node: NodeIndex) -> Sequence[tuple[int, NodeComponent]]:
        """The components of a node with their states when `of_node` was asked last; those with the least left first."""
        if node not in self._ordered:
            self._ordered[node] = [
                (self.of_component(component), component)
                for component in self.components[node]
            ]
            self._ordered[node].sort(key=self._rank)
        return self._ordered[node]

    def _rank(
        self, entry: tuple[int, NodeComponent]
    ) -> tuple[int, tuple[Any, ...]]:
        state, _ = entry
        return self.left[state], self._keys[state]

    def after(
        self, node: NodeIndex, devices: Collection[DeviceIndex]
    ) -> Sequence[tuple[int, NodeComponent]]:
        """The components of a node with their states, with some devices taken since it was ordered."""
        if self._problem.several_versions:
            return [
                (self.of_component(component), component)
                for component in self.components[node]
            ]
        components: list[tuple[int, NodeComponent]] = []
        for state, component in self.ordered(node):
            if any(device in devices for device in component.devices):
                state = self.of_component(component)  # noqa: PLW2901
            components.append((state, component))
        return components

    def of_component(self, component: NodeComponent) -> int:
        """The number of the state in which a component is now."""
        ledger, devices = self._ledger, self._problem.devices
        # Values are in the key without names: where the component's own key is equal, they mean the same.
        uses: list[Hashable] = []
        for index in component.devices:
            device = devices[index]
            if device.shareable:
                uses.append(
                    (not ledger.is_free(device), ledger.is_open(device))
                )
                uses += (
                    ledger.capacity_left(device, name)
                    for name in device.capacity
                )
            else:
                uses.append(not ledger.is_free(device))
        counters = [ledger.free[index] for index in component.counters]
        closed = [ledger.is_overdrawn(group) for group in component.groups]
        # Devices of other nodes on the same sets have a say in this, too.
        in_common = [
            _sortable(ledger.common_groups_on(counter_set))
            for counter_set in component.counter_sets
        ]
        key = component.key, *uses, *counters, *closed, *in_common
        state = self._numbers.get(key)
        if state is None:
            state = self._numbers[key] = len(self.left)
            self._keys.append(key)
            self.left.append(self._left(component))
        return state

    def _left(self, component: NodeComponent) -> int:
        """The part of a component that is left: of its counters, or of its device's capacities, on average."""
        if component.counters:
            counters = self._problem.counters
            parts = [
                (self._ledger.free[index], counters[index].total)
                for index in component.counters
            ]
            return _average(parts)
        device = self._problem.devices[component.devices[0]]
        if not self._ledger.is_free(device):
            return 0
        if not device.shareable:
            return _WHOLE
        parts = [
            (self._ledger.capacity_left(device, capacity.name), capacity.total)
            for capacity in device.capacity.values()
            if capacity.consumable
        ]
        return _average(parts)


def _sortable(
    groups: frozenset[str] | None,
) -> tuple[bool, tuple[str, ...]]:
    """Return the compatibility groups in use on a counter set, if any is in use, as a part of a state's key."""
    return groups is None, tuple(sorted(groups or ()))


def _average(parts: Sequence[tuple[int, int]]) -> int:
    shares = [max(free, 0) * _WHOLE // total for free, total in parts if total]
    if not shares:
        return _WHOLE
    return sum(shares) // len(shares)


class Census:
    """Counts nodes by state, and keeps up with what is taken.

    ``arrivals`` lists the states that nodes came into, in the order of events.
    """

    def __init__(self, problem: Problem, states: ComponentStates) -> None:
        self._problem = problem
        self._states = states
        self._of: list[int] = []
        self._members: dict[int, list[NodeIndex]] = defaultdict(list)
        self.arrivals: list[int] = []
        self._seeing: dict[int, list[NodeIndex]] = defaultdict(list)
        for node_index, node in numbered(problem.nodes):
            for group in {
                problem.devices[device].group for device in node.devices()
            }:
                self._seeing[group].append(node_index)
            self._of.append(self._enter(node_index))

    def first(
        self, state: int, allowed: Container[int] | None
    ) -> NodeIndex | None:
        """The first node in a state, of all or of those that are allowed."""
        members = self._members[state]
        if allowed is None:
            return members[0] if members else None
        return next((node for node in members if node in allowed), None)

    def changed(self, devices: list[DeviceIndex]) -> None:
        """Some devices were taken or given back: look again at every node that could tell."""
        problem = self._problem
        slots = {problem.devices[device].slot for device in devices}
        affected = list(devices)
        for slot in slots & problem.several_versions:
            affected += problem.versions[slot]
        nodes: set[NodeIndex] = set()
        for group in {problem.devices[device].group for device in affected}:
            nodes.update(self._seeing[group])
        for node in sorted(nodes):
            before = self._of[node]
            members = self._members[before]
            del members[bisect_left(members, node)]
            self._of[node] = self._enter(node)

    def _enter(self, node: NodeIndex) -> int:
        state = self._states.of_node(node)
        insort(self._members[state], node)
        self.arrivals.append(state)
        return state
