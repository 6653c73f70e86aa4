"""The quantities that stranded capacity is counted in, and the rules that strand it.

Quantities are counters of pools, capacities of shareable devices, and devices; rules can be lifted, to see what there
is to be had without them.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from dralloc.ask.context.context import Lift
from dralloc.ask.context.offers import Offers
from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.names import PoolID
from dralloc.objects.quantity import NANOS
from dralloc.problem import Charge, CounterIndex, DeviceIndex, Problem, numbered
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Scarcity
from dralloc.problem.named_limits import Limit, limits_of

__all__ = [
    "LIFTED_IN_ORDER",
    "Cause",
    "LiftedOffers",
    "Quantities",
    "QuantityKey",
    "lift_of",
]

# ----------------------------------------------------------------------------
# What capacity is counted in: counters of pools, capacities of shareable devices, and
# devices.

QuantityKey = tuple[str, int, str]
"""``counter`` with its index, ``capacity`` with the device's slot and the name, or ``device`` with its slot."""

_NUMBERED: Final = re.compile(r"(.*?[^0-9])[0-9]+")


@dataclass(frozen=True, slots=True)
class MeasuredQuantity:
    """An amount of one resource that can be used up; in nanos.

    Parameters
    ----------
    pool, unit
        The pool, and in it the counter set or device that it belongs to.
    name
        What is counted, as reports show it. ``counter slice-*`` stands for the counters ``slice-0``, ``slice-1``, ...
        of one set.
    total, free
        What is published, and what nobody holds.
    positional
        Whether it stands for a place: a numbered counter of which every device takes all or nothing, like the memory
        slices of a GPU with MIG.
    """

    pool: PoolID
    unit: str
    name: str
    total: int
    free: int
    positional: bool = False


class Quantities:
    """Finds what there is to be used up.

    A device that draws on counters is counted by these, another shareable one by its capacities, and any other one as
    one device.
    """

    def __init__(self, compiled: CompiledCluster, ledger: ClaimLedger) -> None:
        self._problem = compiled.problem
        self._sources = compiled.inventory.sources
        self._ledger = ledger

    @cached_property
    def by_key(self) -> Mapping[QuantityKey, MeasuredQuantity]:
        """Return all of them."""
        return dict((*self._counters(), *self._of_devices()))

    def keys(self, device: DeviceIndex) -> Iterator[QuantityKey]:
        """Yield the quantities of a device that allocations can take."""
        for counter, _ in self._problem.devices[device].consumes:
            yield "counter", counter, ""
        for counter, _ in self._by_request(device):
            yield "counter", counter, ""
        published = self._problem.devices[device]
        if published.shareable:
            for entry in published.capacity.values():
                if entry.consumable:
                    yield "capacity", published.slot, entry.name
        elif self._is_plain(device):
            yield "device", published.slot, ""

    def once(self, device: DeviceIndex) -> Iterator[tuple[QuantityKey, int]]:
        """Yield the amounts that a device takes when it comes into use, whichever claim gets it."""
        published = self._problem.devices[device]
        if published.slot not in self._ledger.shares:
            for counter, amount in published.consumes:
                yield ("counter", counter, ""), amount
        if self._is_plain(device):
            yield ("device", published.slot, ""), NANOS

    def each_time(
        self, device: DeviceIndex, charge: Charge
    ) -> Iterator[tuple[QuantityKey, int]]:
        """Yield the further amounts that each allocation takes."""
        slot = self._problem.devices[device].slot
        for counter, amount in charge.counters:
            yield ("counter", counter, ""), amount
        for name, amount in charge.capacity:
            yield ("capacity", slot, name), amount

    def _is_plain(self, device: DeviceIndex) -> bool:
        """Whether it is counted as one device."""
        published = self._problem.devices[device]
        return not (
            published.shareable
            or published.consumes
            or self._by_request(device)
        )

    def _by_request(
        self, device: DeviceIndex
    ) -> tuple[tuple[CounterIndex, str], ...]:
        """Return the counters that requests for the device choose amounts of."""
        return self._sources[device].requested_counters

    def _counters(self) -> Iterator[tuple[QuantityKey, MeasuredQuantity]]:
        for counter_index, counter in numbered(self._problem.counters):
            id_, family = counter.id, self._family(counter_index)
            pool = PoolID(id_.driver, id_.pool)
            free = max(0, self._ledger.free[counter_index])
            name = f"counter {family or id_.counter}"
            yield (
                ("counter", counter_index, ""),
                MeasuredQuantity(
                    pool,
                    id_.counter_set,
                    name,
                    counter.total,
                    free,
                    bool(family),
                ),
            )

    def _family(self, counter_index: CounterIndex) -> str:
        """Return the name of a counter without its number if it stands for a place; empty if not."""
        counter = self._problem.counters[counter_index]
        stem = _stem(counter.id.counter)
        siblings = self._siblings[counter.group, counter.id.counter_set, stem]
        is_place = stem and siblings > 1 and counter_index not in self._divided
        return f"{stem}*" if is_place else ""

    @cached_property
    def _siblings(self) -> Tally[tuple[int, str, str]]:
        """Count how many undivided counters of a set are called alike but for their number."""
        return Tally(
            (counter.group, counter.id.counter_set, _stem(counter.id.counter))
            for counter_index, counter in numbered(self._problem.counters)
            if counter_index not in self._divided
        )

    @cached_property
    def _divided(self) -> set[CounterIndex]:
        """Return the counters of which some device takes a part, or takes what a claim asks for."""
        counters = self._problem.counters
        divided = {
            counter
            for source in self._sources
            for counter, _ in source.requested_counters
        }
        for device in self._problem.devices:
            divided.update(
                counter
                for counter, amount in device.consumes
                if amount != counters[counter].total
            )
        return divided

    def _of_devices(self) -> Iterator[tuple[QuantityKey, MeasuredQuantity]]:
        for slot, versions in self._problem.versions.items():
            device = self._problem.devices[versions[-1]]
            pool, name = device.id.pool_id, device.id.device
            is_held = slot in self._ledger.held
            if device.shareable:
                for entry in device.capacity.values():
                    if entry.consumable:
                        # Somebody may have a shareable device as a whole: then no share of it is free.
                        free = 0
                        if not is_held:
                            free = max(
                                0,
                                self._ledger.capacity_left(device, entry.name),
                            )
                        yield (
                            ("capacity", slot, entry.name),
                            MeasuredQuantity(
                                pool,
                                name,
                                f"capacity {entry.name}",
                                entry.total,
                                free,
                            ),
                        )
            elif self._is_plain(versions[-1]):
                is_used = is_held or slot in self._ledger.shares
                yield (
                    ("device", slot, ""),
                    MeasuredQuantity(
                        pool, name, "devices", NANOS, 0 if is_used else NANOS
                    ),
                )


