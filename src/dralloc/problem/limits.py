"""What is limited for all devices of a driver by one name, so that it can be named, lifted and accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dralloc.names import ClaimKey
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.ledger import Scarcity, Shortage
from dralloc.problem.problem import Problem
from dralloc.problem.supply import Device

__all__ = ["Limit", "limit_behind", "limits_of", "used_by_limit"]


class Limit(NamedTuple):
    """A driver's counters of one name (KEP-4815), capacities of one name (KEP-5075), or groups that exclude each other.

    ``name`` is empty for groups (KEP-5963).
    """

    scarcity: Scarcity
    driver: str
    name: str = ""

    def __str__(self) -> str:
        what = self.name or "of devices"
        return f"{self.scarcity.value} {what} of {self.driver}"


def limits_of(problem: Problem) -> Iterator[Limit]:
    """Every limit that a problem has."""
    names = dict.fromkeys((counter.id.driver, counter.id.counter) for counter in problem.counters)
    counters = (Limit(Scarcity.COUNTER, *name) for name in names)
    capacities = (
        Limit(Scarcity.CAPACITY, device.id.driver, name)
        for device in problem.devices
        if device.shareable
        for name in device.capacity
    )
    groups = (Limit(Scarcity.GROUPS, device.id.driver) for device in problem.devices if not device.is_additive)
    yield from dict.fromkeys((*counters, *capacities, *groups))


def limit_behind(problem: Problem, device: Device, shortage: Shortage) -> Limit:
    """The limit that a shortage of a device is about; one of no problem if the device itself is short."""
    if isinstance(shortage.what, int) and shortage.scarcity is Scarcity.COUNTER:
        return _of_counter(problem, shortage.what)
    name = shortage.what if isinstance(shortage.what, str) else ""
    return Limit(shortage.scarcity, device.id.driver, name)


def used_by_limit(ledger: ClaimLedger) -> Mapping[Limit, Mapping[ClaimKey, int]]:
    """The claims that draw on the counters, and consume the capacities, of each name, with the sums in nanos."""
    problem = ledger.problem
    found: dict[Limit, dict[ClaimKey, int]] = {
        limit: {} for limit in limits_of(problem) if limit.scarcity is not Scarcity.GROUPS
    }
    for number in range(len(problem.counters)):
        holders = ledger.holders_of_counter(number)
        if holders:
            _add(found[_of_counter(problem, number)], holders)
    for slot, holdings in ledger.by_slot.items():
        driver = problem.devices[problem.versions[slot][0]].id.driver
        for name in dict.fromkeys(name for holding in holdings for name, _ in holding.charge.capacity):
            _add(found.setdefault(Limit(Scarcity.CAPACITY, driver, name), {}), ledger.holders_of_capacity(slot, name))
    return found


def _of_counter(problem: Problem, number: int) -> Limit:
    id_ = problem.counters[number].id
    return Limit(Scarcity.COUNTER, id_.driver, id_.counter)


def _add(total: dict[ClaimKey, int], amounts: Mapping[ClaimKey, int]) -> None:
    for claim, amount in amounts.items():
        total[claim] = total.get(claim, 0) + amount
