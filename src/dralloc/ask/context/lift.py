"""Rules that do not count: what there would be without some counters, capacities or groups of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dralloc.objects.errors import AllocationError
from dralloc.problem import Capacity, Charge, Device, Problem
from dralloc.problem.eligibility import Overlay
from dralloc.problem.ledger import Ledger, Scarcity
from dralloc.problem.limits import Limit

__all__ = ["NO_LIFT", "Lift", "lifted"]

_MUCH = 10**30
"""More than there is of anything, in nanos."""


@dataclass(frozen=True, slots=True)
class Lift:
    """The limits that do not count.

    They are limits of a problem, not a changed quantity of a cluster (see `dralloc.ask.scenario`): selectors read the
    value of a capacity, and who asks for nothing may take all of it, so that with a larger one something else would be
    asked for. And a part of a problem can be asked for many sets of limits without compiling a large cluster anew.

    ``lenient``: whether a selector that fails on a device leaves it out, as in the optimal mode, instead of ending the
    attempt.
    """

    limits: frozenset[Limit] = frozenset()
    lenient: bool = False


NO_LIFT = Lift()


def lifted(problem: Problem, lift: Lift) -> Problem:
    """The problem without what does not count.

    What does not count is drawn by nobody. Only where a cap is about it, or whoever draws on it must not come into use
    anyway because another counter is overdrawn, there is much of it instead.
    """
    return _Lifting(problem, lift).problem() if lift.limits or lift.lenient else problem


class _Lifting(Overlay):
    def __init__(self, problem: Problem, lift: Lift) -> None:
        super().__init__(problem.eligibility)
        self.whole = problem
        self.lift = lift
        self.capped = {budget.resource for budget in problem.budgets}
        self.names = {
            scarcity: {
                (one.driver, one.name)
                for one in lift.limits
                if one.scarcity is scarcity
            }
            for scarcity in Scarcity
        }
        ids = (counter.id for counter in problem.counters)
        counters = self.names[Scarcity.COUNTER]
        self.lifted = {
            number
            for number, id_ in enumerate(ids)
            if (id_.driver, id_.counter) in counters
        }
        self.gone = self._gone(Ledger(problem)) if self.lifted else set()

    def _gone(self, ledger: Ledger) -> set[int]:
        """The counters that nobody draws on any more."""
        return {
            number
            for number in self.lifted
            if self.whole.counters[number].id.counter not in self.capped
            and self.lifted.issuperset(
                ledger.overdrawn(self.whole.counters[number].group)
            )
        }

    def problem(self) -> Problem:
        if not self.lift.limits:
            return replace(self.whole, eligibility=self)
        counters = tuple(
            replace(counter, free=_MUCH) if number in self.lifted else counter
            for number, counter in enumerate(self.whole.counters)
        )
        devices = tuple(map(self._device, self.whole.devices))
        return replace(self.whole, devices=devices, counters=counters, eligibility=self)

    def _device(self, device: Device) -> Device:
        consumes, capacity = self._drawn(device.consumes), self._capacity(device)
        if consumes != device.consumes or capacity is not device.capacity:
            device = replace(device, consumes=consumes, capacity=capacity)
        grouped = (
            not device.is_additive
            and Limit(Scarcity.GROUPS, device.id.driver) in self.lift.limits
        )
        return device.without_groups() if grouped else device

    def _capacity(self, device: Device) -> Mapping[str, Capacity]:
        lifted = self.names[Scarcity.CAPACITY]
        names = {name for name in self.capped if (device.id.driver, name) in lifted}
        if not device.shareable or not names:
            return device.capacity
        return {
            name: replace(known, total=_MUCH) if name in names else known
            for name, known in device.capacity.items()
        }

    def _drawn(self, draws: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """What counts of what is drawn from counters."""
        return (
            tuple(pair for pair in draws if pair[0] not in self.gone)
            if self.gone
            else draws
        )

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`."""
        verdict = super().selects(alternative, device)
        return verdict if isinstance(verdict, bool) or not self.lift.lenient else False

    def charge(self, alternative: int, device: int) -> Charge | None:
        """What counts of what an allocation takes."""
        charge = super().charge(alternative, device)
        if charge is None or not (charge.capacity or charge.counters):
            return charge
        driver, lifted = (
            self.whole.devices[device].id.driver,
            self.names[Scarcity.CAPACITY],
        )
        capacity = tuple(
            pair
            for pair in charge.capacity
            if pair[0] in self.capped or (driver, pair[0]) not in lifted
        )
        return replace(charge, capacity=capacity, counters=self._drawn(charge.counters))
