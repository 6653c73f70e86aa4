"""Which nodes are in which state."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container

from dralloc.problem import Problem
from dralloc.solvers.policies.component_states import ComponentStates

__all__ = ["Census"]


class Census:
    """Counts nodes by state, and keeps up with what is taken.

    ``arrivals`` lists the states that nodes came into, in the order of events.
    """

    def __init__(self, problem: Problem, states: ComponentStates) -> None:
        self._problem = problem
        self._states = states
        self._of: list[int] = []
        self._members: dict[int, list[int]] = {}
        self.arrivals: list[int] = []
        self._seeing: dict[int, list[int]] = {}
        for number, node in enumerate(problem.nodes):
            for group in {problem.devices[device].group for device in node.devices()}:
                self._seeing.setdefault(group, []).append(number)
            self._of.append(self._enter(number))

    def first(self, state: int, allowed: Container[int] | None) -> int | None:
        """The first node in a state, of all or of those that are allowed."""
        members = self._members.get(state, [])
        if allowed is None:
            return members[0] if members else None
        return next((node for node in members if node in allowed), None)

    def changed(self, devices: list[int]) -> None:
        """Some devices were taken or given back: look again at every node that could tell."""
        problem = self._problem
        versions = (one for each in devices for one in self._versions(each))
        groups = {problem.devices[device].group for device in versions}
        for node in sorted({node for group in groups for node in self._seeing.get(group, ())}):
            before = self._of[node]
            members = self._members[before]
            del members[bisect_left(members, node)]
            self._of[node] = self._enter(node)

    def _versions(self, device: int) -> tuple[int, ...]:
        slot = self._problem.devices[device].slot
        return self._problem.versions[slot] if slot in self._problem.several_versions else (device,)

    def _enter(self, node: int) -> int:
        state = self._states.of_node(node)
        insort(self._members.setdefault(state, []), node)
        self.arrivals.append(state)
        return state
