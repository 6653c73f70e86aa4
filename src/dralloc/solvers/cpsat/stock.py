"""What is left of the inventory beside what allocated claims hold."""

from __future__ import annotations

from dralloc.problem import Charge, Device, Problem, counter_draws

__all__ = ["Stock"]


class Stock:
    """Answers whether a device, looked at alone, can still be given away."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._free = [counter.free for counter in problem.counters]
        self._may_open: dict[int, bool] = {}
        self._overdrawn = {counter.group for counter in problem.counters if counter.free < 0}

    def is_free(self, device: int) -> bool:
        """Whether nobody has the device for itself, and nobody shares what was dedicated."""
        view, usage = self.problem.devices[device], self.problem.usage
        return view.slot not in usage.held and (view.shareable or view.slot not in usage.shares)

    def has_room(self, device: int, charge: Charge) -> bool:
        """Whether enough of each capacity is left."""
        view = self.problem.devices[device]
        consumed = self.problem.usage.consumed.get(view.slot, {})
        return all(consumed.get(name, 0) + amount <= view.capacity[name].total for name, amount in charge.capacity)

    def has_counters(self, device: int, charge: Charge) -> bool:
        """Whether the device leaves its counters within what is free."""
        if charge.counters:
            return self._may_draw(device, charge)
        if device not in self._may_open:
            self._may_open[device] = self._may_draw(device, charge)
        return self._may_open[device]

    def _may_draw(self, device: int, charge: Charge) -> bool:
        """Nothing of a group with an overdrawn counter is opened; what is shared already is charged already."""
        view, free = self.problem.devices[device], self._free
        opens = view.slot not in self.problem.usage.shares
        if opens and view.consumes and view.group in self._overdrawn:
            return False
        if opens and view.compatibility and not self._is_compatible(view):
            return False
        for counter, amount in counter_draws(view, charge, opening=opens):  # noqa: SIM110 - an inner loop
            if amount > free[counter]:
                return False
        return True

    def _is_compatible(self, view: Device) -> bool:
        """Whether it has a group in common with whatever is in use on its counter sets (KEP-5963)."""
        in_use = self.problem.usage.compatibility
        return all(not groups.isdisjoint(in_use.get(number, groups)) for number, groups in view.compatibility)