def _stem(name: str) -> str:
    """Return a counter's name without its number; empty if it has none."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else ""


# ----------------------------------------------------------------------------
# Rules that strand capacity, and what there is to be had without them.


class Cause(StrEnum):
    """Why free capacity is of no use to the claims of a mix.

    ``NODE``: its node is cordoned. ``POD``: its node is not for the pods of the claims: by taints or selectors, for
    want of CPU, memory and the like, or by rules between pods. ``TAINT``: a taint of its device is not tolerated
    (KEP-5055). ``ALIGNMENT``: constraints of the claims over attributes (KEP-4381). ``GROUPS``: devices exclude each
    other (KEP-5963). ``POLICY``: amounts are rounded by request policies, or refused (KEP-5075). ``GEOMETRY``: the
    places that a device needs are not all free (numbered counters, KEP-4815). ``COUNTER``: another of its counters or
    capacities is short. ``SIZE``: the amounts that are asked for do not add up to it, or no device is left to take it
    with. ``UNWANTED``: no claim of the mix selects a device that takes of it.
    """

    NODE = "cordoned node"
    POD = "rules of pods"
    TAINT = "taint"
    ALIGNMENT = "attribute alignment"
    GROUPS = Scarcity.GROUPS.value
    POLICY = "share policy"
    GEOMETRY = "slice geometry"
    COUNTER = "counter"
    SIZE = "size"
    UNWANTED = "not asked for"


LIFTED_IN_ORDER: Final[Sequence[Cause]] = tuple(
    cause for cause in Cause if cause not in (Cause.SIZE, Cause.UNWANTED)
)
"""Rules that are lifted one after the other: each is charged with what can be used only since it does not count."""


_CAUSES: Final[Mapping[Scarcity, Cause]] = {
    Scarcity.COUNTER: Cause.COUNTER,
    Scarcity.CAPACITY: Cause.COUNTER,
    Scarcity.GROUPS: Cause.GROUPS,
}


def lift_of(
    problem: Problem, quantities: Quantities, lifted: frozenset[Cause]
) -> Lift:
    """Return the limits that do not count in a context once the rules behind some causes are lifted."""
    positional_limits = set()
    if Cause.GEOMETRY in lifted:
        for (_, counter, _), quantity in quantities.by_key.items():
            if quantity.positional:
                id_ = problem.counters[CounterIndex(counter)].id
                positional_limits.add(
                    Limit(Scarcity.COUNTER, id_.driver, id_.counter)
                )
    limits = (
        limit
        for limit in limits_of(problem)
        if limit in positional_limits or _CAUSES[limit.scarcity] in lifted
    )
    return Lift(frozenset(limits), lenient=True)


class LiftedOffers:
    """The eligibility of devices without some rules about devices: as in a scenario in which these are lifted.

    Parameters
    ----------
    compiled
        The cluster with all its rules. Its devices and alternatives have the same numbers in the scenarios, in which
        no device comes or goes and nothing else is asked for.
    """

    def __init__(self, compiled: CompiledCluster) -> None:
        self.compiled = compiled
        self._known = {frozenset[Cause](): Offers(compiled.table)}

    def without(self, lifted: frozenset[Cause]) -> Offers:
        """Return the offers where taints of devices, or request policies, do not count if among these causes."""
        about_devices = lifted & {Cause.TAINT, Cause.POLICY}
        if about_devices not in self._known:
            scenario = Scenario(self.compiled.cluster)
            if Cause.TAINT in about_devices:
                scenario = scenario.without_device_taints()
            if Cause.POLICY in about_devices:
                scenario = scenario.with_exact_amounts()
            table = self.compiled.again(scenario.cluster).table
            self._known[about_devices] = Offers(table)
        return self._known[about_devices]
