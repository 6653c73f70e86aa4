"""What is limited for all devices of a driver by one name, so that it can be named, lifted and accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dralloc.objects.names import ClaimKey
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.indices import CounterIndex, summed
from dralloc.problem.ledger import Scarcity, Shortage
from dralloc.problem.problem import Problem
from dralloc.problem.supply import Device

__all__ = ["Limit", "limit_behind", "limits_of", "users_of"]


class Limit(NamedTuple):
    """A driver's counters of one name (KEP-4815), capacities of one name (KEP-5075), or groups that exclude each other.

    ``name`` is empty for groups (KEP-5963).
    """

    scarcity: Scarcity
    driver: str
    name: str = ""

    def __str__(self) -> str:
        name = self.name or "of devices"
        return f"{self.scarcity.value} {name} of {self.driver}"


def limits_of(problem: Problem) -> Iterator[Limit]:
    """Every limit that a problem has."""
    counters = (
        Limit(Scarcity.COUNTER, *name) for name in problem.counters_by_name
    )
    capacities = (
        Limit(Scarcity.CAPACITY, device.id.driver, name)
        for device in problem.devices
        if device.shareable
        for name in device.capacity
    )
    groups = (
        Limit(Scarcity.GROUPS, device.id.driver)
        for device in problem.devices
        if not device.is_additive
    )
    yield from dict.fromkeys((*counters, *capacities, *groups))


def limit_behind(problem: Problem, device: Device, shortage: Shortage) -> Limit:
    """The limit that a shortage of a device is about; one of no problem if the device itself is short."""
    if (
        isinstance(shortage.subject, int)
        and shortage.scarcity is Scarcity.COUNTER
    ):
        id_ = problem.counters[CounterIndex(shortage.subject)].id
        return Limit(Scarcity.COUNTER, id_.driver, id_.counter)
    name = shortage.subject if isinstance(shortage.subject, str) else ""
    return Limit(shortage.scarcity, device.id.driver, name)


def users_of(ledger: ClaimLedger, limit: Limit) -> Mapping[ClaimKey, int]:
    """The claims that draw on the counters, or consume the capacities, of a name, with the sums in nanos."""
    problem = ledger.problem
    if limit.scarcity is Scarcity.COUNTER:
        counters = problem.counters_by_name[limit.driver, limit.name]
        return summed(
            pair
            for counter in counters
            for pair in ledger.holders_of_counter(counter).items()
        )
    slots = (
        slot
        for slot in ledger.by_slot
        if problem.devices[problem.versions[slot][0]].id.driver == limit.driver
    )
    return summed(
        pair
        for slot in slots
        for pair in ledger.holders_of_capacity(slot, limit.name).items()
    )
