"""Rules that do not count: what there would be without some counters, capacities or compatibility groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dralloc.errors import AllocationError
from dralloc.problem import Capacity, Charge, Device, Problem
from dralloc.problem.eligibility import Overlay
from dralloc.problem.ledger import Ledger, Scarcity, Shortage

__all__ = ["NO_LIFT", "Lift", "lifted"]

_MUCH = 10**30
"""More than there is of anything, in nanos."""


@dataclass(frozen=True, slots=True)
class Lift:
    """What does not count: counters and capacities, by driver and name, and compatibility groups, by driver.

    ``lenient``: whether a selector that fails on a device leaves it out, as in the optimal mode, instead of ending the
    attempt.
    """

    counters: frozenset[tuple[str, str]] = frozenset()
    capacities: frozenset[tuple[str, str]] = frozenset()
    groups: frozenset[str] = frozenset()
    lenient: bool = False

    @property
    def lifts_any(self) -> bool:
        """Whether any rule does not count."""
        return bool(self.counters or self.capacities or self.groups)

    def lifts(self, problem: Problem, counter: int) -> bool:
        """Whether a counter does not count."""
        id_ = problem.counters[counter].id
        return (id_.driver, id_.counter) in self.counters

    def covers(self, problem: Problem, device: Device, shortage: Shortage) -> bool:
        """Whether a shortage of a device does not count."""
        match shortage.scarcity, shortage.what:
            case Scarcity.COUNTER, int(counter):
                return self.lifts(problem, counter)
            case Scarcity.CAPACITY, str(name):
                return (device.id.driver, name) in self.capacities
            case Scarcity.GROUPS, _:
                return device.id.driver in self.groups
            case _:
                return False


NO_LIFT = Lift()


def lifted(problem: Problem, lift: Lift) -> Problem:
    """The problem without what does not count.

    What does not count is drawn by nobody. Only where a cap is about it, or whoever draws on it must not come into use
    anyway because another counter is overdrawn, there is much of it instead.
    """
    return _Lifting(problem, lift).problem() if lift.lifts_any or lift.lenient else problem


class _Lifting:
    def __init__(self, problem: Problem, lift: Lift) -> None:
        self.whole = problem
        self.lift = lift
        self.capped = {budget.resource for budget in problem.budgets}
        ledger = Ledger(problem)
        self.gone = frozenset(
            number
            for number, counter in enumerate(problem.counters)
            if lift.lifts(problem, number)
            and counter.id.counter not in self.capped
            and all(lift.lifts(problem, other) for other in ledger.overdrawn(counter.group))
        )

    def problem(self) -> Problem:
        offers = _Lifted(self.whole.eligibility, self)
        if not self.lift.lifts_any:
            return replace(self.whole, eligibility=offers)
        counters = tuple(
            replace(counter, free=_MUCH) if self.lift.lifts(self.whole, number) else counter
            for number, counter in enumerate(self.whole.counters)
        )
        return replace(
            self.whole,
            devices=tuple(map(self._device, self.whole.devices)),
            counters=counters,
            eligibility=offers,
        )

    def _device(self, device: Device) -> Device:
        return replace(
            device,
            consumes=self.drawn(device.consumes),
            capacity=self._capacity(device),
            compatibility=() if device.id.driver in self.lift.groups else device.compatibility,
        )

    def _capacity(self, device: Device) -> Mapping[str, Capacity]:
        names = {name for driver, name in self.lift.capacities if driver == device.id.driver and name in self.capped}
        if not device.shareable or not names:
            return device.capacity
        return {
            name: replace(known, total=_MUCH) if name in names else known for name, known in device.capacity.items()
        }

    def drawn(self, draws: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """What counts of what is drawn from counters."""
        return tuple((number, amount) for number, amount in draws if number not in self.gone)

    def consumed(self, device: int, charge: Charge) -> Charge:
        """What counts of what an allocation takes."""
        if not charge.capacity and not charge.counters:
            return charge
        driver = self.whole.devices[device].id.driver
        capacity = tuple(
            (name, amount)
            for name, amount in charge.capacity
            if name in self.capped or (driver, name) not in self.lift.capacities
        )
        return replace(charge, capacity=capacity, counters=self.drawn(charge.counters))


@dataclass(eq=False)
class _Lifted(Overlay):
    lifting: _Lifting

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        verdict = self.base.selects(alternative, device)
        return verdict if isinstance(verdict, bool) or not self.lifting.lift.lenient else False

    def charge(self, alternative: int, device: int) -> Charge | None:
        charge = self.base.charge(alternative, device)
        return None if charge is None else self.lifting.consumed(device, charge)
