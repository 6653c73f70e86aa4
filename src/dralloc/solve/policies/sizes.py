"""Sizes: how large a demand is beside what there is."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Demand,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.first_fit.candidates import ClaimClasses

__all__ = ["PARTS", "Amounts", "Sizes", "amounts_of", "free_totals"]

PARTS: Final = 10**12
"""Sizes are in such parts of everything there is, rounded up."""

Amounts = Mapping[Hashable, int]


class Sizes:
    """Works out sizes, once for equal demands.

    Attributes
    ----------
    totals
        How much there is of each resource, in use or not.

    The size of a demand is its dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI'11): of each resource
    the part that it takes of all there is in the problem, of these the largest. Resources are, by driver: each counter
    by name, each capacity of shareable devices by name, and the number of dedicated devices that consume no counters.
    A request counts with the device, and the alternative, that costs least by the same measure; one for all devices
    with all that a node has for it, on the node where that is least.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._claim_classes = ClaimClasses(problem)
        self._sizes: dict[Hashable, int] = {}
        self._costs: dict[Hashable, Amounts] = {}
        self._choices_of: dict[Hashable, Sequence[Amounts]] = {}
        self.totals = _totals(problem)

    def of(self, demand: Demand) -> int:
        """The size of a demand, at least 1; 1 for one that can never be allocated."""
        claim_class = self._claim_classes.of(demand.claims)
        if claim_class is None:
            return 1
        if claim_class not in self._sizes:
            self._sizes[claim_class] = max(
                1, self._share(self._taken(demand.claims))
            )
        return self._sizes[claim_class]

    def taken(self, demand: Demand) -> Amounts:
        """The least amounts that a demand takes, by resource."""
        return self._taken(demand.claims)

    def least(self, demand: Demand) -> Amounts:
        """Return what the demand takes at least of each resource, whatever devices it gets; nothing of `All`."""
        least: Tally[Hashable] = Tally()
        for claim in demand.claims:
            for request in claim.requests:
                choices: list[Amounts] = []
                for alternative in request.alternatives:
                    choices += self._choices(alternative)
                if not choices:
                    continue
                # What some choice does without is not taken for certain.
                for name in set(choices[0]).intersection(*choices):
                    least[name] += min(amounts[name] for amounts in choices)
        return least

    def _choices(self, alternative: Alternative) -> Sequence[Amounts]:
        """Return the amounts that an alternative takes, for each class of devices that can serve it."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._choices_of:
            count = 0 if alternative.admin else alternative.count or 0
            choices: list[Amounts] = []
            for device in self._examples:
                # One that serves and takes nothing is a choice, too.
                if self._serves(alternative, device):
                    amounts = self._sum(alternative, (device,))
                    choices.append(_times(count, amounts))
            self._choices_of[key] = choices
        return self._choices_of[key]

    def _taken(self, claims: Sequence[Claim]) -> Amounts:
        """The least amounts that claims take."""
        total: Tally[Hashable] = Tally()
        for claim in claims:
            for request in claim.requests:
                costs = map(self._cost, request.alternatives)
                total.update(min(costs, key=self._share, default={}))
        return total

    def _cost(self, alternative: Alternative) -> Amounts:
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._costs:
            self._costs[key] = self._cost_of(alternative)
        return self._costs[key]

    def _cost_of(self, alternative: Alternative) -> Amounts:
        """Return the alternative's amounts on the cheapest devices; nothing without devices or with admin access."""
        if alternative.admin:
            return {}
        choices: Iterable[Iterable[DeviceIndex]]
        if alternative.count is None:
            count = 1
            choices = map(self._within_reach, self._problem.all_nodes)
        else:
            count = alternative.count
            choices = ((device,) for device in self._examples)
        costs = (self._sum(alternative, devices) for devices in choices)
        cheapest = min(filter(None, costs), key=self._share, default={})
        return _times(count, cheapest)

    def _within_reach(self, node: NodeIndex) -> Iterator[DeviceIndex]:
        # A pool may offer a node also what the node does not reach.
        for device in self._problem.nodes[node].devices():
            if self._problem.on_node(device, node):
                yield device

    def _sum(
        self, alternative: Alternative, devices: Iterable[DeviceIndex]
    ) -> Amounts:
        """Return the amounts that the alternative takes on all of these devices that can serve it."""
        eligibility, index = self._problem.eligibility, alternative.index
        total: Tally[Hashable] = Tally()
        for device in devices:
            charge = eligibility.charge(index, device)
            if charge is not None and self._serves(alternative, device):
                total.update(dict(_takes(self._problem, device, charge)))
        return total

    def _serves(self, alternative: Alternative, device: DeviceIndex) -> bool:
        """Return whether a device that nobody uses can serve an alternative."""
        eligibility, index = self._problem.eligibility, alternative.index
        return (
            eligibility.charge(index, device) is not None
            and eligibility.selects(index, device) is True
            and eligibility.admits(index, device)
        )

    def _share(self, amounts: Amounts) -> int:
        """The largest part that the amounts are of all there is."""
        shares = (
            -(-amount * PARTS // max(self.totals[name], 1))
            for name, amount in amounts.items()
        )
        return max(shares, default=0)

    @cached_property
    def _examples(self) -> Sequence[DeviceIndex]:
        """Return one device of each class: of equal keys, and with equal amounts of counters that have equal names."""
        device_key = self._problem.eligibility.device_key
        names = [counter.id.counter for counter in self._problem.counters]
        examples: dict[Hashable, DeviceIndex] = {}
        # Of millions of devices, each is looked at: so no amounts are added up.
        for index, device in numbered(self._problem.devices):
            consumed = tuple(
                [(names[at], amount) for at, amount in device.consumes]
            )
            kind = (
                device_key(index),
                device.id.driver,
                device.shareable,
                consumed,
            )
            if kind not in examples:
                examples[kind] = index
        return tuple(examples.values())


def _times(count: int, amounts: Amounts) -> Amounts:
    return {name: count * amount for name, amount in amounts.items()}


def _takes(
    problem: Problem, index: DeviceIndex, charge: Charge
) -> Iterator[tuple[Hashable, int]]:
    """Yield the amounts that an allocation takes; opening a shareable device is not for one claim to pay."""
    device = problem.devices[index]
    driver = device.id.driver
    consumes = [*charge.counters]
    if not device.shareable:
        consumes += device.consumes
    consumed: Tally[str] = Tally()
    for counter, amount in consumes:
        consumed[problem.counters[counter].id.counter] += amount
    for name, amount in consumed.items():
        yield ("counter", driver, name), amount
    for name, amount in charge.capacity:
        yield ("capacity", driver, name), amount
    if not device.shareable and not device.consumes:
        yield ("device", driver), 1


def amounts_of(problem: Problem, placement: Placement) -> Amounts:
    """Return the amount of each resource that a placement takes."""
    total: Tally[Hashable] = Tally()
    for _, device, charge in charged_grants(problem, (placement,)):
        total.update(dict(_takes(problem, device, charge)))
    return total


def _totals(problem: Problem) -> Amounts:
    """Return the total amount of each resource, in use or not."""
    totals: Tally[Hashable] = Tally()
    for counter in problem.counters:
        totals["counter", counter.id.driver, counter.id.counter] += (
            counter.total
        )
    for device in problem.devices:
        if device.shareable:
            for capacity in device.capacity.values():
                totals["capacity", device.id.driver, capacity.name] += (
                    capacity.total
                )
        elif not device.consumes:
            totals["device", device.id.driver] += 1
    return totals


def free_totals(problem: Problem, ledger: Ledger) -> Amounts:
    """Return the free amount of each resource."""
    totals: Tally[Hashable] = Tally()
    for counter, free in zip(problem.counters, ledger.free, strict=True):
        totals["counter", counter.id.driver, counter.id.counter] += max(0, free)
    for device in problem.devices:
        driver = device.id.driver
        if device.shareable:
            if not ledger.is_free(device):
                continue
            for name in device.capacity:
                free_capacity = ledger.capacity_left(device, name)
                totals["capacity", driver, name] += max(0, free_capacity)
        elif not device.consumes:
            totals["device", driver] += ledger.is_free(device)
    return totals
